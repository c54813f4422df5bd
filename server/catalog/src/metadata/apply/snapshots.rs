//! Snapshots and refs: what may be added, where refs may point, and what goes with a snapshot that is removed.

use std::collections::HashSet;
use std::sync::Arc;

use super::Draft;
use super::head::remove_files;
use crate::error::{Error, Result};
use crate::metadata::{MAIN_BRANCH, Snapshot, SnapshotRef};

impl Draft {
    pub(super) fn add_snapshot(&mut self, snapshot: &Arc<Snapshot>) -> Result<()> {
        if self.table.schemas.is_empty() {
            return Err(Error::invalid("Cannot add a snapshot before a schema is added"));
        }
        let id = snapshot.id();
        if self.table.snapshots.contains(id) {
            return Err(Error::invalid(format!("Snapshot already exists for id: {id}")));
        }
        if self.table.snapshots.would_be_circular(snapshot) {
            return Err(Error::invalid(format!(
                "add-snapshot.snapshot.parent-snapshot-id: snapshot {id} would be among its own ancestors"
            )));
        }
        self.check_manifest_list(snapshot)?;
        if self.table.format_version > 1 {
            self.check_sequence_number(snapshot)?;
            self.table.last_sequence_number = self.table.last_sequence_number.max(snapshot.sequence_number());
        }
        if self.table.format_version >= 3 {
            self.table.next_row_id = Some(self.next_row_id_after(snapshot)?);
        }
        self.added.add(snapshot);
        self.table.snapshots.push(snapshot.clone());
        self.changed = true;
        Ok(())
    }

    /// No two snapshots share a manifest list: the second one is a copy of a commit that is there already.
    fn check_manifest_list(&self, snapshot: &Snapshot) -> Result<()> {
        let Some(manifest_list) = snapshot.manifest_list() else {
            return match self.table.format_version {
                1 => Ok(()),
                _ => Err(Error::invalid("add-snapshot.snapshot.manifest-list: is required")),
            };
        };
        match self.table.snapshots.with_manifest_list(manifest_list) {
            Some(other) => Err(Error::unprocessable(format!(
                "Cannot add snapshot {}: manifest list {manifest_list} belongs to snapshot {} already",
                snapshot.id(),
                other.id()
            ))),
            None => Ok(()),
        }
    }

    fn check_sequence_number(&self, snapshot: &Snapshot) -> Result<()> {
        let (number, last) = (snapshot.sequence_number(), self.table.last_sequence_number);
        if !snapshot.has_sequence_number() {
            return Err(Error::invalid("add-snapshot.snapshot.sequence-number: is required from v2 on"));
        }
        if number <= last && snapshot.parent_id().is_some() {
            return Err(Error::conflict(format!(
                "Cannot add snapshot with sequence number {number} older than last sequence number {last}"
            )));
        }
        Ok(())
    }

    /// The row id after those that the snapshot takes (v3): ids are never given twice.
    fn next_row_id_after(&self, snapshot: &Snapshot) -> Result<i64> {
        let next = self.table.next_row_id.unwrap_or(0);
        let Some(first) = snapshot.first_row_id() else {
            return Err(Error::conflict("Cannot add a snapshot: first-row-id is null, which v3 does not allow"));
        };
        if first < next {
            return Err(Error::conflict(format!(
                "Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {next}"
            )));
        }
        let added = snapshot.added_rows().filter(|rows| *rows >= 0);
        let after = added.and_then(|rows| first.checked_add(rows));
        let after = after.ok_or_else(|| {
            Error::invalid("add-snapshot.snapshot.added-rows: is required from v3 on and must not be negative")
        })?;
        Ok(next.max(after))
    }

    pub(super) fn set_snapshot_ref(&mut self, name: &str, target: &SnapshotRef) -> Result<()> {
        if name == MAIN_BRANCH && !target.is_branch() {
            return Err(Error::invalid("Cannot set main to a tag, it must be a branch"));
        }
        if name == MAIN_BRANCH && target.max_ref_age_ms.is_some() {
            return Err(Error::invalid("set-snapshot-ref.max-ref-age-ms: the branch main never expires"));
        }
        if self.table.refs.get(name).is_some_and(|old| old.is_same_as(target)) {
            return Ok(());
        }
        let id = target.snapshot_id;
        if !self.table.snapshots.contains(id) {
            return Err(Error::invalid(format!("Cannot set {name} to unknown snapshot: {id}")));
        }
        if target.is_branch() {
            self.added.put_on_branch(&self.table.snapshots, id, name == MAIN_BRANCH);
        }
        if name == MAIN_BRANCH && self.table.current_snapshot_id != Some(id) {
            self.table.current_snapshot_id = Some(id);
            self.main_moves.push(id);
        }
        Arc::make_mut(&mut self.table.refs).insert(name.to_owned(), target.clone());
        self.changed = true;
        Ok(())
    }

    pub(super) fn remove_snapshot_ref(&mut self, name: &str) {
        if self.table.refs.contains_key(name) {
            Arc::make_mut(&mut self.table.refs).remove(name);
            self.changed = true;
        }
        if name == MAIN_BRANCH {
            self.table.current_snapshot_id = None;
        }
    }

    /// With a snapshot go its statistics and the refs that point to it. Ids that are not there are passed over.
    pub(super) fn remove_snapshots(&mut self, ids: &[i64]) {
        let ids: HashSet<i64> = ids.iter().copied().collect();
        if !self.table.snapshots.remove(&ids) {
            return;
        }
        self.changed = true;
        self.removed_snapshots = true;
        remove_files(&mut self.table.statistics, |id| ids.contains(&id));
        remove_files(&mut self.table.partition_statistics, |id| ids.contains(&id));
        let snapshots = &self.table.snapshots;
        let dangling = self.table.refs.iter().filter(|(_, target)| !snapshots.contains(target.snapshot_id));
        let dangling: Vec<String> = dangling.map(|(name, _)| name.clone()).collect();
        dangling.iter().for_each(|name| self.remove_snapshot_ref(name));
    }
}
