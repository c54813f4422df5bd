//! W3: writers on one table with Iceberg's own patience.

use faults::writer::Retry;

use super::w2;
use crate::bench::Bench;
use crate::report::Result;

pub async fn run(bench: &Bench) -> Result<()> {
    w2::sweep(bench, "W3", Retry::STOCK).await
}
