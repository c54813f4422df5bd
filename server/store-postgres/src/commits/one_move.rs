//! The swap of nearly every commit: one pointer moves and nothing else changes hands.

use catalog::commits::store::{News, PointerChange, Swap, SwapOutcome, Target};
use catalog::store::{StoreError, kept, sent};
use catalog::tabulars::Pointer;
use sqlx::PgConnection;

use super::rows::LINEAGE_SNAPSHOT;
use crate::error::{collided, committing, violated};
use crate::idempotency;

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

    /// One statement in autocommit: an answer to it is an answer to its commit.
    pub(super) async fn run(&self, conn: &mut PgConnection, swap: &Swap) -> Result<SwapOutcome, StoreError> {
        match self.execute(conn, swap).await {
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
    async fn execute(&self, conn: &mut PgConnection, swap: &Swap) -> Result<Option<i64>, sqlx::Error> {
        let moved = sqlx::query_file!(
            "src/commits/one_move.sql",
            self.from.id.0,
            self.from.version,
            self.from.metadata_location,
            self.target.metadata_location,
            swap.attempt.0,
            swap.at_ms,
            kept::array::<_, kept::Snapshot>(&self.news.lineage),
            kept::array::<_, kept::Carried>(&self.news.carried),
            kept::ledger(&self.news.writers),
            kept::receipts(&swap.receipts),
            kept::array::<_, kept::Entry>(&swap.log),
            kept::array::<_, kept::Event>(&swap.events),
            kept::array::<_, kept::Purge>(&swap.purges)
        )
        .fetch_optional(sent("swap", conn))
        .await?;
        Ok(moved.map(|row| row.version))
    }
}
