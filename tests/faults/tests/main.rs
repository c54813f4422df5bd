//! The server against faults.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

mod connection;
mod disk;
mod locks;
mod pooler;
mod probe;
mod standby;
