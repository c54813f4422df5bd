//! The server as its clients see it: each test has a server of its own, and most run on both stores.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

mod auth;
mod bodies;
mod borders;
mod cli;
mod commits;
mod config;
mod coordination;
mod databases;
mod doctor;
mod document;
mod errors;
mod etags;
mod http;
mod http_drain;
mod http_place;
mod http_tls;
mod idempotency;
mod issuers;
mod known_snapshots;
mod management;
mod metrics;
mod names;
mod namespaces;
mod nobody;
mod operations;
mod pagination;
mod process;
mod provider;
mod raw;
mod receiver;
mod s3;
mod s3_warehouses;
mod server;
mod sizes;
mod tables;
mod telemetry;
mod transactions;
mod views;
