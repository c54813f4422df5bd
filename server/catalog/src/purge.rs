//! Background deletion: what drops and commits leave to be deleted, done later, durably, and as often as it takes.

use serde::{Deserialize, Serialize};

use crate::files::Place;
use crate::ident::{PurgeId, WarehouseId};

pub mod store;

/// What is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum PurgeTarget {
    /// All files that a dropped table's metadata reaches, below the table's location.
    #[serde(rename_all = "kebab-case")]
    Table {
        location: String,
        metadata_location: String,
    },
    /// One metadata file that fell out of the log.
    #[serde(rename_all = "kebab-case")]
    File { location: String },
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
