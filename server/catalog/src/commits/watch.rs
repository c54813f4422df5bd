//! What is watched of writers from outside: when each committed last, and whether its totals are right.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{counter, gauge};

use crate::commits::identity::Writer;
use crate::commits::rebase::wrong_totals;
use crate::ident::TableIdent;
use crate::metadata::{Snapshot, TableMetadata};
use crate::warehouses::Warehouse;

/// When a writer committed last, in seconds since the epoch: its age is the time since.
pub const LAST_COMMIT: &str = "frazil_writer_last_commit_timestamp_seconds";

/// Snapshots whose totals are not those of their parent and their own changes.
pub const TOTALS_WRONG_TOTAL: &str = "frazil_snapshot_totals_wrong_total";

/// Bound of the writers that a process shows; those that come later are not shown.
const WRITERS_MAX: usize = 1_000;

/// Shows when writers committed last.
#[derive(Clone, Default)]
pub struct Watch {
    shown: Arc<Mutex<HashSet<(String, String, Writer)>>>,
}

impl Watch {
    pub fn committed(&self, warehouse: &Warehouse, table: &TableIdent, writer: &Writer, at_ms: i64) {
        let (home, table) = (warehouse.name.to_string(), table.to_string());
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (home.clone(), table.clone(), writer.clone());
        if !shown.contains(&key) {
            if shown.len() == WRITERS_MAX {
                return;
            }
            shown.insert(key);
        }
        drop(shown);
        let kind = writer.kind.as_str();
        let labels = [("warehouse", home), ("table", table), ("kind", kind.to_owned()), ("writer", writer.to_string())];
        gauge!(LAST_COMMIT, &labels).set(at_ms as f64 / 1000.0);
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
