//! Kept answers in table `idempotency_key`.

use async_trait::async_trait;
use catalog::idempotency::Receipt;
use catalog::idempotency::store::{IdempotencyStore, Kept};
use catalog::ident::WarehouseId;
use catalog::store::{StoreError, sent};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::columns::{from_json, json};
use crate::error::{aborted, committing};
use crate::pool::in_time;
use crate::{PostgresStore, give_back};

/// The constraint that lets one of several mutations with one key win.
pub(crate) const KEY_ONCE: &str = "idempotency_key_once";

#[async_trait]
impl IdempotencyStore for PostgresStore {
    async fn receipt(&self, warehouse: WarehouseId, key: Uuid) -> Result<Option<Receipt>, StoreError> {
        let row = sqlx::query!(
            "SELECT binding, answer, at_ms FROM idempotency_key WHERE warehouse_id = $1 AND key = $2",
            warehouse.0,
            key
        )
        .fetch_optional(sent("receipt", &self.pool))
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
        let mut conn = self.acquire().await?;
        let kept = in_time(insert(&mut conn, receipt)).await.map_err(committing);
        give_back(conn, kept)
    }

    async fn forget_receipts(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.acquire().await?;
        // Replicas that forget at the same time take different rows.
        let gone = sqlx::query!(
            "DELETE FROM idempotency_key WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM idempotency_key WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))",
            before_ms,
            i64::from(limit)
        )
        .execute(sent("forget-receipts", &mut *conn));
        let gone = in_time(gone).await.map_err(committing);
        Ok(give_back(conn, gone)?.rows_affected())
    }
}

/// Keeps the receipt within the caller's transaction; waits for another one that is about to keep the same key.
pub(crate) async fn insert(conn: &mut PgConnection, receipt: &Receipt) -> Result<Kept, sqlx::Error> {
    let inserted = sqlx::query!(
        "INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (warehouse_id, key) DO NOTHING",
        receipt.warehouse.0,
        receipt.key,
        &receipt.binding,
        json(&receipt.answer),
        receipt.at_ms
    )
    .execute(sent("insert-receipts", conn))
    .await?;
    Ok(match inserted.rows_affected() {
        0 => Kept::KeyTaken,
        _ => Kept::Kept,
    })
}
