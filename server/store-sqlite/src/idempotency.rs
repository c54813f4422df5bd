//! Kept answers in table `idempotency_key`.

use async_trait::async_trait;
use catalog::idempotency::Receipt;
use catalog::idempotency::store::{IdempotencyStore, Kept};
use catalog::ident::WarehouseId;
use catalog::store::{StoreError, sent};
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::columns::{from_json, json};
use crate::error::{aborted, in_transaction};
use crate::{SqliteStore, give_back};

#[async_trait]
impl IdempotencyStore for SqliteStore {
    async fn receipt(&self, warehouse: WarehouseId, key: Uuid) -> Result<Option<Receipt>, StoreError> {
        let row = sqlx::query!(
            "SELECT binding, answer, at_ms FROM idempotency_key WHERE warehouse_id = $1 AND key = $2",
            warehouse.0,
            key
        )
        .fetch_optional(sent("receipt", &self.readers))
        .await
        .map_err(aborted)?;
        row.map(|row| {
            Ok(Receipt {
                warehouse,
                key,
                binding: row.binding.try_into().map_err(|_| aborted("binding is not 32 bytes"))?,
                answer: from_json(&row.answer)?,
                at_ms: row.at_ms,
            })
        })
        .transpose()
    }

    async fn keep(&self, receipt: &Receipt) -> Result<Kept, StoreError> {
        let mut conn = self.writer().await?;
        let kept = insert(&mut conn, receipt).await;
        give_back(conn, kept)
    }

    async fn forget_receipts(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.writer().await?;
        let gone = sqlx::query!(
            "DELETE FROM idempotency_key WHERE (warehouse_id, key) IN (
                 SELECT warehouse_id, key FROM idempotency_key
                  WHERE at_ms < $1 ORDER BY at_ms LIMIT +$2)",
            before_ms,
            limit
        )
        .execute(sent("forget-receipts", &mut *conn))
        .await
        .map_err(in_transaction);
        Ok(give_back(conn, gone)?.rows_affected())
    }
}

/// Keeps the receipt within the caller's transaction.
pub(crate) async fn insert(conn: &mut SqliteConnection, receipt: &Receipt) -> Result<Kept, StoreError> {
    let (binding, answer) = (receipt.binding.as_slice(), json(&receipt.answer));
    let inserted = sqlx::query!(
        "INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (warehouse_id, key) DO NOTHING",
        receipt.warehouse.0,
        receipt.key,
        binding,
        answer,
        receipt.at_ms
    )
    .execute(sent("insert-receipts", conn))
    .await
    .map_err(in_transaction)?;
    Ok(match inserted.rows_affected() {
        0 => Kept::KeyTaken,
        _ => Kept::Kept,
    })
}
