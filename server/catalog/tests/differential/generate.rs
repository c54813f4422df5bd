//! Random commits against a table: mostly sound, now and then stale or wrong.

use catalog::metadata::TableMetadata;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The seed of one update: what to do, and two numbers to choose by.
pub type Seed = (u8, u8, u8);

const KINDS: u8 = 24;

/// A few commits of a few updates each.
pub fn commits() -> impl Strategy<Value = Vec<Vec<Seed>>> {
    let seed = (0..KINDS, any::<u8>(), any::<u8>());
    prop::collection::vec(prop::collection::vec(seed, 1..5), 1..14)
}

/// Turns seeds into updates that fit the table as it is and as the commit makes it.
pub struct Commit<'a> {
    base: &'a TableMetadata,
    now_ms: i64,
    snapshot_ids: Vec<i64>,
    last_sequence_number: i64,
    next_row_id: i64,
}

impl<'a> Commit<'a> {
    pub fn updates(base: &'a TableMetadata, now_ms: i64, seeds: &[Seed]) -> Vec<Value> {
        let mut commit = Self {
            base,
            now_ms,
            snapshot_ids: base.snapshots().map(|snapshot| snapshot.id()).collect(),
            last_sequence_number: base.last_sequence_number(),
            next_row_id: base.next_row_id().unwrap_or(0),
        };
        seeds.iter().map(|(kind, a, b)| commit.update(*kind, i64::from(*a), i64::from(*b))).collect()
    }

    fn update(&mut self, kind: u8, a: i64, b: i64) -> Value {
        match kind {
            0 => json!({"action": "set-properties", "updates": {format!("k{}", a % 3): format!("v{}", b % 3)}}),
            1 => json!({"action": "remove-properties", "removals": [format!("k{}", a % 3)]}),
            2 => json!({"action": "add-schema", "schema": schema(a, b)}),
            3 => json!({"action": "set-current-schema", "schema-id": id_or_last(a)}),
            4 => json!({"action": "add-spec", "spec": spec(a, b)}),
            5 => json!({"action": "set-default-spec", "spec-id": id_or_last(a)}),
            6 => json!({"action": "add-sort-order", "sort-order": sort_order(a, b)}),
            7 => json!({"action": "set-default-sort-order", "sort-order-id": id_or_last(a)}),
            8 | 9 => self.add_snapshot(a, b),
            10 | 11 => self.set_ref("main", "branch", a, b),
            12 => self.set_ref(pick(&["x", "y"], b), pick(&["branch", "tag"], a), a, b),
            13 => json!({"action": "remove-snapshot-ref", "ref-name": pick(&["main", "x", "y"], a)}),
            14 => json!({"action": "remove-snapshots", "snapshot-ids": [self.known_id(a), self.known_id(b)]}),
            15 => json!({"action": "set-statistics", "statistics": self.statistics(a, b)}),
            16 => json!({"action": "remove-statistics", "snapshot-id": self.known_id(a)}),
            17 => {
                json!({"action": "set-partition-statistics", "partition-statistics": self.partition_statistics(a, b)})
            }
            18 => json!({"action": "remove-partition-statistics", "snapshot-id": self.known_id(a)}),
            19 => json!({"action": "add-encryption-key", "encryption-key":
                {"key-id": format!("key{}", a % 2), "encrypted-key-metadata": "AAECAw==", "encrypted-by-id": "kms"}}),
            20 => json!({"action": "remove-encryption-key", "key-id": format!("key{}", a % 2)}),
            21 => self.rare(a, b),
            22 => json!({"action": "remove-schemas", "schema-ids": [a % 4, 9]}),
            _ => json!({"action": "remove-partition-specs", "spec-ids": [a % 4, 9]}),
        }
    }

    fn rare(&self, a: i64, b: i64) -> Value {
        match a % 3 {
            0 => json!({"action": "upgrade-format-version", "format-version": 1 + b % 3}),
            1 => json!({"action": "set-location", "location": format!("s3://b/t{}/", b % 2)}),
            _ => json!({"action": "assign-uuid", "uuid": self.base.uuid()}),
        }
    }

