//! The rules of the catalog. No HTTP and no SQL is known here.

pub mod commits;
pub mod context;
pub mod error;
pub mod files;
pub mod idempotency;
pub mod ident;
pub mod listing;
pub mod location;
pub mod namespaces;
pub mod purge;
pub mod store;
pub mod tabulars;
#[cfg(feature = "testing")]
pub mod testing;
pub mod view_metadata;
pub mod warehouses;
