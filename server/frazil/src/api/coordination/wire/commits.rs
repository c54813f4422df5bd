//! The commit log, and what became of a request.

use catalog::commits::identity::{Position, Writer, WriterKind};
use catalog::commits::log::LogEntry;
use catalog::coordination::Attempt;
use catalog::listing::Listing;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::coordination::wire::writers::{KindOfWriter, PositionOfWriter};
use crate::api::iceberg::wire::tables::TableIdentifier;

/// One request for one table.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CommitResponse {
    id: Uuid,
    at_ms: i64,
    #[schema(value_type = OutcomeOfCommit)]
    outcome: &'static str,
    /// The name of the table when it was asked for.
    table: TableIdentifier,
    request_id: String,
    principal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<Uuid>,
    /// The last snapshot that the request adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<i64>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    ref_name: Option<String>,
    /// Absent where the request did not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<NamedWriter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PositionOfWriter>)]
    position: Option<Position>,
    /// The snapshot that a duplicate is a duplicate of.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<i64>,
    /// Why it was refused, or what else there is to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The swap that it was part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<Uuid>,
    /// From its arrival to the begin of the group that it went with.
    waited_ms: i64,
    /// Requests that went with it, itself included.
    group_size: u32,
    /// How many times it was judged.
    attempts: u32,
}

/// A writer, without how far it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NamedWriter {
    #[schema(value_type = KindOfWriter)]
    kind: WriterKind,
    writer_id: String,
    part: String,
}

/// What became of one request: `committed`, applied as it came · `rebased`, applied to another head than it was built
/// on · `duplicate`, it was there before · `unchanged`, it asked for what was there · `refused`, for good · `conflicted`,
/// others were quicker · `failed`, for a fault that is not its own · `in-doubt`, applied or not.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum OutcomeOfCommit {
    Committed,
    Rebased,
    Duplicate,
    Unchanged,
    Refused,
    Conflicted,
    Failed,
    InDoubt,
}

/// What is known of a request now: an outcome of its last submission, `landed` where any of them was applied, or
/// `unknown` where there is no trace of it.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum StatusOfAttempt {
    Landed,
    Duplicate,
    Unchanged,
    Refused,
    Conflicted,
    Failed,
    InDoubt,
    Unknown,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListCommitsResponse {
    /// The newest first. A request that changed nothing is listed soon after its answer.
    commits: Vec<CommitResponse>,
    /// The token of the next page; null after the last one.
    #[schema(required)]
    next_page_token: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AttemptResponse {
    #[schema(value_type = StatusOfAttempt)]
    status: &'static str,
    /// Its snapshot; with a duplicate, the one that was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<i64>,
    /// The ref that it went to.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    ref_name: Option<String>,
    /// Whether the snapshot is in the history of that ref now, also where it has expired; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_ref: Option<bool>,
    /// What the commit log has of it, the newest first: a request that was sent again has several entries.
    entries: Vec<CommitResponse>,
}

impl From<Writer> for NamedWriter {
    fn from(Writer { kind, id, part }: Writer) -> Self {
        Self { kind, writer_id: id, part }
    }
}

impl From<LogEntry> for CommitResponse {
    fn from(entry: LogEntry) -> Self {
        Self {
            id: entry.id,
            at_ms: entry.at_ms,
            outcome: entry.outcome.as_str(),
            table: entry.ident.into(),
            request_id: entry.request_id,
            principal: entry.principal,
            idempotency_key: entry.idempotency_key,
            snapshot_id: entry.snapshot_id,
            ref_name: entry.ref_name,
            writer: entry.writer.map(NamedWriter::from),
            position: entry.position,
            duplicate_of: entry.duplicate_of,
            detail: entry.detail,
            attempt: entry.attempt.map(|attempt| attempt.0),
            waited_ms: entry.waited_ms,
            group_size: entry.group_size,
            attempts: entry.attempts,
        }
    }
}

impl From<Listing<LogEntry>> for ListCommitsResponse {
    fn from(listing: Listing<LogEntry>) -> Self {
        let commits = listing.entries.into_iter().map(CommitResponse::from).collect();
        Self { commits, next_page_token: listing.next_page_token }
    }
}

impl From<Attempt> for AttemptResponse {
    fn from(attempt: Attempt) -> Self {
        let Attempt { status, snapshot_id, ref_name, on_ref, entries } = attempt;
        let entries = entries.into_iter().map(CommitResponse::from).collect();
        Self { status: status.as_str(), snapshot_id, ref_name, on_ref, entries }
    }
}
