//! What the document costs as history grows: to parse, to append to, to write, and to thin out to the refs.
//!
//! Budget of the release build: an append is applied and encoded within 2 ms at 1,000 snapshots and 15 ms at 10,000.

use std::hint::black_box;

use catalog::metadata::{ApplyAt, TableMetadata, TableUpdate, apply};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const SNAPSHOTS: [i64; 4] = [100, 1_000, 10_000, 100_000];
const START_MS: i64 = 1_700_000_000_000;

/// A snapshot of about 960 bytes, as a Flink job commits it.
fn snapshot(id: i64) -> String {
    let parent = if id > 1 { format!("\"parent-snapshot-id\":{},", id - 1) } else { String::new() };
    format!(
        r#"{{"sequence-number":{id},"snapshot-id":{id},{parent}"timestamp-ms":{},"summary":{{"operation":"append","flink.operator-id":"e883208d19e3c34f8aaf2a3168a63337","flink.job-id":"56a0ef0d1b0a4c5c9f0d6c5b7c7a1b90","flink.max-committed-checkpoint-id":"{id}","flink.assigned-snapshot-id":"{id}","added-data-files":"4","added-records":"125000","added-files-size":"73400320","changed-partition-count":"1","total-records":"{}","total-files-size":"{}","total-data-files":"{}","total-delete-files":"0","total-position-deletes":"0","total-equality-deletes":"0","engine-version":"1.20.0","engine-name":"flink","iceberg-version":"Apache Iceberg 1.10.0 (commit 2114bf631e49af532d66e2ce148ee49dd1dd1f1f)"}},"manifest-list":"s3://warehouse/streaming.db/events/metadata/snap-{id}-1-0b0e8f7e-5a3c-4a52-8f8e-0f2d8c9d4b11.avro","schema-id":0}}"#,
        START_MS + id * 1000,
        id * 125_000,
        id * 73_400_320,
        id * 4,
    )
}

fn document(snapshots: i64) -> String {
    let field = |id: i64| format!(r#"{{"id":{id},"name":"column_{id}","required":false,"type":"string"}}"#);
    let fields: Vec<String> = (1..=30).map(field).collect();
    let fields = fields.join(",");
    let list: Vec<String> = (1..=snapshots).map(snapshot).collect();
    let log: Vec<String> = (1..=snapshots)
        .map(|id| format!(r#"{{"timestamp-ms":{},"snapshot-id":{id}}}"#, START_MS + id * 1000))
        .collect();
    format!(
        r#"{{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://warehouse/streaming.db/events","last-sequence-number":{snapshots},"last-updated-ms":{},"last-column-id":30,"current-schema-id":0,"schemas":[{{"type":"struct","schema-id":0,"fields":[{fields}]}}],"default-spec-id":0,"partition-specs":[{{"spec-id":0,"fields":[]}}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{{"order-id":0,"fields":[]}}],"properties":{{}},"current-snapshot-id":{snapshots},"refs":{{"main":{{"snapshot-id":{snapshots},"type":"branch"}}}},"snapshots":[{}],"snapshot-log":[{}],"metadata-log":[]}}"#,
        START_MS + snapshots * 1000,
        list.join(","),
        log.join(","),
    )
}

fn append(id: i64) -> Vec<TableUpdate> {
    let text = format!(
        r#"[{{"action":"add-snapshot","snapshot":{}}},{{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":{id}}}]"#,
        snapshot(id)
    );
    serde_json::from_str(&text).expect("updates")
}

fn metadata(c: &mut Criterion) {
    let mut group = c.benchmark_group("metadata");
    group.sample_size(20);
    for snapshots in SNAPSHOTS {
        let text = document(snapshots);
        let table = TableMetadata::parse(text.as_bytes()).expect("a document");
        let next = append(snapshots + 1);
        let at = ApplyAt { now_ms: START_MS + (snapshots + 1) * 1000, previous_location: Some("s3://previous") };
        let size = |name| BenchmarkId::new(name, snapshots);
        group.bench_function(size("parse"), |b| {
            b.iter(|| TableMetadata::parse(black_box(text.as_bytes())).expect("a document"))
        });
        group.bench_function(size("apply"), |b| b.iter(|| apply(black_box(&table), &next, &at).expect("an append")));
        group.bench_function(size("apply and encode"), |b| {
            b.iter(|| apply(black_box(&table), &next, &at).expect("an append").metadata.encode());
        });
        group.bench_function(size("encode"), |b| b.iter(|| black_box(&table).encode()));
        group.bench_function(size("encode refs"), |b| b.iter(|| black_box(&table).encode_refs()));
    }
    group.finish();
}

criterion_group!(benches, metadata);
criterion_main!(benches);
