//! W1: one writer on one table with a history, beside the floor.

use std::time::Duration;

use faults::writer::Retry;

use crate::bench::Bench;
use crate::crowd::Expiry;
use crate::floor::Floor;
use crate::history;
use crate::ledger::Ledger;
use crate::measure::{Samples, ratio};
use crate::report::{Result, Row};
use crate::rest::Name;
use crate::writer::{Commit, Ended, Writer};

const WARM_UP: usize = 10;
/// Histories that can be had by committing where none can be registered.
const GROWN_UP_TO: usize = 1000;
const POINT_WITHIN: Duration = Duration::from_secs(900);

pub async fn run(bench: &Bench) -> Result<()> {
    let sizes = bench.settings.numbers("snapshots", &[10, 100, 1000, 10_000], &[10, 100, 1000, 10_000])?;
    let commits = bench.settings.number("commits", 60, 200)? as usize;
    for size in sizes {
        let size = size as usize;
        if let Some(reason) = out_of_reach(bench, size) {
            bench.add(Row::of("writers", 1).with("snapshots", size).with("skipped", reason));
            continue;
        }
        bench.point(Row::of("writers", 1).with("snapshots", size), POINT_WITHIN, point(bench, size, commits)).await;
    }
    Ok(())
}

async fn point(bench: &Bench, size: usize, commits: usize) -> Result<Row> {
    let (table, mut ledger) = table_with(bench, size).await?;
    let mut floor = Floor::new(&bench.store, bench.root(), bench.target.floor_postgres.as_deref()).await?;
    let mut run = Run {
        bench,
        writer: Writer::of(bench.catalog(), &bench.store, &table, "w0").retrying(Retry::NONE),
        expiry: Expiry::of(bench.catalog(), &table),
        size,
    };
    let mut metadata_bytes = 0;
    for _ in 0..WARM_UP {
        metadata_bytes = run.commit(&mut ledger).await?.metadata_bytes;
        floor.measure(metadata_bytes).await?;
    }
    (floor.put, floor.update, floor.both) = Default::default();
    let (mut post, mut cycle, mut sent) = (Samples::default(), Samples::default(), 0);
    let mut spent = Vec::new();
    for _ in 0..commits {
        let done = run.commit(&mut ledger).await?;
        metadata_bytes = done.metadata_bytes;
        post.add(done.commit.post);
        cycle.add(done.commit.cycle);
        sent += done.commit.answer_bytes;
        spent.push(done.spent);
        floor.measure(metadata_bytes).await?;
        run.expire(done.commit.snapshots + 1).await?;
    }
    bench.verify(&format!("W1 at {size} snapshots"), &table, &ledger).await;
    let row = Row::of("commits", commits).percentiles("", &post).percentiles("cycle_", &cycle).merged(floor.row());
    let over = post.percentile_ms(50.0).zip(floor.p50_ms()).map(|(p50, floor)| ratio(p50, floor));
    Ok(row
        .with("ratio_to_floor", over)
        .with("bytes_written", metadata_bytes)
        .with("bytes_sent", sent / commits.max(1))
        .merged(mean(&spent)))
}

struct Run<'a> {
    bench: &'a Bench,
    writer: Writer,
    expiry: Expiry,
    size: usize,
}

/// A commit that has landed.
struct Done {
    commit: Commit,
    /// The size of the metadata file that it left.
    metadata_bytes: u64,
    /// What the server spent on the request.
    spent: Row,
}

impl Run<'_> {
    async fn commit(&mut self, ledger: &mut Ledger) -> Result<Done> {
        let begun = self.writer.begin_append().await?;
        let meter = self.bench.meter().await?;
        let commit = self.writer.see_through(begun).await?;
        let spent = meter.row(1, "per_commit").await?;
        ledger.enter(&commit);
        if commit.ended != Ended::Landed {
            return Err(format!("a single writer's commit ended so: {:?}", commit.ended).into());
        }
        // Who keeps metadata in a database tells no file, or an address of its own; the answer has about the same size.
        let metadata_bytes = match &commit.metadata_location {
            Some(location) if !location.starts_with("http") => self.bench.store.size_bytes(location).await?,
            _ => commit.answer_bytes as u64,
        };
        Ok(Done { commit, metadata_bytes, spent })
    }

    /// Holds the history near its length: a tenth more is taken back.
    async fn expire(&mut self, snapshots: usize) -> Result<()> {
        if self.bench.keeps_history() && snapshots > self.size + (self.size / 10).max(5) {
            self.expiry.expire(self.size).await?;
        }
        Ok(())
    }
}

/// Why no table can be had that retains so many snapshots.
pub fn out_of_reach(bench: &Bench, size: usize) -> Option<&'static str> {
    match (bench.keeps_history(), bench.target.traits.registers) {
        (false, _) if size > 10 => Some("the server keeps no history: its figures are those at 10 snapshots"),
        (true, false) if size > GROWN_UP_TO => {
            Some("no table can be registered, and to commit so often takes too long")
        }
        _ => None,
    }
}

/// A table that retains so many snapshots, and what is known of its files.
pub async fn table_with(bench: &Bench, size: usize) -> Result<(Name, Ledger)> {
    if bench.target.traits.registers && bench.keeps_history() {
        let name = bench.fresh_name();
        history::register(bench, &name, size).await?;
        return Ok((name, Ledger::default()));
    }
    if bench.keeps_history() && size > GROWN_UP_TO {
        return Err(
            format!("no table can be registered, and {size} commits before the first would take too long").into()
        );
    }
    let (name, mut ledger) = (bench.fresh_table().await?, Ledger::default());
    let mut writer = Writer::of(bench.catalog(), &bench.store, &name, "grower");
    for _ in 0..if bench.keeps_history() { size } else { 1 } {
        ledger.enter(&writer.append().await?);
    }
    Ok((name, ledger))
}

/// Of each number its mean, of memory its last and highest.
fn mean(rows: &[Row]) -> Row {
    let numbers = |key: &str| -> Vec<f64> { rows.iter().filter_map(|row| row.number(key)).collect() };
    let mut mean = Row::default();
    for key in ["server_cpu_ms_per_commit", "sql_round_trips_per_commit", "object_puts_per_commit"] {
        let found = numbers(key);
        if !found.is_empty() {
            mean = mean.with(key, ratio(found.iter().sum(), found.len() as f64));
        }
    }
    let first = numbers("rss_mib_before").first().copied();
    let peak = numbers("rss_mib_peak").into_iter().reduce(f64::max);
    let last = numbers("rss_mib_after").last().copied();
    for (key, value) in [("rss_mib_before", first), ("rss_mib_peak", peak), ("rss_mib_after", last)] {
        if let Some(value) = value {
            mean = mean.with(key, value);
        }
    }
    mean
}
