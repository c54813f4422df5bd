//! What a commit may ask a table to change.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::json::{Checked, Flaw, Object, check_nesting};
use super::{EncryptionKey, Snapshot, SnapshotRef, StatisticsFile};
use crate::error::Result;

/// One table update of the REST spec. Objects that are to be stored stay as they were received.
#[derive(Debug, Clone)]
pub enum TableUpdate {
    AssignUuid {
        uuid: Uuid,
    },
    UpgradeFormatVersion {
        format_version: i64,
    },
    AddSchema {
        schema: Box<RawValue>,
    },
    /// -1 is the schema that this request added last.
    SetCurrentSchema {
        schema_id: i32,
    },
    AddSpec {
        spec: Box<RawValue>,
    },
    /// -1 is the spec that this request added last.
    SetDefaultSpec {
        spec_id: i32,
    },
    AddSortOrder {
        sort_order: Box<RawValue>,
    },
    /// -1 is the order that this request added last.
    SetDefaultSortOrder {
        sort_order_id: i32,
    },
    AddSnapshot {
        snapshot: Arc<Snapshot>,
    },
    SetSnapshotRef {
        ref_name: String,
        target: SnapshotRef,
    },
    RemoveSnapshots {
        snapshot_ids: Vec<i64>,
    },
    RemoveSnapshotRef {
        ref_name: String,
    },
    SetLocation {
        location: String,
    },
    SetProperties {
        updates: BTreeMap<String, String>,
    },
    RemoveProperties {
        removals: Vec<String>,
    },
    RemovePartitionSpecs {
        spec_ids: Vec<i32>,
    },
    RemoveSchemas {
        schema_ids: Vec<i32>,
    },
    SetStatistics {
        statistics: StatisticsFile,
    },
    RemoveStatistics {
        snapshot_id: i64,
    },
    SetPartitionStatistics {
        partition_statistics: StatisticsFile,
    },
    RemovePartitionStatistics {
        snapshot_id: i64,
    },
    AddEncryptionKey {
        encryption_key: Arc<EncryptionKey>,
    },
    RemoveEncryptionKey {
        key_id: String,
    },
}

impl TableUpdate {
    /// Reads one element of `updates`; an unknown action is `Invalid`.
    pub fn parse(raw: &RawValue) -> Result<Self> {
        check_nesting(raw.get())?;
        Ok(Self::read(raw)?)
    }

    /// The id of the snapshot that this update adds.
    pub fn added_snapshot_id(&self) -> Option<i64> {
        match self {
            Self::AddSnapshot { snapshot } => Some(snapshot.id()),
            _ => None,
        }
    }

    fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let action = object.required::<String>("action")?.to_ascii_lowercase();
        let read = read_shape(&action, &object)
            .or_else(|| read_snapshots(&action, &object))
            .or_else(|| read_rest(&action, &object));
        match read {
            Some(update) => update.map_err(|flaw| flaw.under(action)),
            None => Err(Flaw::new(format!("unknown table update '{action}'")).under("action")),
        }
    }
}

impl<'de> Deserialize<'de> for TableUpdate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(&raw).map_err(|error| de::Error::custom(error.message()))
    }
}

/// Schemas, partition specs, sort orders and what stands beside them in the head.
fn read_shape(action: &str, object: &Object<'_>) -> Option<Checked<TableUpdate>> {
    let owned = |key: &str| object.required_raw(key).map(ToOwned::to_owned);
    Some(match action {
        "assign-uuid" => object.required("uuid").map(|uuid| TableUpdate::AssignUuid { uuid }),
        "upgrade-format-version" => {
            object.required("format-version").map(|format_version| TableUpdate::UpgradeFormatVersion { format_version })
        }
        "add-schema" => owned("schema").map(|schema| TableUpdate::AddSchema { schema }),
        "set-current-schema" => {
            object.required("schema-id").map(|schema_id| TableUpdate::SetCurrentSchema { schema_id })
        }
        "remove-schemas" => object.required("schema-ids").map(|schema_ids| TableUpdate::RemoveSchemas { schema_ids }),
        "add-spec" => owned("spec").map(|spec| TableUpdate::AddSpec { spec }),
        "set-default-spec" => object.required("spec-id").map(|spec_id| TableUpdate::SetDefaultSpec { spec_id }),
        "remove-partition-specs" => {
            object.required("spec-ids").map(|spec_ids| TableUpdate::RemovePartitionSpecs { spec_ids })
        }
        "add-sort-order" => owned("sort-order").map(|sort_order| TableUpdate::AddSortOrder { sort_order }),
        "set-default-sort-order" => {
            object.required("sort-order-id").map(|sort_order_id| TableUpdate::SetDefaultSortOrder { sort_order_id })
        }
        _ => return None,
    })
}

