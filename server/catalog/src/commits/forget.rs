//! Forgets what nobody may ask for any more: outcomes of attempts, and what is older than its retention.

use tokio_util::sync::CancellationToken;

use crate::commits::Commits;
use crate::commits::options::Retention;
use crate::error::{Error, Result};

/// For how long the outcome of an attempt is kept: far longer than a statement can be on its way to a database that
/// may still run it, for connections and servers give up within minutes.
const ATTEMPTS_KEPT_DAYS: u32 = 7;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// How much is forgotten in one transaction, in rows.
const FORGET_MAX: u32 = 10_000;

impl Commits {
    /// Forgets one kind after another until `end`. A kind that cannot be forgotten does not keep the others; the first
    /// error is told.
    pub async fn forget(&self, now_ms: i64, end: &CancellationToken) -> Result<()> {
        let before = |days: u32| now_ms - i64::from(days) * DAY_MS;
        let Retention { lineage_days, log_days, event_days } = self.options.retention;
        let attempts = all(end, || self.store.forget_attempts(before(ATTEMPTS_KEPT_DAYS), FORGET_MAX)).await;
        let lineage = match lineage_days {
            0 => Ok(()),
            days => all(end, || self.lineage.forget_lineage(before(days), FORGET_MAX)).await,
        };
        let log = all(end, || self.journal.forget(before(log_days), FORGET_MAX)).await;
        let events = all(end, || self.events.forget_events(before(event_days), FORGET_MAX)).await;
        attempts.and(lineage).and(log).and(events)
    }
}

/// Forgets batch after batch, until one is not full.
async fn all<F, E>(end: &CancellationToken, forget_batch: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<u64, E>>,
    E: Into<Error>,
{
    while !end.is_cancelled() && forget_batch().await.map_err(Into::into)? == u64::from(FORGET_MAX) {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn full_batches_are_followed_by_others_unless_the_end_has_come() {
        let (end, rows) = (CancellationToken::new(), Cell::new(u64::from(2 * FORGET_MAX) + 7));
        let forget_batch = || {
            let batch = rows.get().min(u64::from(FORGET_MAX));
            rows.set(rows.get() - batch);
            std::future::ready(Ok::<_, Error>(batch))
        };
        all(&end, forget_batch).await.unwrap();
        assert_eq!(rows.get(), 0);
        rows.set(7);
        end.cancel();
        all(&end, forget_batch).await.unwrap();
        assert_eq!(rows.get(), 7);
    }
}
