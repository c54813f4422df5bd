//! Writes what a swap is to bring into force, and swaps.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::join_all;
use tracing::Instrument;

use crate::audit;
use crate::commits::Commits;
use crate::commits::log::LogEntry;
use crate::commits::part::Ready;
use crate::commits::rebase::NewFile;
use crate::commits::store::{Swap, SwapOutcome};
use crate::commits::swap::Written;
use crate::context::RequestContext;
use crate::error::Result;
use crate::idempotency::Receipt;
use crate::ident::{AttemptId, PurgeId};
use crate::purge::{PurgeTarget, PurgeTask};
use crate::warehouses::Warehouse;

/// Size of the metadata documents that commits write, in bytes.
pub const METADATA_BYTES: &str = "frazil_commit_metadata_bytes";

/// A swap to be tried, and what becomes true with it besides the pointers.
pub(super) struct Attempted {
    pub attempt: AttemptId,
    pub receipts: Vec<Receipt>,
    pub log: Vec<LogEntry>,
    /// What of it the audit log tells.
    pub changes: Vec<audit::Entry>,
}

impl Commits {
    /// Writes the new files, then moves all pointers in one transaction.
    pub(super) async fn write_and_swap(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        parts: Vec<Ready>,
        attempted: Attempted,
    ) -> Result<SwapOutcome> {
        let Attempted { attempt, receipts, log, changes } = attempted;
        let written = Written {
            documents: self.tables.documents.clone(),
            warehouse: warehouse.clone(),
            locations: parts.iter().flat_map(Ready::locations).map(str::to_owned).collect(),
            journal: Some(self.journal.clone()),
            changes,
        };
        let writing = tracing::info_span!("commit files", files = written.locations.len());
        if let Err(error) = self.write_files(warehouse, &parts).instrument(writing).await {
            // A write that fails may still have made its file.
            written.discard().await;
            return Err(error);
        }
        let swap = Swap {
            attempt,
            warehouse: warehouse.id,
            changes: parts.iter().map(|part| part.change.clone()).collect(),
            receipts,
            purges: self.purges(ctx, warehouse, &parts),
            adopts: false,
            log,
            events: parts.iter().flat_map(|part| part.events.iter().cloned()).collect(),
            at_ms: ctx.now_ms(),
        };
        let swapping = tracing::info_span!("commit swap", %attempt);
        let outcome = self.swapper.swap(ctx, &swap, written).instrument(swapping).await;
        if matches!(outcome, Ok(SwapOutcome::Applied)) {
            crate::failpoint::reach("swap-applied").await;
            self.publish(ctx, warehouse, parts).await;
        }
        outcome
    }

    /// First what a document refers to, all at once, then the documents.
    async fn write_files(&self, warehouse: &Arc<Warehouse>, parts: &[Ready]) -> Result<()> {
        let mut writes = Vec::new();
        for file in parts.iter().flat_map(|part| &part.files) {
            writes.push(self.write_file(warehouse, file).boxed());
        }
        // A write that is broken off may still make its file, and after its deletion: all of them end first.
        join_all(writes).await.into_iter().collect::<Result<()>>()?;
        crate::failpoint::reach_or_fail("lists-written").await?;
        for part in parts {
            if let Some(document) = &part.document {
                let location = &part.target.metadata_location;
                metrics::histogram!(METADATA_BYTES).record(document.bytes.len() as f64);
                self.tables.documents.write_new(warehouse, location, document).await?;
            }
        }
        crate::failpoint::reach_or_fail("metadata-written").await?;
        Ok(())
    }

    async fn write_file(&self, warehouse: &Warehouse, file: &NewFile) -> Result<()> {
        Ok(self.tables.files.write_new(&warehouse.place, &file.location, file.bytes.clone()).await?)
    }

    fn purges(&self, ctx: &RequestContext, warehouse: &Warehouse, parts: &[Ready]) -> Vec<PurgeTask> {
        let task = |location: &String| PurgeTask {
            id: PurgeId(ctx.new_id()),
            warehouse: warehouse.id,
            target: PurgeTarget::File { location: location.clone() },
            not_before_ms: ctx.now_ms() + self.options.metadata_delete_grace_ms,
        };
        parts.iter().flat_map(|part| &part.dropped_files).map(task).collect()
    }

    async fn publish(&self, ctx: &RequestContext, warehouse: &Warehouse, parts: Vec<Ready>) {
        for part in parts {
            let Some(document) = part.document else { continue };
            self.watch.changed(warehouse, &part.ident, &document, ctx.now_ms());
            let documents = &self.tables.documents;
            if let Some(outlived) = document.metadata.metadata_log().iter().rev().nth(1) {
                documents.outlived(warehouse, &outlived.metadata_file).await;
            }
            documents.remember_table(warehouse, part.target.metadata_location, document).await;
        }
        crate::failpoint::reach("published").await;
    }
}
