//! Manifest lists and manifests as they come from stores. The input is an Avro file.

#![no_main]

use catalog::testing::rebase::{Head, List, ManifestFile, own_entries, read_list, read_manifest, write_list};
use frazil_fuzz::container;
use frazil_fuzz::dice::Dice;
use frazil_fuzz::put;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

/// Room that a part of a file is given to grow while it is mutated.
const GROWTH_BYTES: usize = 64;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = Dice::new(seed);
    let mutated = if dice.below(8) > 0 { container::mutate(&data[..size], &mut dice, mutate_bytes) } else { None };
    put(mutated, data, max_size).unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});

fn mutate_bytes(bytes: &mut Vec<u8>) {
    let size = bytes.len();
    bytes.resize(size + GROWTH_BYTES, 0);
    let max_size = bytes.len();
    let size = fuzzer_mutate(bytes, size, max_size);
    bytes.truncate(size);
}

fuzz_target!(|data: &[u8]| {
    if let Ok(list) = read_list(data) {
        check_list(list);
    }
    if let Ok(entries) = read_manifest(data) {
        let ids: Vec<Option<i64>> = entries.iter().map(|entry| entry.snapshot_id).collect();
        for id in [ids.first().copied().flatten().unwrap_or(0), i64::MAX] {
            check_manifest(data, id);
        }
    }
});

/// What is written in the format version of a list is read back as it was.
fn check_list(list: List) {
    let format_version = list.format_version.clamp(1, 3);
    let head = Head { format_version, snapshot_id: 1, parent_id: None, sequence_number: 1, first_row_id: Some(0) };
    let written = write_list(&head, &list.manifests, &List::default()).expect("what was read can be written").bytes;
    let manifests = list.manifests.into_iter().map(|manifest| as_of(format_version, manifest)).collect();
    assert_eq!(
        read_list(&written).expect("what was written can be read"),
        List { format_version, manifests, written: None }
    );
}

/// What a format version knows of a manifest.
fn as_of(format_version: u8, manifest: ManifestFile) -> ManifestFile {
    let plain = ManifestFile::default();
    match format_version {
        1 => ManifestFile {
            content: plain.content,
            sequence_number: plain.sequence_number,
            min_sequence_number: plain.min_sequence_number,
            first_row_id: None,
            ..manifest
        },
        2 => ManifestFile { first_row_id: None, ..manifest },
        _ => manifest,
    }
}

/// What a snapshot added is kept to the byte: taken apart again, it is the same.
fn check_manifest(bytes: &[u8], snapshot_id: i64) {
    let Ok(own) = own_entries(bytes, snapshot_id) else { return };
    assert_eq!(read_manifest(&own.bytes).expect("a manifest that was taken apart"), own.entries);
    let again = own_entries(&own.bytes, snapshot_id).expect("a manifest of one snapshot");
    assert_eq!(again.entries, own.entries);
    let described = own.describe(&ManifestFile::default(), "s3://b/t/metadata/m0.avro", 1);
    assert_eq!((described.existing_files, described.deleted_files), (0, 0));
}
