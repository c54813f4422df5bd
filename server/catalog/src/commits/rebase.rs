//! Rebase: a snapshot that was built on one head of a branch, put on another as its writer's own retry would put it.

use bytes::Bytes;

use crate::commits::identity::Identity;
use crate::commits::lineage::{Class, Landed};
use crate::metadata::{Snapshot, TableMetadata};
use crate::warehouses::Warehouse;

/// What a request needs to fit its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// It is judged as it came.
    Nothing,
    /// Its ref is where it says, but another branch has taken its sequence number or its row ids.
    Restamp(Candidate),
    /// Its ref has moved on, and all else that it requires holds.
    Rebase(Candidate),
}

/// A request of the only shape that is rebased: one snapshot, put on a branch that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub snapshot_id: i64,
    pub ref_name: String,
    /// The head that it was built on.
    pub asserted: Option<i64>,
}

/// How far rebase goes for a table and a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rules {
    Restamp,
    Append,
    Streaming,
}

/// A snapshot and the place that it is to be put in.
pub struct Link<'a> {
    pub warehouse: &'a Warehouse,
    /// The document so far, with the earlier members of the group in it.
    pub metadata: &'a TableMetadata,
    pub candidate: &'a Candidate,
    pub snapshot: &'a Snapshot,
    pub identity: Option<&'a Identity>,
    /// What lies between the asserted snapshot and head, head first, earlier members of the group included; empty for a
    /// restamp. `None` where the lineage has a gap.
    pub between: Option<&'a [Landed]>,
    pub rules: Rules,
}

/// A snapshot in its new place.
#[derive(Debug)]
pub struct Relinked {
    pub snapshot: Snapshot,
    pub class: Class,
    /// Files to be written before a pointer refers to them.
    pub files: Vec<NewFile>,
    /// Classes of snapshots in between that had none, to be remembered.
    pub classes: Vec<(i64, Class)>,
    /// Whether manifests that its writer had merged were taken apart again.
    pub unmerged: bool,
}

#[derive(Debug)]
pub struct NewFile {
    pub location: String,
    pub bytes: Bytes,
}

// STUB until the branch of rebase is merged
use std::collections::BTreeSet;
use std::sync::Arc;
use crate::commits::request::CommitRequest;
use crate::context::RequestContext;
use crate::error::{Error, Result};
use crate::files::Files;
#[derive(Clone)]
pub struct Lists {}
impl Lists {
    pub fn new(_files: Arc<Files>, _bytes: u64) -> Self { Self {} }
    pub async fn relink(&self, _ctx: &RequestContext, _link: &Link<'_>) -> Result<Relinked> { Err(Error::conflict("stub")) }
    pub async fn added_paths(&self, _w: &Warehouse, _m: &TableMetadata, _s: &Snapshot) -> Result<BTreeSet<String>> { Err(Error::conflict("stub")) }
}
pub fn need(request: &CommitRequest, metadata: &TableMetadata) -> Result<Need> {
    request.requirements.iter().try_for_each(|r| r.check(Some(metadata)))?;
    Ok(Need::Nothing)
}
