use iceberg::spec as theirs;

use super::super::*;
use super::*;

fn rich(first_row_id: Option<i64>) -> ManifestFile {
    ManifestFile {
        path: "s3://b/t/metadata/a b.avro".to_owned(),
        length_bytes: 7,
        spec_id: 3,
        content: Content::Deletes,
        sequence_number: 9,
        min_sequence_number: 2,
        added_snapshot_id: i64::MAX,
        added_files: 1,
        existing_files: 2,
        deleted_files: 3,
        added_rows: 4,
        existing_rows: 5,
        deleted_rows: 6,
        partitions: Some(vec![FieldSummary {
            contains_null: false,
            contains_nan: Some(true),
            lower_bound: Some(vec![1, 2]),
            upper_bound: None,
        }]),
        key_metadata: Some(vec![8]),
        first_row_id,
    }
}

fn head(format_version: u8) -> Head {
    Head { format_version, snapshot_id: 5, parent_id: Some(4), sequence_number: 9, first_row_id: Some(100) }
}

/// As format version 1 can have it.
fn plain() -> ManifestFile {
    ManifestFile {
        content: Content::Data,
        sequence_number: 0,
        min_sequence_number: 0,
        first_row_id: None,
        ..rich(None)
    }
}

/// A list that follows nothing.
fn bytes(head: &Head, manifests: &[ManifestFile]) -> Bytes {
    write(head, manifests, &List::default()).unwrap().bytes
}

#[test]
fn what_is_written_is_read_back() {
    for (format_version, manifest) in [(1, plain()), (2, rich(None)), (3, rich(Some(100))), (3, rich(None))] {
        let bare = ManifestFile { path: "x".to_owned(), ..ManifestFile::default() };
        let list = List { format_version, manifests: vec![manifest, bare], written: None };
        assert_eq!(read(&bytes(&head(format_version), &list.manifests)).unwrap(), list);
    }
}

/// The header's entries that are about the snapshot.
fn told(bytes: &[u8]) -> Vec<(&'static str, String)> {
    let file = File::open(bytes).unwrap();
    ["snapshot-id", "parent-snapshot-id", "format-version", "sequence-number", "first-row-id"]
        .into_iter()
        .filter_map(|key| Some((key, file.header(key)?.to_owned())))
        .collect()
}

#[test]
fn the_header_tells_of_the_snapshot_what_its_format_version_knows() {
    let all = [
        ("snapshot-id", "5"),
        ("parent-snapshot-id", "4"),
        ("format-version", ""),
        ("sequence-number", "9"),
        ("first-row-id", "100"),
    ];
    for (format_version, entries) in [(1, 3), (2, 4), (3, 5)] {
        let mut expected: Vec<_> = all[..entries].iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        expected[2].1 = format_version.to_string();
        assert_eq!(told(&bytes(&head(format_version), &[])), expected);
    }
    let first = Head { parent_id: None, ..head(2) };
    assert_eq!(told(&bytes(&first, &[]))[1], ("parent-snapshot-id", "null".to_owned()));
}

#[test]
fn every_field_has_its_id() {
    for (format_version, fields) in [(1, 12), (2, 15), (3, 16)] {
        let bytes = bytes(&head(format_version), &[]);
        let file = File::open(&bytes).unwrap();
        let ids: Vec<i64> = (500..=520).filter(|id| Fields::of(file.schema()).contains(*id)).collect();
        assert_eq!(ids.len(), fields, "{ids:?}");
    }
}

#[test]
fn a_list_whose_header_says_nothing_is_known_by_its_schema() {
    for format_version in 1..=3 {
        let columns = columns(format_version);
        let bytes = Writer::new(&schema(&columns), Vec::new()).into_inner().unwrap();
        assert_eq!(read(&bytes).unwrap().format_version, format_version);
    }
}

