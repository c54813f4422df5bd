//! What became of requests, in table `commit_log`.

use async_trait::async_trait;
use catalog::commits::log::{LogEntry, LogStore, Wanted};
use catalog::ident::WarehouseId;
use catalog::store::{StoreError, kept, sent};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::error::{aborted, committing};
use crate::pool::in_time;
use crate::{PostgresStore, give_back};

#[async_trait]
impl LogStore for PostgresStore {
    async fn write_log(&self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut conn = self.acquire().await?;
        let written = in_time(insert(&mut conn, entries)).await.map_err(committing);
        give_back(conn, written)
    }

    async fn read_log(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let rows = self.listed(|pool| page(pool, warehouse, table, (before, limit))).await?;
        rows.unwrap_or_default().into_iter().map(LogEntry::try_from).collect()
    }

    async fn find_log(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        wanted: Wanted,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let rows = match wanted {
            Wanted::Key(key) => self.log_of_key(warehouse, table, key, limit).await,
            Wanted::Snapshot(snapshot_id) => self.log_of_snapshot(warehouse, table, snapshot_id, limit).await,
        };
        rows.map_err(aborted)?.into_iter().map(LogEntry::try_from).collect()
    }

    async fn forget_log(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.acquire().await?;
        // Replicas that forget at the same time take different rows.
        let gone = sqlx::query!(
            "DELETE FROM commit_log WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM commit_log WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))",
            before_ms,
            i64::from(limit)
        )
        .execute(sent("forget-log", &mut *conn));
        let gone = in_time(gone).await.map_err(committing);
        Ok(give_back(conn, gone)?.rows_affected())
    }
}

impl PostgresStore {
    async fn log_of_key(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        key: Uuid,
        limit: u32,
    ) -> Result<Vec<kept::Entry>, sqlx::Error> {
        sqlx::query_as!(
            kept::Entry,
            "SELECT warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal, idempotency_key,
                    snapshot_id, ref_name, writer_kind, writer_id, writer_part, position, outcome, attempt_id, duplicate_of,
                    detail, waited_ms, group_size, attempts
               FROM commit_log
              WHERE warehouse_id = $1 AND table_uuid = $2 AND idempotency_key = $3
              ORDER BY id DESC LIMIT $4",
            warehouse.0,
            table,
            key,
            i64::from(limit)
        )
        .fetch_all(sent("log-of-key", &self.pool))
        .await
    }

    async fn log_of_snapshot(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        snapshot_id: i64,
        limit: u32,
    ) -> Result<Vec<kept::Entry>, sqlx::Error> {
        sqlx::query_as!(
            kept::Entry,
            "SELECT warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal, idempotency_key,
                    snapshot_id, ref_name, writer_kind, writer_id, writer_part, position, outcome, attempt_id, duplicate_of,
                    detail, waited_ms, group_size, attempts
               FROM commit_log
              WHERE warehouse_id = $1 AND table_uuid = $2 AND snapshot_id = $3
              ORDER BY id DESC LIMIT $4",
            warehouse.0,
            table,
            snapshot_id,
            i64::from(limit)
        )
        .fetch_all(sent("log-of-snapshot", &self.pool))
        .await
    }
}

/// One page of a table's log; none where it has none.
async fn page(
    pool: PgPool,
    warehouse: WarehouseId,
    table: Uuid,
    (before, limit): (Option<Uuid>, u32),
) -> Result<Option<Vec<kept::Entry>>, sqlx::Error> {
    let rows = sqlx::query_as!(
        kept::Entry,
        "SELECT warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal, idempotency_key,
                snapshot_id, ref_name, writer_kind, writer_id, writer_part, position, outcome, attempt_id, duplicate_of,
                detail, waited_ms, group_size, attempts
           FROM commit_log
          WHERE warehouse_id = $1 AND table_uuid = $2 AND id < $3
          ORDER BY id DESC LIMIT $4",
        warehouse.0,
        table,
        before.unwrap_or(Uuid::max()),
        i64::from(limit)
    )
    .fetch_all(sent("read-log", &pool))
    .await?;
    Ok((!rows.is_empty()).then_some(rows))
}

/// Writes the entries within the caller's transaction; one that is there stays.
pub(crate) async fn insert(conn: &mut PgConnection, entries: &[LogEntry]) -> Result<(), sqlx::Error> {
    if entries.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO commit_log (warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal,
                                 idempotency_key, snapshot_id, ref_name, writer_kind, writer_id, writer_part, position,
                                 outcome, attempt_id, duplicate_of, detail, waited_ms, group_size, attempts)
         SELECT new.*
           FROM json_to_recordset($1::text::json)
                AS new (warehouse_id uuid, table_uuid uuid, id uuid, namespace text, name text, at_ms bigint,
                        request_id text, principal text, idempotency_key uuid, snapshot_id bigint, ref_name text,
                        writer_kind text, writer_id text, writer_part text, position text, outcome text,
                        attempt_id uuid, duplicate_of bigint, detail text, waited_ms bigint, group_size bigint,
                        attempts bigint)
         ON CONFLICT DO NOTHING",
        kept::array::<_, kept::Entry>(entries)
    )
    .execute(sent("insert-log", conn))
    .await
    .map(|_| ())
}
