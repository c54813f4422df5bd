//! Background deletion in table `purge`.

use async_trait::async_trait;
use catalog::commits::overlap::Overlap;
use catalog::ident::{PurgeId, WarehouseId};
use catalog::location::Location;
use catalog::purge::store::PurgeStore;
use catalog::purge::{PurgeJob, PurgeTask};
use catalog::store::{StoreError, sent};
use sqlx::{Connection, SqliteConnection};
use uuid::Uuid;

use crate::columns::{from_json, json};
use crate::error::{aborted, beginning, in_doubt, in_transaction};
use crate::warehouses::place;
use crate::{BEGIN, SqliteStore, give_back};

#[async_trait]
impl PurgeStore for SqliteStore {
    async fn claim_purge(&self, now_ms: i64, lease_until_ms: i64) -> Result<Option<PurgeJob>, StoreError> {
        let mut conn = self.writer().await?;
        let claimed = claim(&mut conn, now_ms, lease_until_ms).await;
        give_back(conn, claimed)
    }

    async fn is_purging(&self, warehouse: WarehouseId, location: &Location) -> Result<bool, StoreError> {
        let mut conn = self.readers.acquire().await.map_err(aborted)?;
        overlaps(&mut conn, warehouse, &Overlap::of(location)).await.map_err(aborted)
    }

    async fn finish_purge(&self, id: PurgeId) -> Result<(), StoreError> {
        let mut conn = self.writer().await?;
        // Whoever lost the lease may come second: no row is as good as one.
        let deleted = sqlx::query!("DELETE FROM purge WHERE id = $1", id.0)
            .execute(sent("finish-purge", &mut *conn))
            .await
            .map_err(in_transaction);
        give_back(conn, deleted).map(|_| ())
    }

    async fn postpone_purge(&self, id: PurgeId, not_before_ms: i64, error: &str) -> Result<(), StoreError> {
        let mut conn = self.writer().await?;
        let postponed = sqlx::query!(
            "UPDATE purge
                SET not_before_ms = $2, lease_until_ms = NULL, failures = failures + 1, last_error = $3
              WHERE id = $1",
            id.0,
            not_before_ms,
            error
        )
        .execute(sent("postpone-purge", &mut *conn))
        .await
        .map_err(in_transaction);
        give_back(conn, postponed).map(|_| ())
    }
}

async fn claim(conn: &mut SqliteConnection, now_ms: i64, lease_until_ms: i64) -> Result<Option<PurgeJob>, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(beginning)?;
    // Where the warehouse was deleted, the row says where it lay, and how it was reached if none has followed it: newer
    // keys are the better ones.
    let due = sqlx::query!(
        r#"SELECT p.id AS "id: Uuid", p.warehouse_id AS "warehouse_id: Uuid", p.target, p.not_before_ms, p.failures,
                  coalesce(p.root, w.root) AS "root!", coalesce(p.allowed, w.allowed) AS "allowed!",
                  coalesce(w.storage, p.storage) AS "storage!"
             FROM purge p LEFT JOIN warehouse w ON w.id = p.warehouse_id
            WHERE p.not_before_ms <= $1 AND (p.lease_until_ms IS NULL OR p.lease_until_ms <= $1)
            ORDER BY p.not_before_ms, p.id LIMIT 1"#,
        now_ms
    )
    .fetch_optional(sent("claim", &mut *tx))
    .await
    .map_err(in_transaction)?;
    let Some(row) = due else {
        return Ok(None);
    };
    sqlx::query!("UPDATE purge SET lease_until_ms = $2 WHERE id = $1", row.id, lease_until_ms)
        .execute(sent("claim", &mut *tx))
        .await
        .map_err(in_transaction)?;
    sent("commit", tx).commit().await.map_err(in_doubt)?;
    let task = PurgeTask {
        id: PurgeId(row.id),
        warehouse: WarehouseId(row.warehouse_id),
        target: from_json(&row.target)?,
        not_before_ms: row.not_before_ms,
    };
    Ok(Some(PurgeJob { task, place: place(&row.root, &row.allowed, &row.storage)?, failures: row.failures }))
}

/// Whether a table whose place overlaps is still to be deleted. Two searches of purge_place, as with tables.
pub(crate) async fn overlaps(
    conn: &mut SqliteConnection,
    warehouse: WarehouseId,
    place: &Overlap,
) -> Result<bool, sqlx::Error> {
    let at_or_above = json(&place.at_or_above);
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM purge
                           WHERE warehouse_id = $1 AND canonical_location IN (SELECT value FROM json_each($2)))
               OR EXISTS (SELECT 1 FROM purge
                           WHERE warehouse_id = $1 AND canonical_location >= $3 AND canonical_location < $4)
               AS "purging!: bool""#,
        warehouse.0,
        at_or_above,
        place.below_from,
        place.below_until
    )
    .fetch_one(sent("purge-overlaps", conn))
    .await
}

/// Writes the tasks within the caller's transaction.
pub(crate) async fn insert(conn: &mut SqliteConnection, tasks: &[PurgeTask]) -> Result<(), StoreError> {
    for task in tasks {
        let (target, canonical_location) = (json(&task.target), task.target.table_place());
        sqlx::query!(
            "INSERT INTO purge (id, warehouse_id, target, canonical_location, not_before_ms)
             VALUES ($1, $2, $3, $4, $5)",
            task.id.0,
            task.warehouse.0,
            target,
            canonical_location,
            task.not_before_ms
        )
        .execute(sent("insert-purges", &mut *conn))
        .await
        .map_err(in_transaction)?;
    }
    Ok(())
}
