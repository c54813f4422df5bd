//! The swap of nearly every commit: one pointer moves and nothing else changes hands.

use catalog::commits::store::{Landed, PointerChange, Swap, SwapOutcome, Target};
use catalog::store::StoreError;
use catalog::tabulars::Pointer;
use sqlx::PgConnection;
use uuid::Uuid;

use super::rows::{LINEAGE_SNAPSHOT, LineageColumns};
use crate::columns::json;
use crate::error::{committing, violated};
use crate::idempotency;

/// A move to a newer document of the same UUID at the same location.
pub(super) struct Move<'a> {
    from: &'a Pointer,
    target: &'a Target,
    lineage: &'a [Landed],
}

impl<'a> Move<'a> {
    /// The swap's only change, if it is such a move.
    pub(super) fn alone_in(swap: &'a Swap) -> Option<Self> {
        match swap.changes.as_slice() {
            [PointerChange::Move { from, target, lineage }] if target.stays_at(from) => {
                Some(Self { from, target, lineage })
            }
            _ => None,
        }
    }

    /// One statement in autocommit: an answer to it is an answer to its commit.
    pub(super) async fn run(&self, conn: &mut PgConnection, swap: &Swap) -> Result<SwapOutcome, StoreError> {
        match self.execute(conn, swap).await {
            Ok(Some(_version)) => Ok(SwapOutcome::Applied),
            Ok(None) => Ok(SwapOutcome::Lost),
            Err(error) => match violated(&error) {
                Some(LINEAGE_SNAPSHOT) => Ok(SwapOutcome::SnapshotKnown),
                Some(idempotency::KEY_ONCE) => Ok(SwapOutcome::KeyTaken),
                _ => Err(committing(error)),
            },
        }
    }

    /// Every other row is inserted from what the update returns, so that a swap that matched nothing writes nothing.
    /// The row lock of the update puts racing swaps in line; the loser sees another version, and matches nothing.
    async fn execute(&self, conn: &mut PgConnection, swap: &Swap) -> Result<Option<i64>, sqlx::Error> {
        let landed = LineageColumns::of(self.lineage);
        let receipt = swap.receipt.as_ref();
        let purge_ids: Vec<Uuid> = swap.purges.iter().map(|task| task.id.0).collect();
        let purge_targets: Vec<String> = swap.purges.iter().map(|task| json(&task.target)).collect();
        let purge_places: Vec<Option<String>> = swap.purges.iter().map(|task| task.target.table_place()).collect();
        let purge_times: Vec<i64> = swap.purges.iter().map(|task| task.not_before_ms).collect();
        let moved = sqlx::query!(
            r#"WITH moved AS (
                   UPDATE tabular SET version = version + 1, metadata_location = $4
                    WHERE id = $1 AND version = $2 AND metadata_location = $3
                   RETURNING id, warehouse_id, uuid, version
               ), attempted AS (
                   INSERT INTO attempt (attempt_id, outcome, tabular_id, version, at_ms)
                   SELECT $5, 'committed', id, version, $6 FROM moved
               ), landed AS (
                   INSERT INTO lineage
                       (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, at_ms)
                   SELECT moved.warehouse_id, moved.uuid, new.snapshot_id, new.parent_id, new.sequence_number,
                          new.ref_name, $6
                     FROM moved, unnest($7::bigint[], $8::bigint[], $9::bigint[], $10::text[])
                          AS new (snapshot_id, parent_id, sequence_number, ref_name)
               ), kept AS (
                   INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
                   SELECT warehouse_id, $11, $12, $13, $6 FROM moved WHERE $11::uuid IS NOT NULL
               ), purged AS (
                   INSERT INTO purge (id, warehouse_id, target, canonical_location, not_before_ms)
                   SELECT task.id, moved.warehouse_id, task.target, task.place, task.not_before_ms
                     FROM moved, unnest($14::uuid[], $15::text[], $16::text[], $17::bigint[])
                          AS task (id, target, place, not_before_ms)
               )
               SELECT version, set_config('synchronous_commit', 'on', true) FROM moved"#,
            self.from.id.0,
            self.from.version,
            self.from.metadata_location,
            self.target.metadata_location,
            swap.attempt.0,
            swap.at_ms,
            &landed.snapshot_ids,
            &landed.parent_ids as &[Option<i64>],
            &landed.sequence_numbers,
            &landed.ref_names as &[Option<String>],
            receipt.map(|receipt| receipt.key),
            receipt.map(|receipt| receipt.binding.as_slice()),
            receipt.map(|receipt| json(&receipt.answer)),
            &purge_ids,
            &purge_targets,
            &purge_places as &[Option<String>],
            &purge_times
        )
        .fetch_optional(conn)
        .await?;
        Ok(moved.map(|row| row.version))
    }
}
