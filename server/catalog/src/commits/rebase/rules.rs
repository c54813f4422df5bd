//! What may be put over what, and whose commits keep whose from being rebased.

use super::Rules;
use super::manifest::{Entry, Status};
use super::merge::{Delta, Numbers};
use crate::commits::identity::{Identity, WriterKind};
use crate::commits::lineage::{Class, Landed};

/// What remains to be asked of the entries of a snapshot that may be rebased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// Its new files take the number of the place that it is put in.
    Inherited,
    /// Its new files keep older numbers, so that deletes in between go on to reach them.
    Explicit,
    /// Nothing in between asks after numbers.
    Any,
}

/// The table of pairs: may a snapshot of class `mine` be put over `between`?
pub fn may_follow(mine: Class, between: &[(i64, Class)], rules: Rules) -> Result<Sequence, String> {
    use Class::{Append, EqualityDelta, EqualityDeltaWithPositions, Other, Replace};
    let needed = match mine {
        Append => Rules::Append,
        EqualityDelta | EqualityDeltaWithPositions | Replace => Rules::Streaming,
        Other => return Err("it must be validated by its writer against what landed since".to_owned()),
    };
    if rules < needed {
        return Err(format!("the table does not have {} snapshots rebased", mine.as_str()));
    }
    let stands_in_the_way = |class: Class| match mine {
        Append => false,
        EqualityDelta | EqualityDeltaWithPositions => class == Other,
        Replace | Other => !matches!(class, Append | EqualityDelta),
    };
    if let Some((id, class)) = between.iter().find(|(_, class)| stands_in_the_way(*class)) {
        return Err(format!(
            "a snapshot of class {} cannot be put over snapshot {id} of class {} without its writer",
            mine.as_str(),
            class.as_str()
        ));
    }
    let over_deletes = between.iter().any(|(_, class)| *class == EqualityDelta);
    Ok(match mine {
        Replace if over_deletes => Sequence::Explicit,
        Replace | Other => Sequence::Any,
        Append | EqualityDelta | EqualityDeltaWithPositions => Sequence::Inherited,
    })
}

/// A commit without a base was built on an empty table: only appends cannot have mattered to it.
pub fn all_append(between: &[(i64, Class)]) -> Result<(), String> {
    match between.iter().find(|(_, class)| *class != Class::Append) {
        Some((id, class)) => Err(format!(
            "it was built on an empty branch, and snapshot {id} of class {} is more than an append",
            class.as_str()
        )),
        None => Ok(()),
    }
}

/// Whether `between` leads from head to the asserted snapshot, or to the root where none is asserted.
pub fn is_chain(between: &[Landed], head: i64, asserted: Option<i64>) -> bool {
    let mut next = Some(head);
    for landed in between {
        if next != Some(landed.snapshot_id) || next == asserted {
            return false;
        }
        next = landed.parent_id;
    }
    next == asserted
}

/// Refuses where a snapshot in between is the same writer's, whose own look back would have found it, or the first one
/// of a writer of the same kind, which may be this writer's successor.
pub fn check_fences(identity: Option<&Identity>, ref_name: &str, between: &[Landed]) -> Result<(), String> {
    // Arroyo's commits name no writer.
    let Some(writer) = identity.map(|identity| &identity.writer).filter(|writer| writer.kind != WriterKind::Arroyo)
    else {
        return Ok(());
    };
    for landed in between {
        let Some(mark) = &landed.writer else { continue };
        let (id, other) = (landed.snapshot_id, &mark.identity.writer);
        if other.fences(writer) {
            return Err(format!("snapshot {id} of the same writer ({writer}) landed since"));
        }
        let is_newcomer = landed.is_first && landed.ref_name.as_deref() == Some(ref_name);
        if is_newcomer && is_stock(other.kind) && other.kind == writer.kind {
            return Err(format!("snapshot {id} is the first one of a new writer ({other}), which may have taken over"));
        }
    }
    Ok(())
}

/// Writers whose clients were seen to leave sequence numbers to the catalog, and to look back over ancestors.
pub fn is_stock(kind: WriterKind) -> bool {
    matches!(kind, WriterKind::Flink | WriterKind::KafkaConnect | WriterKind::SparkStreaming)
}

/// Where new files are to take the number of their place, no manifest that holds only such may tell another one.
pub fn check_inherits(delta: &Delta, numbers: Numbers) -> Result<(), String> {
    let own = delta.new.iter().filter(|manifest| manifest.existing_files == 0);
    match own.into_iter().find(|manifest| manifest.min_sequence_number != numbers.was) {
        Some(manifest) => Err(format!("manifest {} has files with a sequence number of their own", manifest.path)),
        None => Ok(()),
    }
}

/// Holds the entries that a manifest adds against what may be asked of their sequence numbers.
pub fn check_entries(path: &str, entries: &[Entry], wanted: Sequence) -> Result<(), String> {
    let wrong = |entry: &&Entry| match wanted {
        Sequence::Any => false,
        Sequence::Inherited => entry.sequence_number.is_some(),
        Sequence::Explicit => entry.sequence_number.is_none(),
    };
    let what = if wanted == Sequence::Explicit { "no" } else { "a" };
    match entries.iter().filter(|entry| entry.status == Status::Added).find(wrong) {
        Some(entry) => Err(format!("{} in manifest {path} has {what} sequence number of its own", entry.path)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
