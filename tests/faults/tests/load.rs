//! A small load of commits and reads that goes on whatever happens, and holds every answer against what is there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use faults::catalog::{Answer, Catalog};
use faults::wait::{HANGS_AFTER, until};
use faults::writer::identity::spark_batch;
use faults::writer::{Prepared, Table};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::probe::Probe;

/// Nobody else has the machine where nobody pauses.
const PAUSE: Duration = Duration::from_millis(20);

/// Writers with a table each, so that there is no conflict, and a reader for each table.
pub struct Load {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<Written>>,
    readers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    acknowledged: AtomicUsize,
    loaded: AtomicUsize,
    /// Answers to commits by status.
    told: Mutex<BTreeMap<u16, usize>>,
}

/// A table, and the snapshots that must be all that is in it.
struct Written {
    probe: Probe,
    acknowledged: Vec<i64>,
}

impl Load {
    pub async fn begin(catalog: &Catalog, tables: usize) -> Self {
        catalog.create_namespace("load").await;
        let shared = Arc::<Shared>::default();
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for number in 0..tables {
            catalog.create_table("load", &format!("t{number}"), &json!({})).await;
            let path = format!("/namespaces/load/tables/t{number}");
            readers.push(tokio::spawn(read(catalog.clone(), path.clone(), shared.clone())));
            writers.push(tokio::spawn(write(Probe::of(catalog, &path), shared.clone())));
        }
        Self { shared, writers, readers }
    }

    /// Until so many more commits were acknowledged, and so many loads answered.
    pub async fn wait_for_more(&self, count: usize) {
        let now = || [&self.shared.acknowledged, &self.shared.loaded].map(|count| count.load(Ordering::SeqCst));
        let before = now();
        until("commits and loads go on", async || {
            self.assert_honest();
            now().iter().zip(before).all(|(now, before)| *now >= before + count).then_some(())
        })
        .await;
    }

    /// How many commits were answered with one of these so far.
    pub fn told(&self, statuses: &[u16]) -> usize {
        let told = self.shared.told.lock().unwrap();
        statuses.iter().filter_map(|status| told.get(status)).sum()
    }

    /// Who met a false answer has ended.
    fn assert_honest(&self) {
        let ended =
            self.writers.iter().any(JoinHandle::is_finished) || self.readers.iter().any(JoinHandle::is_finished);
        assert!(!ended, "an answer was false: see above");
    }

    /// Ends the load. Every commit that was acknowledged is in its table, once and in order, and nothing else is.
    pub async fn end(self) {
        self.shared.over.store(true, Ordering::SeqCst);
        for reader in self.readers {
            reader.await.unwrap();
        }
        for writer in self.writers {
            let Written { probe, acknowledged } = writer.await.unwrap();
            let table = probe.table().await;
            table.assert_whole();
            assert_eq!(table.chain(), acknowledged, "{}", probe.writer.table);
            assert_eq!(table.snapshots().len(), acknowledged.len(), "{}", probe.writer.table);
        }
        println!("answers to commits: {:?}", self.shared.told.lock().unwrap());
    }
}

async fn write(mut probe: Probe, shared: Arc<Shared>) -> Written {
    let mut acknowledged = Vec::new();
    // What the last answer brought is built on, so that whatever happens next, a commit meets it.
    let mut known = table(&probe).await;
    while !shared.over.load(Ordering::SeqCst) {
        let key = format!("row-{}", acknowledged.len());
        let prepared = probe.append_on(&known, &key, spark_batch());
        known = see_through(&probe, &prepared, &shared).await;
        acknowledged.push(prepared.snapshot_id);
        shared.acknowledged.fetch_add(1, Ordering::SeqCst);
        sleep(PAUSE).await;
    }
    Written { probe, acknowledged }
}

/// Sends one commit until it is acknowledged, and gives the table that the answer brings. Nobody else writes to the table,
/// so that there is no reason for a 4xx; and what is said not to have been applied is not there.
async fn see_through(probe: &Probe, prepared: &Prepared, shared: &Shared) -> Table {
    loop {
        let answer = probe.send(prepared).await.unwrap();
        *shared.told.lock().unwrap().entry(answer.status).or_default() += 1;
        match answer.status {
            200 => return Table::of(answer.json()["metadata"].take(), &probe.writer.branch),
            429 | 503 => {
                assert!(answer.retry_after, "{answer:?}");
                let has_it = table(probe).await.has(prepared.snapshot_id);
                assert!(!has_it, "{} was said not to be applied and is: {answer:?}", prepared.snapshot_id);
            }
            _ => assert!(answer.is_unknown(), "{answer:?}"),
        }
        sleep(PAUSE).await;
    }
}

/// The table, as soon as it can be loaded.
async fn table(probe: &Probe) -> Table {
    let end = Instant::now() + HANGS_AFTER;
    loop {
        let answer = probe.writer.catalog.get(&probe.writer.table).await.unwrap();
        assert_read(&answer);
        if answer.status == 200 {
            return Table::of(answer.json()["metadata"].take(), &probe.writer.branch);
        }
        assert!(Instant::now() < end, "waited in vain: the table loads");
        sleep(PAUSE).await;
    }
}

async fn read(catalog: Catalog, table: String, shared: Arc<Shared>) {
    while !shared.over.load(Ordering::SeqCst) {
        let answer = catalog.get(&table).await.unwrap();
        assert_read(&answer);
        shared.loaded.fetch_add(usize::from(answer.status == 200), Ordering::SeqCst);
        sleep(PAUSE).await;
    }
}

/// A load brings the table or says that it cannot now: never that there is none.
#[track_caller]
pub fn assert_read(answer: &Answer) {
    assert!(matches!(answer.status, 200 | 429 | 503), "{answer:?}");
    assert!(answer.status == 200 || answer.retry_after, "{answer:?}");
}
