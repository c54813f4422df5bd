//! The port through which every pointer moves.

use async_trait::async_trait;
use uuid::Uuid;

use crate::commits::lineage::{Asked, Landed, LedgerRead, WriterRow};
use crate::commits::log::LogEntry;
use crate::events::Event;
use crate::idempotency::{Answer, Receipt};
use crate::ident::{AttemptId, TableIdent, TabularId, WarehouseId};
use crate::purge::PurgeTask;
use crate::store::StoreError;
use crate::tabulars::{Pointer, TabularKind};

/// One attempt to change pointers, all of them or none.
#[derive(Debug, Clone)]
pub struct Swap {
    /// Kept with its outcome in the same transaction; see [`CommitStore::resolve`].
    pub attempt: AttemptId,
    pub warehouse: WarehouseId,
    pub changes: Vec<PointerChange>,
    /// The answers to keep with the requests' `Idempotency-Key`s.
    pub receipts: Vec<Receipt>,
    /// What to delete later because of this change.
    pub purges: Vec<PurgeTask>,
    /// The targets refer to files that were there before, as in a register: while files are still to be deleted in a
    /// place that one of them takes, the swap is [`SwapOutcome::Lost`].
    pub adopts: bool,
    /// What became of the requests that the swap is for, for the commit log.
    pub log: Vec<LogEntry>,
    /// What is told of the swap: one event for each commit, create, rename, register and drop in it, in its order.
    pub events: Vec<Event>,
    pub at_ms: i64,
}

#[derive(Debug, Clone)]
pub enum PointerChange {
    /// What is known of this UUID already (it comes back by a register) stays as it is known: snapshots and writers.
    Create {
        id: TabularId,
        ident: TableIdent,
        kind: TabularKind,
        target: Target,
        news: News,
    },
    /// Valid only while the pointer is still `from`. Where the UUID stays, each snapshot must be new to the lineage,
    /// else the swap is [`SwapOutcome::SnapshotKnown`]; where it changes, or the swap adopts, it is as with a create.
    Move {
        from: Pointer,
        target: Target,
        news: News,
    },
    Rename {
        from: Pointer,
        to: TableIdent,
    },
    Drop {
        from: Pointer,
    },
}

impl PointerChange {
    /// The pointer that is changed; `None` for a new one.
    pub fn from(&self) -> Option<&Pointer> {
        match self {
            PointerChange::Create { .. } => None,
            PointerChange::Move { from, .. } | PointerChange::Rename { from, .. } | PointerChange::Drop { from } => {
                Some(from)
            }
        }
    }

    /// Does it take a name, a UUID or a place that another change may want too?
    pub fn takes(&self) -> bool {
        match self {
            PointerChange::Create { .. } | PointerChange::Rename { .. } => true,
            PointerChange::Move { from, target, .. } => !target.stays_at(from),
            PointerChange::Drop { .. } => false,
        }
    }

    /// Does it leave the pointer as it is? Then only what is remembered of the table changes.
    pub fn stands(&self) -> bool {
        matches!(self, PointerChange::Move { from, target, .. } if *target == Target::standing(from))
    }
}

impl Target {
    /// Is this the document of the same UUID at the same location, only newer?
    pub fn stays_at(&self, from: &Pointer) -> bool {
        self.uuid == from.uuid && self.location == from.location
    }
}

/// A move to a newer document of the same UUID at the same location, as nearly every commit is.
#[derive(Debug, Clone, Copy)]
pub struct OneMove<'a> {
    pub from: &'a Pointer,
    pub target: &'a Target,
    pub news: &'a News,
}

impl Swap {
    /// Its only change, if it is such a move. What is adopted may bring what is known.
    pub fn one_move(&self) -> Option<OneMove<'_>> {
        match self.changes.as_slice() {
            [PointerChange::Move { from, target, news }] if target.stays_at(from) && !self.adopts => {
                Some(OneMove { from, target, news })
            }
            _ => None,
        }
    }

    /// The changes in the order to write them: what frees a name, a UUID or a place comes before what takes one.
    pub fn in_order(&self) -> Vec<&PointerChange> {
        let mut changes: Vec<_> = self.changes.iter().collect();
        changes.sort_by_key(|change| match change {
            PointerChange::Drop { .. } => 0,
            PointerChange::Rename { .. } => 1,
            PointerChange::Move { .. } => 2,
            PointerChange::Create { .. } => 3,
        });
        changes
    }

    /// The tables that are new or change their place, with the location that each of them takes. Views own none.
    pub fn places_taken(&self) -> impl Iterator<Item = (TabularId, &str)> {
        self.changes.iter().filter_map(|change| match change {
            PointerChange::Create { id, kind, target, .. } if *kind == TabularKind::Table => {
                Some((*id, target.location.as_str()))
            }
            PointerChange::Move { from, target, .. }
                if from.kind == TabularKind::Table && target.location != from.location =>
            {
                Some((from.id, target.location.as_str()))
            }
            _ => None,
        })
    }

    /// The pointers that must still be as they were read.
    pub fn expected(&self) -> impl Iterator<Item = &Pointer> {
        self.changes.iter().filter_map(PointerChange::from)
    }
}

