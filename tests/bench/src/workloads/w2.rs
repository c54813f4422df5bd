//! W2: writers on one table, none of which tries again.

use std::time::Duration;

use faults::writer::Retry;

use crate::bench::Bench;
use crate::crowd::Crowd;
use crate::report::{Result, Row};
use crate::rest::Catalog;

pub async fn run(bench: &Bench) -> Result<()> {
    sweep(bench, "W2", Retry::NONE).await
}

/// A point for each number of writers, each on a table of its own.
pub async fn sweep(bench: &Bench, what: &str, retry: Retry) -> Result<()> {
    let numbers = bench.settings.numbers("writers", &[1, 8, 32], &[1, 2, 4, 8, 16, 32, 64])?;
    let lasting = bench.settings.seconds("seconds", 10, 20)?;
    for writers in numbers {
        let row = Row::of("writers", writers);
        let point = point(bench, (what, retry), writers as usize, lasting, &bench.catalogs[..1]);
        bench.point(row, within(lasting), point).await;
    }
    Ok(())
}

/// Long enough for what lasts so long, and for what comes before and after.
pub fn within(lasting: Duration) -> Duration {
    lasting * 2 + Duration::from_secs(300)
}

pub async fn point(
    bench: &Bench,
    (what, retry): (&str, Retry),
    writers: usize,
    lasting: Duration,
    catalogs: &[Catalog],
) -> Result<Row> {
    let table = bench.fresh_table().await?;
    let meter = bench.meter().await?;
    let outcome = Crowd::on_one(&table, writers, retry).lasting(lasting).run(bench, catalogs).await?;
    let spent = meter.row(outcome.landed_at_all(), "per_commit").await?;
    outcome.verify(bench, &format!("{what} with {writers} writers")).await;
    Ok(outcome.row().with("exhausted_retries", outcome.sum(|tally| tally.conflicted)).merged(spent))
}
