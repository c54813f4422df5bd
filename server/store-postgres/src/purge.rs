//! Background deletion in table `purge`.

use async_trait::async_trait;
use catalog::commits::overlap::Overlap;
use catalog::ident::{PurgeId, WarehouseId};
use catalog::location::Location;
use catalog::purge::store::PurgeStore;
use catalog::purge::{PurgeJob, PurgeTask};
use catalog::store::{StoreError, sent};
use sqlx::PgConnection;

use crate::columns::{from_json, json, text};
use crate::error::{aborted, committing};
use crate::pool::in_time;
use crate::warehouses::place;
use crate::{PostgresStore, give_back};

#[async_trait]
impl PurgeStore for PostgresStore {
    async fn claim_purge(&self, now_ms: i64, lease_until_ms: i64) -> Result<Option<PurgeJob>, StoreError> {
        let mut conn = self.acquire().await?;
        // A row that another process is just claiming is passed over, not waited for. Where the warehouse was deleted,
        // the row says where it lay, and how it was reached if none has followed it: newer keys are the better ones.
        let claimed = sqlx::query!(
            r#"WITH claimed AS (
                   UPDATE purge SET lease_until_ms = $2
                    WHERE id = (SELECT id FROM purge
                                 WHERE not_before_ms <= $1 AND (lease_until_ms IS NULL OR lease_until_ms <= $1)
                                 ORDER BY not_before_ms, id LIMIT 1 FOR UPDATE SKIP LOCKED)
                   RETURNING id, warehouse_id, target, not_before_ms, failures, root, allowed, storage
               )
               SELECT c.id, c.warehouse_id, c.target, c.not_before_ms, c.failures,
                      coalesce(c.root, w.root) AS "root!", coalesce(c.allowed, w.allowed) AS "allowed!",
                      coalesce(w.storage, c.storage) AS "storage!"
                 FROM claimed c LEFT JOIN warehouse w ON w.id = c.warehouse_id"#,
            now_ms,
            lease_until_ms
        )
        .fetch_optional(sent("claim-purge", &mut *conn));
        let claimed = in_time(claimed).await.map_err(committing);
        let Some(row) = give_back(conn, claimed)? else {
            return Ok(None);
        };
        let task = PurgeTask {
            id: PurgeId(row.id),
            warehouse: WarehouseId(row.warehouse_id),
            target: from_json(&row.target)?,
            not_before_ms: row.not_before_ms,
        };
        let place = place(&row.root, &row.allowed, &row.storage)?;
        Ok(Some(PurgeJob { task, place, failures: row.failures }))
    }

    async fn is_purging(&self, warehouse: WarehouseId, location: &Location) -> Result<bool, StoreError> {
        let mut conn = self.acquire().await?;
        in_time(overlaps(&mut conn, warehouse, &Overlap::of(location))).await.map_err(aborted)
    }

    async fn finish_purge(&self, id: PurgeId) -> Result<(), StoreError> {
        let mut conn = self.acquire().await?;
        // Whoever lost the lease may come second: no row is as good as one.
        let deleted = sqlx::query!("DELETE FROM purge WHERE id = $1", id.0).execute(sent("finish-purge", &mut *conn));
        let deleted = in_time(deleted).await.map_err(committing);
        give_back(conn, deleted).map(|_| ())
    }

    async fn postpone_purge(&self, id: PurgeId, not_before_ms: i64, error: &str) -> Result<(), StoreError> {
        let mut conn = self.acquire().await?;
        let postponed = sqlx::query!(
            "UPDATE purge
                SET not_before_ms = $2, lease_until_ms = NULL, failures = failures + 1, last_error = $3
              WHERE id = $1",
            id.0,
            not_before_ms,
            text(error)
        )
        .execute(sent("postpone-purge", &mut *conn));
        let postponed = in_time(postponed).await.map_err(committing);
        give_back(conn, postponed).map(|_| ())
    }
}

/// Whether a table whose place overlaps is still to be deleted. Two searches of purge_place, as with tables.
pub(crate) async fn overlaps(
    conn: &mut PgConnection,
    warehouse: WarehouseId,
    place: &Overlap,
) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM purge WHERE warehouse_id = $1 AND canonical_location = ANY($2))
               OR EXISTS (SELECT FROM purge
                           WHERE warehouse_id = $1 AND canonical_location >= $3 AND canonical_location < $4)
               AS "purging!""#,
        warehouse.0,
        &place.at_or_above,
        place.below_from,
        place.below_until
    )
    .fetch_one(sent("purge-overlaps", conn))
    .await
}

/// Writes the tasks within the caller's transaction.
pub(crate) async fn insert(conn: &mut PgConnection, tasks: &[PurgeTask]) -> Result<(), sqlx::Error> {
    for task in tasks {
        sqlx::query!(
            "INSERT INTO purge (id, warehouse_id, target, canonical_location, not_before_ms)
             VALUES ($1, $2, $3, $4, $5)",
            task.id.0,
            task.warehouse.0,
            json(&task.target),
            task.target.table_place(),
            task.not_before_ms
        )
        .execute(sent("insert-purges", &mut *conn))
        .await?;
    }
    Ok(())
}
