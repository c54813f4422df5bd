use std::sync::Arc;

use iceberg::spec as theirs;

use super::*;
use crate::commits::rebase::manifest::tests::{bytes, data, equality};

fn merged() -> ManifestFile {
    ManifestFile {
        path: "merged".to_owned(),
        spec_id: 3,
        added_snapshot_id: 7,
        min_sequence_number: 2,
        added_files: 2,
        existing_files: 1,
        added_rows: 20,
        existing_rows: 10,
        first_row_id: Some(40),
        ..ManifestFile::default()
    }
}

#[test]
fn what_a_merge_carried_over_is_left_out() {
    let whole = bytes(&[
        data("old", 5).numbered(2).as_(Status::Existing),
        data("a", 7),
        data("dead", 5).numbered(2).as_(Status::Deleted),
        data("b", 7),
    ]);
    let own = own_entries(&whole, 7).unwrap();
    assert_eq!(own.entries, [data("a", 7).entry, data("b", 7).entry]);
    let described = own.describe(&merged(), "own", 9);
    let counts = (described.added_files, described.existing_files, described.added_rows, described.existing_rows);
    assert_eq!(counts, (2, 0, 20, 0));
    assert_eq!((described.min_sequence_number, described.first_row_id, described.spec_id), (9, None, 3));
    assert_eq!(described.length_bytes, own.bytes.len() as i64);
}

#[test]
fn the_new_manifest_keeps_the_schema_and_the_entries_to_the_byte() {
    let whole = bytes(&[data("a", 7), data("old", 5).numbered(2).as_(Status::Existing), equality("b", 7)]);
    assert_eq!(own_entries(&whole, 7).unwrap().bytes, bytes(&[data("a", 7), equality("b", 7)]));
}

#[test]
fn a_manifest_that_only_carried_over_is_empty() {
    let own = own_entries(&bytes(&[data("old", 5).numbered(2).as_(Status::Existing)]), 7).unwrap();
    assert!(own.entries.is_empty());
}

#[test]
fn more_rows_than_can_be_counted_are_the_most_that_can() {
    let huge = |path| {
        let mut huge = data(path, 7);
        huge.entry.record_count = i64::MAX;
        huge
    };
    let own = own_entries(&bytes(&[huge("a"), huge("b")]), 7).unwrap();
    assert_eq!(own.describe(&merged(), "own", 9).added_rows, i64::MAX);
}

#[test]
fn a_snapshot_that_deletes_a_file_is_not_taken_apart() {
    for (entry, message) in
        [(data("a", 7).as_(Status::Deleted), "it deletes a"), (data("a", 5), "a was added by another snapshot")]
    {
        let fault = own_entries(&bytes(&[data("b", 7), entry]), 7).unwrap_err();
        assert_eq!(fault.to_string(), message);
    }
    assert!(matches!(own_entries(b"PAR1", 7), Err(Fault::Unreadable(_))));
}

fn their_file(path: &str) -> theirs::DataFile {
    theirs::DataFileBuilder::default()
        .content(theirs::DataContentType::Data)
        .file_path(path.to_owned())
        .file_format(theirs::DataFileFormat::Parquet)
        .partition(theirs::Struct::from_iter([Some(theirs::Literal::date(7))]))
        .record_count(10)
        .file_size_in_bytes(100)
        .lower_bounds([(1, theirs::Datum::date(7))].into())
        .split_offsets(Some(vec![4]))
        .build()
        .unwrap()
}

/// A manifest as the `iceberg` crate writes it, with one file carried over and one added, partitioned by a date.
async fn their_manifest(format_version: u8) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.avro");
    let column = theirs::NestedField::optional(1, "d", theirs::Type::Primitive(theirs::PrimitiveType::Date));
    let schema = Arc::new(theirs::Schema::builder().with_fields([Arc::new(column)]).build().unwrap());
    let spec = theirs::PartitionSpec::builder(schema.clone());
    let spec = spec.add_partition_field("d", "d", theirs::Transform::Identity).unwrap().build().unwrap();
    let output = iceberg::io::FileIO::new_with_fs().new_output(path.to_str().unwrap()).unwrap();
    let builder = theirs::ManifestWriterBuilder::new(output, Some(7), schema, spec);
    let mut writer = match format_version {
        1 => builder.build_v1(),
        2 => builder.build_v2_data(),
        _ => builder.build_v3_data(),
    };
    writer.add_existing_file(their_file("old"), 5, 2, Some(2)).unwrap();
    writer.add_file(their_file("mine"), -1).unwrap();
    writer.write_manifest_file().await.unwrap();
    std::fs::read(path).unwrap()
}

#[tokio::test]
async fn the_iceberg_crate_reads_what_was_taken_apart() {
    for format_version in 1..=3 {
        let whole = their_manifest(format_version).await;
        let own = own_entries(&whole, 7).unwrap();
        let (before, after) =
            (theirs::Manifest::parse_avro(&whole).unwrap(), theirs::Manifest::parse_avro(&own.bytes).unwrap());
        assert_eq!(after.metadata(), before.metadata());
        assert_eq!(after.entries(), &before.entries()[1..]);
        assert_eq!(after.entries()[0].file_path(), "mine");
    }
}
