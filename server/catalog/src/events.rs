//! The outbox: what happened to tables and views, in the order in which it was committed.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ident::{TableIdent, TabularId, WarehouseId};
use crate::store::StoreError;
use crate::tabulars::TabularKind;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Created,
    Committed,
    Registered,
    Renamed,
    Dropped,
}

impl What {
    /// As the stores keep it.
    pub fn as_str(self) -> &'static str {
        match self {
            What::Created => "created",
            What::Committed => "committed",
            What::Registered => "registered",
            What::Renamed => "renamed",
            What::Dropped => "dropped",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn of(text: &str) -> Option<Self> {
        [What::Created, What::Committed, What::Registered, What::Renamed, What::Dropped]
            .into_iter()
            .find(|what| what.as_str() == text)
    }
}

/// One change of one table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub warehouse: WarehouseId,
    pub tabular: TabularId,
    pub kind: TabularKind,
    pub uuid: Uuid,
    /// Its name after the change; before it, where it was dropped.
    pub ident: TableIdent,
    pub what: What,
    /// After the change; before it, where it was dropped.
    pub metadata_location: String,
    /// The snapshot that was committed, and the ref that it went to.
    pub snapshot_id: Option<i64>,
    pub ref_name: Option<String>,
    pub at_ms: i64,
}

/// A place between two events. Text that only the store reads; it sorts in no other way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

#[async_trait]
pub trait EventStore: Send + Sync + 'static {
    /// Up to `limit` events after `after`, in the order in which they were committed, each with the place behind it.
    /// None is ever passed over: an event is shown only when no earlier one can still appear.
    async fn events(&self, after: Option<&Cursor>, limit: u32) -> Result<Vec<(Cursor, Event)>, StoreError>;

    /// Forgets up to `limit` events from before `before_ms`, the oldest first; returns how many.
    async fn forget_events(&self, before_ms: i64, limit: u32) -> Result<u64, StoreError>;
}
