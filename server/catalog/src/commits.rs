//! The story of a commit.

pub mod store;
