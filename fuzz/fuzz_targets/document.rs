//! The table metadata document. The input is a stream of JSON values: a document, or the updates that make one, and then
//! the updates of one commit each.

#![no_main]

use catalog::metadata::{ApplyAt, TableMetadata, TableUpdate, apply, assemble};
use frazil_fuzz::dice::Dice;
use frazil_fuzz::{json, put};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use serde_json::Deserializer;
use serde_json::value::RawValue;

const NOW_MS: i64 = 1_700_000_000_000;
const COMMITS_MAX: usize = 8;

/// Memory that a document may take for each byte of its text, and beside that.
const MEMORY_PER_BYTE: usize = 64;
const MEMORY_BESIDE_BYTES: usize = 16 * 1024;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = Dice::new(seed);
    let mutated = if dice.below(4) > 0 { json::mutate(&data[..size], &mut dice) } else { None };
    put(mutated, data, max_size).unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});

fuzz_target!(|data: &[u8]| {
    let values = Deserializer::from_slice(data).into_iter::<Box<RawValue>>();
    let values: Vec<Box<RawValue>> = values.map_while(Result::ok).take(1 + COMMITS_MAX).collect();
    let Some((first, commits)) = values.split_first() else { return };
    let Some(mut table) = begin(first) else { return };
    check(&table);
    for updates in commits {
        let Some(updates) = read_updates(updates) else { continue };
        let at = ApplyAt { now_ms: NOW_MS, previous_location: Some("s3://b/t/metadata/0.metadata.json") };
        let Ok(applied) = apply(&table, &updates, &at) else { continue };
        check(&applied.metadata);
        check_step(&table, &applied.metadata, applied.changed);
        table = applied.metadata;
    }
});

/// A document, as it lies in a file, or a table that is made by its first updates.
fn begin(raw: &RawValue) -> Option<TableMetadata> {
    match read_updates(raw) {
        Some(updates) => assemble(&updates, NOW_MS).ok(),
        None => TableMetadata::parse(raw.get().as_bytes()).ok(),
    }
}

fn read_updates(raw: &RawValue) -> Option<Vec<TableUpdate>> {
    serde_json::from_str(raw.get()).ok()
}

/// What is written can be read, and is the same then.
fn check(table: &TableMetadata) {
    let written = table.encode();
    let again = TableMetadata::parse(&written).expect("what was written can be read");
    assert_eq!(again.encode(), written);
    assert_eq!(again.uuid(), table.uuid());
    TableMetadata::parse(&table.encode_refs()).expect("what clients are told of the refs can be read");
    // Whether it may become a table is judged without a panic.
    let _ = table.check_foreign();
    let bound = MEMORY_BESIDE_BYTES + MEMORY_PER_BYTE * written.len();
    assert!(table.memory_bytes() <= bound, "{} bytes of memory, more than {bound}", table.memory_bytes());
}

/// What no commit may turn back.
fn check_step(before: &TableMetadata, after: &TableMetadata, changed: bool) {
    assert_eq!(after.uuid(), before.uuid());
    assert!(after.format_version() >= before.format_version());
    assert!(after.last_sequence_number() >= before.last_sequence_number() || before.format_version() == 1);
    assert!(after.last_column_id() >= before.last_column_id());
    assert!(after.last_partition_id() >= before.last_partition_id());
    assert!(after.next_row_id() >= before.next_row_id());
    assert!(after.last_updated_ms() >= before.last_updated_ms());
    assert!(changed || after.encode() == before.encode());
}
