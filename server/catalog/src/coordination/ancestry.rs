//! Whether a snapshot is still an ancestor of a ref's head, told by the lineage and, where that has a gap, by the metadata.

use std::sync::Arc;

use uuid::Uuid;

use crate::commits::lineage::{Landed, LineageStore, Walk};
use crate::documents::TableDocument;
use crate::error::Result;
use crate::ident::WarehouseId;

/// How far one question goes back, in snapshots.
const STEPS: u32 = 10_000;

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

/// Where the walk goes on.
enum Next {
    From(i64),
    Ends(Met),
}

impl Ancestry<'_> {
    /// The first of the wanted snapshots on the way back from the head.
    pub async fn meets(&self, wanted: &[Landed]) -> Result<Met> {
        let Some(oldest) = wanted.iter().map(|landed| landed.sequence_number).min() else {
            return Ok(Met::Nothing);
        };
        let is_wanted = |id: i64| wanted.iter().any(|landed| landed.snapshot_id == id);
        let Some(mut from) = self.head else { return Ok(Met::Nothing) };
        loop {
            let walk = Walk { from, until: None, sequence_number_min: oldest, limit: STEPS };
            let steps = self.lineage.walk(self.warehouse, self.table, walk).await?;
            if let Some(met) = steps.iter().find(|step| is_wanted(step.snapshot_id)) {
                return Ok(Met::Snapshot(met.snapshot_id));
            }
            let Some(behind) = steps.last().map_or(Some(from), |last| last.parent_id) else {
                return Ok(Met::Nothing);
            };
            let next = match steps.len() == STEPS as usize {
                true => Next::From(behind),
                false => self.past(behind, oldest).await?,
            };
            match next {
                Next::From(snapshot) => from = snapshot,
                Next::Ends(met) => return Ok(met),
            }
        }
    }

    /// What to do about a snapshot before which the walk ended: it is older than what is wanted, or not remembered.
    async fn past(&self, snapshot_id: i64, oldest: i64) -> Result<Next> {
        if let Some(snapshot) = self.document.metadata.snapshot(snapshot_id) {
            return Ok(match snapshot.parent_id() {
                Some(parent) if snapshot.sequence_number() >= oldest => Next::From(parent),
                Some(_) | None => Next::Ends(Met::Nothing),
            });
        }
        let known = self.lineage.walk(self.warehouse, self.table, Walk::step(snapshot_id)).await?;
        Ok(Next::Ends(if known.is_empty() { Met::Gap } else { Met::Nothing }))
    }
}
