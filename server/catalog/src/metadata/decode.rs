//! Reading a document of any format version into the same typed head.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use uuid::Uuid;

use super::json::{self, Checked, Flaw, Object};
use super::partition::FIRST_FIELD_ID;
use super::snapshots::Snapshots;
use super::sort_order::complete_orders;
use super::{
    EncryptionKey, FORMAT_VERSION_MAX, MAIN_BRANCH, MetadataLogEntry, PartitionSpec, Schema, Snapshot,
    SnapshotLogEntry, SnapshotRef, SortOrder, StatisticsFile, TableMetadata,
};

/// Members of the document that the head, or a segment of it, stands for.
const KNOWN: [&str; 25] = [
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "schema",
    "current-schema-id",
    "schemas",
    "partition-spec",
    "default-spec-id",
    "partition-specs",
    "last-partition-id",
    "default-sort-order-id",
    "sort-orders",
    "properties",
    "current-snapshot-id",
    "next-row-id",
    "encryption-keys",
    "refs",
    "snapshots",
    "statistics",
    "partition-statistics",
    "snapshot-log",
    "metadata-log",
];

pub(super) fn document(bytes: &[u8]) -> Checked<TableMetadata> {
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(|e| Flaw::new(format!("is not JSON: {e}")))?;
    let object = Object::parse(raw)?;
    let metadata = read(&object)?;
    check(&metadata)?;
    Ok(metadata)
}

fn read(object: &Object<'_>) -> Checked<TableMetadata> {
    let format_version = format_version(object)?;
    let (current_schema_id, schemas) = schemas(object, format_version)?;
    let (default_spec_id, specs) = specs(object, format_version)?;
    let (default_sort_order_id, mut sort_orders) = sort_orders(object, format_version)?;
    let lacks_order = complete_orders(&mut sort_orders, default_sort_order_id);
    let uuid = from_version(2, format_version, object.optional::<Uuid>("table-uuid")?, "table-uuid")?;
    let current_snapshot_id = object.optional("current-snapshot-id")?.filter(|id| *id != -1);
    let snapshots = list(object, "snapshots", Snapshot::read)?.into_iter().map(Arc::new).collect();
    Ok(TableMetadata {
        format_version,
        was_completed: lacks_order || uuid.is_none(),
        uuid,
        location: object.required("location")?,
        last_sequence_number: last_sequence_number(object, format_version)?,
        last_updated_ms: object.required("last-updated-ms")?,
        last_column_id: object.required("last-column-id")?,
        current_schema_id,
        schemas,
        default_spec_id,
        last_partition_id: last_partition_id(object, format_version, &specs)?,
        specs,
        default_sort_order_id,
        sort_orders,
        properties: Arc::new(object.optional("properties")?.unwrap_or_default()),
        current_snapshot_id,
        next_row_id: from_version(3, format_version, object.optional("next-row-id")?, "next-row-id")?,
        encryption_keys: list(object, "encryption-keys", EncryptionKey::read)?.into_iter().map(Arc::new).collect(),
        refs: Arc::new(refs(object, current_snapshot_id)?),
        snapshots: Snapshots::new(snapshots).map_err(|f| f.under("snapshots"))?,
        statistics: Arc::new(list(object, "statistics", StatisticsFile::read)?),
        partition_statistics: Arc::new(list(object, "partition-statistics", StatisticsFile::read)?),
        snapshot_log: Arc::new(list(object, "snapshot-log", SnapshotLogEntry::read)?),
        metadata_log: Arc::new(list(object, "metadata-log", MetadataLogEntry::read)?),
        unknown: Arc::new(unknown(object)),
    })
}

fn format_version(object: &Object<'_>) -> Checked<u8> {
    let version: i64 = object.required("format-version")?;
    match u8::try_from(version) {
        Ok(version @ 1..=FORMAT_VERSION_MAX) => Ok(version),
        _ => {
            let message = format!("version {version} is not supported (supported: 1 to {FORMAT_VERSION_MAX})");
            Err(Flaw::new(message).under("format-version"))
        }
    }
}