fn read_snapshots(action: &str, object: &Object<'_>) -> Option<Checked<TableUpdate>> {
    Some(match action {
        "add-snapshot" => nested(object, "snapshot", Snapshot::read_new)
            .map(|snapshot| TableUpdate::AddSnapshot { snapshot: Arc::new(snapshot) }),
        "set-snapshot-ref" => read_ref(object),
        "remove-snapshots" => {
            object.required("snapshot-ids").map(|snapshot_ids| TableUpdate::RemoveSnapshots { snapshot_ids })
        }
        "remove-snapshot-ref" => {
            object.required("ref-name").map(|ref_name| TableUpdate::RemoveSnapshotRef { ref_name })
        }
        "set-statistics" => read_statistics(object, "statistics", StatisticsFile::check_of_table)
            .map(|statistics| TableUpdate::SetStatistics { statistics }),
        "remove-statistics" => {
            object.required("snapshot-id").map(|snapshot_id| TableUpdate::RemoveStatistics { snapshot_id })
        }
        "set-partition-statistics" => {
            read_statistics(object, "partition-statistics", StatisticsFile::check_of_partitions)
                .map(|partition_statistics| TableUpdate::SetPartitionStatistics { partition_statistics })
        }
        "remove-partition-statistics" => {
            object.required("snapshot-id").map(|snapshot_id| TableUpdate::RemovePartitionStatistics { snapshot_id })
        }
        _ => return None,
    })
}

/// Location, properties (whose old spellings are read for good) and encryption keys.
fn read_rest(action: &str, object: &Object<'_>) -> Option<Checked<TableUpdate>> {
    let either = |key: &'static str, old: &'static str| if object.get(key).is_some() { key } else { old };
    Some(match action {
        "set-location" => object.required("location").map(|location| TableUpdate::SetLocation { location }),
        "set-properties" => required_either(object, either("updates", "updated"), "updates")
            .map(|updates| TableUpdate::SetProperties { updates }),
        "remove-properties" => required_either(object, either("removals", "removed"), "removals")
            .map(|removals| TableUpdate::RemoveProperties { removals }),
        "add-encryption-key" => nested(object, "encryption-key", EncryptionKey::read_new)
            .map(|key| TableUpdate::AddEncryptionKey { encryption_key: Arc::new(key) }),
        "remove-encryption-key" => object.required("key-id").map(|key_id| TableUpdate::RemoveEncryptionKey { key_id }),
        _ => return None,
    })
}

/// Under whichever name it came, a flaw is told under the name of the spec.
fn required_either<'a, T: Deserialize<'a>>(object: &Object<'a>, key: &str, name: &str) -> Checked<T> {
    match object.get(key) {
        Some(raw) => super::json::decode(raw).map_err(|f| f.under(name)),
        None => Err(Flaw::new("is required").under(name)),
    }
}

fn nested<T>(object: &Object<'_>, key: &str, read: impl Fn(&RawValue) -> Checked<T>) -> Checked<T> {
    read(object.required_raw(key)?).map_err(|f| f.under(key))
}

/// The update's own members, but for its action and the ref's name, are the ref.
fn read_ref(object: &Object<'_>) -> Checked<TableUpdate> {
    let ref_name: String = object.required("ref-name")?;
    if ref_name.is_empty() {
        return Err(Flaw::new("must not be empty").under("ref-name"));
    }
    let target = SnapshotRef::read_new(&object.without(&["action", "ref-name"]))?;
    Ok(TableUpdate::SetSnapshotRef { ref_name, target })
}

