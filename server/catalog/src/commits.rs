//! The story of a commit.

pub mod overlap;
pub mod store;
