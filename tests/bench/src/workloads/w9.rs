//! W9: memory and CPU of the server at rest, under writers on tables of their own, and after it was filled.

use std::time::Duration;

use tokio::time::sleep;

use super::w2::within;
use super::{w4, w7};
use crate::bench::Bench;
use crate::measure::ratio;
use crate::process::{Watch, mib};
use crate::report::{Result, Row};

pub async fn run(bench: &Bench) -> Result<()> {
    if bench.target.pids.is_empty() {
        return Err("W9 wants the server's processes: name them in `pids`".into());
    }
    let idle = bench.settings.seconds("idle-seconds", 10, 30)?;
    let writers = bench.settings.number("writers", 8, 8)? as usize;
    let lasting = bench.settings.seconds("seconds", 10, 20)?;
    let namespaces = bench.settings.number("namespaces", 100, 10_000)?;
    let each = bench.settings.number("tables", 10, 10)?;
    let loads = bench.settings.number("loads", 500, 5000)?;
    let limit = within(idle * 2);
    bench.point(Row::of("when", "at rest"), limit, rest(bench, idle)).await;
    bench
        .point(Row::of("when", "under W4").with("writers", writers), within(lasting), under_w4(bench, writers, lasting))
        .await;
    bench.point(Row::of("when", "at rest after W4"), limit, rest(bench, idle)).await;
    let filled = w7::fill_and_measure(bench, namespaces, each, loads);
    bench.point(Row::of("when", "W7"), Duration::from_secs(3600), filled).await;
    bench.point(Row::of("when", "at rest after W7"), limit, rest(bench, idle)).await;
    Ok(())
}

/// Nothing is asked of the server for a while before it is looked at, and while it is.
async fn rest(bench: &Bench, idle: Duration) -> Result<Row> {
    sleep(idle).await;
    let watch = Watch::start(&bench.target.pids);
    sleep(idle).await;
    let used = watch.stop();
    Ok(Row::of("rss_mib", mib(used.after.rss_bytes))
        .with("rss_mib_peak", mib(used.peak_bytes))
        .with("cpu_ms_per_s", ratio(used.cpu_ms() as f64, idle.as_secs_f64())))
}

async fn under_w4(bench: &Bench, writers: usize, lasting: Duration) -> Result<Row> {
    let row = w4::point(bench, writers, lasting, &bench.catalogs[..1]).await?;
    // A millisecond each is a second for a thousand.
    let cpu = row.number("server_cpu_ms_per_commit");
    Ok(row.with("cpu_s_per_1000_commits", cpu))
}
