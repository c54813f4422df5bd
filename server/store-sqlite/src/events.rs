//! What happened, in table `outbox`.

use async_trait::async_trait;
use catalog::events::{Cursor, Event, EventStore};
use catalog::store::{StoreError, kept, sent};
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::error::{aborted, in_transaction};
use crate::{SqliteStore, give_back};

#[async_trait]
impl EventStore for SqliteStore {
    async fn events(&self, after: Option<&Cursor>, limit: u32) -> Result<Vec<(Cursor, Event)>, StoreError> {
        let after = after.map_or(Ok(0), serial)?;
        let rows = sqlx::query!(
            r#"SELECT serial, warehouse_id AS "warehouse_id: Uuid", tabular_id AS "tabular_id: Uuid", kind,
                      table_uuid AS "table_uuid: Uuid", namespace, name, what, metadata_location, snapshot_id, ref_name,
                      at_ms
                 FROM outbox WHERE serial > $1 ORDER BY serial LIMIT +$2"#,
            after,
            limit
        )
        .fetch_all(sent("events", &self.readers))
        .await
        .map_err(aborted)?;
        rows.into_iter()
            .map(|row| {
                let event = kept::Event {
                    warehouse_id: row.warehouse_id,
                    tabular_id: row.tabular_id,
                    kind: row.kind,
                    table_uuid: row.table_uuid,
                    namespace: row.namespace,
                    name: row.name,
                    what: row.what,
                    metadata_location: row.metadata_location,
                    snapshot_id: row.snapshot_id,
                    ref_name: row.ref_name,
                    at_ms: row.at_ms,
                };
                Ok((Cursor(row.serial.to_string()), event.try_into()?))
            })
            .collect()
    }

    async fn forget_events(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.writer().await?;
        let gone = sqlx::query!(
            "DELETE FROM outbox WHERE serial IN (
                 SELECT serial FROM outbox WHERE at_ms < $1 ORDER BY at_ms LIMIT +$2)",
            before_ms,
            limit
        )
        .execute(sent("forget-events", &mut *conn))
        .await
        .map_err(in_transaction);
        Ok(give_back(conn, gone)?.rows_affected())
    }
}

fn serial(cursor: &Cursor) -> Result<i64, StoreError> {
    cursor.0.parse().map_err(|_| aborted(format!("'{}' is no cursor of this store", cursor.0)))
}

/// Writes the events in their order, within the caller's transaction.
pub(crate) async fn insert(conn: &mut SqliteConnection, events: &[Event]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let rows = kept::array::<_, kept::Event>(events);
    sqlx::query!(
        "INSERT INTO outbox (warehouse_id, tabular_id, kind, table_uuid, namespace, name, what, metadata_location,
                             snapshot_id, ref_name, at_ms)
         SELECT unhex(value ->> 'warehouse_id', '-'), unhex(value ->> 'tabular_id', '-'), value ->> 'kind',
                unhex(value ->> 'table_uuid', '-'), value ->> 'namespace', value ->> 'name', value ->> 'what',
                value ->> 'metadata_location', value ->> 'snapshot_id', value ->> 'ref_name', value ->> 'at_ms'
           FROM json_each($1) ORDER BY key",
        rows
    )
    .execute(sent("insert-events", conn))
    .await
    .map_err(in_transaction)?;
    Ok(())
}
