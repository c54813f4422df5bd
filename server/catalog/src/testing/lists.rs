//! Manifest lists of any length, for the bench of their merge.

use crate::commits::rebase::manifest_list::{self, Content, FieldSummary, Head, List, ManifestFile};
use crate::commits::rebase::merge::{Delta, Numbers};

/// An append that was built on a list, and finds the list of another append in its place.
pub struct Raced {
    base: List,
    mine: List,
    head: List,
}

impl Raced {
    /// On a list of so many manifests.
    pub fn on(manifests: usize) -> Self {
        let base: Vec<ManifestFile> = (1..).take(manifests).map(manifest).collect();
        let next = manifests as i64 + 1;
        let onto_base = |n| List { format_version: 2, manifests: [vec![manifest(n)], base.clone()].concat() };
        let (mine, head) = (onto_base(next + 1), onto_base(next));
        Self { base: List { format_version: 2, manifests: base }, mine, head }
    }

    /// The bytes of the list that brings both, as a rebase writes it.
    pub fn merge(&self) -> Vec<u8> {
        let next = self.head.manifests.len() as i64 + 1;
        let numbers = Numbers { was: next - 1, is: next, next_row_id: None };
        let merged = Delta::of(&self.base.manifests, &self.mine.manifests).onto(&self.head.manifests, numbers);
        let head = Head {
            format_version: 2,
            snapshot_id: next,
            parent_id: Some(next - 1),
            sequence_number: next,
            first_row_id: None,
        };
        manifest_list::write(&head, &merged.manifests).expect("a list of plain values can be written")
    }
}

/// Reads a list that [`Raced::merge`] has written, and counts its manifests.
pub fn count(list: &[u8]) -> usize {
    manifest_list::read(list).map_or(0, |list| list.manifests.len())
}

/// Of a partitioned append, as Iceberg's own writers tell of it.
fn manifest(n: i64) -> ManifestFile {
    let bound = |days: i64| Some((19_000 + days).to_le_bytes()[..4].to_vec());
    ManifestFile {
        path: format!("s3://warehouse/streaming.db/events/metadata/0b0e8f7e-5a3c-4a52-8f8e-{n:012x}-m0.avro"),
        length_bytes: 7_000 + n,
        content: Content::Data,
        sequence_number: n,
        min_sequence_number: n,
        added_snapshot_id: n,
        added_files: 4,
        added_rows: 125_000,
        partitions: Some(vec![FieldSummary {
            contains_null: false,
            contains_nan: Some(false),
            lower_bound: bound(n),
            upper_bound: bound(n + 1),
        }]),
        ..ManifestFile::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_list_has_what_both_brought() {
        assert_eq!(count(&Raced::on(10).merge()), 12);
    }
}
