//! Landed snapshots in table `lineage`, and the ledger in table `writer`.

use async_trait::async_trait;
use catalog::commits::identity::WriterKind;
use catalog::commits::lineage::{
    Asked, Class, Landed, LedgerRead, LineageStore, SAME_MAX, Walk, Which, WriterCursor, WriterRow,
};
use catalog::ident::WarehouseId;
use catalog::store::{StoreError, kept, sent};
use uuid::Uuid;

use crate::columns::from_json;
use crate::error::{aborted, committing};
use crate::pool::in_time;
use crate::{PostgresStore, give_back};

/// The ledger out of two JSON arrays of rows.
pub(crate) fn ledger_read(rows: &str, same: &str) -> Result<LedgerRead, StoreError> {
    let (rows, same): (Vec<kept::Writer>, Vec<kept::Same>) = (from_json(rows)?, from_json(same)?);
    Ok(LedgerRead {
        rows: rows.into_iter().map(WriterRow::try_from).collect::<Result<_, _>>()?,
        same: same.into_iter().map(TryFrom::try_from).collect::<Result<_, _>>()?,
    })
}

#[async_trait]
impl LineageStore for PostgresStore {
    async fn ledger(&self, warehouse: WarehouseId, table: Uuid, asked: &[Asked]) -> Result<LedgerRead, StoreError> {
        let found = sqlx::query!(
            r#"WITH wanted AS MATERIALIZED (
                   SELECT DISTINCT * FROM json_to_recordset($3::text::json)
                       AS wanted (place text, ref_name text, ref_key text, writer_kind text, writer_id text,
                                  writer_part text, position text, position_hash bigint)
               ), same AS (
                   SELECT wanted.ref_name AS asked_ref, its.*
                     FROM wanted, LATERAL (
                          SELECT * FROM lineage l
                           WHERE l.warehouse_id = $1 AND l.table_uuid = $2 AND l.position_hash = wanted.position_hash
                             AND l.position = wanted.position AND l.writer_kind = wanted.writer_kind
                             AND l.writer_id = wanted.writer_id AND l.writer_part = wanted.writer_part
                             AND (l.ref_name = wanted.ref_name
                                  OR EXISTS (SELECT FROM carried c
                                              WHERE c.warehouse_id = $1 AND c.table_uuid = $2
                                                AND c.snapshot_id = l.snapshot_id AND c.ref_key = wanted.ref_key))
                           ORDER BY l.sequence_number DESC, l.at_ms DESC LIMIT $4) its
               )
               SELECT coalesce((SELECT json_agg(w) FROM writer w
                                 WHERE w.warehouse_id = $1 AND w.table_uuid = $2
                                   AND w.place IN (SELECT place FROM wanted)), '[]')::text AS "rows!",
                      coalesce((SELECT json_agg(same) FROM same), '[]')::text AS "same!""#,
            warehouse.0,
            table,
            kept::array::<_, kept::Wanted>(asked),
            i64::from(SAME_MAX)
        )
        .fetch_one(sent("ledger", &self.pool))
        .await
        .map_err(aborted)?;
        ledger_read(&found.rows, &found.same)
    }

    async fn walk(&self, warehouse: WarehouseId, table: Uuid, walk: Walk) -> Result<Vec<Landed>, StoreError> {
        let rows = sqlx::query_as!(
            kept::Snapshot,
            r#"WITH RECURSIVE walk AS (
                   SELECT l.*, 1::bigint AS step FROM lineage l
                    WHERE l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = $3
                      AND $6::bigint > 0
                   UNION ALL
                   SELECT l.*, walk.step + 1 FROM walk JOIN lineage l
                       ON l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = walk.parent_id
                    WHERE walk.snapshot_id IS DISTINCT FROM $4 AND walk.sequence_number >= $5 AND walk.step < $6
               )
               SELECT snapshot_id AS "snapshot_id!", parent_id, sequence_number AS "sequence_number!", ref_name, class,
                      writer_kind, writer_id, writer_part, position, counts, epoch, is_first AS "is_first!",
                      rebased AS "rebased!", position_hash, at_ms AS "at_ms!"
                 FROM walk ORDER BY step"#,
            warehouse.0,
            table,
            walk.from,
            walk.until,
            walk.sequence_number_min,
            i64::from(walk.limit)
        )
        .fetch_all(sent("walk", &self.pool))
        .await
        .map_err(aborted)?;
        rows.into_iter().map(Landed::try_from).collect()
    }

    async fn classify(&self, warehouse: WarehouseId, table: Uuid, classes: &[(i64, Class)]) -> Result<(), StoreError> {
        let (snapshot_ids, classes): (Vec<i64>, Vec<String>) =
            classes.iter().map(|(snapshot_id, class)| (*snapshot_id, class.as_str().to_owned())).unzip();
        let mut conn = self.acquire().await?;
        // What another process is just classifying is passed over: it finds the same.
        let classified = sqlx::query!(
            "WITH unclassified AS (
                 SELECT snapshot_id FROM lineage
                  WHERE warehouse_id = $1 AND table_uuid = $2 AND snapshot_id = ANY($3) AND class IS NULL
                    FOR UPDATE SKIP LOCKED
             )
             UPDATE lineage l SET class = new.class
               FROM unclassified JOIN unnest($3::bigint[], $4::text[]) AS new (snapshot_id, class) USING (snapshot_id)
              WHERE l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = new.snapshot_id",
            warehouse.0,
            table,
            &snapshot_ids,
            &classes
        )
        .execute(sent("classify", &mut *conn));
        let classified = in_time(classified).await.map_err(committing);
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
        let rows = sqlx::query_as!(
            kept::Writer,
            "SELECT place, ref_name, writer_kind, writer_id, writer_part, position, snapshot_id, sequence_number,
                    first_snapshot_id, since_sequence_number, epoch, retired, at_ms
               FROM writer
              WHERE warehouse_id = $1 AND table_uuid = $2 AND place > $3
              ORDER BY place LIMIT $4",
            warehouse.0,
            table,
            after.map(kept::place).unwrap_or_default(),
            i64::from(limit)
        )
        .fetch_all(sent("writers", &self.pool))
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
        let rows = sqlx::query_as!(
            kept::Writer,
            "SELECT place, ref_name, writer_kind, writer_id, writer_part, position, snapshot_id, sequence_number,
                    first_snapshot_id, since_sequence_number, epoch, retired, at_ms
               FROM writer
              WHERE warehouse_id = $1 AND table_uuid = $2 AND writer_id = $3
                AND ($4::text IS NULL OR ref_name = $4) AND ($5::text IS NULL OR writer_kind = $5)
                AND ($6::text IS NULL OR writer_part = $6)
              ORDER BY place LIMIT $7",
            warehouse.0,
            table,
            kept::escaped(which.id()),
            which.ref_name.as_deref().map(kept::escaped),
            which.kind.map(WriterKind::as_str),
            which.part.as_deref().map(kept::escaped),
            i64::from(limit)
        )
        .fetch_all(sent("writer", &self.pool))
        .await
        .map_err(aborted)?;
        rows.into_iter().map(WriterRow::try_from).collect()
    }

    async fn forget_lineage(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError> {
        let mut conn = self.acquire().await?;
        // Replicas that forget at the same time take different rows.
        let gone = sqlx::query_scalar!(
            r#"WITH old AS (
                   SELECT ctid, warehouse_id, table_uuid, snapshot_id FROM lineage
                    WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED
               ), uncarried AS (
                   DELETE FROM carried WHERE ctid = ANY(ARRAY(
                       SELECT its.ctid FROM old, LATERAL (
                           SELECT c.ctid FROM carried c
                            WHERE c.warehouse_id = old.warehouse_id AND c.table_uuid = old.table_uuid
                              AND c.snapshot_id = old.snapshot_id
                           OFFSET 0) its))
               ), gone AS (
                   DELETE FROM lineage WHERE ctid = ANY(ARRAY(SELECT ctid FROM old)) RETURNING snapshot_id
               )
               SELECT count(*) AS "gone!" FROM gone"#,
            before_ms,
            i64::from(limit)
        )
        .fetch_one(sent("forget-lineage", &mut *conn));
        let gone = in_time(gone).await.map_err(committing);
        give_back(conn, gone).map(i64::unsigned_abs)
    }
}
