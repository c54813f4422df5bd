//! Writers and their positions.

use std::collections::BTreeMap;

use catalog::commits::identity::{Position, Writer, WriterKind};
use catalog::commits::lineage::{Landed, WriterRow};
use catalog::coordination::{Change, Landing, Progress, Register, Which};
use catalog::listing::Listing;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::api::request::json_bodies;

json_bodies! {
    RegisterWriterRequest: Plain,
    ResetPositionRequest: Plain,
}

/// How a writer is known: by what a stock writer puts into its summaries, or by `frazil.writer-id`.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum KindOfWriter {
    Flink,
    KafkaConnect,
    SparkStreaming,
    Arroyo,
    Named,
}

/// How far a writer is: a checkpoint or epoch, an offset for each partition, or a mark without any order.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum PositionOfWriter {
    Number(i64),
    Offsets(BTreeMap<String, i64>),
    Mark(String),
}

/// Which of the writers that have the id is meant.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct WriterQuery {
    /// The branch that it writes to.
    #[serde(rename = "ref")]
    ref_name: Option<String>,
    /// With `arroyo`, whose commits name no writer, any id will do.
    #[param(value_type = Option<KindOfWriter>, inline)]
    kind: Option<WriterKind>,
    /// Flink's operator, or the part of a named writer; empty is none.
    part: Option<String>,
}

/// Which of the writers that have the id is meant, and which position.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PositionQuery {
    /// An integer, a JSON object of offsets by partition, or a mark, as this writer counts. Without it, the answer tells
    /// only how far the writer is.
    position: Option<String>,
    /// The branch that it writes to.
    #[serde(rename = "ref")]
    ref_name: Option<String>,
    /// With `arroyo`, whose commits name no writer, any id will do.
    #[param(value_type = Option<KindOfWriter>, inline)]
    kind: Option<WriterKind>,
    /// Flink's operator, or the part of a named writer; empty is none.
    part: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RegisterWriterRequest {
    /// What its commits name as `frazil.writer-id`, or what a stock writer is known by.
    #[schema(example = "orders-loader")]
    writer_id: String,
    /// The part of a named writer, or Flink's operator.
    part: Option<String>,
    /// The branch that it writes to; `main` where it is not told.
    #[serde(rename = "ref")]
    ref_name: Option<String>,
    /// `named` where it is not told.
    #[schema(value_type = Option<KindOfWriter>)]
    kind: Option<WriterKind>,
    /// Raise the epoch by one: whatever commits with a lower one is refused from then on. Without it, a writer that is
    /// known stays as it is.
    take_over: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ResetPositionRequest {
    /// Null is none: whatever comes next is new.
    #[serde(deserialize_with = "position")]
    #[schema(value_type = Option<PositionOfWriter>, required)]
    position: Option<Position>,
    /// The branch that it writes to. This, `kind` and `part` may be left out where one writer alone has the id.
    #[serde(rename = "ref")]
    ref_name: Option<String>,
    #[schema(value_type = Option<KindOfWriter>)]
    kind: Option<WriterKind>,
    part: Option<String>,
}

/// One writer of one branch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WriterResponse {
    #[serde(rename = "ref")]
    ref_name: String,
    #[schema(value_type = KindOfWriter)]
    kind: WriterKind,
    /// Empty for Arroyo, whose commits name no writer.
    writer_id: String,
    /// Empty where it has none.
    part: String,
    /// Null where it has not committed since it was registered, or set back to nothing.
    #[schema(value_type = Option<PositionOfWriter>, required)]
    position: Option<Position>,
    /// The snapshot that has the position; null where none has.
    #[schema(required)]
    snapshot_id: Option<i64>,
    #[schema(required)]
    sequence_number: Option<i64>,
    /// The highest that was registered or committed; null where none was.
    #[schema(required)]
    epoch: Option<i64>,
    #[schema(value_type = StateOfWriter)]
    state: &'static str,
    /// Of its last commit, or of its register.
    at_ms: i64,
}

