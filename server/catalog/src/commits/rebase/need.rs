//! What a request needs to fit its table, told by its requirements and its shape alone.

use super::{Candidate, Need};
use crate::commits::request::CommitRequest;
use crate::commits::requirements::Requirement;
use crate::error::Result;
use crate::metadata::{RefKind, Snapshot, TableMetadata, TableUpdate};

/// Requirements first. Where all hold, the request is judged as it came, or stamped anew if another branch took its
/// numbers. Where only the ref has moved on, it may be rebased. Else the first failing requirement is the answer.
pub fn need(request: &CommitRequest, metadata: &TableMetadata) -> Result<Need> {
    let checks = request.requirements.iter().map(|requirement| (requirement, requirement.check(Some(metadata))));
    let mut failing = checks.filter_map(|(requirement, check)| Some((requirement, check.err()?)));
    let Some((requirement, error)) = failing.next() else {
        return Ok(restamp(request, metadata).map_or(Need::Nothing, Need::Restamp));
    };
    let is_only = failing.next().is_none();
    let moved = matches!(requirement, Requirement::AssertRefSnapshotId { .. }) && is_only;
    match rebase(request, metadata).filter(|_| moved) {
        Some(candidate) => Ok(Need::Rebase(candidate)),
        None => Err(error),
    }
}

/// The shape that may be rebased: nothing but one snapshot, built on the head that is asserted of one branch, and put on
/// that branch, which is there.
fn rebase(request: &CommitRequest, metadata: &TableMetadata) -> Option<Candidate> {
    let only_asserts = request.requirements.iter().all(|requirement| {
        matches!(requirement, Requirement::AssertTableUuid { .. } | Requirement::AssertRefSnapshotId { .. })
    });
    let (snapshot, candidate) = shape(request)?;
    let is_branch = metadata.refs().get(&candidate.ref_name).is_some_and(|target| target.kind == RefKind::Branch);
    (only_asserts && is_branch && snapshot.parent_id() == candidate.asserted).then_some(candidate)
}

/// The shape that may be stamped anew. A first write to a branch is one too: it stays on the parent that it names.
fn restamp(request: &CommitRequest, metadata: &TableMetadata) -> Option<Candidate> {
    let (snapshot, candidate) = shape(request)?;
    let on_head = candidate.asserted.is_none() || snapshot.parent_id() == candidate.asserted;
    (on_head && is_stale(snapshot, metadata)).then_some(candidate)
}

/// One snapshot, put on one branch of which something is asserted. Trino's statistics of the snapshot may come along.
fn shape(request: &CommitRequest) -> Option<(&Snapshot, Candidate)> {
    let (mut added, mut put) = (Vec::new(), Vec::new());
    for update in &request.updates {
        match update {
            TableUpdate::AddSnapshot { snapshot } => added.push(snapshot),
            TableUpdate::SetSnapshotRef { ref_name, target } => put.push((ref_name, target)),
            TableUpdate::SetStatistics { .. } => {}
            _ => return None,
        }
    }
    let ([snapshot], [(ref_name, target)]) = (added.as_slice(), put.as_slice()) else { return None };
    let is_it = |id: i64| id == snapshot.id();
    let statistics_of_it = request.updates.iter().all(|update| match update {
        TableUpdate::SetStatistics { statistics } => is_it(statistics.snapshot_id),
        _ => true,
    });
    if target.kind != RefKind::Branch || !is_it(target.snapshot_id) || !statistics_of_it {
        return None;
    }
    let asserted = asserted(request, ref_name)?;
    Some((snapshot, Candidate { snapshot_id: snapshot.id(), ref_name: (*ref_name).clone(), asserted }))
}

/// What the request asserts of that ref, if that is the only ref that it asserts anything of.
fn asserted(request: &CommitRequest, name: &str) -> Option<Option<i64>> {
    let mut asserted = request.requirements.iter().filter_map(|requirement| match requirement {
        Requirement::AssertRefSnapshotId { ref_name, snapshot_id } => Some((ref_name, *snapshot_id)),
        _ => None,
    });
    let (ref_name, snapshot_id) = asserted.next()?;
    (ref_name == name && asserted.all(|other| other == (ref_name, snapshot_id))).then_some(snapshot_id)
}

/// Whether another branch has taken the snapshot's sequence number or row ids.
fn is_stale(snapshot: &Snapshot, metadata: &TableMetadata) -> bool {
    let number_taken = metadata.format_version() >= 2
        && snapshot.has_sequence_number()
        && snapshot.parent_id().is_some()
        && snapshot.sequence_number() <= metadata.last_sequence_number();
    let rows_taken = match (snapshot.first_row_id(), metadata.next_row_id()) {
        (Some(first), Some(next)) => first < next,
        _ => false,
    };
    number_taken || rows_taken
}

#[cfg(test)]
mod tests;
