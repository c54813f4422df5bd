//! Writers at work at the same time, for a fixed time, and an expiry that keeps their tables short.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use faults::writer::{Retry, Table};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::bench::Bench;
use crate::ledger::Ledger;
use crate::measure::{Samples, fairness, ratio};
use crate::report::{Result, Row};
use crate::rest::{Catalog, Name};
use crate::writer::{Commit, Ended, Writer};

/// Expiry begins at so many snapshots …
const EXPIRED_FROM: usize = 60;
/// … and leaves so many.
const KEPT: usize = 40;

/// How long a writer may finish what it has begun when the time is over.
const FINISHES_WITHIN: Duration = Duration::from_secs(150);
/// Between commits that failed outright: a broken server is not to be flooded.
const AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Who writes what, and for how long.
pub struct Crowd {
    /// One for each writer.
    pub tables: Vec<Name>,
    pub retry: Retry,
    /// What ends in it is verified but not counted.
    pub warm_up: Duration,
    pub counted: Duration,
    /// From the start of one commit to the next, at least.
    pub pace: Duration,
}

/// What one writer got.
#[derive(Debug, Default)]
pub struct Tally {
    pub landed: usize,
    /// With those of the warm-up and those that ended late.
    pub landed_at_all: usize,
    pub conflicted: usize,
    pub refused: usize,
    pub unknown: usize,
    pub attempts: usize,
    /// The most snapshots that it met.
    pub snapshots: usize,
    /// Requests of landed commits, and landed commits from load to answer.
    pub post: Samples,
    pub cycle: Samples,
    ledger: Ledger,
    said: Vec<String>,
}

/// What all got.
pub struct Outcome {
    /// In the order of the writers.
    pub tallies: Vec<Tally>,
    pub ledgers: Vec<(Name, Ledger)>,
    pub expiries: Expiries,
    counted: Duration,
}

/// Work of the expiry tasks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expiries {
    pub done: usize,
    pub conflicts: usize,
}

impl Crowd {
    /// So many writers of one table.
    pub fn on_one(table: &Name, writers: usize, retry: Retry) -> Self {
        Self::on(vec![table.clone(); writers], retry)
    }

    pub fn on(tables: Vec<Name>, retry: Retry) -> Self {
        let warm_up = Duration::from_secs(2);
        Self { tables, retry, warm_up, counted: Duration::from_secs(10), pace: Duration::ZERO }
    }

    pub fn lasting(self, counted: Duration) -> Self {
        Self { counted, ..self }
    }

    /// Writers are spread over the catalogs. Ends when all have finished what they had begun.
    pub async fn run(&self, bench: &Bench, catalogs: &[Catalog]) -> Result<Outcome> {
        let counted_from = Instant::now() + self.warm_up;
        let until = counted_from + self.counted;
        let mut distinct = self.tables.clone();
        distinct.dedup();
        let expiries: Vec<Arc<Expiry>> =
            distinct.iter().map(|table| Arc::new(Expiry::of(bench.catalog(), table))).collect();
        let mut expiring = JoinSet::new();
        for expiry in expiries.iter().filter(|_| bench.keeps_history()) {
            expiring.spawn(expiry.clone().run());
        }
        let mut writing = JoinSet::new();
        for (index, table) in self.tables.iter().enumerate() {
            let place = distinct.iter().position(|known| known == table).unwrap_or(0);
            let catalog = &catalogs[index % catalogs.len()];
            let writer = Writer::of(catalog, &bench.store, table, &format!("w{index}")).retrying(self.retry);
            let work = work(writer, expiries[place].clone(), counted_from, until, self.pace);
            writing.spawn(async move { (index, timeout(self_limit(until), work).await) });
        }
        let tallies = joined(&mut writing, self.tables.len()).await?;
        expiring.shutdown().await;
        Ok(self.outcome(distinct, tallies, &expiries))
    }

