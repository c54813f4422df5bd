//! Writers and commits as they are sent. Fields of a body that are not known are refused.

pub mod commits;
pub mod paging;
pub mod writers;
