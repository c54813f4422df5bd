//! Frazil's process: its HTTP face, its settings, and the place where all parts are put together.

pub mod api;
pub mod auth;
pub mod cli;
pub mod config;
pub mod doctor;
pub mod process;
pub mod serve;
pub mod telemetry;
pub mod welcome;
pub mod wiring;
pub mod workers;
