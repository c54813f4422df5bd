//! The only code that moves a pointer, and that finds out what became of a move whose answer was lost.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::Instrument;

use crate::audit;
use crate::commits::journal::Journal;
use crate::commits::store::{CommitStore, Resolution, Swap, SwapOutcome};
use crate::context::{Clock, RequestContext};
use crate::documents::Documents;
use crate::error::{Error, Kind, Result};
use crate::ident::{AttemptId, TableIdent};
use crate::store::StoreError;
use crate::warehouses::Warehouse;

/// Between two questions for the outcome of an attempt.
const ASK_AGAIN_MIN: Duration = Duration::from_millis(100);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(30);

/// For one question; the database's own lock time-out is shorter.
const ASK_MAX: Duration = Duration::from_secs(10);

/// How long after the deadline the answer to a swap is still waited for.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(5);

/// How long an answer waits for the deletion of what was written in vain.
const DISCARD_WAIT: Duration = Duration::from_secs(1);

/// What hangs on a swap besides its rows.
pub struct Written {
    pub documents: Documents,
    pub warehouse: Arc<Warehouse>,
    /// The files that were written for it alone.
    pub locations: Vec<String>,
    /// Hears of a swap that was in doubt and turns out to have been lost.
    pub journal: Option<Journal>,
    /// What it changes, for the audit log.
    pub changes: Vec<audit::Entry>,
}

impl Written {
    /// The swap has landed.
    fn tell(self) {
        self.changes.into_iter().for_each(audit::record);
    }

    /// No pointer refers to them, and none ever will. A store that hangs does not keep the answer: it is waited for no
    /// longer than a moment, and they are deleted when they can be.
    pub async fn discard(self) {
        let _ = timeout(DISCARD_WAIT, tokio::spawn(self.delete())).await;
    }

    async fn delete(self) {
        let mut discards = Vec::with_capacity(self.locations.len());
        for location in &self.locations {
            discards.push(self.documents.discard(&self.warehouse, location).boxed());
        }
        join_all(discards).await;
    }
}

/// Moves pointers.
#[derive(Clone)]
pub struct Swapper {
    store: Arc<dyn CommitStore>,
}

impl Swapper {
    pub fn new(store: Arc<dyn CommitStore>) -> Self {
        Self { store }
    }

    /// Moves the pointers, all or none. An error of kind `Unavailable` is certain to have changed nothing;
    /// `StateUnknown` is not. What was written for the swap is deleted once it has certainly lost, be it later.
    pub async fn swap(&self, ctx: &RequestContext, swap: &Swap, written: Written) -> Result<SwapOutcome> {
        let outcome = match self.send(ctx, swap.clone()).await {
            Ok(outcome) => Ok(outcome),
            Err(error @ StoreError::Aborted(_)) => Err(error.into()),
            Err(StoreError::OutcomeUnknown(source)) => {
                tracing::warn!(attempt = %swap.attempt, error = &*source as &dyn std::error::Error, "a swap is in doubt");
                self.settle(ctx, swap.attempt).await
            }
        };
        match &outcome {
            Ok(SwapOutcome::Applied) => written.tell(),
            Err(error) if error.kind() == Kind::StateUnknown => self.go_on_asking(ctx, swap, written),
            Ok(_) | Err(_) => written.discard().await,
        }
        outcome
    }

    /// Sends the swap once. It runs to its end even where the deadline comes first: what was sent cannot be taken back.
    async fn send(&self, ctx: &RequestContext, swap: Swap) -> Result<SwapOutcome, StoreError> {
        let store = self.store.clone();
        let sent = tokio::spawn(async move { store.swap(&swap).await }.in_current_span());
        crate::failpoint::reach("swap-sent").await;
        match timeout_at(ctx.deadline + SETTLE_TIME, sent).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(StoreError::OutcomeUnknown(panic.into())),
            Err(late) => Err(StoreError::OutcomeUnknown(late.into())),
        }
    }

    async fn settle(&self, ctx: &RequestContext, attempt: AttemptId) -> Result<SwapOutcome> {
        match self.ask(attempt, ctx.clock.as_ref(), Some(ctx.deadline)).await {
            Some(true) => Ok(SwapOutcome::Applied),
            Some(false) => Err(Error::new(
                Kind::Unavailable,
                "the catalog's database lost the request before it was applied; nothing was changed",
            )),
            None => Err(Error::new(
                Kind::StateUnknown,
                "the change may or may not have been applied, and the catalog's database does not say yet",
            )),
        }
    }

    /// Nobody waits any longer, but until the attempt is settled it could still land. The end of the process does not wait
    /// for that either: a database that is gone could keep it for ever, and the files stay.
    fn go_on_asking(&self, ctx: &RequestContext, swap: &Swap, written: Written) {
        let (this, clock) = (self.clone(), ctx.clock.clone());
        let (attempt, log) = (swap.attempt, swap.log.clone());
        tokio::spawn(async move {
            let committed = this.ask(attempt, clock.as_ref(), None).await;
            tracing::warn!(%attempt, committed, "an attempt in doubt is settled");
            match committed {
                Some(false) => {
                    if let Some(journal) = &written.journal {
                        journal.correct(log, clock.as_ref());
                    }
                    written.discard().await;
                }
                Some(true) => written.tell(),
                None => {}
            }
        });
    }

    /// Whether the attempt committed; `None` where that is not known by `until`.
    async fn ask(&self, attempt: AttemptId, clock: &dyn Clock, until: Option<Instant>) -> Option<bool> {
        let mut pause = ASK_AGAIN_MIN;
        loop {
            match timeout(ASK_MAX, self.store.resolve(attempt, clock.now_ms())).await {
                Ok(Ok(Resolution::Committed)) => return Some(true),
                Ok(Ok(Resolution::Aborted)) => return Some(false),
                Ok(Ok(Resolution::Pending)) | Err(_) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%attempt, error = &error as &dyn std::error::Error, "cannot ask for an attempt yet");
                }
            }
            if until.is_some_and(|until| Instant::now() + pause > until) {
                return None;
            }
            sleep(pause).await;
            pause = (pause * 2).min(ASK_AGAIN_MAX);
        }
    }
}

/// The refusal that an outcome stands for, where trying again would not mend it.
pub fn refusal(outcome: SwapOutcome) -> Error {
    match outcome {
        SwapOutcome::NameTaken { kind, ident } => {
            Error::new(Kind::AlreadyExists, format!("{kind} already exists: {ident}"))
        }
        SwapOutcome::NamespaceMissing { ident } => crate::namespaces::missing(&ident.namespace),
        SwapOutcome::LocationTaken { owner, location } => location_taken(&owner, &location),
        SwapOutcome::UuidTaken { owner } => Error::new(
            Kind::AlreadyExists,
            format!("the table UUID belongs to the live table {owner}: drop or unregister that one first"),
        ),
        SwapOutcome::Applied | SwapOutcome::Lost | SwapOutcome::SnapshotKnown | SwapOutcome::KeyTaken => {
            Error::new(Kind::Internal, "a swap that was no refusal was taken for one")
        }
    }
}

/// The refusal of a location that overlaps another table's.
pub fn location_taken(owner: &TableIdent, location: &str) -> Error {
    Error::invalid(format!("the location overlaps {location}, which belongs to the table {owner}: choose another"))
}
