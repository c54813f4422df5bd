//! Random commits, applied by the catalog and by the `iceberg` crate's builder to the same document.
//!
//! After each commit both go on from the catalog's document, so that the crate also reads all that the catalog writes.

#[path = "differential/generate.rs"]
mod generate;

use std::collections::BTreeSet;

use catalog::metadata::{ApplyAt, TableMetadata, TableUpdate, apply};
use generate::Commit;
use proptest::prelude::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

const START_MS: i64 = 1_700_000_000_000;

/// What the catalog refuses and the crate lets pass.
const STRICTER: [&str; 3] = [
    // A field id with data behind it never changes its type.
    "cannot change column",
    // Format version 2 has sequence numbers; the crate reads 0 where a first snapshot has none.
    "sequence-number: is required from v2 on",
    // Encryption keys came with format version 3; the crate takes them before and does not write them.
    "tables have no encryption keys",
];

/// What the crate refuses and the catalog lets pass.
const LOOSER: [&str; 6] = [
    // The crate takes the time of a rollback from the system's clock, and then finds the next snapshot too old.
    "Invalid snapshot timestamp",
    // As in Java, fields without ids are numbered from 1000 in every spec of format version 1.
    "non-sequential field ids to format version 1",
    "Cannot use field id more than once in one PartitionSpec",
    // Java lets engines add a column that is named like a partition field of an older spec.
    "conflicts with existing partition field name",
    // Java asks only that such a column is the field's own source.
    "is not an identity transform",
    // The catalog starts a log anew that lost its current snapshot.
    "latest entry is not the current snapshot",
];

/// Members that must be equal as they stand.
const HEAD: [&str; 10] = [
    "format-version",
    "table-uuid",
    "location",
    "last-column-id",
    "current-schema-id",
    "default-spec-id",
    "last-partition-id",
    "default-sort-order-id",
    "properties",
    "next-row-id",
];

fn table(format_version: u8) -> TableMetadata {
    TableMetadata::parse(document(format_version).to_string().as_bytes()).expect("the document is sound")
}

/// A table with members that nobody knows, at every level.
fn table_of_the_future(format_version: u8) -> TableMetadata {
    let mut document = document(format_version);
    document["future"] = json!({"z": [1, {"y": 2.50}]});
    document["schemas"][0]["known-to"] = json!({"nobody": 1});
    document["schemas"][0]["fields"][0]["color"] = json!("red");
    TableMetadata::parse(document.to_string().as_bytes()).expect("the document is sound")
}

fn document(format_version: u8) -> Value {
    let mut document = json!({"format-version": format_version, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://b/t", "last-updated-ms": START_MS, "last-column-id": 2, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "id", "required": true, "type": "long"},
            {"id": 2, "name": "ts", "required": false, "type": "timestamp"}]}],
        "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {}});
    match format_version {
        1 => {
            document["schema"] = document["schemas"][0].clone();
            document["partition-spec"] = json!([]);
        }
        _ => document["last-sequence-number"] = 0.into(),
    }
    if format_version == 3 {
        document["next-row-id"] = 0.into();
    }
    document
}

fn by_catalog(base: &TableMetadata, updates: &[Value], now_ms: i64) -> Result<TableMetadata, String> {
    let parsed: Result<Vec<TableUpdate>, _> =
        updates.iter().map(|update| TableUpdate::parse(&to_raw_value(update).expect("an update is JSON"))).collect();
    let at = ApplyAt { now_ms, previous_location: Some("s3://b/t/metadata/previous.metadata.json") };
    let outcome = parsed.and_then(|updates| apply(base, &updates, &at));
    outcome.map(|applied| applied.metadata).map_err(|error| error.message().to_owned())
}

fn by_crate(base: &TableMetadata, updates: &[Value]) -> Result<Value, String> {
    let base: iceberg::spec::TableMetadata =
        serde_json::from_slice(&base.encode()).expect("the crate reads what we write");
    let mut builder = base.into_builder(None);
    for update in updates {
        let update: iceberg::TableUpdate = serde_json::from_value(update.clone()).map_err(|e| e.to_string())?;
        builder = update.apply(builder).map_err(|e| e.to_string())?;
    }
    let built = builder.build().map_err(|e| e.to_string())?;
    Ok(serde_json::to_value(built.metadata).expect("the crate writes what it built"))
}

