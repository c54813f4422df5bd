//! The rules of the catalog. No HTTP and no SQL is known here.

pub mod commits;
// pub mod context;
pub mod error;
pub mod ident;
pub mod metadata;
