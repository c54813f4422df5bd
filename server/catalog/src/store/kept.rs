//! Rows as both stores keep them: flat, and with texts that hold no NUL. Several of them go to a database as one JSON array.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::StoreError;
use crate::commits::identity::{self, Identity, Position, WriterKind};
use crate::commits::lineage::{Asked, Class, Landed, Mark, WriterCursor, WriterRow};
use crate::commits::log::{LogEntry, Outcome};
use crate::events::{self, What};
use crate::ident::{AttemptId, NamespaceIdent, TableIdent, TabularId, WarehouseId};
use crate::principals::{PrincipalId, PrincipalName, SecretHash, ServicePrincipal};
use crate::tabulars::TabularKind;
use crate::{idempotency, purge};

mod text;

pub use text::{bounded, escaped, unescaped};

/// A row of `lineage`, but for its warehouse and table.
#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub snapshot_id: i64,
    pub parent_id: Option<i64>,
    pub sequence_number: i64,
    pub ref_name: Option<String>,
    pub class: Option<String>,
    pub writer_kind: Option<String>,
    pub writer_id: Option<String>,
    pub writer_part: Option<String>,
    pub position: Option<String>,
    pub counts: Option<String>,
    pub epoch: Option<i64>,
    pub is_first: bool,
    pub rebased: bool,
    pub position_hash: Option<i64>,
    pub at_ms: i64,
}

/// A snapshot that answers to a writer that was asked for on this ref.
#[derive(Debug, Deserialize)]
pub struct Same {
    pub asked_ref: String,
    #[serde(flatten)]
    pub snapshot: Snapshot,
}

/// A row of `service_principal`; the hash in it is never printed.
pub struct Principal {
    pub id: Uuid,
    pub name: String,
    pub secret_hash: Vec<u8>,
    pub generation: i64,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
}

/// A row of `carried`, but for its warehouse and table.
#[derive(Debug, Serialize)]
pub struct Carried {
    pub ref_key: String,
    pub snapshot_id: i64,
}

/// A row of `writer`, but for its warehouse and table.
#[derive(Debug, Serialize, Deserialize)]
pub struct Writer {
    pub place: String,
    pub ref_name: String,
    pub writer_kind: String,
    pub writer_id: String,
    pub writer_part: String,
    pub position: Option<String>,
    pub snapshot_id: Option<i64>,
    pub sequence_number: i64,
    pub first_snapshot_id: Option<i64>,
    pub since_sequence_number: Option<i64>,
    pub epoch: Option<i64>,
    pub retired: bool,
    pub at_ms: i64,
}

/// What is looked for to answer [`Asked`].
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Wanted {
    pub place: String,
    pub ref_name: String,
    pub ref_key: String,
    pub writer_kind: &'static str,
    pub writer_id: String,
    pub writer_part: String,
    pub position: Option<String>,
    pub position_hash: Option<i64>,
}

/// A row of `commit_log`.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub warehouse_id: Uuid,
    pub table_uuid: Uuid,
    pub id: Uuid,
    pub namespace: String,
    pub name: String,
    pub at_ms: i64,
    pub request_id: String,
    pub principal: String,
    pub idempotency_key: Option<Uuid>,
    pub snapshot_id: Option<i64>,
    pub ref_name: Option<String>,
    pub writer_kind: Option<String>,
    pub writer_id: Option<String>,
    pub writer_part: Option<String>,
    pub position: Option<String>,
    pub outcome: String,
    pub attempt_id: Option<Uuid>,
    pub duplicate_of: Option<i64>,
    pub detail: Option<String>,
    pub waited_ms: i64,
    pub group_size: i64,
    pub attempts: i64,
}

/// A row of `outbox`, but for its place in the order.
#[derive(Debug, Serialize)]
pub struct Event {
    pub warehouse_id: Uuid,
    pub tabular_id: Uuid,
    pub kind: String,
    pub table_uuid: Uuid,
    pub namespace: String,
    pub name: String,
    pub what: String,
    pub metadata_location: String,
    pub snapshot_id: Option<i64>,
    pub ref_name: Option<String>,
    pub at_ms: i64,
}

/// A row of `idempotency_key`, but for its warehouse.
#[derive(Debug, Serialize)]
pub struct Receipt {
    pub key: Uuid,
    /// In hexadecimal digits.
    pub binding: String,
    pub answer: String,
    pub at_ms: i64,
}

