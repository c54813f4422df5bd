//! A table with a long history, as a streaming job leaves it: made as a metadata file and registered.

use faults::random::Random;
use faults::writer::{Change, DataFile, Draft, Object, Table, identity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::bench::Bench;
use crate::clock::now_ms;
use crate::report::Result;
use crate::rest::{Name, schema};

/// A checkpoint each ten seconds.
const APART_MS: i64 = 10_000;
const ROWS_EACH: i64 = 1000;

/// Makes a table that retains so many snapshots; the data file in its head comes with it.
pub async fn register(bench: &Bench, name: &Name, snapshots: usize) -> Result<String> {
    let location = format!("{}/{}/{}", bench.root(), name.namespace, name.name);
    let document = Document { location: &location, properties: &bench.target.traits.create_properties, snapshots };
    let (metadata, objects, file) = document.build(now_ms());
    bench.store.put_all(&objects).await?;
    let metadata_location = format!("{location}/metadata/00000-{}.metadata.json", Uuid::new_v4());
    let bytes = serde_json::to_vec(&metadata)?;
    bench.store.put(&Object { location: metadata_location.clone(), bytes }).await?;
    let body = json!({"name": name.name, "metadata-location": metadata_location});
    bench.catalog().post(&format!("namespaces/{}/register", name.namespace), &body).await?.expect(200)?;
    Ok(file)
}

struct Document<'a> {
    location: &'a str,
    properties: &'a BTreeMap<String, String>,
    snapshots: usize,
}

impl Document<'_> {
    /// The metadata, the files of its head, and the data file in it. Lists of snapshots before the head need not exist.
    fn build(&self, now_ms: i64) -> (Value, Vec<Object>, String) {
        let mut random = Random::from_seed(Uuid::new_v4().as_u128() as u64);
        let first_ms = now_ms - APART_MS * self.snapshots as i64;
        let mut metadata = self.empty(first_ms);
        let job = Uuid::new_v4().simple().to_string();
        let mut snapshots: Vec<Value> = Vec::with_capacity(self.snapshots);
        for number in 1..self.snapshots as i64 {
            let parent = snapshots.last().map(|snapshot| snapshot["snapshot-id"].clone());
            let at_ms = first_ms + APART_MS * number;
            snapshots.push(snapshot(self.location, &job, number, (random.snapshot_id(), parent, at_ms)));
        }
        let log = |snapshot: &Value| json!({"snapshot-id": snapshot["snapshot-id"], "timestamp-ms": snapshot["timestamp-ms"]});
        metadata["last-sequence-number"] = snapshots.len().into();
        let (head, objects, file) = self.head(&metadata, snapshots.last(), random.snapshot_id(), now_ms);
        snapshots.push(head);
        let head = &snapshots[snapshots.len() - 1];
        metadata["current-snapshot-id"] = head["snapshot-id"].clone();
        metadata["refs"]["main"] = json!({"snapshot-id": head["snapshot-id"], "type": "branch"});
        (metadata["last-sequence-number"], metadata["last-updated-ms"]) = (snapshots.len().into(), now_ms.into());
        metadata["snapshot-log"] = snapshots.iter().map(log).collect();
        metadata["snapshots"] = snapshots.into();
        (metadata, objects, file)
    }

    fn empty(&self, first_ms: i64) -> Value {
        let schema = schema();
        json!({
            "format-version": 2,
            "table-uuid": Uuid::new_v4().to_string(),
            "location": self.location,
            "last-sequence-number": 0,
            "last-updated-ms": first_ms,
            "last-column-id": 2,
            "current-schema-id": 0,
            "schemas": [schema],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": self.properties,
            "current-snapshot-id": -1,
            "refs": {},
            "snapshots": [],
            "statistics": [],
            "partition-statistics": [],
            "snapshot-log": [],
            "metadata-log": [],
        })
    }

    /// A real append of one file. Nothing of the history before it is live, so its totals are its own.
    fn head(&self, metadata: &Value, parent: Option<&Value>, id: i64, at_ms: i64) -> (Value, Vec<Object>, String) {
        let table = Table::of(metadata.clone(), "main");
        let file = DataFile::data(&table.data_folder(), &["history"], &Uuid::now_v7().to_string());
        let path = file.path.clone();
        let draft = Draft::of(&table, Change::FastAppend(vec![file]), id, identity::spark_batch()).at_ms(at_ms);
        let (prepared, objects) = draft.attempt(&table, &BTreeMap::new());
        let mut head = prepared.body["updates"][0]["snapshot"].clone();
        if let Some(parent) = parent {
            head["parent-snapshot-id"] = parent["snapshot-id"].clone();
        }
        (head, [draft.objects(), &objects].concat(), path)
    }
}

/// About 960 bytes of a Flink job's checkpoint.
fn snapshot(location: &str, job: &str, number: i64, (id, parent, at_ms): (i64, Option<Value>, i64)) -> Value {
    let mut snapshot = json!({
        "snapshot-id": id,
        "sequence-number": number,
        "timestamp-ms": at_ms,
        "manifest-list": format!("{location}/metadata/snap-{id}-1-{job}.avro"),
        "schema-id": 0,
        "summary": {
            "operation": "append",
            "flink.operator-id": "c27dcf7b54ef6bfd6cff02ca8870b681",
            "flink.job-id": job,
            "flink.max-committed-checkpoint-id": number.to_string(),
            "added-data-files": "4",
            "added-records": ROWS_EACH.to_string(),
            "added-files-size": (ROWS_EACH * 71).to_string(),
            "changed-partition-count": "1",
            "total-records": (ROWS_EACH * number).to_string(),
            "total-files-size": (ROWS_EACH * 71 * number).to_string(),
            "total-data-files": (4 * number).to_string(),
            "total-delete-files": "0",
            "total-position-deletes": "0",
            "total-equality-deletes": "0",
            "engine-name": "flink",
            "engine-version": "1.20.1",
            "iceberg-version": "Apache Iceberg 1.9.2 (commit 071d5606bc6199a0be9b3f274ec7fbf111d88821)",
        },
    });
    if let Some(parent) = parent {
        snapshot["parent-snapshot-id"] = parent;
    }
    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCATION: &str = "s3://lake/warehouses/analytics/0198e5a2-7c1f-7d64-9b0e-3f6f0c2d4b11/events";

    fn build(snapshots: usize) -> (Table, Vec<Object>, String) {
        let properties = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let document = Document { location: LOCATION, properties: &properties, snapshots };
        let (metadata, objects, file) = document.build(1_700_000_000_000);
        (Table::of(metadata, "main"), objects, file)
    }

    #[test]
    fn a_history_is_one_chain_of_the_length_that_was_asked_for() {
        for length in [1, 2, 100] {
            let (table, ..) = build(length);
            assert_eq!(table.snapshots().len(), length);
            assert_eq!(table.chain().len(), length);
            assert_eq!(table.last_sequence_number(), length as i64);
            let numbers = table.snapshots().iter().map(|snapshot| snapshot["sequence-number"].as_i64());
            assert!(numbers.eq((1..=length as i64).map(Some)));
        }
    }

    #[test]
    fn only_the_heads_files_are_written() {
        let (table, objects, _) = build(10);
        let head = table.head().unwrap();
        assert!(objects.iter().any(|object| object.location == table.manifest_list(head)));
        assert_eq!(objects.len(), 2);
    }

    #[test]
    fn a_snapshot_has_the_size_of_a_streaming_jobs() {
        let (table, ..) = build(100);
        let bytes = table.snapshots()[50].to_string().len();
        assert!((860..=1060).contains(&bytes), "{bytes}");
    }
}