    fn outcome(&self, distinct: Vec<Name>, mut tallies: Vec<Tally>, expiries: &[Arc<Expiry>]) -> Outcome {
        let mut ledgers: Vec<(Name, Ledger)> = distinct.into_iter().map(|name| (name, Ledger::default())).collect();
        for (tally, table) in tallies.iter_mut().zip(&self.tables) {
            if let Some((_, ledger)) = ledgers.iter_mut().find(|(name, _)| name == table) {
                ledger.merge(std::mem::take(&mut tally.ledger));
            }
        }
        let count = |of: fn(&Expiry) -> &AtomicUsize| expiries.iter().map(|e| of(e).load(Ordering::Relaxed)).sum();
        let expiries = Expiries { done: count(|e| &e.done), conflicts: count(|e| &e.conflicts) };
        Outcome { tallies, ledgers, expiries, counted: self.counted }
    }
}

fn self_limit(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()) + FINISHES_WITHIN
}

type Finished = (usize, std::result::Result<Tally, tokio::time::error::Elapsed>);

async fn joined(writing: &mut JoinSet<Finished>, writers: usize) -> Result<Vec<Tally>> {
    let mut tallies: Vec<Tally> = (0..writers).map(|_| Tally::default()).collect();
    while let Some(finished) = writing.join_next().await {
        let (index, tally) = finished.map_err(|error| format!("a writer ended before its time: {error}"))?;
        tallies[index] = tally.map_err(|_| format!("writer {index} did not finish its last commit"))?;
    }
    Ok(tallies)
}

/// Commits one after the other until the time is over.
async fn work(mut writer: Writer, expiry: Arc<Expiry>, counted_from: Instant, until: Instant, pace: Duration) -> Tally {
    let mut tally = Tally::default();
    while Instant::now() < until {
        let next = Instant::now() + pace;
        let committed = writer.append().await;
        let is_counted = (counted_from..until).contains(&Instant::now());
        match committed {
            Ok(commit) => {
                expiry.saw(commit.snapshots);
                tally.ledger.enter(&commit);
                tally.landed_at_all += usize::from(commit.ended == Ended::Landed);
                if is_counted {
                    tally.count(&commit);
                }
                if matches!(commit.ended, Ended::Refused(_) | Ended::Unknown(_)) {
                    sleep(AFTER_FAILURE).await;
                }
            }
            Err(error) => {
                tally.refused += usize::from(is_counted);
                tally.says(&error.to_string());
                sleep(AFTER_FAILURE).await;
            }
        }
        sleep_until(next).await;
    }
    tally
}

impl Tally {
    fn count(&mut self, commit: &Commit) {
        self.attempts += commit.attempts as usize;
        self.snapshots = self.snapshots.max(commit.snapshots);
        match &commit.ended {
            Ended::Landed => {
                self.landed += 1;
                self.post.add(commit.post);
                self.cycle.add(commit.cycle);
            }
            Ended::Conflicted => self.conflicted += 1,
            Ended::Refused(said) => {
                self.refused += 1;
                self.says(said);
            }
            Ended::Unknown(said) => {
                self.unknown += 1;
                self.says(said);
            }
        }
    }

    fn says(&mut self, said: &str) {
        if self.said.len() < 3 && !self.said.iter().any(|known| known == said) {
            self.said.push(said.to_owned());
        }
    }

    pub fn commits(&self) -> usize {
        self.landed + self.conflicted + self.refused + self.unknown
    }
}

impl Outcome {
    pub fn landed(&self) -> usize {
        self.sum(|tally| tally.landed)
    }

    /// What the server's costs are to be divided by: they are taken from the start to the end.
    pub fn landed_at_all(&self) -> usize {
        self.sum(|tally| tally.landed_at_all)
    }

    pub fn sum(&self, of: impl Fn(&Tally) -> usize) -> usize {
        self.tallies.iter().map(of).sum()
    }

    pub fn post(&self) -> Samples {
        let mut all = Samples::default();
        self.tallies.iter().for_each(|tally| all.extend(&tally.post));
        all
    }

