//! Bounds of a commit, from the configuration, and what clients are told of them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::commits::Commits;
use crate::commits::queue::QueueOptions;
use crate::commits::settings::{self, Defaults};
use crate::warehouses::Warehouse;

/// Tells clients for how long a commit is tried.
pub const DEADLINE_SETTING: &str = "frazil.commit-deadline-ms";

/// Bounds of a commit.
#[derive(Debug, Clone)]
pub struct CommitOptions {
    /// How long a metadata file that fell out of the log still lies, for replicas that just read the pointer.
    pub metadata_delete_grace_ms: i64,
    pub queue: QueueOptions,
    /// A request that is older than this is not rebased: its client may have given it up.
    pub rebase_max_age: Duration,
    pub defaults: Defaults,
    /// Bound of the manifest lists and manifests kept in memory, in bytes.
    pub manifest_cache_bytes: u64,
    /// How long a position that has no order is remembered.
    pub equality_retention: Duration,
    pub retention: Retention,
    /// Tables that metrics show by their names; all others are shown as one.
    pub tables_shown_max: usize,
}

/// For how long what was written beside the pointers is kept, in days.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// 0: for ever.
    pub lineage_days: u32,
    pub log_days: u32,
    pub event_days: u32,
}

impl Default for CommitOptions {
    fn default() -> Self {
        Self {
            metadata_delete_grace_ms: 300_000,
            queue: QueueOptions { queue_max: 1_024, group_max: 64, turn: Duration::from_secs(1) },
            rebase_max_age: Duration::from_secs(10),
            defaults: Defaults::default(),
            manifest_cache_bytes: 64 << 20,
            equality_retention: Duration::from_secs(7 * 24 * 60 * 60),
            retention: Retention { lineage_days: 0, log_days: 30, event_days: 7 },
            tables_shown_max: 100,
        }
    }
}

impl Commits {
    /// What `GET /v1/config` tells about commits.
    pub fn config_defaults(&self, warehouse: &Warehouse, deadline_ms: u64) -> BTreeMap<String, String> {
        let mut told = settings::told(warehouse, self.options.defaults);
        told.insert(DEADLINE_SETTING.to_owned(), deadline_ms.to_string());
        told
    }
}