/// The part of a document on which both must agree.
///
/// Left out on purpose: times (the catalog settles them by its own clock), the metadata log (the crate writes an entry
/// even when nothing changed), and members that the crate does not know. The crate keeps statistics of removed
/// snapshots, lets the last sequence number fall, and logs main again when only its retention changes.
fn comparable(document: &Value, base: &TableMetadata) -> Value {
    let ids = |key: &str, id: &str| sorted(&document[key], id);
    let snapshots = ids("snapshots", "snapshot-id");
    let known: BTreeSet<i64> = snapshots.iter().filter_map(|s| s["snapshot-id"].as_i64()).collect();
    let of_known = |files: Vec<Value>| -> Vec<Value> {
        files.into_iter().filter(|file| file["snapshot-id"].as_i64().is_some_and(|id| known.contains(&id))).collect()
    };
    let mut log: Vec<i64> = elements(&document["snapshot-log"]).filter_map(|e| e["snapshot-id"].as_i64()).collect();
    log.dedup();
    let last = document["last-sequence-number"].as_i64().unwrap_or(0).max(base.last_sequence_number());
    // The crate knows refs from format version 2 on, encryption keys from 3 on.
    let (has_refs, has_keys) = (base.format_version() > 1, base.format_version() > 2);
    let head = HEAD.map(|key| or_empty(&document[key]));
    json!({
        "head": head,
        "current": document["current-snapshot-id"].as_i64().filter(|id| *id != -1),
        "last": last,
        "specs": ids("partition-specs", "spec-id"),
        "orders": ids("sort-orders", "order-id"),
        "refs": if has_refs { or_empty(&document["refs"]) } else { json!({}) },
        "snapshots": snapshots.into_iter().map(without_time).collect::<Vec<_>>(),
        "statistics": of_known(ids("statistics", "snapshot-id")),
        "partition-statistics": of_known(ids("partition-statistics", "snapshot-id")),
        "keys": if has_keys { ids("encryption-keys", "key-id") } else { Vec::new() },
        "log": log,
    })
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The crate leaves out an empty map in format version 1.
fn or_empty(value: &Value) -> Value {
    if value.is_null() { json!({}) } else { value.clone() }
}

fn sorted(list: &Value, id: &str) -> Vec<Value> {
    let mut list: Vec<Value> = elements(list).cloned().collect();
    list.sort_by_key(|element| (element[id].as_i64(), element[id].as_str().map(str::to_owned)));
    list
}

fn without_time(mut snapshot: Value) -> Value {
    let members = snapshot.as_object_mut().expect("a snapshot is an object");
    members.remove("timestamp-ms");
    // The crate writes 0 where format version 1 had nothing.
    members.entry("sequence-number").or_insert(0.into());
    snapshot
}

/// The catalog keeps schemas that a ref's snapshot was written with; the crate removes what it is told to.
fn schemas(document: &Value, format: fn(&Value) -> Value) -> Vec<Value> {
    sorted(&document["schemas"], "schema-id").iter().map(format).collect()
}

fn known_to_the_crate(schema: &Value) -> Value {
    let parsed: iceberg::spec::Schema = serde_json::from_value(schema.clone()).expect("the crate reads our schemas");
    serde_json::to_value(parsed).expect("the crate writes its schemas")
}

fn judge(base: &TableMetadata, updates: &[Value], now_ms: i64) -> Option<TableMetadata> {
    match (by_catalog(base, updates, now_ms), by_crate(base, updates)) {
        (Ok(ours), Ok(theirs)) => {
            let document: Value = serde_json::from_slice(&ours.encode()).expect("a document is JSON");
            assert_eq!(comparable(&document, base), comparable(&theirs, base), "after {updates:#?}");
            let (mine, others) = (schemas(&document, known_to_the_crate), schemas(&theirs, Value::clone));
            assert!(others.iter().all(|schema| mine.contains(schema)), "{mine:#?}\nlacks some of\n{others:#?}");
            let removes = updates.iter().any(|update| update["action"] == "remove-schemas");
            assert!(removes || mine.len() == others.len(), "schemas of {updates:#?}");
            Some(ours)
        }
        (Err(_), Err(_)) => None,
        (Ok(ours), Err(theirs)) => {
            assert!(LOOSER.iter().any(|known| theirs.contains(known)), "only the crate refuses {updates:#?}: {theirs}");
            Some(ours)
        }
        (Err(ours), Ok(_)) => {
            assert!(STRICTER.iter().any(|known| ours.contains(known)), "only we refuse {updates:#?}: {ours}");
            None
        }
    }
}

/// Whatever sits in an object that no commit replaced is still there, byte for byte.
fn assert_nothing_lost(before: &TableMetadata, after: &TableMetadata, updates: &[Value]) {
    let (old, new): (Value, Value) = (
        serde_json::from_slice(&before.encode()).expect("a document is JSON"),
        serde_json::from_slice(&after.encode()).expect("a document is JSON"),
    );
    assert_eq!(new["future"], old["future"]);
    // The id of a removed schema may be given to the next one.
    let removes = updates.iter().any(|update| update["action"] == "remove-schemas");
    for schema in after.schemas().filter(|_| !removes) {
        let same = before.schema(schema.id()).is_none_or(|known| known.raw().get() == schema.raw().get());
        assert!(same, "schema {}", schema.id());
    }
    // Snapshots of format version 1 get sequence number 0 when the table leaves it.
    let leaves_v1 = before.format_version() == 1 && after.format_version() > 1;
    for snapshot in after.snapshots().filter(|_| !leaves_v1) {
        let same = before.snapshot(snapshot.id()).is_none_or(|known| known.raw().get() == snapshot.raw().get());
        assert!(same, "snapshot {}", snapshot.id());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_catalog_and_the_crate_agree(format_version in 1u8..=3, commits in generate::commits()) {
        let mut table = table(format_version);
        for (at, seeds) in commits.iter().enumerate() {
            let now_ms = START_MS + 1000 * (at as i64 + 1);
            let updates = Commit::updates(&table, now_ms, seeds);
            table = judge(&table, &updates, now_ms).unwrap_or(table);
        }
    }

    #[test]
    fn unknown_fields_survive_any_commit(format_version in 1u8..=3, commits in generate::commits()) {
        let mut table = table_of_the_future(format_version);
        for (at, seeds) in commits.iter().enumerate() {
            let now_ms = START_MS + 1000 * (at as i64 + 1);
            let mut updates = Commit::updates(&table, now_ms, seeds);
            for update in updates.iter_mut().filter(|update| update["action"] == "add-snapshot") {
                update["snapshot"]["from-the-future"] = json!({"n": at});
            }
            if let Ok(next) = by_catalog(&table, &updates, now_ms) {
                assert_nothing_lost(&table, &next, &updates);
                let again = TableMetadata::parse(&next.encode()).expect("what was written can be read");
                prop_assert_eq!(again.encode(), next.encode());
                let marked = |table: &TableMetadata| table.snapshots().all(|s| s.raw().get().contains("from-the-future"));
                prop_assert!(marked(&again));
                table = next;
            }
        }
    }
}
