//! Pointers in table `tabular`, moved together with everything that is written beside them.

use async_trait::async_trait;
use catalog::commits::lineage::{Asked, SAME_MAX};
use catalog::commits::overlap::Overlap;
use catalog::commits::store::{CommitStore, PointerRead, Resolution, Swap, SwapOutcome};
use catalog::ident::{AttemptId, TableIdent, TabularId, WarehouseId};
use catalog::location::Location;
use catalog::store::{StoreError, kept, sent};
use catalog::tabulars::Pointer;
use sqlx::{Connection, SqliteConnection};
use uuid::Uuid;

use crate::columns::{PointerRow, from_json, json, parts};
use crate::error::{aborted, beginning, in_doubt, in_transaction, is_busy};
use crate::lineage::ledger_read;
use crate::{BEGIN, SqliteStore, give_back};

mod one_move;
mod owners;
mod rows;
mod transaction;

#[async_trait]
impl CommitStore for SqliteStore {
    async fn read_pointer(
        &self,
        warehouse: WarehouseId,
        ident: &TableIdent,
        snapshot_ids: &[i64],
        asked: &[Asked],
    ) -> Result<PointerRead, StoreError> {
        let (namespace, wanted) = (parts(&ident.namespace), kept::array::<_, kept::Wanted>(asked));
        let row = sqlx::query_file!(
            "src/commits/read_pointer.sql",
            warehouse.0,
            namespace,
            ident.name,
            json(&snapshot_ids),
            wanted,
            SAME_MAX
        )
        .fetch_optional(sent("read-pointer", &self.readers))
        .await
        .map_err(aborted)?;
        let Some(row) = row else {
            return Ok(PointerRead::default());
        };
        let pointer = PointerRow {
            id: row.id,
            kind: row.kind,
            uuid: row.uuid,
            location: row.location,
            metadata_location: row.metadata_location,
            version: row.version,
        };
        Ok(PointerRead {
            pointer: Some(Pointer::try_from(pointer)?),
            landed: from_json(&row.landed)?,
            ledger: ledger_read(&row.rows, &row.same)?,
        })
    }

    async fn landed(
        &self,
        warehouse: WarehouseId,
        uuid: Option<Uuid>,
        snapshot_ids: &[i64],
    ) -> Result<Vec<i64>, StoreError> {
        sqlx::query_scalar!(
            "SELECT DISTINCT snapshot_id FROM lineage
              WHERE warehouse_id = $1 AND snapshot_id IN (SELECT value FROM json_each($3))
                AND ($2 IS NULL OR table_uuid = $2)",
            warehouse.0,
            uuid,
            json(&snapshot_ids)
        )
        .fetch_all(sent("landed", &self.readers))
        .await
        .map_err(aborted)
    }

    async fn location_owner(
        &self,
        warehouse: WarehouseId,
        location: &Location,
        except: Option<TabularId>,
    ) -> Result<Option<(TableIdent, String)>, StoreError> {
        let mut conn = self.readers.acquire().await.map_err(aborted)?;
        owners::of_place(&mut conn, warehouse, &Overlap::of(location), except)
            .await
            .map_err(aborted)?
            .map_or(Ok(None), |owner| owner.named().map(Some))
    }

    async fn swap(&self, swap: &Swap) -> Result<SwapOutcome, StoreError> {
        let mut conn = self.writer().await?;
        let outcome = match swap.one_move() {
            Some(only) => one_move::run(&mut conn, swap, only).await,
            None => transaction::run(&mut conn, swap).await,
        };
        give_back(conn, outcome)
    }

    async fn resolve(&self, attempt: AttemptId, at_ms: i64) -> Result<Resolution, StoreError> {
        let mut conn = self.writer().await?;
        let resolution = settle(&mut conn, attempt, at_ms).await;
        give_back(conn, resolution)
    }

    async fn forget_attempts(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.writer().await?;
        let gone = sqlx::query!(
            "DELETE FROM attempt WHERE attempt_id IN (
                 SELECT attempt_id FROM attempt WHERE at_ms < $1 ORDER BY at_ms LIMIT +$2)",
            before_ms,
            limit
        )
        .execute(sent("forget-attempts", &mut *conn))
        .await
        .map_err(in_transaction);
        Ok(give_back(conn, gone)?.rows_affected())
    }
}

/// Takes the attempt's key, unless the swap has it, and tells whose it is.
///
/// The row is written in any case, and the log of writes is carried over into the database: after that nothing of a swap
/// that is not visible now can come back.
async fn settle(conn: &mut SqliteConnection, attempt: AttemptId, at_ms: i64) -> Result<Resolution, StoreError> {
    let mut tx = match sent("begin", &mut *conn).begin_with(BEGIN).await {
        Err(error) if is_busy(&error) => return Ok(Resolution::Pending),
        begun => begun.map_err(beginning)?,
    };
    let outcome = sqlx::query_scalar!(
        "INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'aborted', $2)
         ON CONFLICT (attempt_id) DO UPDATE SET resolutions = attempt.resolutions + 1
         RETURNING outcome",
        attempt.0,
        at_ms
    )
    .fetch_one(sent("settle", &mut *tx))
    .await
    .map_err(in_transaction)?;
    sent("commit", tx).commit().await.map_err(in_doubt)?;
    let kept_waiting: i64 = sqlx::query_scalar("PRAGMA wal_checkpoint(TRUNCATE)")
        .fetch_one(sent("settle", conn))
        .await
        .map_err(in_doubt)?;
    match (kept_waiting, outcome.as_str()) {
        (0, "committed") => Ok(Resolution::Committed),
        (0, _) => Ok(Resolution::Aborted),
        // A reader is still at the old state: ask again.
        _ => Ok(Resolution::Pending),
    }
}
