//! Manifest lists of any length, for the bench of their merge.

use bytes::Bytes;

use crate::commits::rebase::manifest_list::{self, Content, FieldSummary, Head, List, ManifestFile, Written};
use crate::commits::rebase::merge::{Delta, Numbers};

/// An append that was built on a list, and finds the list of another append in its place, as a rebase has written it.
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
        let base = List { format_version: 2, manifests: base, written: None };
        let on =
            |list: &List, n| List { manifests: [vec![manifest(n)], list.manifests.clone()].concat(), ..list.clone() };
        let (mine, mut head) = (on(&base, next + 1), on(&base, next));
        head.written = Some(write(&head.manifests, &base));
        Self { base, mine, head }
    }

    /// The list that brings both, as a rebase writes it.
    pub fn merge(&self) -> Bytes {
        self.merge_on(&self.head)
    }

    /// The same where the head was read, and all of it must be encoded.
    pub fn merge_on_read(&self) -> Bytes {
        self.merge_on(&List::default())
    }

    fn merge_on(&self, written: &List) -> Bytes {
        let next = self.head.manifests.len() as i64 + 1;
        let numbers = Numbers { was: next - 1, is: next, next_row_id: None };
        let merged = Delta::of(&self.base.manifests, &self.mine.manifests).onto(&self.head.manifests, numbers);
        write(&merged.manifests, written).bytes
    }
}

fn write(manifests: &[ManifestFile], on: &List) -> Written {
    let number = manifests.len() as i64;
    let head = Head {
        format_version: 2,
        snapshot_id: number,
        parent_id: Some(number - 1),
        sequence_number: number,
        first_row_id: None,
    };
    manifest_list::write(&head, manifests, on).expect("a list of plain values can be written")
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
        for manifests in [10, 100] {
            let raced = Raced::on(manifests);
            assert_eq!((count(&raced.merge()), count(&raced.merge_on_read())), (manifests + 2, manifests + 2));
        }
    }

    #[test]
    fn a_merge_takes_over_what_the_list_of_head_has() {
        let (raced, enough) = (Raced::on(100), 500);
        let head = raced.head.written.as_ref().unwrap().bytes.clone();
        let end = head.slice(head.len() - enough..);
        assert!(raced.merge().ends_with(&end) && !raced.merge_on_read().ends_with(&end));
    }
}