/// A row of `purge`, but for its warehouse.
#[derive(Debug, Serialize)]
pub struct Purge {
    pub id: Uuid,
    pub target: String,
    pub canonical_location: Option<String>,
    pub not_before_ms: i64,
}

/// The rows of several values, as one JSON array.
pub fn array<'a, T, R: From<&'a T> + Serialize>(values: &'a [T]) -> String {
    json(&values.iter().map(R::from).collect::<Vec<_>>())
}

/// The ledger's new rows in the order of their places, as one JSON array. A writer that comes several times gets one
/// row: the last, with the first snapshot, the highest epoch and the last reset.
pub fn ledger(writers: &[WriterRow]) -> String {
    let mut rows: BTreeMap<String, Writer> = BTreeMap::new();
    for mut row in writers.iter().map(Writer::from) {
        if let Some(earlier) = rows.remove(&row.place) {
            row.epoch = row.epoch.max(earlier.epoch);
            row.since_sequence_number = row.since_sequence_number.max(earlier.since_sequence_number);
            row.first_snapshot_id = earlier.first_snapshot_id.or(row.first_snapshot_id);
        }
        rows.insert(row.place.clone(), row);
    }
    json(&rows.into_values().collect::<Vec<_>>())
}

/// The receipts of a swap in the order of their keys, so that no two swaps wait for each other's.
pub fn receipts(receipts: &[idempotency::Receipt]) -> String {
    let mut rows: Vec<_> = receipts.iter().map(Receipt::from).collect();
    rows.sort_by_key(|row| row.key);
    json(&rows)
}

/// The place of a writer in the ledger of its table.
pub fn place(cursor: &WriterCursor) -> String {
    let WriterCursor { ref_name, writer } = cursor;
    let parts = [ref_name.as_str(), writer.kind.as_str(), &writer.id, &writer.part];
    // No escaped text holds what is between them, and all sort behind it.
    bounded(&parts.map(escaped).join("\u{1}"))
}

/// What a snapshot of this writer at this position is found by. Others may have the same.
pub fn position_hash(writer: &identity::Writer, position: &Position) -> i64 {
    text::hash(&json(&(writer.kind, &writer.id, &writer.part, position)))
}

impl From<&Landed> for Snapshot {
    fn from(landed: &Landed) -> Self {
        let identity = landed.writer.as_ref().map(|mark| &mark.identity);
        let writer = identity.map(|identity| &identity.writer);
        let at = identity.and_then(|identity| Some((&identity.writer, identity.position.as_ref()?)));
        Self {
            snapshot_id: landed.snapshot_id,
            parent_id: landed.parent_id,
            sequence_number: landed.sequence_number,
            ref_name: landed.ref_name.as_deref().map(escaped),
            class: landed.class.map(|class| class.as_str().to_owned()),
            writer_kind: writer.map(|writer| writer.kind.as_str().to_owned()),
            writer_id: writer.map(|writer| escaped(&writer.id)),
            writer_part: writer.map(|writer| escaped(&writer.part)),
            position: at.map(|(_, position)| json(position)),
            counts: landed.writer.as_ref().map(|mark| json(&mark.counts)),
            epoch: identity.and_then(|identity| identity.epoch),
            is_first: landed.is_first,
            rebased: landed.rebased,
            position_hash: at.map(|(writer, position)| position_hash(writer, position)),
            at_ms: landed.at_ms,
        }
    }
}

impl TryFrom<Snapshot> for Landed {
    type Error = StoreError;

    fn try_from(row: Snapshot) -> Result<Self, StoreError> {
        let writer = writer(row.writer_kind, row.writer_id, row.writer_part)?;
        let position = row.position.as_deref().map(from_json).transpose()?;
        let counts = row.counts.as_deref().map(from_json).transpose()?.unwrap_or_default();
        Ok(Self {
            snapshot_id: row.snapshot_id,
            parent_id: row.parent_id,
            sequence_number: row.sequence_number,
            ref_name: row.ref_name.as_deref().map(unescaped),
            // Over a class that only a later version knows nothing may go.
            class: row.class.as_deref().map(|class| Class::of(class).unwrap_or(Class::Other)),
            writer: writer.map(|writer| Mark { identity: Identity { writer, position, epoch: row.epoch }, counts }),
            is_first: row.is_first,
            rebased: row.rebased,
            at_ms: row.at_ms,
        })
    }
}