/// What a pointer is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The UUID of the document; only a register with overwrite changes it.
    pub uuid: Uuid,
    /// Normal form of the table's location. Tables of a warehouse do not overlap.
    pub location: String,
    pub metadata_location: String,
}

impl Target {
    /// What is there already: for a change of what is remembered of a table, and of nothing else.
    pub fn standing(pointer: &Pointer) -> Self {
        let Pointer { uuid, location, metadata_location, .. } = pointer;
        Self { uuid: *uuid, location: location.clone(), metadata_location: metadata_location.clone() }
    }

    /// What lies there, as the answer of a mutation.
    pub fn answer(&self) -> Answer {
        Answer::Document { uuid: self.uuid, metadata_location: self.metadata_location.clone() }
    }
}

/// What a change adds to what is remembered of a table, by its UUID, beyond expiry and drop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct News {
    pub lineage: Vec<Landed>,
    /// Snapshots that came to a ref otherwise than by a commit to it: by fast-forward or register. Ref, snapshot id.
    pub carried: Vec<(String, i64)>,
    /// The ledger, row by row: each takes the place of the row of its ref and writer. The epoch and the number of a
    /// reset never fall, and the first snapshot of a row stays.
    pub writers: Vec<WriterRow>,
}

/// What became of a swap. All of these are ordinary answers; only `Applied` changed anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwapOutcome {
    Applied,
    /// A pointer has moved on, or is gone, or files to be adopted are being deleted: judge again.
    Lost,
    /// The name of a create or rename belongs to somebody.
    NameTaken {
        kind: TabularKind,
        ident: TableIdent,
    },
    /// The namespace of a create or rename is gone.
    NamespaceMissing {
        ident: TableIdent,
    },
    /// The location is another live table's, lies in one, or has one inside.
    LocationTaken {
        owner: TableIdent,
        location: String,
    },
    /// The table UUID is live under another name.
    UuidTaken {
        owner: TableIdent,
    },
    /// One of the snapshots landed meanwhile: judge again.
    SnapshotKnown,
    /// The receipt's key was used meanwhile: replay.
    KeyTaken,
}

/// What is certain about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    Committed,
    /// It did not happen, and can no longer happen.
    Aborted,
    /// It is still under way: ask again.
    Pending,
}

/// A pointer with all that a commit is judged by: one state of the database, so that whoever moved the pointer since is
/// noticed by the swap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PointerRead {
    pub pointer: Option<Pointer>,
    /// Snapshots of the lineage of the pointer's UUID, expired ones included.
    pub landed: Vec<i64>,
    /// Of the asked writers.
    pub ledger: LedgerRead,
}

#[async_trait]
pub trait CommitStore: Send + Sync + 'static {
    /// The pointer of that name, with which of the snapshots its table has ever taken and what its ledger says of the
    /// asked writers, in one round trip.
    async fn read_pointer(
        &self,
        warehouse: WarehouseId,
        ident: &TableIdent,
        snapshot_ids: &[i64],
        asked: &[Asked],
    ) -> Result<PointerRead, StoreError>;

    /// Which of the snapshots any table of the warehouse has ever taken; with `uuid`, that table.
    async fn landed(
        &self,
        warehouse: WarehouseId,
        uuid: Option<Uuid>,
        snapshot_ids: &[i64],
    ) -> Result<Vec<i64>, StoreError>;

    /// A live table other than `except` whose location is `location`, lies in it, or holds it.
    async fn location_owner(
        &self,
        warehouse: WarehouseId,
        location: &crate::location::Location,
        except: Option<TabularId>,
    ) -> Result<Option<(TableIdent, String)>, StoreError>;

    /// Moves the pointers in one transaction, sent once. [`StoreError::OutcomeUnknown`] must be resolved.
    async fn swap(&self, swap: &Swap) -> Result<SwapOutcome, StoreError>;

    /// Settles an attempt whose outcome is in doubt: after `Aborted` it can no longer commit.
    async fn resolve(&self, attempt: AttemptId, at_ms: i64) -> Result<Resolution, StoreError>;

    /// Forgets up to `limit` attempts from before `before_ms`, the oldest first; returns how many. Nobody may resolve
    /// them any more, and no statement of theirs may still be on its way.
    async fn forget_attempts(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
