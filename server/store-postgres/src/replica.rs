//! A standby that listings are read from, as long as it answers and is not far behind.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use catalog::store::{StoreError, counted_listing, sent};
use sqlx::PgPool;
use tokio::time::timeout;

use crate::PostgresStore;
use crate::error::aborted;
use crate::pool::in_time;

/// How long what was found out of the standby holds.
const HOLDS: Duration = Duration::from_secs(1);
/// For how long one that failed is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(10);
/// One that has not answered by then is not waited for.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) pool: PgPool,
    lag_max: Duration,
    judged: Mutex<Judged>,
    /// Held by the one who asks how far behind it is; the others go on with what is known.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Judged {
    /// Not known before it was first looked at.
    fit: Option<bool>,
    until: Instant,
}

impl Replica {
    /// Not asked for anything yet.
    pub(crate) fn new(pool: PgPool, lag_max: Duration) -> Self {
        let judged = Mutex::new(Judged { fit: None, until: Instant::now() });
        Self { pool, lag_max, judged, looking: tokio::sync::Mutex::new(()) }
    }

    /// May it answer now?
    async fn is_fit(&self, primary: &PgPool) -> bool {
        if let Some(fit) = self.known() {
            return fit;
        }
        let Ok(_looking) = self.looking.try_lock() else {
            return false;
        };
        match timeout(ANSWERS_WITHIN, self.look(primary)).await {
            Ok(Ok(None)) => self.judge(true, HOLDS, "is there and up to date"),
            Ok(Ok(Some(why))) => self.judge(false, HOLDS, &why),
            Ok(Err(error)) => self.judge(false, LEFT_ALONE, &format!("does not answer: {error}")),
            Err(_) => self.judge(false, LEFT_ALONE, "does not answer"),
        }
    }

    fn known(&self) -> Option<bool> {
        let judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        judged.fit.filter(|_| Instant::now() < judged.until)
    }

    /// Tells of a change alone.
    fn judge(&self, fit: bool, holds: Duration, why: &str) -> bool {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        match (judged.fit, fit) {
            (None | Some(false), true) => tracing::info!("the database replica {why}: listings are read from it"),
            (None | Some(true), false) => {
                tracing::warn!("the database replica {why}: listings are read from the primary")
            }
            _ => {}
        }
        *judged = Judged { fit: Some(fit), until: Instant::now() + holds };
        fit
    }

    /// Why it may not answer; nothing where it may.
    pub(crate) async fn look(&self, primary: &PgPool) -> Result<Option<String>, sqlx::Error> {
        let now = sqlx::query!(
            r#"SELECT pg_current_wal_lsn()::text AS "lsn!",
                      (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "at_ms!""#
        )
        .fetch_one(sent("primary-position", primary))
        .await?;
        let then = sqlx::query!(
            r#"SELECT pg_is_in_recovery() AS "follows!", pg_last_wal_replay_lsn() >= $1::text::pg_lsn AS has_all,
                      (extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000)::bigint AS last_ms"#,
            now.lsn
        )
        .fetch_one(sent("replica-position", &self.pool))
        .await?;
        Ok(match (then.follows, then.has_all, then.last_ms) {
            (false, ..) => Some("follows no primary".to_owned()),
            (true, Some(true), _) => None,
            // On the primary's clock: when it committed what the replica has last.
            (true, _, Some(last_ms)) => too_late(now.at_ms - last_ms, self.lag_max),
            (true, _, None) => Some("has nothing of the primary yet".to_owned()),
        })
    }
}

fn too_late(behind_ms: i64, lag_max: Duration) -> Option<String> {
    let behind = Duration::from_millis(u64::try_from(behind_ms).unwrap_or(0));
    (behind > lag_max).then(|| format!("is {} ms behind", behind.as_millis()))
}

impl PostgresStore {
    /// Asks the replica, where there is one that is fit for it, else the primary. What the replica does not find is asked
    /// of the primary: it may be new.
    pub(crate) async fn listed<T, F>(&self, ask: impl Fn(PgPool) -> F) -> Result<Option<T>, StoreError>
    where
        F: Future<Output = Result<Option<T>, sqlx::Error>>,
    {
        let Some(replica) = self.replica.as_deref() else {
            return in_time(ask(self.pool.now())).await.map_err(aborted);
        };
        if replica.is_fit(&self.pool.now()).await {
            match timeout(ANSWERS_WITHIN, ask(replica.pool.clone())).await {
                Ok(Ok(Some(found))) => return Ok(Some(counted_listing("replica", found))),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    replica.judge(false, LEFT_ALONE, &format!("failed: {error}"));
                }
                Err(_) => {
                    replica.judge(false, LEFT_ALONE, "did not answer in time");
                }
            }
        }
        let found = in_time(ask(self.pool.now())).await.map_err(aborted)?;
        Ok(counted_listing("primary", found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_too_late_beyond_the_bound_alone() {
        let bound = Duration::from_secs(10);
        assert_eq!(too_late(-5, bound), None);
        assert_eq!(too_late(10_000, bound), None);
        assert_eq!(too_late(10_001, bound).as_deref(), Some("is 10001 ms behind"));
    }
}
