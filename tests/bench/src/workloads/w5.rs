//! W5: loading tables with long histories: whole, with the snapshots of refs alone, and unchanged.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::w1::{out_of_reach, table_with};
use crate::bench::Bench;
use crate::measure::{Samples, ratio};
use crate::report::{Result, Row};
use crate::rest::Catalog;

const POINT_WITHIN: Duration = Duration::from_secs(600);
/// A document of 100,000 snapshots has some 100 MB: of such a few tell enough.
const LOADS_AT_LEAST: usize = 3;

/// What a load asks for.
#[derive(Debug, Clone)]
struct Load {
    what: &'static str,
    path: String,
    etag: Option<String>,
    status: u16,
}

pub async fn run(bench: &Bench) -> Result<()> {
    let sizes = bench.settings.numbers("snapshots", &[10, 1000, 10_000], &[10, 1000, 10_000, 100_000])?;
    let readers = bench.settings.numbers("readers", &[1, 64], &[1, 64])?;
    let lasting = bench.settings.seconds("seconds", 4, 10)?;
    for size in sizes {
        if let Some(reason) = out_of_reach(bench, size as usize) {
            bench.add(Row::of("snapshots", size).with("skipped", reason));
            continue;
        }
        let loads = loads(bench, size as usize).await?;
        for load in &loads {
            for readers in &readers {
                let row = Row::of("snapshots", size).with("readers", *readers).with("load", load.what);
                bench.point(row, POINT_WITHIN, point(bench, load, *readers as usize, lasting)).await;
            }
        }
    }
    Ok(())
}

/// The loads of a fresh table; without an ETag in answers there is no 304.
async fn loads(bench: &Bench, size: usize) -> Result<Vec<Load>> {
    let (table, _) = table_with(bench, size).await?;
    let etag = bench.catalog().get(&table.path()).await?.expect(200)?.etag;
    let mut loads = vec![
        Load { what: "full", path: table.path(), etag: None, status: 200 },
        Load { what: "refs", path: format!("{}?snapshots=refs", table.path()), etag: None, status: 200 },
    ];
    match etag {
        Some(etag) => loads.push(Load { what: "304", path: table.path(), etag: Some(etag), status: 304 }),
        None => bench.add(Row::of("snapshots", size).with("load", "304").with("skipped", "answers have no ETag")),
    }
    Ok(loads)
}

async fn point(bench: &Bench, load: &Load, readers: usize, lasting: Duration) -> Result<Row> {
    for _ in 0..LOADS_AT_LEAST {
        read_once(bench.catalog(), load).await?;
    }
    let meter = bench.meter().await?;
    let start = Instant::now();
    let mut reading = JoinSet::new();
    for index in 0..readers {
        let catalog = bench.catalogs[index % bench.catalogs.len()].clone();
        reading.spawn(read(catalog, load.clone(), start + lasting));
    }
    let (mut samples, mut bytes) = (Samples::default(), 0);
    while let Some(read) = reading.join_next().await {
        let (took, read_bytes) = read??;
        samples.extend(&took);
        bytes += read_bytes;
    }
    let (loads, lasted) = (samples.count(), start.elapsed());
    let spent = meter.row(loads, "per_load").await?;
    Ok(Row::of("loads", loads)
        .with("requests_per_s", ratio(loads as f64, lasted.as_secs_f64()))
        .with("bytes", bytes / (loads as u64).max(1))
        .percentiles("", &samples)
        .merged(spent))
}

/// One load after the other until the time is over, but a few at least; what was read is dropped unparsed.
async fn read(catalog: Catalog, load: Load, until: Instant) -> Result<(Samples, u64)> {
    let (mut samples, mut bytes) = (Samples::default(), 0);
    while Instant::now() < until || samples.count() == 0 {
        let (took, read) = read_once(&catalog, &load).await?;
        samples.add(took);
        bytes += read;
    }
    Ok((samples, bytes))
}

async fn read_once(catalog: &Catalog, load: &Load) -> Result<(Duration, u64)> {
    let (status, bytes, took) = catalog.drain(&load.path, load.etag.as_deref()).await?;
    if status != load.status {
        return Err(format!("{} was asked for and {status} was the answer", load.what).into());
    }
    Ok((took, bytes))
}
