//! What a commit brings to the lineage and to the ledger besides its own rows.

use std::collections::HashMap;

use crate::commits::ancestry::rows_after;
use crate::commits::identity::Identity;
use crate::commits::intent::added;
use crate::commits::judge::Judge;
use crate::commits::lineage::{Asked, Landed, Mark, Walk, WriterRow, go_on};
use crate::commits::part::landed;
use crate::commits::rebase::Relinked;
use crate::error::Result;
use crate::metadata::{Snapshot, TableMetadata, TableUpdate};

impl Judge<'_> {
    /// The snapshots of the request as the lineage will have them.
    pub(super) async fn landed(
        &mut self,
        updates: &[TableUpdate],
        after: &TableMetadata,
        relinked: Option<&Relinked>,
        at_ms: i64,
    ) -> Result<Vec<Landed>> {
        let mut picked: HashMap<i64, Mark> = HashMap::new();
        for snapshot in added(updates) {
            if let Some(source) = source_of(snapshot) {
                let rows = self.commits.lineage.walk(self.warehouse.id, after.uuid(), Walk::step(source)).await?;
                picked.extend(rows.into_iter().next().and_then(|row| row.writer).map(|mark| (snapshot.id(), mark)));
            }
        }
        let mut landed = landed(updates, after, at_ms, |id| picked.get(&id).cloned());
        // Nobody asked for the writers of what was picked.
        let is_picked = |one: &&Landed| picked.contains_key(&one.snapshot_id);
        let asked = landed.iter().filter(is_picked).filter_map(|one| asked(one.ref_name.as_deref()?, one)).collect();
        self.ask(asked).await?;
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
        &mut self,
        updates: &[TableUpdate],
        at_ms: i64,
    ) -> Result<(Vec<(String, i64)>, Vec<WriterRow>)> {
        let (mut carried, mut rows) = (Vec::new(), Vec::new());
        for update in updates {
            let TableUpdate::SetSnapshotRef { ref_name, target } = update else { continue };
            let Some(head) = self.head(ref_name).filter(|head| *head != target.snapshot_id) else { continue };
            if !target.is_branch() || added(updates).any(|snapshot| snapshot.id() == target.snapshot_id) {
                continue;
            }
            let landed = self.forwarded(head, target.snapshot_id).await?;
            self.ask(landed.iter().filter_map(|one| asked(ref_name, one)).collect()).await?;
            for one in &landed {
                let Some(mark) = &one.writer else { continue };
                carried.push((ref_name.clone(), one.snapshot_id));
                if !rows.iter().any(|row: &WriterRow| row.is_of(ref_name, &mark.identity.writer)) {
                    rows.extend(self.row(ref_name, mark).cloned());
                }
                go_on(&mut rows, ref_name, one, at_ms);
            }
        }
        Ok((carried, rows))
    }

    /// The snapshots behind `head` up to `target`, the oldest first; none where `target` does not descend from `head`.
    async fn forwarded(&mut self, head: i64, target: i64) -> Result<Vec<Landed>> {
        let walked = self.walk(target, Some(head)).await?;
        Ok(rows_after(&walked, Some(head)).unwrap_or_default().iter().rev().cloned().collect())
    }

    /// Reads the rows of writers that are not the request's own. A change of them since moves the pointer, as all do.
    async fn ask(&mut self, mut asked: Vec<Asked>) -> Result<()> {
        asked.dedup();
        if asked.is_empty() {
            return Ok(());
        }
        let read = self.commits.lineage.ledger(self.warehouse.id, self.part.metadata().uuid(), &asked).await?;
        self.ledger.rows.extend(read.rows);
        Ok(())
    }
}

/// The snapshot that a cherry-pick took over.
fn source_of(snapshot: &Snapshot) -> Option<i64> {
    snapshot.summary().get("source-snapshot-id")?.parse().ok()
}

/// Asks for the row of a snapshot's writer on a ref, whatever its position.
fn asked(ref_name: &str, landed: &Landed) -> Option<Asked> {
    let writer = landed.writer.as_ref()?.identity.writer.clone();
    Some(Asked { ref_name: ref_name.to_owned(), identity: Identity { writer, position: None, epoch: None } })
}
