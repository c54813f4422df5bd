//! The commit log: one entry for each request that wanted to change a table, whatever became of it.

use async_trait::async_trait;
use uuid::Uuid;

use crate::commits::identity::{Position, Writer};
use crate::ident::{AttemptId, TableIdent, WarehouseId};
use crate::store::StoreError;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Applied as it came.
    Committed,
    /// Applied to another head than it was built on.
    Rebased,
    /// It was there before: nothing was added.
    Duplicate,
    /// It asked for what was there already.
    Unchanged,
    /// Refused for good (4xx but 409).
    Refused,
    /// Certainly not applied, because others were quicker (409).
    Conflicted,
    /// Not applied for a fault that is not the request's (429, 503).
    Failed,
    /// Applied or not: the attempt tells it.
    InDoubt,
}

impl Outcome {
    /// Each at the place of its number.
    pub const ALL: [Self; 8] = [
        Outcome::Committed,
        Outcome::Rebased,
        Outcome::Duplicate,
        Outcome::Unchanged,
        Outcome::Refused,
        Outcome::Conflicted,
        Outcome::Failed,
        Outcome::InDoubt,
    ];

    /// As the stores and the API have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Committed => "committed",
            Outcome::Rebased => "rebased",
            Outcome::Duplicate => "duplicate",
            Outcome::Unchanged => "unchanged",
            Outcome::Refused => "refused",
            Outcome::Conflicted => "conflicted",
            Outcome::Failed => "failed",
            Outcome::InDoubt => "in-doubt",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// One request for one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Ordered by time.
    pub id: Uuid,
    pub warehouse: WarehouseId,
    pub table_uuid: Uuid,
    /// The table's name when it was asked for.
    pub ident: TableIdent,
    pub at_ms: i64,
    pub request_id: String,
    pub principal: String,
    pub idempotency_key: Option<Uuid>,
    /// The last snapshot that the request adds.
    pub snapshot_id: Option<i64>,
    pub ref_name: Option<String>,
    pub writer: Option<Writer>,
    pub position: Option<Position>,
    pub outcome: Outcome,
    /// The swap that it was part of, if there was one.
    pub attempt: Option<AttemptId>,
    /// What a duplicate is a duplicate of.
    pub duplicate_of: Option<i64>,
    /// Why it was refused, or what else there is to tell.
    pub detail: Option<String>,
    /// From its arrival to the begin of the group that it went with.
    pub waited_ms: i64,
    /// Requests that went with it, itself included.
    pub group_size: u32,
    /// How many times it was judged.
    pub attempts: u32,
}

/// A request, by what its client knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Key(Uuid),
    Snapshot(i64),
}

#[async_trait]
pub trait LogStore: Send + Sync + 'static {
    /// Writes down what came of requests that changed nothing. The entries of a swap are written with it.
    async fn write_log(&self, entries: &[LogEntry]) -> Result<(), StoreError>;

    /// The log of a table, newest first, up to `limit` entries before the one with id `before`.
    async fn read_log(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        before: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError>;

    /// The entries of one request, newest first: one that was sent again has several.
    async fn find_log(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        wanted: Wanted,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError>;

    /// Forgets up to `limit` entries from before `before_ms`, the oldest first; returns how many.
    async fn forget_log(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
