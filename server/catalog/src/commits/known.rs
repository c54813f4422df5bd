//! Whether a request landed before, told by the snapshot ids that it brings.

use std::sync::Arc;

use crate::commits::journal::{Ending, Passage};
use crate::commits::log::Outcome;
use crate::commits::{Change, Commits};
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::idempotency::Answer;
use crate::tabulars::{Pointer, TabularKind};
use crate::warehouses::Warehouse;

/// What the ids of a request say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// None of them is known: the request is new.
    New,
    /// All of them landed in the tables that the request names: answer with what is there now.
    Before,
    /// They landed in part, or in a table that is gone: no refusal may be sent, for it would make clients delete live files.
    InDoubt,
}

/// One table of a request: the ids it adds, and how many of them are known where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub added: usize,
    /// Known in the lineage of the live table of that name.
    pub landed_here: usize,
    /// Known to have landed in a table that the name no longer means.
    pub landed_elsewhere: usize,
}

/// Judges all tables of a request together: a transaction lands as a whole.
pub fn landing(parts: &[Seen]) -> Landing {
    let sum = |count: fn(&Seen) -> usize| parts.iter().map(count).sum::<usize>();
    let (added, here) = (sum(|part| part.added), sum(|part| part.landed_here));
    match (here, sum(|part| part.landed_elsewhere)) {
        (0, 0) => Landing::New,
        (here, 0) if here == added => Landing::Before,
        _ => Landing::InDoubt,
    }
}

impl Commits {
    /// Whether the whole request landed before. In doubt, nothing may be applied and nothing refused.
    pub(super) async fn landed_before(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        changes: &mut [Change],
    ) -> Result<bool> {
        let mut parts = Vec::with_capacity(changes.len());
        for change in changes.iter_mut() {
            parts.push(self.seen(warehouse, change).await?);
        }
        match landing(&parts) {
            Landing::New => Ok(false),
            Landing::Before if self.rest_is_there(ctx, warehouse, changes).await => Ok(true),
            Landing::Before | Landing::InDoubt => Err(in_doubt()),
        }
    }

    /// What brings no snapshot has no id to be known by: it landed if asking for it again changes nothing.
    async fn rest_is_there(&self, ctx: &RequestContext, warehouse: &Arc<Warehouse>, changes: &[Change]) -> bool {
        let rest: Vec<&Change> = changes.iter().filter(|change| change.request.snapshot_ids().is_empty()).collect();
        rest.is_empty() || matches!(self.draft(ctx, warehouse, &rest).await, Ok(drafted) if drafted.changes_nothing())
    }

    pub(super) async fn seen(&self, warehouse: &Warehouse, change: &mut Change) -> Result<Seen> {
        let ids = change.request.snapshot_ids();
        let added = ids.len();
        let seen = |landed_here, landed_elsewhere| Seen { added, landed_here, landed_elsewhere };
        if ids.is_empty() {
            return Ok(seen(0, 0));
        }
        let asserted = change.request.asserted_uuid();
        let known = change.known_here();
        if known.is_some_and(|known| known > 0 || asserted.is_some()) {
            return Ok(seen(known.unwrap_or(0), 0));
        }
        // The name may mean another table by now, or none: what the client committed to is found by UUID, else by id.
        let anywhere = self.store.landed(warehouse.id, asserted, ids).await?.len();
        if anywhere == 0 {
            return Ok(seen(0, 0));
        }
        // Or the same request came twice, and its twin landed since the pointer was read.
        change.read_again(self.store.as_ref(), warehouse).await?;
        let known = change.known_here().unwrap_or(0);
        Ok(seen(known, anywhere - known.min(anywhere)))
    }

    /// Writes down of a request that landed before that it came again.
    pub(super) fn write_down_known(&self, ctx: &RequestContext, warehouse: &Warehouse, change: &Change) {
        let duplicate_of = change.request.snapshot_ids().last().copied();
        let ending = Ending { duplicate_of, ..Ending::of(Outcome::Duplicate) };
        self.write_down(ctx, warehouse, change, Passage::default(), ending);
    }
}

impl Change {
    /// How many of its snapshots the table of that name has taken; `None` where the client means another table.
    fn known_here(&self) -> Option<usize> {
        let pointer = self.read.pointer.as_ref().filter(|pointer| pointer.kind == TabularKind::Table)?;
        let meant = self.request.asserted_uuid().is_none_or(|uuid| uuid == pointer.uuid);
        let ids = self.request.snapshot_ids();
        meant.then(|| ids.iter().filter(|id| self.read.landed.contains(id)).count())
    }
}

/// What is told where neither a success nor a refusal may be.
pub(super) fn in_doubt() -> Error {
    Error::new(
        Kind::StateUnknown,
        "some of these snapshots landed before, or in a table that is gone: nothing was applied now; keep the files and load the table",
    )
}

/// The metadata as it is now: a transaction answers with nothing.
pub(super) fn current(changes: &[Change]) -> Answer {
    let [change] = changes else { return Answer::Empty };
    change.read.pointer.as_ref().map_or(Answer::Empty, Pointer::answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_known_ids_of_a_request_say() {
        let part = |added, landed_here, landed_elsewhere| Seen { added, landed_here, landed_elsewhere };
        let cases = [
            (vec![], Landing::New),
            (vec![part(0, 0, 0)], Landing::New),
            (vec![part(2, 0, 0)], Landing::New),
            (vec![part(2, 2, 0)], Landing::Before),
            (vec![part(2, 1, 0)], Landing::InDoubt),
            (vec![part(1, 0, 1)], Landing::InDoubt),
            (vec![part(1, 1, 0), part(0, 0, 0)], Landing::Before),
            (vec![part(1, 1, 0), part(1, 0, 0)], Landing::InDoubt),
        ];
        for (parts, expected) in cases {
            assert_eq!(landing(&parts), expected, "{parts:?}");
        }
    }
}
