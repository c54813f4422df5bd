//! What a swap writes beside its pointers.

use catalog::commits::store::{Landed, Swap};
use catalog::store::StoreError;
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::columns::json;
use crate::error::{in_doubt, in_transaction};

/// Writes what the table's lineage does not hold yet; returns how many snapshots that were.
pub(super) async fn insert_lineage(
    conn: &mut SqliteConnection,
    swap: &Swap,
    uuid: Uuid,
    lineage: &[Landed],
) -> Result<u64, StoreError> {
    if lineage.is_empty() {
        return Ok(0);
    }
    let row = |landed: &Landed| {
        let ref_name = landed.ref_name.clone();
        (landed.snapshot_id, landed.parent_id, landed.sequence_number, ref_name)
    };
    let rows = json(&lineage.iter().map(row).collect::<Vec<_>>());
    let inserted = sqlx::query!(
        "INSERT INTO lineage (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, at_ms)
         SELECT $1, $2, value ->> 0, value ->> 1, value ->> 2, value ->> 3, $3
           FROM json_each($4)
          WHERE true
         ON CONFLICT (warehouse_id, table_uuid, snapshot_id) DO NOTHING",
        swap.warehouse.0,
        uuid,
        swap.at_ms,
        rows
    )
    .execute(conn)
    .await
    .map_err(in_transaction)?;
    Ok(inserted.rows_affected())
}

/// Says that the swap is committed, should its transaction be. Where a resolver came first, its word holds.
pub(super) async fn insert_attempt(conn: &mut SqliteConnection, swap: &Swap) -> Result<(), StoreError> {
    let inserted = sqlx::query!(
        "INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'committed', $2)
         ON CONFLICT (attempt_id) DO NOTHING",
        swap.attempt.0,
        swap.at_ms
    )
    .execute(conn)
    .await
    .map_err(in_transaction)?;
    match inserted.rows_affected() {
        1 => Ok(()),
        _ => Err(in_doubt(format!("attempt {} is settled already", swap.attempt))),
    }
}
