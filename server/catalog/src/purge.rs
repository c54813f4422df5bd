//! Background deletion: what drops and commits leave to be deleted, done later, durably, and as often as it takes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::commits::overlap::Overlap;
use crate::context::Clock;
use crate::documents::{Documents, TableDocument};
use crate::error::Result;
use crate::files::{FileError, Files, Place};
use crate::ident::{PurgeId, WarehouseId};
use crate::location::Location;
use crate::metadata::Snapshot;
use crate::reachable::{Reachable, purge_table};
use crate::store::Store;

pub mod store;

/// How long a process may work on one task before another takes it up.
const LEASE_MS: i64 = 15 * 60 * 1_000;

/// After a failure, doubled with each further one.
const RETRY_MIN_MS: i64 = 5_000;
const RETRY_MAX_MS: i64 = 60 * 60 * 1_000;

/// Tasks that ended, by outcome.
pub const PURGES_TOTAL: &str = "frazil_purges_total";

/// What is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum PurgeTarget {
    /// All files that a dropped table's metadata reaches, below the table's location.
    #[serde(rename_all = "kebab-case")]
    Table { location: String, metadata_location: String },
    /// One metadata file that fell out of the log.
    #[serde(rename_all = "kebab-case")]
    File { location: String },
}

impl PurgeTarget {
    /// The canonical location of the table whose files go; `None` for a single file.
    pub fn table_place(&self) -> Option<String> {
        match self {
            PurgeTarget::Table { location, .. } => Some(Overlap::of_text(location).canonical),
            PurgeTarget::File { .. } => None,
        }
    }
}

/// A row to be written together with the change that makes the files garbage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeTask {
    pub id: PurgeId,
    pub warehouse: WarehouseId,
    pub target: PurgeTarget,
    pub not_before_ms: i64,
}

/// A task that this process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeJob {
    pub task: PurgeTask,
    /// Where the warehouse lets files lie, and how they are reached.
    pub place: Place,
    /// How often it was tried before.
    pub failures: i64,
}

/// Works off the tasks. Any number of processes may do so at once.
#[derive(Clone)]
pub struct Purges {
    store: Arc<dyn Store>,
    documents: Documents,
    files: Arc<Files>,
}

impl Purges {
    pub fn new(store: Arc<dyn Store>, documents: Documents, files: Arc<Files>) -> Self {
        Self { store, documents, files }
    }

    /// Takes up one task that is due; false where there is none. A task that fails is tried again later.
    pub async fn run_once(&self, clock: &dyn Clock) -> Result<bool> {
        let now_ms = clock.now_ms();
        let Some(job) = self.store.claim_purge(now_ms, now_ms + LEASE_MS).await? else {
            return Ok(false);
        };
        let outcome = match self.purge(&job).await {
            Ok(()) => {
                self.store.finish_purge(job.task.id).await?;
                "done"
            }
            Err(error) => {
                tracing::warn!(purge = %job.task.id, error = &error as &dyn std::error::Error, "a purge is put off");
                let retry_ms = clock.now_ms() + pause_ms(job.failures);
                self.store.postpone_purge(job.task.id, retry_ms, error.message()).await?;
                "postponed"
            }
        };
        metrics::counter!(PURGES_TOTAL, "outcome" => outcome).increment(1);
        Ok(true)
    }

    async fn purge(&self, job: &PurgeJob) -> Result<()> {
        match &job.task.target {
            PurgeTarget::File { location } if self.is_current(job.task.warehouse, location).await? => {
                tracing::warn!(location, "an old metadata file is current again: it stays");
                Ok(())
            }
            PurgeTarget::File { location } => {
                self.documents.forget(job.task.warehouse, location).await;
                match self.files.delete(&job.place, location).await {
                    // What lies outside of the warehouse is never deleted, now or later.
                    Err(FileError::LeadsOut { .. }) => Ok(()),
                    deleted => Ok(deleted?),
                }
            }
            PurgeTarget::Table { location, metadata_location } => {
                match self.documents.table_in(job.task.warehouse, &job.place, metadata_location).await {
                    Ok(document) => {
                        let reachable = reachable(location, metadata_location, &document);
                        self.documents.forget(job.task.warehouse, metadata_location).await;
                        purge_table(&self.files, &job.place, &reachable).await.map(|_| ())
                    }
                    // The metadata file goes last: without it there is nothing left to do, or nothing to find. One that
                    // a link leads out of the warehouse is not read.
                    Err(FileError::Missing { .. } | FileError::LeadsOut { .. }) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Whether a table was pointed back to the file, by register, since it fell out of the log.
    async fn is_current(&self, warehouse: WarehouseId, file: &str) -> Result<bool> {
        let file = Location::parse(file)?;
        let Some((owner, _)) = self.store.location_owner(warehouse, &file, None).await? else {
            return Ok(false);
        };
        let pointer = self.store.pointer(warehouse, &owner).await?;
        Ok(pointer.is_some_and(|pointer| Location::parse(&pointer.metadata_location).is_ok_and(|now| now == file)))
    }
}

fn pause_ms(failures: i64) -> i64 {
    RETRY_MIN_MS.saturating_mul(1 << failures.clamp(0, 16)).min(RETRY_MAX_MS)
}

fn reachable(location: &str, metadata_location: &str, document: &TableDocument) -> Reachable {
    let metadata = &document.metadata;
    let statistics = metadata.statistics().iter().chain(metadata.partition_statistics());
    Reachable {
        table_location: location.to_owned(),
        metadata_location: metadata_location.to_owned(),
        metadata_files: metadata.metadata_log().iter().map(|entry| entry.metadata_file.clone()).collect(),
        manifest_lists: metadata.snapshots().filter_map(Snapshot::manifest_list).map(str::to_owned).collect(),
        statistics: statistics.map(|file| file.path.clone()).collect(),
        manifests: metadata.snapshots().flat_map(Snapshot::manifests).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_an_hour() {
        assert_eq!(pause_ms(0), RETRY_MIN_MS);
        assert_eq!(pause_ms(1), 2 * RETRY_MIN_MS);
        assert_eq!(pause_ms(i64::MAX), RETRY_MAX_MS);
    }
}
