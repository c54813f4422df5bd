//! Table properties that change what the catalog does.

use super::TableMetadata;

pub(crate) const FORMAT_VERSION: &str = "format-version";
pub(crate) const PARQUET_COMPRESSION: &str = "write.parquet.compression-codec";
pub(crate) const METADATA_PATH: &str = "write.metadata.path";
pub(crate) const METADATA_COMPRESSION: &str = "write.metadata.compression-codec";
const PREVIOUS_VERSIONS_MAX: &str = "write.metadata.previous-versions-max";
const PREVIOUS_VERSIONS_MAX_DEFAULT: usize = 100;
const DELETE_AFTER_COMMIT: &str = "write.metadata.delete-after-commit.enabled";

/// Keys by which engines ask for something when they create a table. They are never stored.
const RESERVED: [&str; 9] = [
    FORMAT_VERSION,
    "uuid",
    "snapshot-count",
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
];

pub(crate) fn is_reserved(key: &str) -> bool {
    RESERVED.contains(&key)
}

/// How many earlier metadata files the log keeps; at least one.
pub(crate) fn previous_versions_max(metadata: &TableMetadata) -> usize {
    let asked = metadata.property(PREVIOUS_VERSIONS_MAX).and_then(|value| value.trim().parse::<i64>().ok());
    asked.map_or(PREVIOUS_VERSIONS_MAX_DEFAULT, |max| usize::try_from(max).unwrap_or(1).max(1))
}

pub(crate) fn deletes_old_metadata(metadata: &TableMetadata) -> bool {
    metadata.property(DELETE_AFTER_COMMIT).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_metadata_is_deleted_only_where_the_table_says_true() {
        let document = |value: &str| {
            format!(
                r#"{{"format-version":1,"location":"s3://b/t","last-updated-ms":1,"last-column-id":0,
                "schema":{{"type":"struct","fields":[]}},"partition-spec":[],"properties":{{"{DELETE_AFTER_COMMIT}":"{value}"}}}}"#
            )
        };
        for (value, deletes) in [
            ("true", true),
            ("TRUE", true),
            ("True", true),
            ("false", false),
            ("False", false),
            ("", false),
            ("1", false),
            ("yes", false),
            (" true", false),
        ] {
            let table = TableMetadata::parse(document(value).as_bytes()).unwrap();
            assert_eq!(deletes_old_metadata(&table), deletes, "'{value}'");
        }
    }
}
