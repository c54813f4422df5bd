//! Whether a snapshot is still an ancestor of a ref's head.

use std::sync::Arc;

use uuid::Uuid;

use crate::commits::lineage::{Landed, LineageStore, Walk};
use crate::documents::TableDocument;
use crate::error::Result;
use crate::ident::WarehouseId;

/// How far one walk through the lineage goes back, in snapshots, and how many walks one question takes.
const WALK_MAX: u32 = 10_000;
const WALKS_MAX: u32 = 1_000;

/// The snapshots behind the head of a ref.
pub struct Ancestry<'a> {
    pub lineage: &'a dyn LineageStore,
    pub warehouse: WarehouseId,
    pub table: Uuid,
    /// The table as it is now.
    pub document: Arc<TableDocument>,
    /// `None` where there is no such ref.
    pub head: Option<i64>,
}

/// What a walk back from the head came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// The newest of the wanted snapshots.
    Snapshot(i64),
    /// None of them: the root, or what is older than all of them, came first.
    Nothing,
    /// A snapshot that is neither remembered nor in the metadata: what lies behind it cannot be known.
    Gap,
}

/// Where a walk goes on.
enum Next {
    /// With this snapshot, which the document does not have any more.
    From(i64),
    Ends(Met),
}

impl Ancestry<'_> {
    /// The first of the wanted snapshots on the way back from the head: through the document as far as it goes, then
    /// through the lineage.
    pub async fn meets(&self, wanted: &[Landed]) -> Result<Met> {
        let (Some(mut from), Some(oldest)) = (self.head, wanted.iter().map(|landed| landed.sequence_number).min())
        else {
            return Ok(Met::Nothing);
        };
        for _ in 0..WALKS_MAX {
            from = match self.in_document(from, wanted, oldest) {
                Next::From(expired) => expired,
                Next::Ends(met) => return Ok(met),
            };
            let walk = Walk { from, until: None, sequence_number_min: oldest, limit: WALK_MAX };
            let steps = self.lineage.walk(self.warehouse, self.table, walk).await?;
            if let Some(met) = steps.iter().find(|step| is_among(wanted, step.snapshot_id)) {
                return Ok(Met::Snapshot(met.snapshot_id));
            }
            from = match steps.last() {
                None => return Ok(Met::Gap),
                Some(Landed { parent_id: Some(parent), sequence_number, .. }) if *sequence_number >= oldest => *parent,
                Some(_) => return Ok(Met::Nothing),
            };
        }
        Ok(Met::Gap)
    }

    fn in_document(&self, from: i64, wanted: &[Landed], oldest: i64) -> Next {
        let (metadata, mut next) = (&self.document.metadata, from);
        // No history is longer than the list of snapshots.
        for _ in 0..=metadata.snapshots().len() {
            if is_among(wanted, next) {
                return Next::Ends(Met::Snapshot(next));
            }
            let Some(snapshot) = metadata.snapshot(next) else { return Next::From(next) };
            match snapshot.parent_id() {
                Some(parent) if snapshot.sequence_number() >= oldest => next = parent,
                Some(_) | None => return Next::Ends(Met::Nothing),
            }
        }
        Next::Ends(Met::Gap)
    }
}

fn is_among(wanted: &[Landed], snapshot_id: i64) -> bool {
    wanted.iter().any(|landed| landed.snapshot_id == snapshot_id)
}
