//! What is remembered of a table's snapshots and of their writers, beyond expiry and drop, and the port to read it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::commits::identity::{Counts, Identity, Position, Writer, WriterKind};
use crate::ident::WarehouseId;
use crate::metadata::Snapshot;
use crate::store::StoreError;

/// What a snapshot did to the files of its table, told by its manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Adds data files and nothing else.
    Append,
    /// Adds data files and equality deletes.
    EqualityDelta,
    /// The same, with position deletes or deletion vectors on files that it adds itself.
    EqualityDeltaWithPositions,
    /// Puts other files with the same rows in the place of some: compaction, or manifests written anew.
    Replace,
    /// Everything else, and whatever cannot be read.
    Other,
}

impl Class {
    /// As the stores keep it.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Append => "append",
            Class::EqualityDelta => "equality-delta",
            Class::EqualityDeltaWithPositions => "equality-delta-with-positions",
            Class::Replace => "replace",
            Class::Other => "other",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn of(text: &str) -> Option<Self> {
        use Class::{Append, EqualityDelta, EqualityDeltaWithPositions, Other, Replace};
        [Append, EqualityDelta, EqualityDeltaWithPositions, Replace, Other]
            .into_iter()
            .find(|class| class.as_str() == text)
    }
}

/// A snapshot that has landed in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub snapshot_id: i64,
    pub parent_id: Option<i64>,
    pub sequence_number: i64,
    /// The ref that it was committed to; `None` for a staged snapshot and for a register.
    pub ref_name: Option<String>,
    /// `None` until a rebase asks for it.
    pub class: Option<Class>,
    pub writer: Option<Mark>,
    /// Whether it is the first snapshot of its writer on this ref.
    pub is_first: bool,
    /// Whether the catalog put it on another head than its writer did.
    pub rebased: bool,
    pub at_ms: i64,
}

impl Landed {
    /// A snapshot of which no more is known than its place.
    pub fn bare(snapshot_id: i64, parent_id: Option<i64>, sequence_number: i64, at_ms: i64) -> Self {
        Self {
            snapshot_id,
            parent_id,
            sequence_number,
            ref_name: None,
            class: None,
            writer: None,
            is_first: false,
            rebased: false,
            at_ms,
        }
    }

    /// What a snapshot tells of itself.
    pub fn of(snapshot: &Snapshot, at_ms: i64) -> Self {
        let bare = Self::bare(snapshot.id(), snapshot.parent_id(), snapshot.sequence_number(), at_ms);
        Self { writer: Mark::of(snapshot), ..bare }
    }
}

/// What a snapshot tells of its writer, and what it counts of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub identity: Identity,
    pub counts: Counts,
}

/// A row of the ledger: how far a writer has come on a ref, and with which snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WriterRow {
    pub ref_name: String,
    pub writer: Writer,
    /// `None` where the writer was registered, or its position reset, and it has not committed since.
    pub position: Option<Position>,
    pub snapshot_id: Option<i64>,
    pub sequence_number: i64,
    /// The writer's first snapshot on this ref.
    pub first_snapshot_id: Option<i64>,
    /// The last sequence number of the table when the position was reset: what the writer landed up to there no longer
    /// speaks for it. `None` where it never was, or where the table counts none.
    pub since_sequence_number: Option<i64>,
    /// The highest one registered or committed.
    pub epoch: Option<i64>,
    /// Nobody waits for it any more. Its next commit takes that back.
    pub retired: bool,
    /// Of its last commit, or of the call that made the row.
    pub at_ms: i64,
}

impl WriterRow {
    /// The row of a writer of whom nothing is known.
    pub fn blank(ref_name: &str, writer: Writer, at_ms: i64) -> Self {
        Self {
            ref_name: ref_name.to_owned(),
            writer,
            position: None,
            snapshot_id: None,
            sequence_number: 0,
            first_snapshot_id: None,
            since_sequence_number: None,
            epoch: None,
            retired: false,
            at_ms,
        }
    }

    pub fn is_of(&self, ref_name: &str, writer: &Writer) -> bool {
        self.ref_name == ref_name && self.writer == *writer
    }