/// One record of format version 1 with the new names of counts, and with one value of it changed.
fn renamed(change: impl Fn(&mut Vec<(String, Value)>)) -> Vec<u8> {
    let mut columns = columns(1);
    for (old, new) in [("added_data_files_count", "added_files_count"), ("manifest_path", "path")] {
        columns.iter_mut().filter(|column| column.name == old).for_each(|column| column.name = new);
    }
    let schema = schema(&columns);
    let mut fields = columns.iter().map(|column| (column.name.to_owned(), column.value(&plain()))).collect();
    change(&mut fields);
    let mut writer = Writer::new(&schema, Vec::new());
    writer.append(Value::Record(fields)).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn fields_are_found_by_their_ids() {
    assert_eq!(read(&renamed(|_| {})).unwrap().manifests, [plain()]);
}

#[test]
fn a_list_that_does_not_count_its_files_is_unreadable() {
    let count = |value: Option<Value>| move |fields: &mut Vec<(String, Value)>| fields[4].1 = optional(value.clone());
    for value in [None, Some(Value::Int(-1))] {
        let error = read(&renamed(count(value))).unwrap_err();
        assert!(matches!(error, Unreadable::NoField("added_files_count")), "{error}");
    }
}

#[test]
fn the_iceberg_crate_reads_what_is_written_here() {
    for (format_version, version, manifest) in [
        (1, theirs::FormatVersion::V1, plain()),
        (2, theirs::FormatVersion::V2, rich(None)),
        (3, theirs::FormatVersion::V3, rich(Some(100))),
    ] {
        let bytes = bytes(&head(format_version), std::slice::from_ref(&manifest));
        let list = theirs::ManifestList::parse_with_version(&bytes, version).unwrap();
        let [read] = list.entries() else { panic!("one manifest") };
        assert_eq!(ours(read), manifest);
    }
}

/// A list of so many manifests, each put on the one before: as the server writes them, and as it knows them.
fn grown(format_version: u8, count: usize) -> List {
    let mut list = List { format_version, ..List::default() };
    for n in 0..count {
        let manifest = ManifestFile { path: format!("m{n}"), ..plain() };
        let manifests = [vec![manifest], list.manifests.clone()].concat();
        let written = write(&head(format_version), &manifests, &list).unwrap();
        list = List { manifests, written: Some(written), ..list };
    }
    list
}

#[test]
fn a_list_that_only_adds_to_another_has_all_of_it() {
    for count in [1, BLOCK_MANIFESTS - 1, BLOCK_MANIFESTS, 2 * BLOCK_MANIFESTS + 1] {
        let list = grown(1, count);
        let written = list.written.as_ref().unwrap();
        assert_eq!(read(&written.bytes).unwrap().manifests, list.manifests, "{count}");
        assert!(written.open < BLOCK_MANIFESTS, "{count}");
        let theirs = theirs::ManifestList::parse_with_version(&written.bytes, theirs::FormatVersion::V1).unwrap();
        assert_eq!(theirs.entries().len(), count);
    }
}

#[test]
fn full_blocks_are_taken_over_as_they_stand() {
    let list = grown(1, BLOCK_MANIFESTS);
    let full = &list.written.as_ref().unwrap().bytes[list.written.as_ref().unwrap().full_at..];
    let manifests = [vec![plain()], list.manifests.clone()].concat();
    let written = write(&head(1), &manifests, &list).unwrap();
    assert!(!full.is_empty() && written.bytes.ends_with(full));
    assert_eq!(written.open, 1);
}

#[test]
fn a_list_that_changes_what_is_there_is_written_anew() {
    let list = grown(1, BLOCK_MANIFESTS + 1);
    let dropped = &list.manifests[..BLOCK_MANIFESTS];
    let changed = [&[ManifestFile { added_rows: 0, ..plain() }], dropped].concat();
    for (format_version, manifests) in [(1, dropped.to_vec()), (1, changed), (2, list.manifests.clone())] {
        let written = write(&head(format_version), &manifests, &list).unwrap();
        assert_eq!(read(&written.bytes).unwrap(), List { format_version, manifests, written: None });
    }
}

fn ours(read: &theirs::ManifestFile) -> ManifestFile {
    let summary = |summary: &theirs::FieldSummary| FieldSummary {
        contains_null: summary.contains_null,
        contains_nan: summary.contains_nan,
        lower_bound: summary.lower_bound.as_ref().map(|bound| bound.to_vec()),
        upper_bound: summary.upper_bound.as_ref().map(|bound| bound.to_vec()),
    };
    ManifestFile {
        path: read.manifest_path.clone(),
        length_bytes: read.manifest_length,
        spec_id: read.partition_spec_id,
        content: if read.content == theirs::ManifestContentType::Data { Content::Data } else { Content::Deletes },
        sequence_number: read.sequence_number,
        min_sequence_number: read.min_sequence_number,
        added_snapshot_id: read.added_snapshot_id,
        added_files: read.added_files_count.unwrap() as i32,
        existing_files: read.existing_files_count.unwrap() as i32,
        deleted_files: read.deleted_files_count.unwrap() as i32,
        added_rows: read.added_rows_count.unwrap() as i64,
        existing_rows: read.existing_rows_count.unwrap() as i64,
        deleted_rows: read.deleted_rows_count.unwrap() as i64,
        partitions: read.partitions.as_ref().map(|all| all.iter().map(summary).collect()),
        key_metadata: read.key_metadata.clone(),
        first_row_id: read.first_row_id.map(|id| id as i64),
    }
}
