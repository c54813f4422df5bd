//! What every workload works with: the catalog's replicas, the store, the settings, and the report that grows.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::counters::{Counters, OBJECT_WRITES, SQL_ROUND_TRIPS};
use crate::ledger::{Ledger, verify};
use crate::measure::{ratio, rounded};
use crate::process::{Used, Watch, mib};
use crate::report::{Report, Result, Row};
use crate::rest::{Catalog, Name};
use crate::settings::Settings;
use crate::store::Store;
use crate::target::Target;

pub struct Bench {
    pub target: Target,
    pub settings: Settings,
    pub store: Arc<Store>,
    /// A client of each replica.
    pub catalogs: Vec<Catalog>,
    pub namespace: String,
    report: RefCell<Report>,
    tables: Cell<u64>,
}

impl Bench {
    pub async fn new(target: Target, settings: Settings, workload: &str) -> Result<Self> {
        let encoding = settings.text("accept-encoding").map(str::to_owned);
        let mut catalogs = Vec::new();
        for uri in target.uris() {
            catalogs.push(Catalog::connect(uri, &target, encoding.as_deref()).await?);
        }
        let report = Report::new(workload, &target, &settings);
        // Runs against one server do not meet.
        let namespace = format!("bench_{}_{}", workload.to_lowercase(), Uuid::new_v4().simple());
        let store = Arc::new(Store::open(&target.store)?);
        catalogs[0].create_namespace(&namespace).await?;
        Ok(Self { target, settings, store, catalogs, namespace, report: report.into(), tables: Cell::new(0) })
    }

    /// The first replica.
    pub fn catalog(&self) -> &Catalog {
        &self.catalogs[0]
    }

    pub fn root(&self) -> &str {
        self.target.store.root.trim_end_matches('/')
    }

    pub fn keeps_history(&self) -> bool {
        self.target.traits.keeps_history
    }

    /// A name that no table has.
    pub fn fresh_name(&self) -> Name {
        self.tables.set(self.tables.get() + 1);
        Name { namespace: self.namespace.clone(), name: format!("t{}", self.tables.get()) }
    }

    pub async fn fresh_table(&self) -> Result<Name> {
        let name = self.fresh_name();
        self.catalog().create_table(&name, &self.target.traits, self.root()).await?;
        Ok(name)
    }

    pub async fn fresh_tables(&self, count: usize) -> Result<Vec<Name>> {
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            names.push(self.fresh_table().await?);
        }
        Ok(names)
    }

    pub fn add(&self, row: Row) {
        self.report.borrow_mut().add(row);
    }

    pub fn check(&self, what: impl Into<String>, failures: Vec<String>) {
        self.report.borrow_mut().check(what, failures);
    }

    /// Holds a table against what its writers were told. A table that cannot be read is a failure of its own.
    pub async fn verify(&self, what: &str, table: &Name, ledger: &Ledger) {
        let failures = match verify(self.catalog(), &self.store, table, ledger).await {
            Ok(failures) => failures,
            Err(error) => vec![format!("the table cannot be read: {error}")],
        };
        self.check(format!("{what}: {}.{} has each acknowledged file once", table.namespace, table.name), failures);
    }

    /// One point of a workload, which must come to its end in time. One that does not is a failure; the run goes on.
    pub async fn point(&self, row: Row, within: Duration, point: impl Future<Output = Result<Row>>) {
        let start = Instant::now();
        let measured = timeout(within, point).await;
        let took_s = rounded(start.elapsed().as_secs_f64());
        self.store.sweep().await;
        let failed = match measured {
            Ok(Ok(measured)) => return self.add(row.merged(measured).with("took_s", took_s)),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("not done within {} s", within.as_secs()),
        };
        self.check(format!("the point {row} comes to its end"), vec![failed.clone()]);
        self.add(row.with("failed", failed));
    }

    pub async fn meter(&self) -> Result<Meter<'_>> {
        Ok(Meter {
            target: &self.target,
            counters: Counters::read(&self.target).await?,
            watch: Watch::start(&self.target.pids),
        })
    }

    pub fn into_report(self) -> Report {
        let mut report = self.report.into_inner();
        report.parameters = self.settings.used();
        let turned_away: u64 = self.catalogs.iter().map(Catalog::turned_away).sum();
        report.parameters.insert("turned_away".to_owned(), turned_away.into());
        let unused = self.settings.unused();
        if !unused.is_empty() {
            eprintln!("--set: {unused:?} mean nothing to this workload");
        }
        report
    }
}

/// What the server spends between two moments.
#[derive(Debug)]
pub struct Meter<'a> {
    target: &'a Target,
    counters: Option<Counters>,
    watch: Watch,
}

impl Meter<'_> {
    /// Spent for this many of something, which the keys name, as in `per_commit`.
    pub async fn row(self, count: usize, per: &str) -> Result<Row> {
        let used = self.watch.stop();
        let mut row = if self.target.pids.is_empty() { Row::default() } else { memory(&used) };
        if !self.target.pids.is_empty() {
            row = row.with(&format!("server_cpu_ms_{per}"), ratio(used.cpu_ms() as f64, count as f64));
        }
        let after = Counters::read(self.target).await?;
        let (Some(before), Some(after)) = (self.counters, after) else { return Ok(row) };
        for (key, counter) in [("sql_round_trips", SQL_ROUND_TRIPS), ("object_puts", OBJECT_WRITES)] {
            if let Some(spent) = after.since(&before, counter) {
                row = row.with(&format!("{key}_{per}"), ratio(spent, count as f64));
            }
        }
        Ok(row)
    }
}

fn memory(used: &Used) -> Row {
    Row::of("rss_mib_before", mib(used.before.rss_bytes))
        .with("rss_mib_peak", mib(used.peak_bytes))
        .with("rss_mib_after", mib(used.after.rss_bytes))
}
