//! The rules of the catalog. No HTTP and no SQL is known here.

pub mod error;
pub mod files;
pub mod ident;
pub mod location;
pub mod reachable;
