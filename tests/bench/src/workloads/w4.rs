//! W4: writers on tables of their own, and a quiet table beside a crowd on another.

use std::time::Duration;

use faults::writer::Retry;

use super::w2::within;
use crate::bench::Bench;
use crate::crowd::Crowd;
use crate::measure::ratio;
use crate::report::{Result, Row};
use crate::rest::Catalog;

const HOT_CLIENTS: usize = 24;
/// Between two commits to the quiet table.
const QUIET_PACE: Duration = Duration::from_millis(200);

pub async fn run(bench: &Bench) -> Result<()> {
    let numbers = bench.settings.numbers("writers", &[1, 8, 32], &[1, 2, 4, 8, 16, 32, 64])?;
    let lasting = bench.settings.seconds("seconds", 10, 20)?;
    for writers in numbers {
        let point = point(bench, writers as usize, lasting, &bench.catalogs[..1]);
        bench.point(Row::of("writers", writers).with("tables", writers), within(lasting), point).await;
    }
    let row = Row::of("writers", HOT_CLIENTS + 1).with("tables", 2);
    bench.point(row, within(lasting * 2), quiet(bench, lasting)).await;
    Ok(())
}

/// A table for each writer.
pub async fn point(bench: &Bench, writers: usize, lasting: Duration, catalogs: &[Catalog]) -> Result<Row> {
    let tables = bench.fresh_tables(writers).await?;
    let meter = bench.meter().await?;
    let outcome = Crowd::on(tables, Retry::STOCK).lasting(lasting).run(bench, catalogs).await?;
    let spent = meter.row(outcome.landed_at_all(), "per_commit").await?;
    outcome.verify(bench, &format!("W4 with {writers} writers")).await;
    Ok(outcome.row().merged(spent))
}

/// Latencies of a quiet table alone, and beside a hot one. Nobody tries again at once, so the hot table stays hot.
async fn quiet(bench: &Bench, lasting: Duration) -> Result<Row> {
    let tables = bench.fresh_tables(2).await?;
    let quiet = Crowd { pace: QUIET_PACE, ..Crowd::on_one(&tables[0], 1, Retry::STOCK).lasting(lasting) };
    let alone = quiet.run(bench, &bench.catalogs).await?;
    let crowd = Crowd::on_one(&tables[1], HOT_CLIENTS, Retry::NONE).lasting(lasting);
    let (beside, hot) = tokio::join!(quiet.run(bench, &bench.catalogs), crowd.run(bench, &bench.catalogs));
    let (beside, hot) = (beside?, hot?);
    let [alone_ms, beside_ms, hot_ms] = [&alone, &beside, &hot].map(|outcome| outcome.post().percentile_ms(50.0));
    let slowdown = alone_ms.zip(beside_ms).map(|(alone, beside)| ratio(beside, alone));
    let hot_per_s = hot.row().number("commits_per_s");
    alone.and(beside).verify(bench, "W4, the quiet table").await;
    hot.verify(bench, "W4, the hot table").await;
    Ok(Row::of("quiet_alone_p50_ms", alone_ms)
        .with("quiet_beside_p50_ms", beside_ms)
        .with("slowdown", slowdown)
        .with("hot_p50_ms", hot_ms)
        .with("hot_commits_per_s", hot_per_s))
}
