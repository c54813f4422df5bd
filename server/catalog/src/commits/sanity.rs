//! What a commit must fit besides its own requirements, so that no history is cut or grown sideways.

use std::collections::HashMap;

use crate::commits::request::CommitRequest;
use crate::commits::requirements::Requirement;
use crate::error::{Error, Result};
use crate::metadata::{RefKind, Snapshot, TableMetadata, TableUpdate};

/// Refuses (409) a snapshot that does not continue the branch it is put on.
///
/// Not asked of a first write to a branch, of staged snapshots, of create-or-replace (which removes the branch
/// first) and of format version 1.
pub fn check(base: &TableMetadata, request: &CommitRequest) -> Result<()> {
    if base.format_version() < 2 {
        return Ok(());
    }
    let mut added: HashMap<i64, &Snapshot> = HashMap::new();
    let mut heads: HashMap<&str, Option<i64>> =
        base.refs().iter().map(|(name, reference)| (name.as_str(), Some(reference.snapshot_id))).collect();
    for update in &request.updates {
        match update {
            TableUpdate::AddSnapshot { snapshot } => {
                added.insert(snapshot.id(), snapshot);
            }
            TableUpdate::RemoveSnapshotRef { ref_name } => {
                heads.insert(ref_name, None);
            }
            TableUpdate::SetSnapshotRef { ref_name, reference } if reference.kind == RefKind::Branch => {
                let head = heads.insert(ref_name, Some(reference.snapshot_id)).flatten();
                if let (Some(snapshot), Some(head)) = (added.get(&reference.snapshot_id), head) {
                    continues(snapshot, head, ref_name, asserts(&request.requirements, ref_name))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// With an assertion the parent must be the head. Without one, only an append that forgets its parent is refused.
fn continues(snapshot: &Snapshot, head: i64, ref_name: &str, asserted: bool) -> Result<()> {
    let fits = match snapshot.parent_id() {
        Some(parent) => !asserted || parent == head,
        None => !asserted && snapshot.operation().as_deref() != Some("append"),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::conflict(format!(
            "snapshot {} does not continue branch {ref_name}: its parent is {}, the head is {head}; reload and build on the head",
            snapshot.id(),
            snapshot.parent_id().map_or("none".to_owned(), |parent| parent.to_string()),
        ))),
    }
}

fn asserts(requirements: &[Requirement], name: &str) -> bool {
    requirements.iter().any(|requirement| {
        matches!(requirement, Requirement::AssertRefSnapshotId { ref_name, snapshot_id: Some(_) } if ref_name == name)
    })
}
