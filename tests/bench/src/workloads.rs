//! The workloads, by their numbers in `docs/benchmarks.md`.

pub mod w1;
pub mod w2;
pub mod w3;
pub mod w4;
pub mod w5;
pub mod w6;
pub mod w7;
pub mod w8;
