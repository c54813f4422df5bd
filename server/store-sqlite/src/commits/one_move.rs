//! The swap of nearly every commit: one pointer moves and nothing else changes hands.

use catalog::commits::store::{OneMove, Swap, SwapOutcome};
use catalog::store::{StoreError, kept, sent};
use sqlx::SqliteConnection;
use sqlx::error::ErrorKind;

use crate::error::{beginning, in_doubt, in_transaction, is_busy};

/// Several statements that go to the database's thread at once. The macros check no more than one at a time.
const ONE_MOVE: &str = include_str!("one_move.sql");

/// A whole transaction in one trip. What it meets on its way may leave it open.
pub(super) async fn run(
    conn: &mut SqliteConnection,
    swap: &Swap,
    only: OneMove<'_>,
) -> Result<SwapOutcome, StoreError> {
    let Err(error) = execute(conn, swap, only).await else { return Ok(SwapOutcome::Applied) };
    // Nothing else in it waits for a lock.
    if is_busy(&error) {
        return Err(beginning(error));
    }
    let Some(met) = known_before(&error) else { return Err(in_doubt(error)) };
    match sqlx::query("ROLLBACK").execute(sent("rollback", conn)).await {
        Ok(_) => met.map_or_else(|| Err(in_transaction(error)), Ok),
        Err(error) => Err(in_doubt(error)),
    }
}

async fn execute(conn: &mut SqliteConnection, swap: &Swap, only: OneMove<'_>) -> Result<(), sqlx::Error> {
    sqlx::query(ONE_MOVE)
        .bind(only.from.id.0)
        .bind(only.from.version)
        .bind(&only.from.metadata_location)
        .bind(&only.target.metadata_location)
        .bind(swap.attempt.0)
        .bind(swap.at_ms)
        .bind(kept::array::<_, kept::Snapshot>(&only.news.lineage))
        .bind(kept::array::<_, kept::Carried>(&only.news.carried))
        .bind(kept::ledger(&only.news.writers))
        .bind(kept::receipts(&swap.receipts))
        .bind(kept::array::<_, kept::Entry>(&swap.log))
        .bind(kept::array::<_, kept::Event>(&swap.events))
        .bind(kept::array::<_, kept::Purge>(&swap.purges))
        .execute(sent("swap", conn))
        .await
        .map(drop)
}

/// What a broken constraint says: the transaction is still open, and stands for nothing but a refusal, if any.
fn known_before(error: &sqlx::Error) -> Option<Option<SwapOutcome>> {
    let answer = error.as_database_error()?;
    let unique = answer.kind() == ErrorKind::UniqueViolation;
    match answer.message() {
        told if told.contains("attempt.outcome") => Some(Some(SwapOutcome::Lost)),
        told if unique && told.contains("lineage.snapshot_id") => Some(Some(SwapOutcome::SnapshotKnown)),
        told if unique && told.contains("idempotency_key.key") => Some(Some(SwapOutcome::KeyTaken)),
        // The attempt is settled already.
        told if unique && told.contains("attempt.attempt_id") => None,
        _ => matches!(
            answer.kind(),
            ErrorKind::UniqueViolation
                | ErrorKind::ForeignKeyViolation
                | ErrorKind::NotNullViolation
                | ErrorKind::CheckViolation
        )
        .then_some(None),
    }
}