/// A member that must be there from format version `first` on.
fn from_version<T>(first: u8, format_version: u8, value: Option<T>, key: &str) -> Checked<Option<T>> {
    if value.is_none() && format_version >= first {
        return Err(Flaw::new(format!("is required from format version {first} on")).under(key));
    }
    Ok(value)
}

fn last_sequence_number(object: &Object<'_>, format_version: u8) -> Checked<i64> {
    let number = object.optional("last-sequence-number")?;
    from_version(2, format_version, number, "last-sequence-number").map(Option::unwrap_or_default)
}

/// Format version 1 may have one `schema` only.
fn schemas(object: &Object<'_>, format_version: u8) -> Checked<(i32, Vec<Arc<Schema>>)> {
    let Some(raw) = from_version(2, format_version, object.get("schemas"), "schemas")? else {
        let schema = Schema::read(object.required_raw("schema")?).map_err(|f| f.under("schema"))?;
        return Ok((schema.id(), vec![Arc::new(schema)]));
    };
    let schemas = json::each(raw, Schema::read).map_err(|f| f.under("schemas"))?;
    let current = object.required("current-schema-id")?;
    Ok((current, schemas.into_iter().map(Arc::new).collect()))
}

/// Format version 1 may have one `partition-spec` only.
fn specs(object: &Object<'_>, format_version: u8) -> Checked<(i32, Vec<Arc<PartitionSpec>>)> {
    let Some(raw) = from_version(2, format_version, object.get("partition-specs"), "partition-specs")? else {
        let raw = object.required_raw("partition-spec")?;
        let spec = PartitionSpec::read_fields(raw).map_err(|f| f.under("partition-spec"))?;
        return Ok((0, vec![Arc::new(spec)]));
    };
    let specs = json::each(raw, PartitionSpec::read).map_err(|f| f.under("partition-specs"))?;
    let default = object.required("default-spec-id")?;
    Ok((default, specs.into_iter().map(Arc::new).collect()))
}

fn last_partition_id(object: &Object<'_>, format_version: u8, specs: &[Arc<PartitionSpec>]) -> Checked<i32> {
    let last = from_version(2, format_version, object.optional("last-partition-id")?, "last-partition-id")?;
    let highest = || specs.iter().map(|spec| spec.last_field_id()).fold(FIRST_FIELD_ID - 1, i32::max);
    Ok(last.unwrap_or_else(highest))
}

/// Format version 1 may have none: then the table is unsorted.
fn sort_orders(object: &Object<'_>, format_version: u8) -> Checked<(i32, Vec<Arc<SortOrder>>)> {
    let Some(raw) = from_version(2, format_version, object.get("sort-orders"), "sort-orders")? else {
        return Ok((0, vec![Arc::new(SortOrder::unsorted())]));
    };
    let orders = json::each(raw, SortOrder::read).map_err(|f| f.under("sort-orders"))?;
    let default = object.required("default-sort-order-id")?;
    Ok((default, orders.into_iter().map(Arc::new).collect()))
}

/// Where there is a current snapshot there is a branch `main`, also where the writer did not know of refs.
fn refs(object: &Object<'_>, current_snapshot_id: Option<i64>) -> Checked<BTreeMap<String, SnapshotRef>> {
    let mut refs = BTreeMap::new();
    if let Some(raw) = object.get("refs") {
        for (name, raw) in Object::parse(raw).map_err(|f| f.under("refs"))?.members() {
            let target = SnapshotRef::read(raw).map_err(|f| f.under(name).under("refs"))?;
            refs.insert(name.to_owned(), target);
        }
    }
    if let Some(id) = current_snapshot_id {
        refs.entry(MAIN_BRANCH.to_owned()).or_insert_with(|| SnapshotRef::main_at(id));
    }
    Ok(refs)
}

fn list<T>(object: &Object<'_>, key: &str, read: impl Fn(&RawValue) -> Checked<T>) -> Checked<Vec<T>> {
    match object.get(key) {
        Some(raw) => json::each(raw, read).map_err(|f| f.under(key)),
        None => Ok(Vec::new()),
    }
}