impl TryFrom<Same> for (String, Landed) {
    type Error = StoreError;

    fn try_from(row: Same) -> Result<Self, StoreError> {
        Ok((unescaped(&row.asked_ref), row.snapshot.try_into()?))
    }
}

impl TryFrom<Principal> for ServicePrincipal {
    type Error = StoreError;

    fn try_from(row: Principal) -> Result<Self, StoreError> {
        Ok(Self {
            id: PrincipalId(row.id),
            name: PrincipalName::parse(&row.name).map_err(odd)?,
            secret_hash: SecretHash(row.secret_hash.try_into().map_err(|_| odd("secret_hash is not 32 bytes"))?),
            generation: row.generation,
            created_at_ms: row.created_at_ms,
            expires_at_ms: row.expires_at_ms,
            revoked_at_ms: row.revoked_at_ms,
        })
    }
}

impl From<&(String, i64)> for Carried {
    fn from((ref_name, snapshot_id): &(String, i64)) -> Self {
        Self { ref_key: bounded(&escaped(ref_name)), snapshot_id: *snapshot_id }
    }
}

impl From<&WriterRow> for Writer {
    fn from(row: &WriterRow) -> Self {
        Self {
            place: place(&WriterCursor { ref_name: row.ref_name.clone(), writer: row.writer.clone() }),
            ref_name: escaped(&row.ref_name),
            writer_kind: row.writer.kind.as_str().to_owned(),
            writer_id: escaped(&row.writer.id),
            writer_part: escaped(&row.writer.part),
            position: row.position.as_ref().map(json),
            snapshot_id: row.snapshot_id,
            sequence_number: row.sequence_number,
            first_snapshot_id: row.first_snapshot_id,
            since_sequence_number: row.since_sequence_number,
            epoch: row.epoch,
            retired: row.retired,
            at_ms: row.at_ms,
        }
    }
}

impl TryFrom<Writer> for WriterRow {
    type Error = StoreError;

    fn try_from(row: Writer) -> Result<Self, StoreError> {
        let kind = known(WriterKind::of(&row.writer_kind), "kind of writer", &row.writer_kind)?;
        let (id, part) = (unescaped(&row.writer_id), unescaped(&row.writer_part));
        Ok(Self {
            ref_name: unescaped(&row.ref_name),
            writer: identity::Writer { kind, id, part },
            position: row.position.as_deref().map(from_json).transpose()?,
            snapshot_id: row.snapshot_id,
            sequence_number: row.sequence_number,
            first_snapshot_id: row.first_snapshot_id,
            since_sequence_number: row.since_sequence_number,
            epoch: row.epoch,
            retired: row.retired,
            at_ms: row.at_ms,
        })
    }
}

impl From<&Asked> for Wanted {
    fn from(Asked { ref_name, identity }: &Asked) -> Self {
        let writer = &identity.writer;
        Self {
            place: place(&WriterCursor { ref_name: ref_name.clone(), writer: writer.clone() }),
            ref_name: escaped(ref_name),
            ref_key: bounded(&escaped(ref_name)),
            writer_kind: writer.kind.as_str(),
            writer_id: escaped(&writer.id),
            writer_part: escaped(&writer.part),
            position: identity.position.as_ref().map(json),
            position_hash: identity.position.as_ref().map(|position| position_hash(writer, position)),
        }
    }
}

impl From<&LogEntry> for Entry {
    fn from(entry: &LogEntry) -> Self {
        let writer = entry.writer.as_ref();
        Self {
            warehouse_id: entry.warehouse.0,
            table_uuid: entry.table_uuid,
            id: entry.id,
            namespace: json(&entry.ident.namespace.levels()),
            name: escaped(&entry.ident.name),
            at_ms: entry.at_ms,
            request_id: escaped(&entry.request_id),
            principal: escaped(&entry.principal),
            idempotency_key: entry.idempotency_key,
            snapshot_id: entry.snapshot_id,
            ref_name: entry.ref_name.as_deref().map(escaped),
            writer_kind: writer.map(|writer| writer.kind.as_str().to_owned()),
            writer_id: writer.map(|writer| escaped(&writer.id)),
            writer_part: writer.map(|writer| escaped(&writer.part)),
            position: entry.position.as_ref().map(json),
            outcome: entry.outcome.as_str().to_owned(),
            attempt_id: entry.attempt.map(|attempt| attempt.0),
            duplicate_of: entry.duplicate_of,
            detail: entry.detail.as_deref().map(escaped),
            waited_ms: entry.waited_ms,
            group_size: entry.group_size.into(),
            attempts: entry.attempts.into(),
        }
    }
}