    pub fn row(&self) -> Row {
        let mut cycles = Samples::default();
        self.tallies.iter().for_each(|tally| cycles.extend(&tally.cycle));
        let (landed, commits) = (self.landed() as f64, self.sum(Tally::commits) as f64);
        let mut row = Row::of("commits_per_s", ratio(landed, self.counted.as_secs_f64()))
            .with("landed", self.landed())
            .with("conflicted", self.sum(|tally| tally.conflicted))
            .with("refused", self.sum(|tally| tally.refused))
            .with("unknown", self.sum(|tally| tally.unknown))
            .with("success_rate", ratio(landed, commits))
            .with("attempts_per_commit", ratio(self.sum(|tally| tally.attempts) as f64, landed))
            .with("fairness", fairness(self.tallies.iter().map(|tally| tally.landed)))
            .with("snapshots_at_most", self.tallies.iter().map(|tally| tally.snapshots).max())
            .with("expiries", self.expiries.done)
            .with("expiry_conflicts", self.expiries.conflicts)
            .percentiles("", &self.post())
            .percentiles("cycle_", &cycles);
        let said: Vec<&String> = self.tallies.iter().flat_map(|tally| &tally.said).take(3).collect();
        if !said.is_empty() {
            row = row.with("said", said.iter().map(|said| said.as_str()).collect::<Vec<_>>().join(" | "));
        }
        row
    }

    /// With what became of the same tables later.
    pub fn and(mut self, later: Outcome) -> Self {
        for ((_, ledger), (_, more)) in self.ledgers.iter_mut().zip(later.ledgers) {
            ledger.merge(more);
        }
        self
    }

    pub async fn verify(&self, bench: &Bench, what: &str) {
        for (table, ledger) in &self.ledgers {
            bench.verify(what, table, ledger).await;
        }
    }
}

/// Expires the oldest snapshots of a table as soon as a writer sees too many.
#[derive(Debug)]
pub struct Expiry {
    catalog: Catalog,
    table: Name,
    wanted: Notify,
    done: AtomicUsize,
    conflicts: AtomicUsize,
}

impl Expiry {
    pub fn of(catalog: &Catalog, table: &Name) -> Self {
        Self {
            catalog: catalog.clone(),
            table: table.clone(),
            wanted: Notify::new(),
            done: AtomicUsize::new(0),
            conflicts: AtomicUsize::new(0),
        }
    }

    pub fn saw(&self, snapshots: usize) {
        if snapshots >= EXPIRED_FROM {
            self.wanted.notify_one();
        }
    }

    async fn run(self: Arc<Self>) {
        loop {
            self.wanted.notified().await;
            // It tries until it succeeds: a conflict asks for a fresh load, a failure for patience.
            match self.expire(KEPT).await {
                Ok(true) => {}
                Ok(false) => self.wanted.notify_one(),
                Err(_) => sleep(AFTER_FAILURE).await,
            }
        }
    }

    /// Leaves the newest `kept` snapshots. False where a commit came between.
    pub async fn expire(&self, kept: usize) -> Result<bool> {
        let table = Table::of(self.catalog.load(&self.table).await?.metadata, "main");
        let ids = oldest(&table, kept);
        if ids.is_empty() {
            return Ok(true);
        }
        let body = json!({
            "requirements": [{"type": "assert-table-uuid", "uuid": table.metadata["table-uuid"]}],
            "updates": [{"action": "remove-snapshots", "snapshot-ids": ids}],
        });
        let answer = self.catalog.post(&self.table.path(), &body).await?;
        if answer.status == 409 {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
            return Ok(false);
        }
        answer.expect(200)?;
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}

/// All snapshots but the newest of the chain.
fn oldest(table: &Table, kept: usize) -> Vec<i64> {
    let mut by_age: Vec<&Value> = table.snapshots().iter().collect();
    by_age.sort_by_key(|snapshot| snapshot["sequence-number"].as_i64());
    by_age.truncate(by_age.len().saturating_sub(kept));
    let ids = by_age.iter().filter_map(|snapshot| snapshot["snapshot-id"].as_i64());
    ids.filter(|id| Some(*id) != table.head()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_takes_the_oldest_and_never_the_head() {
        let snapshots: Vec<Value> =
            (1..=5).map(|number| json!({"snapshot-id": 10 * number, "sequence-number": number})).collect();
        let table =
            |head: i64| Table::of(json!({"snapshots": snapshots, "refs": {"main": {"snapshot-id": head}}}), "main");
        assert_eq!(oldest(&table(50), 2), [10, 20, 30]);
        assert_eq!(oldest(&table(10), 2), [20, 30]);
        assert_eq!(oldest(&table(50), 9), Vec::<i64>::new());
    }
}
