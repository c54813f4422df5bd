//! Faults for a running server: proxies that cut, delay and repeat; databases and a disk that fail; writers that behave
//! like stock ones and can tell afterwards what is in the table.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

pub mod bouncer;
pub mod catalog;
pub mod child;
pub mod cluster;
pub mod database;
pub mod disk;
pub mod frazil;
pub mod model;
pub mod proxy;
pub mod random;
pub mod wait;
pub mod writer;
