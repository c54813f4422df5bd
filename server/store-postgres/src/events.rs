//! What happened, in table `outbox`.

use async_trait::async_trait;
use catalog::events::{Cursor, Event, EventStore};
use catalog::store::{StoreError, kept, sent};
use sqlx::PgConnection;

use crate::error::{aborted, committing};
use crate::pool::in_time;
use crate::{PostgresStore, give_back};

#[async_trait]
impl EventStore for PostgresStore {
    /// One transaction that stays open anywhere in the cluster holds back what is committed after its begin: only then is
    /// no event passed over.
    async fn events(&self, after: Option<&Cursor>, limit: u32) -> Result<Vec<(Cursor, Event)>, StoreError> {
        let (xid, serial) = after.map_or(Ok((0, 0)), place)?;
        let rows = sqlx::query!(
            r#"SELECT xid::text AS "xid!", serial, warehouse_id, tabular_id, kind, table_uuid, namespace, name, what,
                      metadata_location, snapshot_id, ref_name, at_ms
                 FROM outbox
                WHERE (xid, serial) > ($1::text::xid8, $2) AND xid < pg_snapshot_xmin(pg_current_snapshot())
                ORDER BY outbox.xid, serial LIMIT $3"#,
            xid.to_string(),
            serial,
            i64::from(limit)
        )
        .fetch_all(sent("events", &self.pool))
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
                Ok((Cursor(format!("{}.{}", row.xid, row.serial)), event.try_into()?))
            })
            .collect()
    }

    async fn forget_events(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.acquire().await?;
        // Replicas that forget at the same time take different rows.
        let gone = sqlx::query!(
            "DELETE FROM outbox WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM outbox WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))",
            before_ms,
            i64::from(limit)
        )
        .execute(sent("forget-events", &mut *conn));
        let gone = in_time(gone).await.map_err(committing);
        Ok(give_back(conn, gone)?.rows_affected())
    }
}

/// Transaction and serial.
fn place(cursor: &Cursor) -> Result<(u64, i64), StoreError> {
    let place = cursor.0.split_once('.').and_then(|(xid, serial)| Some((xid.parse().ok()?, serial.parse().ok()?)));
    place.ok_or_else(|| aborted(format!("'{}' is no cursor of this store", cursor.0)))
}

/// Writes the events in their order, within the caller's transaction.
pub(crate) async fn insert(conn: &mut PgConnection, events: &[Event]) -> Result<(), sqlx::Error> {
    if events.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO outbox (warehouse_id, tabular_id, kind, table_uuid, namespace, name, what, metadata_location,
                             snapshot_id, ref_name, at_ms)
         SELECT new.*
           FROM json_to_recordset($1::text::json)
                AS new (warehouse_id uuid, tabular_id uuid, kind text, table_uuid uuid, namespace text, name text,
                        what text, metadata_location text, snapshot_id bigint, ref_name text, at_ms bigint)",
        kept::array::<_, kept::Event>(events)
    )
    .execute(sent("insert-events", conn))
    .await
    .map(|_| ())
}
