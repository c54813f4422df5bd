//! What every port has in common: how a store fails, and how a listing is paged.

use metrics::counter;

use crate::commits::lineage::LineageStore;
use crate::commits::log::LogStore;
use crate::commits::store::CommitStore;
use crate::error::{Error, Kind};
use crate::events::EventStore;
use crate::idempotency::store::IdempotencyStore;
use crate::namespaces::store::NamespaceStore;
use crate::principals::store::PrincipalStore;
use crate::purge::store::PurgeStore;
use crate::tabulars::TabularStore;
use crate::warehouses::store::WarehouseStore;

pub mod kept;

/// The whole of a backend. Each feature takes only its own port, by upcasting.
pub trait Store:
    WarehouseStore
    + NamespaceStore
    + TabularStore
    + CommitStore
    + LineageStore
    + LogStore
    + EventStore
    + IdempotencyStore
    + PurgeStore
    + Pools
    + PrincipalStore
{
}

impl<S> Store for S where
    S: WarehouseStore
        + NamespaceStore
        + TabularStore
        + CommitStore
        + LineageStore
        + LogStore
        + EventStore
        + IdempotencyStore
        + PurgeStore
        + Pools
        + PrincipalStore
{
}

/// The connections of a pool now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    pub name: &'static str,
    pub in_use: u32,
    pub idle: u32,
    pub max: u32,
}

/// Tells how the pools of connections to the database are used.
pub trait Pools: Send + Sync + 'static {
    fn pools(&self) -> Vec<PoolUse>;
}

type Source = Box<dyn std::error::Error + Send + Sync>;

/// A backend failed. The only question that matters afterwards is whether it certainly did nothing.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The transaction was certainly not committed.
    #[error("the store refused the transaction")]
    Aborted(#[source] Source),
    /// Whether the transaction committed is not known.
    #[error("the outcome of the transaction is unknown")]
    OutcomeUnknown(#[source] Source),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Aborted(source) => {
                Error::new(Kind::Unavailable, "the catalog's database did not take the request; nothing was changed")
                    .with_source(source)
            }
            StoreError::OutcomeUnknown(source) => Error::new(
                Kind::StateUnknown,
                "the change may or may not have been applied: ask again before repeating it",
            )
            .with_source(source),
        }
    }
}

/// Statements that were sent to the database, each with its answer one round trip.
pub const SQL_ROUND_TRIPS_TOTAL: &str = "frazil_sql_round_trips_total";

/// Counts a statement that is about to be sent on this connection, or by this pool. The name is the port method's, or what
/// the statement does in a transaction of several.
pub fn sent<C>(statement: &'static str, connection: C) -> C {
    counter!(SQL_ROUND_TRIPS_TOTAL, "statement" => statement).increment(1);
    connection
}

/// Listings of a server that has a replica of its database.
pub const LISTINGS_TOTAL: &str = "frazil_database_listings_total";

/// Counts a listing by who answered it: `primary` or `replica`.
pub fn counted_listing<T>(answered_by: &'static str, listing: T) -> T {
    counter!(LISTINGS_TOTAL, "answered_by" => answered_by).increment(1);
    listing
}

/// A part of a listing in the order of names: keyset paging, so that nothing is lost or doubled beside changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The last name of the page before; `None` begins at the start.
    pub after: Option<String>,
    /// How many names at most; `None` is all of them.
    pub limit: Option<u32>,
}

impl Page {
    pub const ALL: Page = Page { after: None, limit: None };
}
