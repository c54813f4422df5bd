//! Names of metadata files.

use uuid::Uuid;

use super::{TableMetadata, properties};

/// Where the next metadata file goes: `<folder>/<version>-<file id>[.gz].metadata.json`.
///
/// The version is one more than that in the previous file's name, 0 where there is no previous file or no number in
/// its name. `write.metadata.path` moves the folder, `write.metadata.compression-codec` = `gzip` adds `.gz`.
pub fn next_metadata_location(metadata: &TableMetadata, previous: Option<&str>, file_id: Uuid) -> String {
    let version = previous.and_then(version_of).map_or(0, |version| version.saturating_add(1));
    let codec = metadata.property(properties::METADATA_COMPRESSION).unwrap_or("none");
    let extension = if codec.eq_ignore_ascii_case("gzip") { ".gz" } else { "" };
    let folder = metadata_folder(metadata);
    format!("{folder}/{version:05}-{file_id}{extension}.metadata.json")
}

/// The folder that a table's metadata files, manifest lists and manifests go to, without a slash at its end.
pub(crate) fn metadata_folder(metadata: &TableMetadata) -> String {
    match metadata.property(properties::METADATA_PATH) {
        Some(path) => without_trailing_slash(path).to_owned(),
        None => format!("{}/metadata", without_trailing_slash(metadata.location())),
    }
}

/// Whether a metadata file of this name is gzipped: `….gz.metadata.json`, or `….metadata.json.gz` of old writers.
pub fn is_gzipped_name(location: &str) -> bool {
    location.ends_with(".metadata.json.gz") || location.ends_with(".gz.metadata.json")
}

/// A location without slashes at its end; the two after a scheme stay.
pub(crate) fn without_trailing_slash(location: &str) -> &str {
    let mut rest = location;
    while let Some(shorter) = rest.strip_suffix('/').filter(|_| !rest.ends_with("://")) {
        rest = shorter;
    }
    rest
}

fn version_of(location: &str) -> Option<u32> {
    let name = location.rsplit('/').next()?;
    name.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(properties: &str) -> TableMetadata {
        table_at("s3://b/t", properties)
    }

    fn table_at(location: &str, properties: &str) -> TableMetadata {
        let text = format!(
            r#"{{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"{location}","last-sequence-number":0,
            "last-updated-ms":1,"last-column-id":0,"current-schema-id":0,"schemas":[{{"type":"struct","schema-id":0,"fields":[]}}],
            "default-spec-id":0,"partition-specs":[{{"spec-id":0,"fields":[]}}],"last-partition-id":999,
            "default-sort-order-id":0,"sort-orders":[{{"order-id":0,"fields":[]}}],"properties":{properties}}}"#
        );
        TableMetadata::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_next_name_counts_on_from_the_previous_one() {
        let id = Uuid::from_u128(7);
        for (previous, number) in [
            (None, "00000"),
            (Some("s3://b/t/metadata/00000-x.metadata.json"), "00001"),
            (Some("s3://elsewhere/00099-x.gz.metadata.json"), "00100"),
            (Some("s3://b/t/metadata/123456-x.metadata.json"), "123457"),
            (Some("s3://b/t/metadata/v3.metadata.json"), "00000"),
            (Some("s3://b/t/metadata/abc-x.metadata.json"), "00000"),
        ] {
            let expected = format!("s3://b/t/metadata/{number}-{id}.metadata.json");
            assert_eq!(next_metadata_location(&table("{}"), previous, id), expected);
        }
    }

    #[test]
    fn properties_move_the_folder_and_ask_for_gzip() {
        let table = table(r#"{"write.metadata.path":"s3://m/t/","write.metadata.compression-codec":"GZIP"}"#);
        let location = next_metadata_location(&table, None, Uuid::nil());
        assert_eq!(location, format!("s3://m/t/00000-{}.gz.metadata.json", Uuid::nil()));
        assert!(is_gzipped_name(&location));
        assert!(is_gzipped_name("a/00001-x.metadata.json.gz"));
        assert!(!is_gzipped_name("a/00001-x.metadata.json"));
    }

    #[test]
    fn a_location_with_slashes_at_its_end_gives_a_name_without_empty_parts() {
        for (location, folder) in [
            ("s3://b/t/", "s3://b/t/metadata"),
            ("file:///w/t//", "file:///w/t/metadata"),
            ("file:/w/t/", "file:/w/t/metadata"),
            ("s3://b/", "s3://b/metadata"),
        ] {
            let table = table_at(location, "{}");
            let next = next_metadata_location(&table, None, Uuid::nil());
            assert_eq!(next, format!("{folder}/00000-{}.metadata.json", Uuid::nil()));
            assert_eq!(table.location(), location, "the document stays as it is");
        }
    }

    #[test]
    fn slashes_at_the_end_of_a_location_go() {
        assert_eq!(without_trailing_slash("s3://b/t//"), "s3://b/t");
        assert_eq!(without_trailing_slash("file:///"), "file://");
        assert_eq!(without_trailing_slash("s3://"), "s3://");
    }
}
