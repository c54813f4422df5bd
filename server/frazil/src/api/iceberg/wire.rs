//! Requests and responses in the shapes of the Iceberg REST spec. Fields that are not known here are passed over.

pub mod commits;
pub mod config;
pub mod functions;
pub mod metadata;
pub mod metrics;
pub mod namespaces;
pub mod oauth;
pub mod paging;
pub mod tables;
pub mod views;
