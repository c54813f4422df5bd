//! The server against faults.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

mod answers;
mod compaction;
mod connection;
mod crowds;
mod disk;
mod failover;
mod full;
mod held;
mod keys;
mod load;
mod locks;
mod objects;
mod outage;
mod points;
mod pooler;
mod probe;
mod rebase;
mod replica;
mod soak;
mod standby;
mod start;
mod tls;
mod zombies;