fn unknown(object: &Object<'_>) -> Vec<(String, Box<RawValue>)> {
    let unknown = object.members().filter(|(key, _)| !KNOWN.contains(key));
    unknown.map(|(key, raw)| (key.to_owned(), raw.to_owned())).collect()
}

/// What the parts of a document promise each other.
fn check(metadata: &TableMetadata) -> Checked<()> {
    let missing = |key: &str, what: &str, id: i32| Err(Flaw::new(format!("there is no {what} {id}")).under(key));
    if metadata.schema(metadata.current_schema_id).is_none() {
        return missing("current-schema-id", "schema", metadata.current_schema_id);
    }
    if metadata.spec(metadata.default_spec_id).is_none() {
        return missing("default-spec-id", "partition spec", metadata.default_spec_id);
    }
    if metadata.sort_order(metadata.default_sort_order_id).is_none() {
        return missing("default-sort-order-id", "sort order", metadata.default_sort_order_id);
    }
    check_snapshots(metadata)?;
    check_refs(metadata)
}

fn check_snapshots(metadata: &TableMetadata) -> Checked<()> {
    let last = metadata.last_sequence_number;
    match metadata.snapshots().find(|snapshot| metadata.format_version > 1 && snapshot.sequence_number() > last) {
        Some(snapshot) => Err(Flaw::new(format!(
            "snapshot {} has sequence number {}, beyond last-sequence-number {last}",
            snapshot.id(),
            snapshot.sequence_number()
        ))
        .under("snapshots")),
        None => Ok(()),
    }
}

