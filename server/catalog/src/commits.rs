//! Commits: what a writer asks for and when it may have it.

pub mod requirements;