/// The snapshot id stands in the file's own object; old clients have it beside that object.
fn read_statistics(
    object: &Object<'_>,
    key: &str,
    check: impl Fn(&StatisticsFile) -> Checked<()>,
) -> Checked<StatisticsFile> {
    let outer: Option<i64> = object.optional("snapshot-id")?;
    let file = Object::parse(object.required_raw(key)?).map_err(|f| f.under(key))?;
    let inner: Option<i64> = file.optional("snapshot-id").map_err(|f| f.under(key))?;
    let read = |raw: &RawValue| {
        let file = StatisticsFile::read(raw)?;
        check(&file)?;
        Ok(file)
    };
    let read = |raw: &RawValue| read(raw).map_err(|f: Flaw| f.under(key));
    match (outer, inner) {
        (Some(outer), Some(inner)) if outer != inner => {
            Err(Flaw::new(format!("{outer} is not the snapshot id of the file, {inner}")).under("snapshot-id"))
        }
        (Some(outer), None) => read(&file.with(&[("snapshot-id", outer.to_string())])),
        _ => read(file.raw()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TableUpdate> {
        TableUpdate::parse(&crate::metadata::json::raw(text.to_owned()))
    }

    #[test]
    fn every_action_of_the_spec_is_read() {
        let updates = [
            r#"{"action":"assign-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}"#,
            r#"{"action":"upgrade-format-version","format-version":2}"#,
            r#"{"action":"add-schema","schema":{"type":"struct","fields":[]},"last-column-id":3}"#,
            r#"{"action":"set-current-schema","schema-id":-1}"#,
            r#"{"action":"add-spec","spec":{"fields":[]}}"#,
            r#"{"action":"set-default-spec","spec-id":-1}"#,
            r#"{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[]}}"#,
            r#"{"action":"set-default-sort-order","sort-order-id":-1}"#,
            r#"{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":2,"manifest-list":"a","summary":{"operation":"append"}}}"#,
            r#"{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1}"#,
            r#"{"action":"remove-snapshots","snapshot-ids":[1]}"#,
            r#"{"action":"remove-snapshot-ref","ref-name":"b"}"#,
            r#"{"action":"set-location","location":"s3://b/t"}"#,
            r#"{"action":"set-properties","updates":{"a":"b"}}"#,
            r#"{"action":"remove-properties","removals":["a"]}"#,
            r#"{"action":"remove-partition-specs","spec-ids":[1]}"#,
            r#"{"action":"remove-schemas","schema-ids":[1]}"#,
            r#"{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":9,"file-footer-size-in-bytes":4,"blob-metadata":[]}}"#,
            r#"{"action":"remove-statistics","snapshot-id":1}"#,
            r#"{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":9}}"#,
            r#"{"action":"remove-partition-statistics","snapshot-id":1}"#,
            r#"{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"AA=="}}"#,
            r#"{"action":"remove-encryption-key","key-id":"k"}"#,
        ];
        let all: Vec<TableUpdate> = serde_json::from_str(&format!("[{}]", updates.join(","))).unwrap();
        assert_eq!(all.len(), 23);
    }

    #[test]
    fn old_spellings_and_capital_actions_are_read() {
        let set = parse(r#"{"action":"SET-PROPERTIES","updated":{"a":"b"}}"#).unwrap();
        assert!(matches!(set, TableUpdate::SetProperties { updates } if updates["a"] == "b"));
        let remove = parse(r#"{"action":"remove-properties","removed":["a"]}"#).unwrap();
        assert!(matches!(remove, TableUpdate::RemoveProperties { removals } if removals == ["a"]));
        let outer = r#"{"action":"set-partition-statistics","snapshot-id":5,"partition-statistics":{"statistics-path":"p","file-size-in-bytes":9}}"#;
        let TableUpdate::SetPartitionStatistics { partition_statistics } = parse(outer).unwrap() else {
            panic!("statistics")
        };
        assert_eq!(
            (partition_statistics.snapshot_id, partition_statistics.raw().get()),
            (5, r#"{"statistics-path":"p","file-size-in-bytes":9,"snapshot-id":5}"#)
        );
    }

    #[test]
    fn a_refusal_names_the_field() {
        let cases = [
            (r#"{"action":"drop-everything"}"#, "action: unknown table update 'drop-everything'"),
            (r#"{"action":"set-location"}"#, "set-location.location: is required"),
            (r#"{"action":"set-properties"}"#, "set-properties.updates: is required"),
            (
                r#"{"action":"set-properties","updates":{"a":1}}"#,
                "set-properties.updates: invalid type: integer, expected a string",
            ),
            (
                r#"{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":"x"}}"#,
                "add-snapshot.snapshot.timestamp-ms: invalid type: string, expected i64",
            ),
            (
                r#"{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":1}}"#,
                "add-snapshot.snapshot.manifest-list: is required",
            ),
            (
                r#"{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1,"min-snapshots-to-keep":2}"#,
                "set-snapshot-ref: tags do not support min-snapshots-to-keep and max-snapshot-age-ms",
            ),
            (
                r#"{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1,"max-ref-age-ms":0}"#,
                "set-snapshot-ref.max-ref-age-ms: must be greater than 0",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err().message(), message);
        }
    }

    #[test]
    fn a_ref_keeps_what_only_its_sender_knows() {
        let text = r#"{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":1,"owner":{"x":1}}"#;
        let TableUpdate::SetSnapshotRef { target, .. } = parse(text).unwrap() else { panic!("a ref") };
        assert_eq!(target.raw().get(), r#"{"type":"branch","snapshot-id":1,"owner":{"x":1}}"#);
    }

    const SNAPSHOT: &str = r#""snapshot-id":1,"timestamp-ms":2,"manifest-list":"l""#;

    #[test]
    fn what_no_client_could_read_back_is_refused() {
        let snapshot = |members: &str| format!(r#"{{"action":"add-snapshot","snapshot":{{{members}}}}}"#);
        let statistics = |members: &str| {
            format!(r#"{{"action":"set-statistics","statistics":{{"snapshot-id":1,"statistics-path":"p"{members}}}}}"#)
        };
        let key =
            |members: &str| format!(r#"{{"action":"add-encryption-key","encryption-key":{{"key-id":"k"{members}}}}}"#);
        let sizes = r#","file-size-in-bytes":1,"file-footer-size-in-bytes":1"#;
        for (text, message) in [
            (
                snapshot(r#""snapshot-id":1,"timestamp-ms":2,"manifest-list":"""#),
                "add-snapshot.snapshot.manifest-list: must not be empty",
            ),
            (
                snapshot(&format!(r#"{SNAPSHOT},"parent-snapshot-id":1"#)),
                "add-snapshot.snapshot.parent-snapshot-id: must not be the snapshot itself",
            ),
            (
                snapshot(&format!(r#"{SNAPSHOT},"summary":{{"operation":5}}"#)),
                "add-snapshot.snapshot.summary: invalid type: integer, expected a string",
            ),
            (statistics(""), "set-statistics.statistics.file-size-in-bytes: is required"),
            (
                statistics(r#","file-size-in-bytes":1"#),
                "set-statistics.statistics.file-footer-size-in-bytes: is required",
            ),
            (statistics(sizes), "set-statistics.statistics.blob-metadata: is required"),
            (
                statistics(&format!(r#"{sizes},"blob-metadata":[{{"type":"t","snapshot-id":1,"sequence-number":1}}]"#)),
                "set-statistics.statistics.blob-metadata[0].fields: is required",
            ),
            (
                r#"{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"p"}}"#
                    .to_owned(),
                "set-partition-statistics.partition-statistics.file-size-in-bytes: is required",
            ),
            (key(""), "add-encryption-key.encryption-key.encrypted-key-metadata: is required"),
            (
                key(r#","encrypted-key-metadata":5"#),
                "add-encryption-key.encryption-key.encrypted-key-metadata: invalid type: integer, expected a string",
            ),
            (
                key(r#","encrypted-key-metadata":"?""#),
                "add-encryption-key.encryption-key.encrypted-key-metadata: is not base64",
            ),
            (
                snapshot(&format!(r#"{SNAPSHOT},"x":{}{}"#, "[".repeat(200_000), "]".repeat(200_000))),
                "JSON is nested deeper than 100 levels",
            ),
        ] {
            assert_eq!(parse(&text).unwrap_err().message(), message);
        }
    }

    #[test]
    fn an_operation_that_nobody_knows_is_taken() {
        let text = format!(r#"{{"action":"add-snapshot","snapshot":{{{SNAPSHOT},"summary":{{"operation":"sort"}}}}}}"#);
        assert!(parse(&text).is_ok());
    }

    #[test]
    fn spellings_that_some_clients_cannot_read_are_stored_in_their_normal_form() {
        let TableUpdate::SetSnapshotRef { target, .. } =
            parse(r#"{"action":"set-snapshot-ref","ref-name":"b","type":"BRANCH","snapshot-id":1}"#).unwrap()
        else {
            panic!("a ref")
        };
        assert_eq!(target.raw().get(), r#"{"type":"branch","snapshot-id":1}"#);
        let nulls = r#","parent-snapshot-id":null,"summary":null,"mine":null"#;
        let text = format!(r#"{{"action":"add-snapshot","snapshot":{{{SNAPSHOT}{nulls}}}}}"#);
        let TableUpdate::AddSnapshot { snapshot } = parse(&text).unwrap() else { panic!("a snapshot") };
        assert_eq!(snapshot.raw().get(), format!(r#"{{{SNAPSHOT},"mine":null}}"#));
    }
}
