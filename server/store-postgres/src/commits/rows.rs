//! What a swap writes beside its pointers.

use catalog::commits::store::{Landed, Swap};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::columns::text;

/// The constraint that lets a snapshot land once.
pub(super) const LINEAGE_SNAPSHOT: &str = "lineage_snapshot";

/// Lineage rows, column by column.
pub(super) struct LineageColumns {
    pub snapshot_ids: Vec<i64>,
    pub parent_ids: Vec<Option<i64>>,
    pub sequence_numbers: Vec<i64>,
    pub ref_names: Vec<Option<String>>,
}

impl LineageColumns {
    pub(super) fn of(lineage: &[Landed]) -> Self {
        Self {
            snapshot_ids: lineage.iter().map(|landed| landed.snapshot_id).collect(),
            parent_ids: lineage.iter().map(|landed| landed.parent_id).collect(),
            sequence_numbers: lineage.iter().map(|landed| landed.sequence_number).collect(),
            ref_names: lineage.iter().map(|landed| landed.ref_name.as_deref().map(text)).collect(),
        }
    }
}

/// Writes what the table's lineage does not hold yet; returns how many snapshots that were.
///
/// It waits for another transaction that is about to write one of them.
pub(super) async fn insert_lineage(
    conn: &mut PgConnection,
    swap: &Swap,
    uuid: Uuid,
    lineage: &[Landed],
) -> Result<u64, sqlx::Error> {
    if lineage.is_empty() {
        return Ok(0);
    }
    let landed = LineageColumns::of(lineage);
    let inserted = sqlx::query!(
        "INSERT INTO lineage (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, at_ms)
         SELECT $1, $2, new.snapshot_id, new.parent_id, new.sequence_number, new.ref_name, $3
           FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::text[])
                AS new (snapshot_id, parent_id, sequence_number, ref_name)
          ORDER BY new.snapshot_id
         ON CONFLICT (warehouse_id, table_uuid, snapshot_id) DO NOTHING",
        swap.warehouse.0,
        uuid,
        swap.at_ms,
        &landed.snapshot_ids,
        &landed.parent_ids as &[Option<i64>],
        &landed.sequence_numbers,
        &landed.ref_names as &[Option<String>]
    )
    .execute(conn)
    .await?;
    Ok(inserted.rows_affected())
}

/// Says that the swap is committed, should its transaction be. A resolver that came first is met here.
pub(super) async fn insert_attempt(conn: &mut PgConnection, swap: &Swap) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'committed', $2)",
        swap.attempt.0,
        swap.at_ms
    )
    .execute(conn)
    .await
    .map(|_| ())
}
