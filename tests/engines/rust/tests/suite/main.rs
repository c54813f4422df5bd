//! Drives iceberg-rust and DataFusion against a running Frazil, in each warehouse that FRAZIL_WAREHOUSES names.

mod definitions;
mod evolution;
mod lake;
mod page;
mod readings;
mod report;
mod sql;
mod writes;