/// Nobody waits for a retired writer; its next commit makes it active again.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum StateOfWriter {
    Active,
    Retired,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListWritersResponse {
    writers: Vec<WriterResponse>,
    /// The token of the next page; null after the last one.
    #[schema(required)]
    next_page_token: Option<String>,
}

/// How far a writer is, on each branch that was not ruled out. The other fields answer the question for a position, and
/// are absent where none was asked.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WriterPositionResponse {
    writers: Vec<WriterResponse>,
    /// Whether the position is in the history of the branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    landed: Option<bool>,
    /// As which snapshot it landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<i64>,
    /// As which snapshot it landed once, before the branch was rolled back behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rolled_back_snapshot_id: Option<i64>,
    /// When that snapshot landed.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_ms: Option<i64>,
}

/// A position, or null; one that is left out is missed.
fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Position>, D::Error> {
    let told = Option::<Value>::deserialize(deserializer)?;
    told.map(Position::deserialize)
        .transpose()
        .map_err(|_| D::Error::custom("position must be an integer, an object of offsets by partition, or null"))
}

impl WriterQuery {
    pub fn of(self, id: String) -> Which {
        let Self { ref_name, kind, part } = self;
        Which { id, ref_name, kind, part }
    }
}

impl PositionQuery {
    pub fn of(self, id: String) -> (Which, Option<String>) {
        let Self { position, ref_name, kind, part } = self;
        (Which { id, ref_name, kind, part }, position)
    }
}

impl ResetPositionRequest {
    pub fn of(self, id: String) -> (Which, Change) {
        let Self { position, ref_name, kind, part } = self;
        (Which { id, ref_name, kind, part }, Change::Reset { position })
    }
}

impl From<RegisterWriterRequest> for Register {
    fn from(request: RegisterWriterRequest) -> Self {
        let RegisterWriterRequest { writer_id, part, ref_name, kind, take_over } = request;
        let (kind, part) = (kind.unwrap_or(WriterKind::Named), part.unwrap_or_default());
        let writer = Writer { kind, id: writer_id, part };
        Self { writer, ref_name, take_over: take_over.unwrap_or(false) }
    }
}

impl From<WriterRow> for WriterResponse {
    fn from(row: WriterRow) -> Self {
        let WriterRow { ref_name, writer, position, snapshot_id, sequence_number, epoch, retired, at_ms, .. } = row;
        let Writer { kind, id, part } = writer;
        Self {
            ref_name,
            kind,
            writer_id: id,
            part,
            position,
            snapshot_id,
            sequence_number: snapshot_id.map(|_| sequence_number),
            epoch,
            state: if retired { "retired" } else { "active" },
            at_ms,
        }
    }
}

impl From<Listing<WriterRow>> for ListWritersResponse {
    fn from(listing: Listing<WriterRow>) -> Self {
        let writers = listing.entries.into_iter().map(WriterResponse::from).collect();
        Self { writers, next_page_token: listing.next_page_token }
    }
}

impl From<Progress> for WriterPositionResponse {
    fn from(progress: Progress) -> Self {
        let writers = progress.rows.into_iter().map(WriterResponse::from).collect();
        let none = Self { writers, landed: None, snapshot_id: None, rolled_back_snapshot_id: None, at_ms: None };
        match progress.landing {
            None => none,
            Some(Landing::Missing) => Self { landed: Some(false), ..none },
            Some(Landing::Landed(Landed { snapshot_id, at_ms, .. })) => {
                Self { landed: Some(true), snapshot_id: Some(snapshot_id), at_ms: Some(at_ms), ..none }
            }
            Some(Landing::RolledBack(Landed { snapshot_id, at_ms, .. })) => {
                Self { landed: Some(false), rolled_back_snapshot_id: Some(snapshot_id), at_ms: Some(at_ms), ..none }
            }
        }
    }
}
