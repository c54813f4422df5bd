//! What became of requests, in table `commit_log`.

use async_trait::async_trait;
use catalog::commits::log::{LogEntry, LogStore, Wanted};
use catalog::ident::WarehouseId;
use catalog::store::{StoreError, kept, sent};
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::error::{aborted, in_transaction};
use crate::{SqliteStore, give_back};

#[async_trait]
impl LogStore for SqliteStore {
    async fn write_log(&self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut conn = self.writer().await?;
        let written = insert(&mut conn, entries).await;
        give_back(conn, written)
    }

    async fn read_log(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let before = before.unwrap_or(Uuid::max());
        let rows = sqlx::query_as!(
            kept::Entry,
            r#"SELECT warehouse_id AS "warehouse_id: Uuid", table_uuid AS "table_uuid: Uuid", id AS "id: Uuid", namespace,
                      name, at_ms, request_id, principal, idempotency_key AS "idempotency_key: Uuid", snapshot_id,
                      ref_name, writer_kind, writer_id, writer_part, position, outcome,
                      attempt_id AS "attempt_id: Uuid", duplicate_of, detail, waited_ms, group_size, attempts
                 FROM commit_log
                WHERE warehouse_id = $1 AND table_uuid = $2 AND id < $3
                ORDER BY id DESC LIMIT +$4"#,
            warehouse.0,
            table,
            before,
            limit
        )
        .fetch_all(sent("read-log", &self.readers))
        .await
        .map_err(aborted)?;
        rows.into_iter().map(LogEntry::try_from).collect()
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
        let mut conn = self.writer().await?;
        let gone = sqlx::query!(
            "DELETE FROM commit_log WHERE (warehouse_id, table_uuid, id) IN (
                 SELECT warehouse_id, table_uuid, id FROM commit_log WHERE at_ms < $1 ORDER BY at_ms LIMIT +$2)",
            before_ms,
            limit
        )
        .execute(sent("forget-log", &mut *conn))
        .await
        .map_err(in_transaction);
        Ok(give_back(conn, gone)?.rows_affected())
    }
}

impl SqliteStore {
    async fn log_of_key(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        key: Uuid,
        limit: u32,
    ) -> Result<Vec<kept::Entry>, sqlx::Error> {
        sqlx::query_as!(
            kept::Entry,
            r#"SELECT warehouse_id AS "warehouse_id: Uuid", table_uuid AS "table_uuid: Uuid", id AS "id: Uuid", namespace,
                      name, at_ms, request_id, principal, idempotency_key AS "idempotency_key: Uuid", snapshot_id,
                      ref_name, writer_kind, writer_id, writer_part, position, outcome,
                      attempt_id AS "attempt_id: Uuid", duplicate_of, detail, waited_ms, group_size, attempts
                 FROM commit_log
                WHERE warehouse_id = $1 AND table_uuid = $2 AND idempotency_key = $3
                ORDER BY id DESC LIMIT +$4"#,
            warehouse.0,
            table,
            key,
            limit
        )
        .fetch_all(sent("log-of-key", &self.readers))
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
            r#"SELECT warehouse_id AS "warehouse_id: Uuid", table_uuid AS "table_uuid: Uuid", id AS "id: Uuid", namespace,
                      name, at_ms, request_id, principal, idempotency_key AS "idempotency_key: Uuid", snapshot_id,
                      ref_name, writer_kind, writer_id, writer_part, position, outcome,
                      attempt_id AS "attempt_id: Uuid", duplicate_of, detail, waited_ms, group_size, attempts
                 FROM commit_log
                WHERE warehouse_id = $1 AND table_uuid = $2 AND snapshot_id = $3
                ORDER BY id DESC LIMIT +$4"#,
            warehouse.0,
            table,
            snapshot_id,
            limit
        )
        .fetch_all(sent("log-of-snapshot", &self.readers))
        .await
    }
}

/// Writes the entries within the caller's transaction; one that is there stays.
pub(crate) async fn insert(conn: &mut SqliteConnection, entries: &[LogEntry]) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let rows = kept::array::<_, kept::Entry>(entries);
    sqlx::query!(
        "INSERT INTO commit_log (warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal,
                                 idempotency_key, snapshot_id, ref_name, writer_kind, writer_id, writer_part, position,
                                 outcome, attempt_id, duplicate_of, detail, waited_ms, group_size, attempts)
         SELECT unhex(value ->> 'warehouse_id', '-'), unhex(value ->> 'table_uuid', '-'), unhex(value ->> 'id', '-'),
                value ->> 'namespace', value ->> 'name', value ->> 'at_ms', value ->> 'request_id',
                value ->> 'principal', unhex(value ->> 'idempotency_key', '-'), value ->> 'snapshot_id',
                value ->> 'ref_name', value ->> 'writer_kind', value ->> 'writer_id', value ->> 'writer_part',
                value ->> 'position', value ->> 'outcome', unhex(value ->> 'attempt_id', '-'),
                value ->> 'duplicate_of', value ->> 'detail', value ->> 'waited_ms', value ->> 'group_size',
                value ->> 'attempts'
           FROM json_each($1)
          WHERE true
         ON CONFLICT (warehouse_id, table_uuid, id) DO NOTHING",
        rows
    )
    .execute(sent("insert-log", conn))
    .await
    .map_err(in_transaction)?;
    Ok(())
}
