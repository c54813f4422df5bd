//! The swap of nearly every commit: one pointer moves and nothing else changes hands.

use catalog::commits::store::{OneMove, Swap, SwapOutcome};
use catalog::store::{StoreError, kept, sent};
use sqlx::PgConnection;

use super::rows::LINEAGE_SNAPSHOT;
use crate::error::{collided, committing, violated};
use crate::idempotency;

/// One statement in autocommit: an answer to it is an answer to its commit.
pub(super) async fn run(conn: &mut PgConnection, swap: &Swap, only: OneMove<'_>) -> Result<SwapOutcome, StoreError> {
    match execute(conn, swap, only).await {
        Ok(Some(_version)) => Ok(SwapOutcome::Applied),
        Ok(None) => Ok(SwapOutcome::Lost),
        Err(error) => match violated(&error) {
            Some(LINEAGE_SNAPSHOT) => Ok(SwapOutcome::SnapshotKnown),
            Some(idempotency::KEY_ONCE) => Ok(SwapOutcome::KeyTaken),
            _ if collided(&error) => Ok(SwapOutcome::Lost),
            _ => Err(committing(error)),
        },
    }
}

/// Every other row is inserted from what the update returns, so that a swap that matched nothing writes nothing.
/// The row lock of the update puts racing swaps in line; the loser sees another version, and matches nothing.
async fn execute(conn: &mut PgConnection, swap: &Swap, only: OneMove<'_>) -> Result<Option<i64>, sqlx::Error> {
    let moved = sqlx::query_file!(
        "src/commits/one_move.sql",
        only.from.id.0,
        only.from.version,
        only.from.metadata_location,
        only.target.metadata_location,
        swap.attempt.0,
        swap.at_ms,
        kept::array::<_, kept::Snapshot>(&only.news.lineage),
        kept::array::<_, kept::Carried>(&only.news.carried),
        kept::ledger(&only.news.writers),
        kept::receipts(&swap.receipts),
        kept::array::<_, kept::Entry>(&swap.log),
        kept::array::<_, kept::Event>(&swap.events),
        kept::array::<_, kept::Purge>(&swap.purges)
    )
    .fetch_optional(sent("swap", conn))
    .await?;
    Ok(moved.map(|row| row.version))
}
