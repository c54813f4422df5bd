//! A primary with a standby: commits that wait for it, and failovers that come between.

use std::time::Duration;

use faults::cluster::Cluster;
use faults::database::{number, run};
use faults::frazil::{Frazil, Launch};
use faults::proxy::Proxy;
use faults::proxy::postgres::Fault;
use faults::wait::until;
use faults::writer::identity::spark_batch;

use crate::held::Held;
use crate::probe::Probe;

/// Longer than the catalog takes to settle, and much shorter than a client waits.
const DEADLINE_MS: u32 = 3_000;

/// The sessions that wait for the standby.
const WAITING: &str = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// A server on a pair of databases, which reaches whichever of them is the primary now.
struct Pair {
    primary: Cluster,
    standby: Cluster,
    proxy: Proxy<Fault>,
    server: Frazil,
    launch: Launch,
}

impl Pair {
    /// `synchronous`: a commit is acknowledged when the standby has it.
    async fn new(synchronous: bool) -> Self {
        let mut settings = vec![("wal_level", "replica"), ("max_wal_senders", "4")];
        settings.extend(synchronous.then_some(("synchronous_standby_names", "s1")));
        // Until the standby is there, a commit that wants it would wait.
        let settings: Vec<_> = settings.into_iter().chain([("synchronous_commit", "local")]).collect();
        let primary = Cluster::start(&settings);
        let standby = primary.standby("s1");
        let proxy = Proxy::postgres(&primary.address()).await;
        let url = faults::database::through(&primary.url("postgres"), &proxy.address());
        let launch = Launch::on(&url).set("commit.deadline_ms", DEADLINE_MS);
        let server = Frazil::start(&launch).await;
        Self { primary, standby, proxy, server, launch }
    }

    fn primary_url(&self) -> String {
        self.primary.url("postgres")
    }

    /// Waits until a commit waits for the standby.
    async fn wait_for_a_commit_that_waits(&self) {
        let url = self.primary_url();
        until("a commit that waits for the standby", async || {
            (number(&url, &format!("SELECT count(*) {WAITING}")).await > 0).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_session_is_ended_while_it_waits_for_the_standby_is_applied_once_the_standby_has_it() {
    let pair = Pair::new(true).await;
    let mut probe = Probe::new(&pair.server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    pair.standby.freeze();
    let url = pair.primary_url();
    let told = {
        let end_it = async {
            pair.wait_for_a_commit_that_waits().await;
            run(&url, &format!("SELECT pg_terminate_backend(pid) {WAITING}")).await;
            // The catalog asks now, and waits as the commit did.
            pair.wait_for_a_commit_that_waits().await;
            pair.standby.thaw();
        };
        tokio::join!(probe.send(&prepared), end_it).0
    };
    assert_eq!(told.as_ref().unwrap().status, 200);
    assert!(probe.settle(&prepared, told).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_the_standby_does_not_get_in_time_is_said_to_be_unknown_and_told_later() {
    let pair = Pair::new(true).await;
    let mut probe = Probe::new(&pair.server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    pair.standby.freeze();
    let url = pair.primary_url();
    let told = {
        let end_it = async {
            pair.wait_for_a_commit_that_waits().await;
            run(&url, &format!("SELECT pg_terminate_backend(pid) {WAITING}")).await;
        };
        tokio::join!(probe.send(&prepared), end_it).0
    };
    assert!(told.as_ref().unwrap().is_unknown(), "{told:?}");
    pair.standby.thaw();
    assert!(probe.settle(&prepared, told).await, "it was durable on the primary, and the standby has it now");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_under_way_in_a_failover_ends_as_the_new_primary_has_it() {
    let mut pair = Pair::new(true).await;
    let mut probe = Probe::new(&pair.server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    pair.standby.freeze();
    let sent = {
        let (writer, prepared) = (probe.writer.clone(), prepared.clone());
        tokio::spawn(async move { writer.send(&prepared).await })
    };
    pair.wait_for_a_commit_that_waits().await;
    pair.primary.crash();
    pair.standby.thaw();
    pair.standby.promote();
    // The new primary has no standby of its own.
    run(&pair.standby.url("postgres"), "ALTER SYSTEM SET synchronous_standby_names = ''").await;
    run(&pair.standby.url("postgres"), "SELECT pg_reload_conf()").await;
    pair.proxy.redirect(&pair.standby.address());
    let told = sent.await.unwrap();
    probe.settle(&prepared, told).await;
}

/// With an asynchronous standby an acknowledged commit can be lost, and its version number comes back under another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_number_that_comes_back_after_a_failover_is_not_taken_for_the_old_one() {
    let mut pair = Pair::new(false).await;
    let held = Held::at("metadata-written@1");
    let mut probe = Probe::new(&pair.server.catalog()).await;
    let base = probe.table().await;
    let wal = "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication";
    let url = pair.primary_url();
    until("the standby has all", async || {
        let found = faults::database::rows(&url, wal).await;
        sqlx::Row::get::<Option<bool>, _>(found.first()?, 0)?.then_some(())
    })
    .await;
    pair.standby.stop();
    // Acknowledged by the old primary alone.
    let lost = probe.append_on(&base, "lost", spark_batch());
    probe.writer.send(&lost).await.unwrap().expect(200);
    let on_lost = probe.append("on-lost", spark_batch()).await;
    pair.server.kill();
    pair.server.run(&pair.launch.clone().set("commit.deadline_ms", 60_000).failing_at(&held.arming())).await;
    let late = {
        let (writer, on_lost) = (probe.writer.clone(), on_lost.clone());
        tokio::spawn(async move { writer.send(&on_lost).await })
    };
    held.wait().await;
    pair.primary.crash();
    pair.standby.run();
    pair.standby.promote();
    pair.proxy.redirect(&pair.standby.address());
    // Another server, which knows nothing of the old primary, gives the version number away again.
    let mut other = Frazil::idle(&pair.server.data);
    other.run(&pair.launch).await;
    let mut probe_of_other = Probe::of(&other.catalog(), crate::probe::TABLE);
    let winner = probe_of_other.append_on(&base, "winner", spark_batch());
    probe_of_other.send(&winner).await.unwrap().expect(200);
    held.release();
    let told = tokio::time::timeout(Duration::from_secs(100), late).await.unwrap().unwrap().unwrap();
    assert!(matches!(told.status, 409 | 503), "{told:?}");
    let table = probe_of_other.table().await;
    table.assert_whole();
    assert!(table.has(winner.snapshot_id) && !table.has(lost.snapshot_id) && !table.has(on_lost.snapshot_id));
}
