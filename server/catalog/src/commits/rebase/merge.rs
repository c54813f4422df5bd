//! The three-way merge of manifest lists: what a commit adds and replaces, carried over to another head.

use std::collections::{BTreeMap, HashSet};

use crate::commits::rebase::manifest_list::{Content, ManifestFile};

/// What a commit changed in the list that it was built on.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    /// `mine \ base`, in the order of mine.
    pub new: Vec<ManifestFile>,
    /// `base \ mine`, without manifests that have no live entry: any client drops those when it writes a list anew.
    pub replaced: Vec<ManifestFile>,
}

impl Delta {
    pub fn of(base: &[ManifestFile], mine: &[ManifestFile]) -> Self {
        let (in_base, in_mine) = (paths(base), paths(mine));
        let new = mine.iter().filter(|manifest| !in_base.contains(manifest.path.as_str()));
        let gone = base.iter().filter(|manifest| !in_mine.contains(manifest.path.as_str()) && manifest.is_live());
        Self { new: new.cloned().collect(), replaced: gone.cloned().collect() }
    }

    /// A manifest that is replaced and is no longer there.
    pub fn missing(&self, head: &[ManifestFile]) -> Option<&str> {
        let in_head = paths(head);
        self.replaced.iter().map(|manifest| manifest.path.as_str()).find(|path| !in_head.contains(path))
    }

    /// A manifest of the commit that head has already: then the commit landed before.
    pub fn landed(&self, head: &[ManifestFile]) -> Option<&str> {
        let in_head = paths(head);
        self.new.iter().map(|manifest| manifest.path.as_str()).find(|path| in_head.contains(path))
    }

    /// Those new manifests that hold data, or deletes.
    pub fn new_of(&self, content: Content) -> impl Iterator<Item = &ManifestFile> {
        self.new.iter().filter(move |manifest| manifest.content == content)
    }

    /// `new ∪ (head \ replaced)`: new ones first, as Iceberg's writers put them; kept ones as they stand in head.
    pub fn onto(&self, head: &[ManifestFile], numbers: Numbers) -> Merged {
        let replaced = paths(&self.replaced);
        let kept = head.iter().filter(|manifest| !replaced.contains(manifest.path.as_str())).cloned();
        let stamped = self.new.iter().map(|manifest| numbers.stamp(manifest));
        let mut manifests: Vec<ManifestFile> = stamped.chain(kept).collect();
        let new = paths(&self.new);
        let next_row_id = numbers.next_row_id.map(|next| number_rows(&mut manifests, &new, next));
        Merged { manifests, next_row_id }
    }
}

/// The numbers of a snapshot's new place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// What the client took its own sequence number to be.
    pub was: i64,
    /// What it is at its new place.
    pub is: i64,
    /// The table's `next-row-id` before this snapshot; from format version 3 on.
    pub next_row_id: Option<i64>,
}

impl Numbers {
    fn stamp(&self, manifest: &ManifestFile) -> ManifestFile {
        let min_sequence_number = match manifest.min_sequence_number {
            // A lower one is that of entries that keep their own: merged or rewritten ones.
            number if number == self.was => self.is,
            number => number,
        };
        ManifestFile { sequence_number: self.is, min_sequence_number, ..manifest.clone() }
    }
}

/// A list for the new place.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    pub manifests: Vec<ManifestFile>,
    /// The table's `next-row-id` after it; from format version 3 on.
    pub next_row_id: Option<i64>,
}

/// Gives row ids, in the order of the list, to data manifests that are new or that have none yet. Rows that exist take
/// ids as well where their manifest has none, as the reference implementation has it; so gaps are normal.
fn number_rows(manifests: &mut [ManifestFile], new: &HashSet<&str>, mut next: i64) -> i64 {
    for manifest in manifests.iter_mut().filter(|manifest| manifest.content == Content::Data) {
        if new.contains(manifest.path.as_str()) || manifest.first_row_id.is_none() {
            manifest.first_row_id = Some(next);
            next = next.saturating_add(manifest.added_rows).saturating_add(manifest.existing_rows);
        }
    }
    next
}

fn paths(manifests: &[ManifestFile]) -> HashSet<&str> {
    manifests.iter().map(|manifest| manifest.path.as_str()).collect()
}

/// The totals of a summary, each with what adds to it and what takes from it.
pub const TOTALS: [(&str, &str, &str); 6] = [
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-records", "added-records", "deleted-records"),
];

/// The totals after a commit: those of head, changed by what the commit says it added and removed. `None` where head
/// does not tell one, for then nobody can know it.
pub fn totals(
    head: &BTreeMap<String, String>,
    summary: &BTreeMap<String, String>,
) -> [(&'static str, Option<i64>); TOTALS.len()] {
    let number = |of: &BTreeMap<String, String>, key: &str| of.get(key)?.parse::<i64>().ok();
    TOTALS.map(|(total, added, removed)| {
        let change = number(summary, added).unwrap_or(0).saturating_sub(number(summary, removed).unwrap_or(0));
        (total, number(head, total).map(|total| total.saturating_add(change)))
    })
}

#[cfg(test)]
mod tests;
