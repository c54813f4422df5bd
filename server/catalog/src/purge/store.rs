//! The port of background deletion: rows that say what is to go, kept until it is gone.

use async_trait::async_trait;

use crate::ident::{PurgeId, WarehouseId};
use crate::location::Location;
use crate::purge::PurgeJob;
use crate::store::StoreError;

#[async_trait]
pub trait PurgeStore: Send + Sync + 'static {
    /// Takes the oldest task that is due, and holds it until `lease_until_ms`: a holder that dies loses it then.
    async fn claim_purge(&self, now_ms: i64, lease_until_ms: i64) -> Result<Option<PurgeJob>, StoreError>;

    /// Whether files at, above or below the location are still to be deleted: is there a task for a whole table there
    /// that is not finished?
    async fn is_purging(&self, warehouse: WarehouseId, location: &Location) -> Result<bool, StoreError>;

    /// The task is done.
    async fn finish_purge(&self, id: PurgeId) -> Result<(), StoreError>;

    /// The task failed: try again later.
    async fn postpone_purge(&self, id: PurgeId, not_before_ms: i64, error: &str) -> Result<(), StoreError>;
}
