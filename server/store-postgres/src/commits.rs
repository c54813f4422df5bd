//! Pointers in table `tabular`, moved together with everything that is written beside them.

use async_trait::async_trait;
use catalog::commits::lineage::{Asked, SAME_MAX};
use catalog::commits::overlap::Overlap;
use catalog::commits::store::{CommitStore, PointerRead, Resolution, Swap, SwapOutcome};
use catalog::ident::{AttemptId, TableIdent, TabularId, WarehouseId};
use catalog::location::Location;
use catalog::store::{StoreError, kept, sent};
use catalog::tabulars::Pointer;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::columns::{PointerRow, parts, text};
use crate::error::{aborted, committing, timed_out};
use crate::lineage::ledger_read;
use crate::pool::{in_time, in_time_or};
use crate::{PostgresStore, give_back};

mod one_move;
mod owners;
mod rows;
mod transaction;

#[async_trait]
impl CommitStore for PostgresStore {
    async fn read_pointer(
        &self,
        warehouse: WarehouseId,
        ident: &TableIdent,
        snapshot_ids: &[i64],
        asked: &[Asked],
    ) -> Result<PointerRead, StoreError> {
        let row = sqlx::query_file!(
            "src/commits/read_pointer.sql",
            warehouse.0,
            &parts(&ident.namespace),
            text(&ident.name),
            snapshot_ids,
            kept::array::<_, kept::Wanted>(asked),
            i64::from(SAME_MAX)
        )
        .fetch_optional(sent("read-pointer", &self.pool))
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
        let (pointer, ledger) = (Pointer::try_from(pointer)?, ledger_read(&row.rows, &row.same)?);
        Ok(PointerRead { pointer: Some(pointer), landed: row.landed, ledger })
    }

    async fn landed(
        &self,
        warehouse: WarehouseId,
        uuid: Option<Uuid>,
        snapshot_ids: &[i64],
    ) -> Result<Vec<i64>, StoreError> {
        sqlx::query_scalar!(
            "SELECT DISTINCT snapshot_id FROM lineage
              WHERE warehouse_id = $1 AND snapshot_id = ANY($3) AND ($2::uuid IS NULL OR table_uuid = $2)",
            warehouse.0,
            uuid,
            snapshot_ids
        )
        .fetch_all(sent("landed", &self.pool))
        .await
        .map_err(aborted)
    }

    async fn location_owner(
        &self,
        warehouse: WarehouseId,
        location: &Location,
        except: Option<TabularId>,
    ) -> Result<Option<(TableIdent, String)>, StoreError> {
        let mut conn = self.acquire().await?;
        in_time_or(aborted, owners::of_place(&mut conn, warehouse, &Overlap::of(location), except)).await
    }

    async fn swap(&self, swap: &Swap) -> Result<SwapOutcome, StoreError> {
        let mut conn = self.acquire().await?;
        let outcome = match swap.one_move() {
            Some(only) => in_time_or(committing, one_move::run(&mut conn, swap, only)).await,
            None => in_time_or(committing, transaction::run(&mut conn, swap)).await,
        };
        give_back(conn, outcome)
    }

    async fn resolve(&self, attempt: AttemptId, at_ms: i64) -> Result<Resolution, StoreError> {
        let mut conn = self.fresh().await?;
        settle(&mut conn, attempt, at_ms).await
    }

    async fn forget_attempts(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.acquire().await?;
        // Replicas that forget at the same time take different rows.
        let gone = sqlx::query!(
            "DELETE FROM attempt WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM attempt WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))",
            before_ms,
            i64::from(limit)
        )
        .execute(sent("forget-attempts", &mut *conn));
        let gone = in_time(gone).await.map_err(committing);
        Ok(give_back(conn, gone)?.rows_affected())
    }
}

/// Takes the attempt's key, unless the swap has it, and tells whose it is.
///
/// The row is written in any case: that commit is acknowledged only when the swap's is safe as well. What it says counts
/// only then, so the answer is made after COMMIT.
async fn settle(conn: &mut PgConnection, attempt: AttemptId, at_ms: i64) -> Result<Resolution, StoreError> {
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                 SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '1s'";
    let mut tx = sent("begin", conn).begin_with(begin).await.map_err(aborted)?;
    let outcome = sqlx::query_scalar!(
        "INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'aborted', $2)
         ON CONFLICT (attempt_id) DO UPDATE SET resolutions = attempt.resolutions + 1
         RETURNING outcome",
        attempt.0,
        at_ms
    )
    .fetch_one(sent("settle", &mut *tx))
    .await;
    let outcome = match outcome {
        // The swap holds its row and has not ended yet.
        Err(error) if timed_out(&error) => return Ok(Resolution::Pending),
        outcome => outcome.map_err(aborted)?,
    };
    sent("commit", tx).commit().await.map_err(committing)?;
    match outcome.as_str() {
        "committed" => Ok(Resolution::Committed),
        _ => Ok(Resolution::Aborted),
    }
}