fn check_refs(metadata: &TableMetadata) -> Checked<()> {
    for (name, target) in metadata.refs.iter() {
        if !metadata.snapshots.contains(target.snapshot_id) {
            let message = format!("there is no snapshot {}", target.snapshot_id);
            return Err(Flaw::new(message).under(name).under("refs"));
        }
    }
    let current = metadata.current_snapshot_id;
    let main = metadata.refs.get(MAIN_BRANCH).map(|main| main.snapshot_id);
    if main != current {
        let shown = current.map_or("none".to_owned(), |id| id.to_string());
        let message = format!("{shown} is not the snapshot of branch main");
        return Err(Flaw::new(message).under("current-snapshot-id"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use serde_json::{Value, json};

    fn document() -> Value {
        json!({"format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b/t",
            "last-sequence-number": 1, "last-updated-ms": 1, "last-column-id": 1, "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": []}], "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}], "current-snapshot-id": 1,
            "snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "sequence-number": 1, "manifest-list": "l"}],
            "refs": {"main": {"snapshot-id": 1, "type": "branch"}}})
    }

    fn parse(value: &Value) -> Result<TableMetadata, Error> {
        TableMetadata::parse(value.to_string().as_bytes())
    }

    #[test]
    fn a_broken_document_names_the_path_of_the_field() {
        for (pointer, value, message) in [
            ("/format-version", json!(4), "format-version: version 4 is not supported (supported: 1 to 3)"),
            ("/last-sequence-number", Value::Null, "last-sequence-number: is required from format version 2 on"),
            ("/location", Value::Null, "location: is required"),
            ("/last-updated-ms", json!("x"), "last-updated-ms: invalid type: string, expected i64"),
            ("/snapshots/0/timestamp-ms", Value::Null, "snapshots[0].timestamp-ms: is required"),
            (
                "/snapshots/0/sequence-number",
                json!(2),
                "snapshots: snapshot 1 has sequence number 2, beyond last-sequence-number 1",
            ),
            ("/refs/main/type", json!("twig"), "refs.main.type: 'twig' is neither branch nor tag"),
            ("/refs/main/snapshot-id", json!(2), "refs.main: there is no snapshot 2"),
            ("/current-snapshot-id", json!(-1), "current-snapshot-id: none is not the snapshot of branch main"),
            ("/current-schema-id", json!(3), "current-schema-id: there is no schema 3"),
            ("/default-spec-id", json!(3), "default-spec-id: there is no partition spec 3"),
        ] {
            let mut broken = document();
            *broken.pointer_mut(pointer).unwrap() = value;
            assert_eq!(parse(&broken).unwrap_err().message(), format!("table metadata.{message}"));
        }
        assert!(TableMetadata::parse(b"{").unwrap_err().message().starts_with("table metadata: is not JSON"));
        assert!(TableMetadata::parse(b"[]").is_err());
    }

    #[test]
    fn no_current_snapshot_may_be_spelled_in_three_ways() {
        for spelling in [Some(json!(-1)), Some(Value::Null), None] {
            let mut empty = document();
            let members = empty.as_object_mut().unwrap();
            members.remove("current-snapshot-id");
            members.remove("refs");
            spelling.map(|value| members.insert("current-snapshot-id".into(), value));
            let table = parse(&empty).unwrap();
            assert_eq!((table.current_snapshot_id(), table.refs().len()), (None, 0));
        }
    }

    #[test]
    fn a_document_without_refs_has_main_at_its_current_snapshot() {
        let mut old = document();
        old["refs"] = json!({});
        assert_eq!(parse(&old).unwrap().refs()[MAIN_BRANCH].snapshot_id, 1);
        old.as_object_mut().unwrap().remove("refs");
        assert_eq!(parse(&old).unwrap().refs()[MAIN_BRANCH].snapshot_id, 1);
    }

    #[test]
    fn the_oldest_documents_are_read() {
        let old = json!({"format-version": 1, "location": "s3://b/t", "last-updated-ms": 1, "last-column-id": 1,
            "schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "required": true, "type": "int"}]},
            "partition-spec": [{"name": "a", "transform": "identity", "source-id": 1}], "current-snapshot-id": -1});
        let table = parse(&old).unwrap();
        assert_eq!((table.current_schema_id(), table.last_partition_id()), (0, 1000));
        let written: Value = serde_json::from_slice(&table.encode()).unwrap();
        assert_eq!(
            written["partition-spec"],
            json!([{"name": "a", "transform": "identity", "source-id": 1, "field-id": 1000}])
        );
        assert_eq!(written["schema"], written["schemas"][0]);
        assert_eq!(written["table-uuid"], json!(table.uuid()));
    }

    #[test]
    fn a_document_without_uuid_has_the_one_that_follows_from_its_location() {
        let mut old = json!({"format-version": 1, "location": "s3://b/t", "last-updated-ms": 1, "last-column-id": 0,
            "schema": {"type": "struct", "fields": []}, "partition-spec": []});
        let uuid = parse(&old).unwrap().uuid();
        assert_eq!((uuid.is_nil(), uuid.get_version_num()), (false, 8));
        let written = parse(&old).unwrap().encode();
        assert_eq!(TableMetadata::parse(&written).unwrap().uuid(), uuid, "the same when it is written");
        old["last-updated-ms"] = 2.into();
        assert_eq!(parse(&old).unwrap().uuid(), uuid, "the same in another document of the table");
        old["location"] = "s3://b/u".into();
        assert_ne!(parse(&old).unwrap().uuid(), uuid, "another for another table");
    }

    #[test]
    fn the_default_order_is_there_also_where_the_document_lacks_the_one_that_sorts_by_nothing() {
        let sorted = json!({"order-id": 1, "fields":
            [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]});
        for (orders, ids) in [(json!([]), vec![0]), (json!([sorted]), vec![0, 1])] {
            let mut table = document();
            table["sort-orders"] = orders;
            let table = parse(&table).unwrap();
            assert_eq!(table.sort_orders().map(SortOrder::id).collect::<Vec<_>>(), ids);
            assert!(table.was_completed());
        }
        let mut lost = document();
        lost["default-sort-order-id"] = 3.into();
        assert_eq!(
            parse(&lost).unwrap_err().message(),
            "table metadata.default-sort-order-id: there is no sort order 3"
        );
    }

    #[test]
    fn types_that_nobody_knows_do_not_keep_a_table_from_loading() {
        let mut table = document();
        table["schemas"][0]["fields"] = json!([{"id": 1, "name": "a", "required": false, "type": "martian"}]);
        assert_eq!(parse(&table).unwrap().schemas().len(), 1);
    }
}
