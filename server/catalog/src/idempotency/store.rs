//! The port of kept answers. Receipts of successes are written by the mutations themselves, in their transactions.

use async_trait::async_trait;
use uuid::Uuid;

use crate::idempotency::Receipt;
use crate::ident::WarehouseId;
use crate::store::StoreError;

/// An expected answer of [`IdempotencyStore::keep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Kept,
    /// Another request with this key was quicker.
    KeyTaken,
}

#[async_trait]
pub trait IdempotencyStore: Send + Sync + 'static {
    async fn receipt(&self, warehouse: WarehouseId, key: Uuid) -> Result<Option<Receipt>, StoreError>;

    /// Keeps the answer of a request that changed nothing.
    async fn keep(&self, receipt: &Receipt) -> Result<Kept, StoreError>;

    /// Forgets receipts written before `before_ms`, at most `limit`; returns how many went.
    async fn forget_receipts(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
