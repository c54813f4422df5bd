//! What a swap of several statements writes beside its pointers. [`super::one_move`] writes the same in one.

use catalog::commits::store::{News, Swap};
use catalog::store::{kept, sent};
use sqlx::PgConnection;
use uuid::Uuid;

/// The constraint that lets a snapshot land once.
pub(super) const LINEAGE_SNAPSHOT: &str = "lineage_snapshot";

/// Writes what the table's lineage does not hold yet; returns how many snapshots that were.
///
/// It waits for another transaction that is about to write one of them.
pub(super) async fn insert_lineage(
    conn: &mut PgConnection,
    swap: &Swap,
    uuid: Uuid,
    news: &News,
) -> Result<u64, sqlx::Error> {
    if news.lineage.is_empty() {
        return Ok(0);
    }
    let inserted = sqlx::query!(
        "INSERT INTO lineage (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, class,
                              writer_kind, writer_id, writer_part, position, counts, epoch, is_first, rebased,
                              position_hash, at_ms)
         SELECT $1, $2, new.*
           FROM json_to_recordset($3::text::json)
                AS new (snapshot_id bigint, parent_id bigint, sequence_number bigint, ref_name text, class text,
                        writer_kind text, writer_id text, writer_part text, position text, counts text, epoch bigint,
                        is_first boolean, rebased boolean, position_hash bigint, at_ms bigint)
          ORDER BY new.snapshot_id
         ON CONFLICT (warehouse_id, table_uuid, snapshot_id) DO NOTHING",
        swap.warehouse.0,
        uuid,
        kept::array::<_, kept::Snapshot>(&news.lineage)
    )
    .execute(sent("insert-lineage", conn))
    .await?;
    Ok(inserted.rows_affected())
}

/// Remembers that the snapshots are on these refs too.
pub(super) async fn insert_carried(
    conn: &mut PgConnection,
    swap: &Swap,
    uuid: Uuid,
    news: &News,
) -> Result<(), sqlx::Error> {
    if news.carried.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO carried (warehouse_id, table_uuid, snapshot_id, ref_key)
         SELECT $1, $2, new.*
           FROM json_to_recordset($3::text::json) AS new (snapshot_id bigint, ref_key text)
          ORDER BY new.snapshot_id, new.ref_key
         ON CONFLICT DO NOTHING",
        swap.warehouse.0,
        uuid,
        kept::array::<_, kept::Carried>(&news.carried)
    )
    .execute(sent("insert-carried", conn))
    .await
    .map(|_| ())
}

/// Brings the ledger up to date; of a UUID that `comes`, what is known already stays.
pub(super) async fn write_ledger(
    conn: &mut PgConnection,
    swap: &Swap,
    uuid: Uuid,
    news: &News,
    comes: bool,
) -> Result<(), sqlx::Error> {
    if news.writers.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "INSERT INTO writer (warehouse_id, table_uuid, place, ref_name, writer_kind, writer_id, writer_part, position,
                             snapshot_id, sequence_number, first_snapshot_id, since_sequence_number, epoch, retired,
                             at_ms)
         SELECT $1, $2, new.*
           FROM json_to_recordset($3::text::json)
                AS new (place text, ref_name text, writer_kind text, writer_id text, writer_part text, position text,
                        snapshot_id bigint, sequence_number bigint, first_snapshot_id bigint,
                        since_sequence_number bigint, epoch bigint, retired boolean, at_ms bigint)
         ON CONFLICT ON CONSTRAINT writer_once DO UPDATE
            SET position = excluded.position, snapshot_id = excluded.snapshot_id,
                sequence_number = excluded.sequence_number,
                first_snapshot_id = coalesce(writer.first_snapshot_id, excluded.first_snapshot_id),
                since_sequence_number = greatest(writer.since_sequence_number, excluded.since_sequence_number),
                epoch = greatest(writer.epoch, excluded.epoch), retired = excluded.retired, at_ms = excluded.at_ms
          WHERE NOT $4",
        swap.warehouse.0,
        uuid,
        kept::ledger(&news.writers),
        comes
    )
    .execute(sent("write-ledger", conn))
    .await
    .map(|_| ())
}

/// Says that the swap is committed, should its transaction be. A resolver that came first is met here.
pub(super) async fn insert_attempt(conn: &mut PgConnection, swap: &Swap) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'committed', $2)",
        swap.attempt.0,
        swap.at_ms
    )
    .execute(sent("insert-attempt", conn))
    .await
    .map(|_| ())
}
