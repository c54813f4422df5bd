//! What a commit brings to the lineage and to the ledger besides its own rows.

use std::collections::HashMap;

use crate::commits::ancestry::{WALK_MAX, rows_after};
use crate::commits::intent::added;
use crate::commits::judge::Judge;
use crate::commits::lineage::{Landed, Mark, Walk, WriterRow};
use crate::commits::part::landed;
use crate::commits::rebase::Relinked;
use crate::error::Result;
use crate::metadata::{Snapshot, TableMetadata, TableUpdate};

impl Judge<'_> {
    /// The snapshots of the request as the lineage will have them.
    pub(super) async fn landed(
        &self,
        updates: &[TableUpdate],
        after: &TableMetadata,
        relinked: Option<&Relinked>,
        at_ms: i64,
    ) -> Result<Vec<Landed>> {
        let mut picked: HashMap<i64, Mark> = HashMap::new();
        for snapshot in added(updates) {
            if let Some(source) = source_of(snapshot) {
                let walk = Walk { from: source, until: None, sequence_number_min: i64::MIN, limit: 1 };
                let rows = self.commits.lineage.walk(self.warehouse.id, after.uuid(), walk).await?;
                picked.extend(rows.into_iter().next().and_then(|row| row.writer).map(|mark| (snapshot.id(), mark)));
            }
        }
        let mut landed = landed(updates, after, at_ms, |id, _| picked.get(&id).cloned());
        for one in &mut landed {
            let row = match (&one.ref_name, &one.writer) {
                (Some(ref_name), Some(mark)) => self.row(ref_name, mark),
                _ => continue,
            };
            one.is_first = row.is_none_or(|row| row.first_snapshot_id.is_none());
        }
        if let (Some(relinked), Some(one)) = (relinked, landed.last_mut()) {
            one.class = relinked.class;
            one.rebased = relinked.class.is_some();
        }
        Ok(landed)
    }

    /// Rows of the ledger go over into the chain before they are moved, so that what they hold is kept.
    pub(super) fn take_rows(&mut self, landed: &[Landed]) {
        for one in landed {
            if let (Some(ref_name), Some(mark)) = (&one.ref_name, &one.writer)
                && let Some(row) = self.row(ref_name, mark).cloned()
            {
                self.part.put_row(row);
            }
        }
    }

    /// What comes to a branch by fast-forward: its snapshots, and the writers of those.
    pub(super) async fn carried(
        &self,
        updates: &[TableUpdate],
        at_ms: i64,
    ) -> Result<(Vec<(String, i64)>, Vec<WriterRow>)> {
        let (metadata, mut carried, mut rows) = (self.part.metadata(), Vec::new(), Vec::<WriterRow>::new());
        for update in updates {
            let TableUpdate::SetSnapshotRef { ref_name, target } = update else { continue };
            let Some(head) = self.head(ref_name).filter(|head| *head != target.snapshot_id) else { continue };
            if !target.is_branch() || added(updates).any(|snapshot| snapshot.id() == target.snapshot_id) {
                continue;
            }
            let sequence_number_min = metadata.snapshot(head).map_or(i64::MIN, Snapshot::sequence_number);
            let walk = Walk { from: target.snapshot_id, until: Some(head), sequence_number_min, limit: WALK_MAX };
            let walked = self.commits.lineage.walk(self.warehouse.id, metadata.uuid(), walk).await?;
            for landed in rows_after(&walked, Some(head)).unwrap_or_default() {
                let Some(mark) = &landed.writer else { continue };
                carried.push((ref_name.clone(), landed.snapshot_id));
                let is_its = |row: &WriterRow| row.ref_name == *ref_name && row.writer == mark.identity.writer;
                // Newest first: what comes after is older.
                match rows.iter_mut().find(|row| is_its(row)) {
                    Some(row) => row.first_snapshot_id = Some(landed.snapshot_id),
                    None => rows.push(carried_row(ref_name, landed, mark, at_ms)),
                }
            }
        }
        Ok((carried, rows))
    }
}

/// The snapshot that a cherry-pick took over.
fn source_of(snapshot: &Snapshot) -> Option<i64> {
    snapshot.summary().get("source-snapshot-id")?.parse().ok()
}

fn carried_row(ref_name: &str, landed: &Landed, mark: &Mark, at_ms: i64) -> WriterRow {
    WriterRow {
        ref_name: ref_name.to_owned(),
        writer: mark.identity.writer.clone(),
        position: mark.identity.position.clone(),
        snapshot_id: Some(landed.snapshot_id),
        sequence_number: landed.sequence_number,
        first_snapshot_id: Some(landed.snapshot_id),
        epoch: mark.identity.epoch,
        retired: false,
        at_ms,
    }
}
