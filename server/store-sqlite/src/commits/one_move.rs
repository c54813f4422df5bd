//! The swap of nearly every commit: one pointer moves and nothing else changes hands.

use catalog::commits::store::{News, PointerChange, Swap, SwapOutcome, Target};
use catalog::store::{StoreError, kept, sent};
use catalog::tabulars::Pointer;
use sqlx::SqliteConnection;
use sqlx::error::ErrorKind;

use crate::error::{beginning, in_doubt, in_transaction, is_busy};

/// Several statements that go to the database's thread at once. The macros check no more than one at a time.
const ONE_MOVE: &str = include_str!("one_move.sql");

/// A move to a newer document of the same UUID at the same location. What is adopted may bring what is known.
pub(super) struct Move<'a> {
    from: &'a Pointer,
    target: &'a Target,
    news: &'a News,
}

impl<'a> Move<'a> {
    /// The swap's only change, if it is such a move.
    pub(super) fn alone_in(swap: &'a Swap) -> Option<Self> {
        match swap.changes.as_slice() {
            [PointerChange::Move { from, target, news }] if target.stays_at(from) && !swap.adopts => {
                Some(Self { from, target, news })
            }
            _ => None,
        }
    }

    /// A whole transaction in one trip. What it meets on its way may leave it open.
    pub(super) async fn run(&self, conn: &mut SqliteConnection, swap: &Swap) -> Result<SwapOutcome, StoreError> {
        let error = match self.execute(conn, swap).await {
            Ok(0) => return Ok(SwapOutcome::Lost),
            Ok(_) => return Ok(SwapOutcome::Applied),
            Err(error) => error,
        };
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

    /// How many swaps went through: one or none.
    async fn execute(&self, conn: &mut SqliteConnection, swap: &Swap) -> Result<i64, sqlx::Error> {
        let moved: Vec<i64> = sqlx::query_scalar(ONE_MOVE)
            .bind(self.from.id.0)
            .bind(self.from.version)
            .bind(&self.from.metadata_location)
            .bind(&self.target.metadata_location)
            .bind(swap.attempt.0)
            .bind(swap.at_ms)
            .bind(kept::array::<_, kept::Snapshot>(&self.news.lineage))
            .bind(kept::array::<_, kept::Carried>(&self.news.carried))
            .bind(kept::ledger(&self.news.writers))
            .bind(kept::receipts(&swap.receipts))
            .bind(kept::array::<_, kept::Entry>(&swap.log))
            .bind(kept::array::<_, kept::Event>(&swap.events))
            .bind(kept::array::<_, kept::Purge>(&swap.purges))
            // To the end: the COMMIT comes after the only row.
            .fetch_all(sent("swap", conn))
            .await?;
        Ok(moved.into_iter().sum())
    }
}

/// What a broken constraint says: the transaction is still open, and stands for nothing but a refusal, if any.
fn known_before(error: &sqlx::Error) -> Option<Option<SwapOutcome>> {
    let answer = error.as_database_error()?;
    let unique = answer.kind() == ErrorKind::UniqueViolation;
    match answer.message() {
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