    fn add_snapshot(&mut self, a: i64, b: i64) -> Value {
        let id = 1000 + self.base.last_updated_ms() % 1_000_000 * 10 + self.snapshot_ids.len() as i64;
        let stale = a % 11 == 0;
        let number = self.last_sequence_number + i64::from(!stale);
        let mut snapshot = json!({"snapshot-id": id, "timestamp-ms": self.now_ms + b % 3,
            "manifest-list": format!("s3://b/t/snap-{id}.avro"), "summary": {"operation": "append", "n": b.to_string()},
            "schema-id": self.base.current_schema_id()});
        if self.base.format_version() > 1 {
            snapshot["sequence-number"] = number.into();
        }
        if self.base.format_version() >= 3 {
            snapshot["first-row-id"] = (self.next_row_id - i64::from(b % 13 == 0)).into();
            snapshot["added-rows"] = (b % 5).into();
        }
        if let Some(parent) = self.snapshot_ids.last().filter(|_| b % 7 != 0) {
            snapshot["parent-snapshot-id"] = (*parent).into();
        }
        self.snapshot_ids.push(id);
        self.last_sequence_number = number;
        self.next_row_id += b % 5;
        json!({"action": "add-snapshot", "snapshot": snapshot})
    }

    fn set_ref(&self, name: &str, kind: &str, a: i64, b: i64) -> Value {
        let mut update = json!({"action": "set-snapshot-ref", "ref-name": name, "type": kind,
            "snapshot-id": self.known_id(a)});
        if kind == "branch" && b % 4 == 0 {
            update["min-snapshots-to-keep"] = (1 + b % 3).into();
        }
        update
    }

    fn statistics(&self, a: i64, b: i64) -> Value {
        json!({"snapshot-id": self.known_id(a), "statistics-path": format!("s3://b/t/{b}.stats"),
            "file-size-in-bytes": 100, "file-footer-size-in-bytes": 10, "blob-metadata": []})
    }

    fn partition_statistics(&self, a: i64, b: i64) -> Value {
        json!({"snapshot-id": self.known_id(a), "statistics-path": format!("s3://b/t/{b}.parquet"),
            "file-size-in-bytes": 100})
    }

    /// One of the newest snapshots, or an id that is nowhere.
    fn known_id(&self, choice: i64) -> i64 {
        let newest_first = self.snapshot_ids.iter().rev();
        *newest_first.cycle().nth((choice % 5) as usize).unwrap_or(&77)
    }
}

fn pick<'a>(choices: &[&'a str], choice: i64) -> &'a str {
    choices[choice as usize % choices.len()]
}

fn id_or_last(choice: i64) -> i64 {
    choice % 5 - 1
}

/// Columns come and go, become required, are documented, and grow from int to long.
fn schema(a: i64, b: i64) -> Value {
    let has = |bit: i64| a & (1 << bit) != 0;
    let mut fields = vec![json!({"id": 1, "name": "id", "required": has(0), "type": "long"})];
    if b % 8 != 0 {
        fields.push(json!({"id": 2, "name": "ts", "required": false, "type": "timestamp"}));
    }
    if has(1) {
        fields.push(json!({"id": 4, "name": "n", "required": false, "type": if has(2) { "long" } else { "int" }}));
    }
    if has(3) {
        fields.push(json!({"id": 5, "name": "l", "required": false, "doc": "a list",
            "type": {"type": "list", "element-id": 6, "element-required": true, "element": "string"}}));
    }
    json!({"type": "struct", "schema-id": b % 5, "fields": fields})
}

fn spec(a: i64, b: i64) -> Value {
    let choices = [
        json!({"source-id": 1, "name": "id_bucket", "transform": "bucket[8]"}),
        json!({"source-id": 2, "name": "ts_day", "transform": "day"}),
        json!({"source-id": 4, "name": "n", "transform": "identity"}),
        json!({"source-id": 1, "name": "id_trunc", "transform": "truncate[10]"}),
    ];
    let chosen = choices.iter().enumerate().filter(|(at, _)| a & (1 << at) != 0).map(|(_, field)| field.clone());
    json!({"spec-id": b % 4, "fields": chosen.collect::<Vec<_>>()})
}

fn sort_order(a: i64, b: i64) -> Value {
    let field = |source: i64| {
        json!({"source-id": source, "transform": "identity", "direction": pick(&["asc", "desc"], b),
        "null-order": "nulls-first"})
    };
    let sources = [1, 2, 4].into_iter().enumerate().filter(|(at, _)| a & (1 << at) != 0).map(|(_, id)| field(id));
    let fields: Vec<Value> = sources.collect();
    json!({"order-id": if fields.is_empty() { 0 } else { 1 + b % 4 }, "fields": fields})
}