    /// A snapshot of its writer has come to its ref. What that does not tell stays as it was.
    fn go_on(&mut self, landed: &Landed, identity: &Identity, at_ms: i64) {
        self.position = identity.position.clone().or_else(|| self.position.take());
        self.snapshot_id = Some(landed.snapshot_id);
        self.sequence_number = landed.sequence_number;
        self.first_snapshot_id = self.first_snapshot_id.or(Some(landed.snapshot_id));
        self.epoch = self.epoch.max(identity.epoch);
        self.retired = false;
        self.at_ms = at_ms;
    }
}

/// Takes a snapshot that has come to a ref into the rows of the ledger; older ones come first. Returns whether it is
/// the first of its writer there.
pub fn go_on(rows: &mut Vec<WriterRow>, ref_name: &str, landed: &Landed, at_ms: i64) -> bool {
    let Some(Mark { identity, .. }) = &landed.writer else { return false };
    let index = rows.iter().position(|row| row.is_of(ref_name, &identity.writer)).unwrap_or_else(|| {
        rows.push(WriterRow::blank(ref_name, identity.writer.clone(), at_ms));
        rows.len() - 1
    });
    let is_first = rows[index].first_snapshot_id.is_none();
    rows[index].go_on(landed, identity, at_ms);
    is_first
}

/// A writer as a call names it; the rest is told where the id alone is ambiguous.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Which {
    pub id: String,
    pub ref_name: Option<String>,
    pub kind: Option<WriterKind>,
    pub part: Option<String>,
}

/// How many snapshots at one position the ledger names of a writer, the newest ones: a bounded job that runs again and
/// again under one name ends at the same position each time.
pub const SAME_MAX: u32 = 16;

/// A writer on a ref, asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub ref_name: String,
    pub identity: Identity,
}

/// What the ledger and the lineage say of the writers that were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerRead {
    pub rows: Vec<WriterRow>,
    /// Snapshots of an asked writer at its asked position that were committed to the asked ref or carried to it, each
    /// with that ref, up to [`SAME_MAX`] of the newest. Whether they are still ancestors of its head is not asked here.
    pub same: Vec<(String, Landed)>,
}

/// How far back a walk goes.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    /// The first snapshot, which is part of the walk.
    pub from: i64,
    /// It ends with this snapshot, which is still part of it.
    pub until: Option<i64>,
    /// It ends with the first snapshot that has a lower sequence number than this, which is still part of it.
    pub sequence_number_min: i64,
    /// In rows.
    pub limit: u32,
}

impl Walk {
    /// This snapshot alone.
    pub fn step(from: i64) -> Self {
        Self { from, until: None, sequence_number_min: i64::MIN, limit: 1 }
    }
}

/// A listing of the ledger goes by these, in this order, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterCursor {
    pub ref_name: String,
    pub writer: Writer,
}

#[async_trait]
pub trait LineageStore: Send + Sync + 'static {
    /// The rows of these writers, and their snapshots at these positions, in one round trip.
    async fn ledger(&self, warehouse: WarehouseId, table: Uuid, asked: &[Asked]) -> Result<LedgerRead, StoreError>;

    /// The snapshots from one back over their parents, newest first. It ends early where a snapshot is not known: the
    /// last one's parent then says that there is a gap.
    async fn walk(&self, warehouse: WarehouseId, table: Uuid, walk: Walk) -> Result<Vec<Landed>, StoreError>;

    /// Remembers what the snapshots did. Those that are not known, or have a class, stay as they are.
    async fn classify(&self, warehouse: WarehouseId, table: Uuid, classes: &[(i64, Class)]) -> Result<(), StoreError>;

    /// The ledger of a table in the order of [`WriterCursor`], up to `limit` rows after `after`.
    async fn writers(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        after: Option<&WriterCursor>,
        limit: u32,
    ) -> Result<Vec<WriterRow>, StoreError>;

    /// The rows that fit in the order of [`WriterCursor`], up to `limit`.
    async fn writer(
        &self,
        warehouse: WarehouseId,
        table: Uuid,
        which: &Which,
        limit: u32,
    ) -> Result<Vec<WriterRow>, StoreError>;

    /// Forgets up to `limit` snapshots that landed before `before_ms`, the oldest first; returns how many.
    async fn forget_lineage(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
