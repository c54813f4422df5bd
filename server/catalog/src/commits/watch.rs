//! What is watched from outside: how requests for a table go, how tables are, and when each writer committed last.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{counter, gauge};

use crate::commits::Change;
use crate::commits::board::{Board, Passed, Shown, TableName, TableState};
use crate::commits::identity::Writer;
use crate::commits::journal::{Passage, REFUSALS_TOTAL, reason};
use crate::commits::log::Outcome;
use crate::commits::rebase::wrong_totals;
use crate::context::RequestContext;
use crate::documents::TableDocument;
use crate::error::Kind;
use crate::ident::TableIdent;
use crate::metadata::{Snapshot, TableMetadata};
use crate::warehouses::Warehouse;

/// Requests for a table, by what became of them.
pub const COMMITS_TOTAL: &str = "frazil_commits_total";

/// From a request's arrival to the begin of the group that it went with.
pub const WAIT: &str = "frazil_commit_wait_seconds";

/// When a writer committed last, in seconds since the epoch: its age is the time since.
pub const LAST_COMMIT: &str = "frazil_writer_last_commit_timestamp_seconds";

/// Snapshots whose totals are not those of their parent and their own changes.
pub const TOTALS_WRONG_TOTAL: &str = "frazil_snapshot_totals_wrong_total";

/// Bound of the writers that a process shows; those that come later are not shown.
const WRITERS_MAX: usize = 1_000;

/// Shows how commits go; clones share what they show.
#[derive(Clone)]
pub struct Watch {
    board: Arc<Mutex<Board>>,
    writers: Arc<Mutex<HashSet<(TableName, Writer)>>>,
}

impl TableName {
    pub fn of(warehouse: &Warehouse, ident: &TableIdent) -> Self {
        Self { warehouse: warehouse.name.to_string(), table: ident.to_string() }
    }
}

impl Watch {
    /// With at most so many tables by their names.
    pub fn new(tables_max: usize) -> Self {
        // Shown before they first count: who watches for the first time could not see it else.
        Outcome::ALL.iter().for_each(|outcome| counter!(COMMITS_TOTAL, "outcome" => outcome.as_str()).increment(0));
        counter!(REFUSALS_TOTAL, "reason" => reason(Kind::Unprocessable)).increment(0);
        Self { board: Arc::new(Mutex::new(Board::new(tables_max))), writers: Arc::default() }
    }

    /// A request for a table has its answer.
    pub(super) fn answered(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        change: &Change,
        (outcome, passage): (Outcome, Passage),
    ) {
        let waited_secs = passage.waited_ms as f64 / 1000.0;
        counter!(COMMITS_TOTAL, "outcome" => outcome.as_str()).increment(1);
        metrics::histogram!(WAIT).record(waited_secs);
        ctx.noted.note(outcome.as_str());
        // What names no table is not shown as one: anybody can make up names.
        if change.read.pointer.is_some() || outcome == Outcome::Committed {
            let passed = Passed { outcome, took_secs: change.read_at.elapsed().as_secs_f64(), waited_secs };
            self.board().passed(&TableName::of(warehouse, &change.ident), passed, ctx.now_ms());
        }
    }

    /// A table was changed, and this is its document now.
    pub(super) fn changed(&self, warehouse: &Warehouse, table: &TableIdent, document: &TableDocument, at_ms: i64) {
        let state = TableState::of(&document.metadata, document.bytes.len(), at_ms);
        self.board().changed(&TableName::of(warehouse, table), state);
    }

    /// The name means no table any more, or another one.
    pub fn forget(&self, warehouse: &Warehouse, table: &TableIdent) {
        self.board().forget(&TableName::of(warehouse, table));
    }

    /// The tables that are shown, in the order of their names, then all others as one.
    pub fn tables(&self, now_ms: i64) -> (Vec<(TableName, Shown)>, Shown) {
        self.board().show(now_ms)
    }

    pub(super) fn committed(&self, warehouse: &Warehouse, table: &TableIdent, writer: &Writer, at_ms: i64) {
        let name = TableName::of(warehouse, table);
        let mut shown = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.clone(), writer.clone());
        if !shown.contains(&key) {
            if shown.len() == WRITERS_MAX {
                return;
            }
            shown.insert(key);
        }
        drop(shown);
        let (kind, TableName { warehouse, table }) = (writer.kind.as_str().to_owned(), name);
        let labels = [("warehouse", warehouse), ("table", table), ("kind", kind), ("writer", writer.to_string())];
        gauge!(LAST_COMMIT, &labels).set(at_ms as f64 / 1000.0);
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts and tells of totals that are wrong. They are not refused: only readers' plans suffer.
pub fn check_totals(metadata: &TableMetadata, table: &TableIdent, snapshot: &Snapshot) {
    let Some(parent) = snapshot.parent_id().and_then(|id| metadata.snapshot(id)) else { return };
    let wrong = wrong_totals(parent, snapshot);
    if !wrong.is_empty() {
        counter!(TOTALS_WRONG_TOTAL).increment(1);
        tracing::warn!(%table, snapshot = snapshot.id(), ?wrong, "a snapshot was built on other totals than its parent's");
    }
}
