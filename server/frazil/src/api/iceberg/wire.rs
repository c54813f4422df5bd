//! Requests and responses in the shapes of the Iceberg REST spec. Fields that are not known here are passed over.

//GATE pub mod commits;
pub mod config;
//GATE pub mod functions;
//GATE pub mod metadata;
//GATE pub mod metrics;
pub mod namespaces;
pub mod paging;
//GATE pub mod tables;
//GATE pub mod views;
