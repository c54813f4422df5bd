//! Writes the commit log. What a swap is for goes with the swap; what changed nothing follows by itself.

use std::sync::{Arc, Mutex, PoisonError};

use metrics::counter;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::commits::intent::Intent;
use crate::commits::log::{LogEntry, LogStore, Outcome};
use crate::context::{Clock, RequestContext};
use crate::error::{Error, Kind, Result};
use crate::ident::{AttemptId, TableIdent, WarehouseId};

/// Refusals, by their reason.
pub const REFUSALS_TOTAL: &str = "frazil_commit_refusals_total";

/// Log entries that were not written, because the database did not take them in time.
pub const LOG_DROPPED_TOTAL: &str = "frazil_commit_log_dropped_total";

/// Entries that wait to be written, at most.
const WAITING_MAX: usize = 10_000;

/// Entries that are written at once.
const BATCH: usize = 500;

/// How a request came through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passage {
    pub waited_ms: i64,
    pub group_size: u32,
    pub attempts: u32,
}

/// What became of a request, in the words of the log.
#[derive(Debug, Clone)]
pub struct Ending {
    pub outcome: Outcome,
    pub duplicate_of: Option<i64>,
    pub attempt: Option<AttemptId>,
    pub detail: Option<String>,
}

impl Ending {
    pub fn of(outcome: Outcome) -> Self {
        Self { outcome, duplicate_of: None, attempt: None, detail: None }
    }
}

/// The table that a request was for.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub warehouse: WarehouseId,
    pub table_uuid: Uuid,
    pub ident: &'a TableIdent,
}

/// Takes entries and writes them as the database takes them.
#[derive(Clone)]
pub struct Journal {
    store: Arc<dyn LogStore>,
    running: TaskTracker,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    entries: Vec<LogEntry>,
    is_writing: bool,
}

impl Journal {
    pub fn new(store: Arc<dyn LogStore>, running: TaskTracker) -> Self {
        Self { store, running, waiting: Arc::default() }
    }

    /// Writes entries down soon. They are dropped, and counted, where too many wait.
    pub fn write(&self, entries: impl IntoIterator<Item = LogEntry>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entries.extend(entries);
        let surplus = waiting.entries.len().saturating_sub(WAITING_MAX);
        if surplus > 0 {
            waiting.entries.truncate(WAITING_MAX);
            counter!(LOG_DROPPED_TOTAL).increment(surplus as u64);
        }
        if !waiting.is_writing && !waiting.entries.is_empty() {
            waiting.is_writing = true;
            self.running.spawn(self.clone().write_all());
        }
    }

    /// Says of requests whose swap was in doubt that nothing came of them.
    pub fn correct(&self, entries: Vec<LogEntry>, clock: &dyn Clock) {
        let detail = Some("the database lost the swap before it was applied; nothing was changed".to_owned());
        self.write(entries.into_iter().map(|entry| LogEntry {
            id: clock.new_id(),
            at_ms: clock.now_ms(),
            outcome: Outcome::Failed,
            detail: detail.clone(),
            ..entry
        }));
    }

    pub async fn forget(&self, before_ms: i64, limit: u32) -> Result<u64> {
        Ok(self.store.forget_log(before_ms, limit).await?)
    }

    async fn write_all(self) {
        while let Some(batch) = self.next_batch() {
            if let Err(error) = self.store.write_log(&batch).await {
                counter!(LOG_DROPPED_TOTAL).increment(batch.len() as u64);
                tracing::warn!(error = &error as &dyn std::error::Error, "the commit log could not be written");
            }
        }
    }

    fn next_batch(&self) -> Option<Vec<LogEntry>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.entries.len().min(BATCH);
        waiting.is_writing = count > 0;
        (count > 0).then(|| waiting.entries.drain(..count).collect())
    }
}

/// The entry of a request.
pub fn entry(
    ctx: &RequestContext,
    subject: Subject<'_>,
    intent: &Intent,
    passage: Passage,
    ending: Ending,
) -> LogEntry {
    let identity = intent.identity();
    LogEntry {
        id: ctx.new_id(),
        warehouse: subject.warehouse,
        table_uuid: subject.table_uuid,
        ident: subject.ident.clone(),
        at_ms: ctx.now_ms(),
        request_id: ctx.request_id.clone(),
        principal: ctx.principal.name().to_owned(),
        idempotency_key: ctx.idempotency.as_ref().map(|bound| bound.key),
        snapshot_id: intent.snapshot.as_ref().map(|snapshot| snapshot.id()),
        ref_name: intent.ref_name.clone(),
        writer: identity.map(|identity| identity.writer.clone()),
        position: identity.and_then(|identity| identity.position.clone()),
        outcome: ending.outcome,
        attempt: ending.attempt,
        duplicate_of: ending.duplicate_of,
        detail: ending.detail,
        waited_ms: passage.waited_ms,
        group_size: passage.group_size,
        attempts: passage.attempts,
    }
}

/// What an error says became of the request.
pub fn failed(error: &Error, attempt: Option<AttemptId>) -> Ending {
    let outcome = match error.kind() {
        Kind::CommitFailed => Outcome::Conflicted,
        Kind::StateUnknown => Outcome::InDoubt,
        Kind::Overloaded | Kind::Unavailable | Kind::Internal => Outcome::Failed,
        _ => Outcome::Refused,
    };
    if matches!(outcome, Outcome::Refused) {
        counter!(REFUSALS_TOTAL, "reason" => reason(error.kind())).increment(1);
    }
    Ending { attempt, detail: Some(error.message().to_owned()), ..Ending::of(outcome) }
}

/// What a refusal of this kind is counted under.
pub fn reason(kind: Kind) -> &'static str {
    match kind {
        Kind::Unprocessable => "unprocessable",
        Kind::NoSuchTable | Kind::NoSuchNamespace | Kind::NoSuchWarehouse | Kind::NotFound => "missing",
        Kind::AlreadyExists => "exists",
        Kind::Forbidden => "forbidden",
        _ => "invalid",
    }
}
