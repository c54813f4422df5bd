//! What a swap writes beside its pointers.

use catalog::commits::store::{News, Swap};
use catalog::store::{StoreError, kept, sent};
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::error::{in_doubt, in_transaction};

/// Writes what the table's lineage does not hold yet; returns how many snapshots that were.
pub(super) async fn insert_lineage(
    conn: &mut SqliteConnection,
    swap: &Swap,
    uuid: Uuid,
    news: &News,
) -> Result<u64, StoreError> {
    if news.lineage.is_empty() {
        return Ok(0);
    }
    let rows = kept::array::<_, kept::Snapshot>(&news.lineage);
    let inserted = sqlx::query!(
        "INSERT INTO lineage (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, class,
                              writer_kind, writer_id, writer_part, position, counts, epoch, is_first, rebased,
                              position_hash, at_ms)
         SELECT $1, $2, value ->> 'snapshot_id', value ->> 'parent_id', value ->> 'sequence_number',
                value ->> 'ref_name', value ->> 'class', value ->> 'writer_kind', value ->> 'writer_id',
                value ->> 'writer_part', value ->> 'position', value ->> 'counts', value ->> 'epoch',
                value ->> 'is_first', value ->> 'rebased', value ->> 'position_hash', value ->> 'at_ms'
           FROM json_each($3)
          WHERE true
         ON CONFLICT (warehouse_id, table_uuid, snapshot_id) DO NOTHING",
        swap.warehouse.0,
        uuid,
        rows
    )
    .execute(sent("insert-lineage", conn))
    .await
    .map_err(in_transaction)?;
    Ok(inserted.rows_affected())
}

/// Remembers that the snapshots are on these refs too.
pub(super) async fn insert_carried(
    conn: &mut SqliteConnection,
    swap: &Swap,
    uuid: Uuid,
    news: &News,
) -> Result<(), StoreError> {
    if news.carried.is_empty() {
        return Ok(());
    }
    let rows = kept::array::<_, kept::Carried>(&news.carried);
    sqlx::query!(
        "INSERT INTO carried (warehouse_id, table_uuid, snapshot_id, ref_key)
         SELECT $1, $2, value ->> 'snapshot_id', value ->> 'ref_key'
           FROM json_each($3)
          WHERE true
         ON CONFLICT DO NOTHING",
        swap.warehouse.0,
        uuid,
        rows
    )
    .execute(sent("insert-carried", conn))
    .await
    .map_err(in_transaction)?;
    Ok(())
}

/// Brings the ledger up to date; of a UUID that `comes`, what is known already stays.
pub(super) async fn write_ledger(
    conn: &mut SqliteConnection,
    swap: &Swap,
    uuid: Uuid,
    news: &News,
    comes: bool,
) -> Result<(), StoreError> {
    if news.writers.is_empty() {
        return Ok(());
    }
    let rows = kept::ledger(&news.writers);
    sqlx::query!(
        "INSERT INTO writer (warehouse_id, table_uuid, place, ref_name, writer_kind, writer_id, writer_part, position,
                             snapshot_id, sequence_number, first_snapshot_id, since_sequence_number, epoch, retired,
                             at_ms)
         SELECT $1, $2, value ->> 'place', value ->> 'ref_name', value ->> 'writer_kind', value ->> 'writer_id',
                value ->> 'writer_part', value ->> 'position', value ->> 'snapshot_id', value ->> 'sequence_number',
                value ->> 'first_snapshot_id', value ->> 'since_sequence_number', value ->> 'epoch',
                value ->> 'retired', value ->> 'at_ms'
           FROM json_each($3)
          WHERE true
         ON CONFLICT (warehouse_id, table_uuid, place) DO UPDATE
            SET position = excluded.position, snapshot_id = excluded.snapshot_id,
                sequence_number = excluded.sequence_number,
                first_snapshot_id = coalesce(first_snapshot_id, excluded.first_snapshot_id),
                since_sequence_number = coalesce(max(since_sequence_number, excluded.since_sequence_number),
                                                 since_sequence_number, excluded.since_sequence_number),
                epoch = coalesce(max(epoch, excluded.epoch), epoch, excluded.epoch), retired = excluded.retired,
                at_ms = excluded.at_ms
          WHERE NOT $4",
        swap.warehouse.0,
        uuid,
        rows,
        comes
    )
    .execute(sent("write-ledger", conn))
    .await
    .map_err(in_transaction)?;
    Ok(())
}

/// Says that the swap is committed, should its transaction be. Where a resolver came first, its word holds.
pub(super) async fn insert_attempt(conn: &mut SqliteConnection, swap: &Swap) -> Result<(), StoreError> {
    let inserted = sqlx::query!(
        "INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'committed', $2)
         ON CONFLICT (attempt_id) DO NOTHING",
        swap.attempt.0,
        swap.at_ms
    )
    .execute(sent("insert-attempt", conn))
    .await
    .map_err(in_transaction)?;
    match inserted.rows_affected() {
        1 => Ok(()),
        _ => Err(in_doubt(format!("attempt {} is settled already", swap.attempt))),
    }
}
