//! Landed snapshots in table `lineage`, and the ledger in table `writer`.

use async_trait::async_trait;
use catalog::commits::identity::WriterKind;
use catalog::commits::lineage::{
    Asked, Class, Landed, LedgerRead, LineageStore, SAME_MAX, Walk, Which, WriterCursor, WriterRow,
};
use catalog::ident::WarehouseId;
use catalog::store::{StoreError, kept, sent};
use sqlx::{Connection, SqliteConnection};
use uuid::Uuid;

use crate::columns::{from_json, json};
use crate::error::{aborted, beginning, in_doubt, in_transaction};
use crate::{BEGIN, SqliteStore, give_back};

/// The ledger out of two JSON arrays: of rows, and of the snapshots for each writer that was asked for.
pub(crate) fn ledger_read(rows: &str, same: &str) -> Result<LedgerRead, StoreError> {
    let (rows, same): (Vec<kept::Writer>, Vec<Vec<kept::Same>>) = (from_json(rows)?, from_json(same)?);
    Ok(LedgerRead {
        rows: rows.into_iter().map(WriterRow::try_from).collect::<Result<_, _>>()?,
        same: same.into_iter().flatten().map(TryFrom::try_from).collect::<Result<_, _>>()?,
    })
}

#[async_trait]
impl LineageStore for SqliteStore {
    async fn ledger(&self, warehouse: WarehouseId, table: Uuid, asked: &[Asked]) -> Result<LedgerRead, StoreError> {
        let wanted = kept::array::<_, kept::Wanted>(asked);
        let found = sqlx::query_file!("src/ledger.sql", warehouse.0, table, wanted, SAME_MAX)
            .fetch_one(sent("ledger", &self.readers))
            .await
            .map_err(aborted)?;
        ledger_read(&found.rows, &found.same)
    }

    async fn walk(&self, warehouse: WarehouseId, table: Uuid, walk: Walk) -> Result<Vec<Landed>, StoreError> {
        let rows = sqlx::query_as!(
            kept::Snapshot,
            r#"WITH RECURSIVE walk AS (
                   SELECT l.*, 1 AS step FROM lineage l
                    WHERE l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = $3
                      AND $6 > 0
                   UNION ALL
                   SELECT l.*, walk.step + 1 FROM walk JOIN lineage l
                       ON l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = walk.parent_id
                    WHERE walk.snapshot_id IS NOT $4 AND walk.sequence_number >= $5 AND walk.step < $6
               )
               SELECT snapshot_id AS "snapshot_id!", parent_id, sequence_number AS "sequence_number!", ref_name, class,
                      writer_kind, writer_id, writer_part, position, counts, epoch, is_first AS "is_first!: bool",
                      rebased AS "rebased!: bool", position_hash, at_ms AS "at_ms!"
                 FROM walk ORDER BY step"#,
            warehouse.0,
            table,
            walk.from,
            walk.until,
            walk.sequence_number_min,
            walk.limit
        )
        .fetch_all(sent("walk", &self.readers))
        .await
        .map_err(aborted)?;
        rows.into_iter().map(Landed::try_from).collect()
    }

    async fn classify(&self, warehouse: WarehouseId, table: Uuid, classes: &[(i64, Class)]) -> Result<(), StoreError> {
        let classes: Vec<_> = classes.iter().map(|(snapshot_id, class)| (snapshot_id, class.as_str())).collect();
        let classes = json(&classes);
        let mut conn = self.writer().await?;
        let classified = sqlx::query!(
            "UPDATE lineage SET class = new.value ->> 1
               FROM json_each($3) AS new
              WHERE warehouse_id = $1 AND table_uuid = $2 AND snapshot_id = new.value ->> 0 AND class IS NULL",
            warehouse.0,
            table,
            classes
        )
        .execute(sent("classify", &mut *conn))
        .await
        .map_err(in_transaction);
        give_back(conn, classified).map(|_| ())
    }

    async fn writers(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        after: Option<&WriterCursor>,
        limit: u32,
    ) -> Result<Vec<WriterRow>, StoreError> {
        // No place is empty, so all come after ''.
        let after = after.map(kept::place).unwrap_or_default();
        let rows = sqlx::query_as!(
            kept::Writer,
            r#"SELECT place, ref_name, writer_kind, writer_id, writer_part, position, snapshot_id, sequence_number,
                      first_snapshot_id, since_sequence_number, epoch, retired AS "retired: bool", at_ms
                 FROM writer
                WHERE warehouse_id = $1 AND table_uuid = $2 AND place > $3
                ORDER BY place LIMIT +$4"#,
            warehouse.0,
            table,
            after,
            limit
        )
        .fetch_all(sent("writers", &self.readers))
        .await
        .map_err(aborted)?;
        rows.into_iter().map(WriterRow::try_from).collect()
    }

    async fn writer(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        which: &Which,
        limit: u32,
    ) -> Result<Vec<WriterRow>, StoreError> {
        let (id, kind) = (kept::escaped(which.id()), which.kind.map(WriterKind::as_str));
        let ref_name = which.ref_name.as_deref().map(kept::escaped);
        let part = which.part.as_deref().map(kept::escaped);
        let rows = sqlx::query_as!(
            kept::Writer,
            r#"SELECT place, ref_name, writer_kind, writer_id, writer_part, position, snapshot_id, sequence_number,
                      first_snapshot_id, since_sequence_number, epoch, retired AS "retired: bool", at_ms
                 FROM writer
                WHERE warehouse_id = $1 AND table_uuid = $2 AND writer_id = $3
                  AND ($4 IS NULL OR ref_name = $4) AND ($5 IS NULL OR writer_kind = $5)
                  AND ($6 IS NULL OR writer_part = $6)
                ORDER BY place LIMIT +$7"#,
            warehouse.0,
            table,
            id,
            ref_name,
            kind,
            part,
            limit
        )
        .fetch_all(sent("writer", &self.readers))
        .await
        .map_err(aborted)?;
        rows.into_iter().map(WriterRow::try_from).collect()
    }

    async fn forget_lineage(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.writer().await?;
        let gone = forget(&mut conn, before_ms, limit).await;
        give_back(conn, gone)
    }
}

/// A snapshot goes together with what says that it was carried.
async fn forget(conn: &mut SqliteConnection, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(beginning)?;
    sqlx::query!(
        "DELETE FROM carried WHERE (warehouse_id, table_uuid, snapshot_id) IN (
             SELECT warehouse_id, table_uuid, snapshot_id FROM lineage WHERE at_ms < $1
              ORDER BY at_ms, warehouse_id, table_uuid, snapshot_id LIMIT +$2)",
        before_ms,
        limit
    )
    .execute(sent("forget-lineage", &mut *tx))
    .await
    .map_err(in_transaction)?;
    let gone = sqlx::query!(
        "DELETE FROM lineage WHERE (warehouse_id, table_uuid, snapshot_id) IN (
             SELECT warehouse_id, table_uuid, snapshot_id FROM lineage WHERE at_ms < $1
              ORDER BY at_ms, warehouse_id, table_uuid, snapshot_id LIMIT +$2)",
        before_ms,
        limit
    )
    .execute(sent("forget-lineage", &mut *tx))
    .await
    .map_err(in_transaction)?;
    sent("commit", tx).commit().await.map_err(in_doubt)?;
    Ok(gone.rows_affected())
}
