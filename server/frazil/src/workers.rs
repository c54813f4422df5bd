//! Background duties. Each takes no input, reads what there is to do, and may run in any number of processes at once.

use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use catalog::context::Clock;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often there is a look for files to delete.
const PURGE_EVERY: Duration = Duration::from_secs(2);

/// One large table does not hold up the others.
const PURGES_AT_ONCE: usize = 4;

/// How often receipts and outcomes that nobody may ask for any more are forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// How often measured durations are put into their buckets, which bounds what is held until then.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// What the duties work with.
#[derive(Clone)]
pub struct Workers {
    pub catalog: Catalog,
    pub clock: Arc<dyn Clock>,
    pub metrics: PrometheusHandle,
    /// When it is cancelled, every duty ends after the piece of work that it is at.
    pub end: CancellationToken,
}

impl Workers {
    /// Begins all duties.
    pub fn begin(self) -> TaskTracker {
        let running = TaskTracker::new();
        for _ in 0..PURGES_AT_ONCE {
            running.spawn(self.clone().purge());
        }
        running.spawn(self.clone().forget());
        running.spawn(self.keep_up());
        running
    }

    /// Deletes what drops and commits left to be deleted.
    async fn purge(self) {
        while self.pause(PURGE_EVERY).await {
            while !self.end.is_cancelled() && self.purge_once().await {}
        }
    }

    /// False where nothing is due, or the store does not answer.
    async fn purge_once(&self) -> bool {
        let purged = self.catalog.purges.run_once(self.clock.as_ref()).await;
        purged.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "purges could not be looked for");
            false
        })
    }

    async fn forget(self) {
        while self.pause(FORGET_EVERY).await {
            let now_ms = self.clock.now_ms();
            let receipts = self.catalog.mutations.forget_expired(now_ms).await;
            let commits = self.catalog.commits.forget(now_ms, &self.end).await;
            for error in [receipts, commits].into_iter().filter_map(Result::err) {
                tracing::warn!(error = &error as &dyn std::error::Error, "what is old could not be forgotten");
            }
        }
    }

    async fn keep_up(self) {
        while self.pause(UPKEEP_EVERY).await {
            self.metrics.run_upkeep();
        }
    }

    /// False where the end has come.
    async fn pause(&self, pause: Duration) -> bool {
        self.end.run_until_cancelled(sleep(pause)).await.is_some()
    }
}
