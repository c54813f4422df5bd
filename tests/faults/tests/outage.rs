//! A database that restarts, is away for a while, or hangs: commits end honestly, and all goes on by itself.

use std::time::Duration;

use faults::cluster::Cluster;
use faults::database::{Database, through};
use faults::frazil::{Frazil, Launch};
use faults::proxy::postgres::{Fault, Place};
use faults::proxy::{Gate, Proxy};
use faults::wait::until;
use faults::writer::identity::spark_batch;
use futures::future::join_all;
use tokio::time::sleep;

use crate::load::{Load, assert_read};
use crate::probe::{Probe, TABLE};

const TABLES: usize = 6;

/// An outage as it is, with everything that waits for its end scaled down.
const OUTAGE: Duration = Duration::from_secs(6);
const DEADLINE_MS: u32 = 2_000;
const WAIT_MS: u32 = 300;

/// How memory may grow while nothing is answered, beside what is doubled by chance.
const MORE_BYTES: u64 = 256 << 20;

async fn restarts(stop: impl Fn(&mut Cluster)) {
    let mut cluster = Cluster::start(&[]);
    let launch = Launch::on(&cluster.url("postgres")).set("database.wait_ms", 1_000);
    let server = Frazil::start(&launch).await;
    let load = Load::begin(&server.catalog(), TABLES).await;
    for _ in 0..3 {
        load.wait_for_more(20).await;
        stop(&mut cluster);
        cluster.run();
    }
    load.wait_for_more(20).await;
    load.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_restarted_in_order_loses_no_commit_and_tells_no_lie() {
    restarts(Cluster::stop).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_restarted_at_once_loses_no_commit_and_tells_no_lie() {
    restarts(Cluster::crash).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_away_everything_is_refused_and_afterwards_all_is_well() {
    let mut cluster = Cluster::start(&[]);
    let launch = Launch::on(&cluster.url("postgres"));
    let launch = launch.set("commit.deadline_ms", DEADLINE_MS).set("database.wait_ms", WAIT_MS);
    let server = Frazil::start(&launch).await;
    let catalog = server.catalog();
    let load = Load::begin(&catalog, TABLES).await;
    load.wait_for_more(20).await;
    let resident_before = server.resident_bytes();
    cluster.crash();
    until("the server is not ready", async || (!catalog.is_ready().await).then_some(())).await;
    let loads = join_all((0..200).map(|_| catalog.get("/namespaces/load/tables/t0"))).await;
    for answer in loads {
        answer.unwrap().refused(503, "ServiceUnavailableException");
    }
    sleep(OUTAGE).await;
    assert!(!catalog.is_ready().await);
    assert_eq!(catalog.get("/health/live").await.unwrap().status, 200, "a restart of the process would not help");
    let resident = server.resident_bytes();
    assert!(resident < 2 * resident_before + MORE_BYTES, "{resident_before} bytes became {resident}");
    cluster.run();
    load.wait_for_more(50).await;
    assert!(catalog.is_ready().await);
    assert!(load.told(&[429, 500, 503]) > 0, "no commit met the outage");
    load.end().await;
}

/// As a machine does that is paused: its connections stay, and nothing is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_stands_still_for_a_while_loses_no_commit_and_tells_no_lie() {
    let cluster = Cluster::start(&[]);
    let launch = Launch::on(&cluster.url("postgres"));
    let launch = launch.set("commit.deadline_ms", DEADLINE_MS).set("database.wait_ms", WAIT_MS);
    let server = Frazil::start(&launch).await;
    let load = Load::begin(&server.catalog(), TABLES).await;
    for _ in 0..2 {
        load.wait_for_more(20).await;
        cluster.freeze();
        sleep(OUTAGE).await;
        cluster.thaw();
    }
    load.wait_for_more(20).await;
    load.end().await;
}

/// As a machine does that is gone without a word: the system would believe in its connections for a quarter of an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_on_which_nothing_is_answered_any_more_are_given_up() {
    let database = Database::create().await;
    let proxy = Proxy::postgres(&database.address()).await;
    let launch = Launch::on(&through(&database.url(), &proxy.address()));
    let launch = launch.set("database.connections", 2).set("database.wait_ms", WAIT_MS);
    let server = Frazil::start(&launch).await;
    let catalog = server.catalog();
    let mut probe = Probe::new(&catalog).await;
    let prepared = probe.append("second", spark_batch()).await;
    let never = Gate::closed();
    proxy.plan(Fault::at("FROM tabular", Place::HoldAnswer(never.clone())));
    proxy.plan(Fault::at(crate::connection::SWAP, Place::HoldAnswer(never.clone())));
    let stuck = {
        let (catalog, writer, prepared) = (catalog.clone(), probe.writer.clone(), prepared.clone());
        let load = tokio::spawn(async move { catalog.get(TABLE).await });
        proxy.wait_for(1).await;
        let commit = tokio::spawn(async move { writer.send(&prepared).await });
        proxy.wait_for(2).await;
        (load, commit)
    };
    // No connection is left.
    catalog.get(TABLE).await.unwrap().refused(503, "ServiceUnavailableException");
    until("there are connections again", async || (catalog.get(TABLE).await.ok()?.status == 200).then_some(())).await;
    assert_read(&stuck.0.await.unwrap().unwrap());
    let told = stuck.1.await.unwrap();
    assert!(probe.settle(&prepared, told).await, "it was carried out");
    never.open();
}

/// Two connections and a database that takes its time: who waits is served in the end or turned away, and nobody waits
/// for somebody who waits for him.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_is_exhausted_turns_away_in_time_and_never_locks_up() {
    let database = Database::create().await;
    let proxy = Proxy::postgres(&database.address()).await;
    let launch = Launch::on(&through(&database.url(), &proxy.address()));
    let launch = launch.set("database.connections", 2).set("database.wait_ms", WAIT_MS);
    let server = Frazil::start(&launch).await;
    let catalog = server.catalog();
    let load = Load::begin(&catalog, TABLES).await;
    load.wait_for_more(10).await;
    proxy.plan_for_good(Fault::at("", Place::Delay(Duration::from_millis(150))));
    let crowd = join_all((0..100).map(|number| {
        let catalog = catalog.clone();
        async move {
            match number % 2 {
                0 => catalog.get("/namespaces/load/tables/t0").await,
                _ => catalog.post("/namespaces", &serde_json::json!({"namespace": [format!("n{number}")]})).await,
            }
        }
    }))
    .await;
    let refused = crowd.iter().filter(|answer| matches!(answer.as_ref().unwrap().status, 429 | 503)).count();
    crowd.into_iter().for_each(|answer| assert_read(&answer.unwrap()));
    assert!(refused > 0, "the pool was large enough");
    load.wait_for_more(5).await;
    proxy.behave();
    load.wait_for_more(20).await;
    load.end().await;
}
