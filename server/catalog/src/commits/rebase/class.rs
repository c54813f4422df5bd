//! What a snapshot did to the files of its table: the operation's name may narrow what its manifests tell, never widen it.

use std::collections::{BTreeMap, HashSet};

use super::manifest::{Entry, FileContent, Status};
use super::manifest_list::Content;
use super::merge::Delta;
use crate::commits::lineage::Class;

/// What can be said without a look into manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Class(Class),
    /// It deletes rows of files, and only its entries tell of which.
    Deletes,
}

/// What the summary and the lists tell.
///
/// An INSERT OVERWRITE of an empty partition looks like an append in its manifests; its summary gives it away.
pub fn by_lists(summary: &BTreeMap<String, String>, delta: &Delta) -> Told {
    let operation = summary.get("operation").map_or("", String::as_str);
    let deletes = delta.new_of(Content::Deletes).next().is_some();
    match operation {
        "replace" => Told::Class(Class::Replace),
        "append" | "overwrite" | "delete" if deletes && only_adds(summary, delta) => Told::Deletes,
        "append" if !deletes && only_adds(summary, delta) => Told::Class(Class::Append),
        _ => Told::Class(Class::Other),
    }
}

fn only_adds(summary: &BTreeMap<String, String>, delta: &Delta) -> bool {
    let is_none = |key: &str| summary.get(key).is_none_or(|count| count.trim() == "0");
    !summary.contains_key("replace-partitions")
        && is_none("deleted-data-files")
        && is_none("removed-delete-files")
        && delta.new.iter().all(|manifest| manifest.deleted_files == 0)
        && carries_all(delta, Content::Data)
        && carries_all(delta, Content::Deletes)
}

/// Whether every live file of the replaced manifests is in the new ones: a merge loses none.
fn carries_all(delta: &Delta, content: Content) -> bool {
    let replaced = delta.replaced.iter().filter(|manifest| manifest.content == content);
    let live: i64 = replaced.map(|manifest| manifest.live_files()).sum();
    let carried: i64 = delta.new_of(content).map(|manifest| i64::from(manifest.existing_files)).sum();
    live == carried
}

/// What the entries of the new delete manifests tell. `added` are the data files of the same snapshot; `None` where they
/// were not asked for: then [`Told::Deletes`] asks for them.
///
/// Entries that a merge carried over from older manifests are not the snapshot's own.
pub fn by_deletes(snapshot_id: i64, deletes: &[&Entry], added: Option<&HashSet<&str>>) -> Told {
    let own: Vec<&Entry> = deletes.iter().copied().filter(|entry| entry.status != Status::Existing).collect();
    let sound = |entry: &&Entry| {
        entry.status == Status::Added && entry.is_of(snapshot_id) && entry.content != FileContent::Data
    };
    if own.is_empty() || !own.iter().all(sound) {
        return Told::Class(Class::Other);
    }
    let positions: Vec<&Entry> =
        own.into_iter().filter(|entry| entry.content == FileContent::PositionDeletes).collect();
    match added {
        _ if positions.is_empty() => Told::Class(Class::EqualityDelta),
        None => Told::Deletes,
        Some(added) if are_on(&positions, added) => Told::Class(Class::EqualityDeltaWithPositions),
        Some(_) => Told::Class(Class::Other),
    }
}

/// Whether every position delete names one of the files, and no file has two deletion vectors.
fn are_on(positions: &[&Entry], added: &HashSet<&str>) -> bool {
    let names = |entry: &&Entry| entry.referenced.as_deref().is_some_and(|path| added.contains(path));
    let mut vectors = HashSet::new();
    positions.iter().all(names)
        && positions.iter().filter(|entry| entry.is_vector).all(|vector| vectors.insert(vector.referenced.as_deref()))
}

/// The data files among entries that a snapshot added.
pub fn added_data(snapshot_id: i64, entries: &[Entry]) -> impl Iterator<Item = &str> {
    let is_added = move |entry: &&Entry| entry.status == Status::Added && entry.is_of(snapshot_id);
    let data = entries.iter().filter(|entry| entry.content == FileContent::Data);
    data.filter(is_added).map(|entry| entry.path.as_str())
}

#[cfg(test)]
mod tests;