impl TryFrom<Entry> for LogEntry {
    type Error = StoreError;

    fn try_from(row: Entry) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.id,
            warehouse: WarehouseId(row.warehouse_id),
            table_uuid: row.table_uuid,
            ident: ident(&row.namespace, &row.name)?,
            at_ms: row.at_ms,
            request_id: unescaped(&row.request_id),
            principal: unescaped(&row.principal),
            idempotency_key: row.idempotency_key,
            snapshot_id: row.snapshot_id,
            ref_name: row.ref_name.as_deref().map(unescaped),
            writer: writer(row.writer_kind, row.writer_id, row.writer_part)?,
            position: row.position.as_deref().map(from_json).transpose()?,
            outcome: known(Outcome::of(&row.outcome), "outcome", &row.outcome)?,
            attempt: row.attempt_id.map(AttemptId),
            duplicate_of: row.duplicate_of,
            detail: row.detail.as_deref().map(unescaped),
            waited_ms: row.waited_ms,
            group_size: row.group_size.try_into().map_err(odd)?,
            attempts: row.attempts.try_into().map_err(odd)?,
        })
    }
}

impl From<&events::Event> for Event {
    fn from(event: &events::Event) -> Self {
        Self {
            warehouse_id: event.warehouse.0,
            tabular_id: event.tabular.0,
            kind: event.kind.as_str().to_owned(),
            table_uuid: event.uuid,
            namespace: json(&event.ident.namespace.levels()),
            name: escaped(&event.ident.name),
            what: event.what.as_str().to_owned(),
            metadata_location: escaped(&event.metadata_location),
            snapshot_id: event.snapshot_id,
            ref_name: event.ref_name.as_deref().map(escaped),
            at_ms: event.at_ms,
        }
    }
}

impl TryFrom<Event> for events::Event {
    type Error = StoreError;

    fn try_from(row: Event) -> Result<Self, StoreError> {
        Ok(Self {
            warehouse: WarehouseId(row.warehouse_id),
            tabular: TabularId(row.tabular_id),
            kind: known(TabularKind::of(&row.kind), "kind", &row.kind)?,
            uuid: row.table_uuid,
            ident: ident(&row.namespace, &row.name)?,
            what: known(What::of(&row.what), "event", &row.what)?,
            metadata_location: unescaped(&row.metadata_location),
            snapshot_id: row.snapshot_id,
            ref_name: row.ref_name.as_deref().map(unescaped),
            at_ms: row.at_ms,
        })
    }
}

impl From<&idempotency::Receipt> for Receipt {
    fn from(receipt: &idempotency::Receipt) -> Self {
        Self {
            key: receipt.key,
            binding: hex::encode(receipt.binding),
            answer: json(&receipt.answer),
            at_ms: receipt.at_ms,
        }
    }
}

impl From<&purge::PurgeTask> for Purge {
    fn from(task: &purge::PurgeTask) -> Self {
        Self {
            id: task.id.0,
            target: json(&task.target),
            canonical_location: task.target.table_place(),
            not_before_ms: task.not_before_ms,
        }
    }
}

/// A writer's three columns are NULL together.
fn writer(
    kind: Option<String>,
    id: Option<String>,
    part: Option<String>,
) -> Result<Option<identity::Writer>, StoreError> {
    let (Some(kind), Some(id), Some(part)) = (kind, id, part) else {
        return Ok(None);
    };
    let kind = known(WriterKind::of(&kind), "kind of writer", &kind)?;
    Ok(Some(identity::Writer { kind, id: unescaped(&id), part: unescaped(&part) }))
}

fn ident(namespace: &str, name: &str) -> Result<TableIdent, StoreError> {
    let namespace = NamespaceIdent::new(from_json(namespace)?).map_err(odd)?;
    Ok(TableIdent::new(namespace, unescaped(name)))
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("what is kept as JSON has text keys only")
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(odd)
}

/// A word that a later version may know.
fn known<T>(value: Option<T>, what: &str, word: &str) -> Result<T, StoreError> {
    value.ok_or_else(|| odd(format!("unknown {what} '{word}' in the database")))
}

fn odd(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Aborted(error.into())
}
