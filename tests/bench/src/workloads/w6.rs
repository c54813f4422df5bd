//! W6: a compaction loop races appends that come at their own times.

use std::sync::Arc;
use std::time::Duration;

use faults::writer::Retry;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::w2::within;
use crate::bench::Bench;
use crate::ledger::Ledger;
use crate::measure::{Samples, ratio};
use crate::report::{Result, Row};
use crate::rest::Name;
use crate::writer::{Commit, Ended, Writer};

/// Between two compactions.
const BREATH: Duration = Duration::from_millis(500);

pub async fn run(bench: &Bench) -> Result<()> {
    let rates = bench.settings.numbers("appends-per-s", &[5], &[1, 5, 20])?;
    let lasting = bench.settings.seconds("seconds", 30, 60)?;
    for rate in rates {
        bench.point(Row::of("appends_per_s", rate), within(lasting), point(bench, rate, lasting)).await;
    }
    Ok(())
}

async fn point(bench: &Bench, rate: u64, lasting: Duration) -> Result<Row> {
    let table = bench.fresh_table().await?;
    let meter = bench.meter().await?;
    let until = Instant::now() + lasting;
    let compactor = Writer::of(bench.catalog(), &bench.store, &table, "compactor").retrying(Retry::STOCK);
    let (appends, compactions) = tokio::join!(append_at(bench, &table, rate, until), compact_until(compactor, until));
    let (appends, compactions) = (appends?, compactions?);
    let spent = meter.row(appends.commits.len() + compactions.len(), "per_commit").await?;
    let mut ledger = Ledger::default();
    appends.commits.iter().chain(&compactions).for_each(|commit| ledger.enter(commit));
    bench.verify(&format!("W6 at {rate} appends/s"), &table, &ledger).await;
    Ok(appends.row(Duration::from_secs(1) / rate as u32).merged(compacted(&compactions)).merged(spent))
}

/// Appends by the time of their answers.
struct Appends {
    commits: Vec<Commit>,
    failed: usize,
}

/// An append is begun when it is due, whether those before it have ended or not. As many writers take turns as are
/// needed for it.
async fn append_at(bench: &Bench, table: &Name, rate: u64, until: Instant) -> Result<Appends> {
    let apart = Duration::from_secs(1) / rate as u32;
    let idle: Arc<std::sync::Mutex<Vec<Writer>>> = Arc::default();
    let (mut appending, mut due, mut writers) = (JoinSet::new(), Instant::now(), 0);
    while due < until {
        sleep_until(due).await;
        due += apart;
        let free = idle.lock().map_err(|_| "a writer ended before its time")?.pop();
        let mut writer = free.unwrap_or_else(|| {
            writers += 1;
            Writer::of(bench.catalog(), &bench.store, table, &format!("appender-{writers}")).retrying(Retry::STOCK)
        });
        let idle = idle.clone();
        appending.spawn(async move {
            let committed = writer.append().await;
            if let Ok(mut idle) = idle.lock() {
                idle.push(writer);
            }
            committed
        });
    }
    let mut appends = Appends { commits: Vec::new(), failed: 0 };
    while let Some(committed) = appending.join_next().await {
        match committed? {
            Ok(commit) => appends.commits.push(commit),
            Err(error) => {
                eprintln!("an append failed: {error}");
                appends.failed += 1;
            }
        }
    }
    Ok(appends)
}

async fn compact_until(mut compactor: Writer, until: Instant) -> Result<Vec<Commit>> {
    let mut compactions = Vec::new();
    while Instant::now() < until {
        if let Some(commit) = compactor.compact().await? {
            compactions.push(commit);
        }
        sleep(BREATH).await;
    }
    Ok(compactions)
}

impl Appends {
    /// An append is late where it was answered after the next was due, and where it was retried.
    fn row(&self, apart: Duration) -> Row {
        let mut cycles = Samples::default();
        let landed = || self.commits.iter().filter(|commit| commit.ended == Ended::Landed);
        landed().for_each(|commit| cycles.add(commit.cycle));
        let count = |of: &dyn Fn(&&Commit) -> bool| landed().filter(of).count();
        let attempts: u32 = self.commits.iter().map(|commit| commit.attempts).sum();
        Row::of("appends", self.commits.len() + self.failed)
            .with("appends_lost", self.commits.len() + self.failed - landed().count())
            .with("appends_late", count(&|commit| commit.cycle > apart || commit.attempts > 1))
            .with("appends_retried", count(&|commit| commit.attempts > 1))
            .with("attempts_per_append", ratio(f64::from(attempts), landed().count() as f64))
            .percentiles("append_", &cycles)
    }
}

/// Work is thrown away by each attempt that did not land: the files it had read and put together.
fn compacted(compactions: &[Commit]) -> Row {
    let landed = || compactions.iter().filter(|commit| commit.ended == Ended::Landed);
    let wasted = |commit: &Commit| {
        let lost = commit.attempts as usize - usize::from(commit.ended == Ended::Landed);
        lost * commit.rewritten
    };
    let mut cycles = Samples::default();
    landed().for_each(|commit| cycles.add(commit.cycle));
    Row::of("compactions", compactions.len())
        .with("compactions_finished", landed().count())
        .with("compactions_first_time", landed().filter(|commit| commit.attempts == 1).count())
        .with("compactions_retried", landed().filter(|commit| commit.attempts > 1).count())
        .with("compactions_failed", compactions.len() - landed().count())
        .with("files_rewritten", landed().map(|commit| commit.rewritten).sum::<usize>())
        .with("files_rewritten_in_vain", compactions.iter().map(wasted).sum::<usize>())
        .percentiles("compaction_", &cycles)
}
