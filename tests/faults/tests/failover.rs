//! Two servers in one URL: the one that takes writes is found, and followed when the other one takes over.

use faults::cluster::Cluster;
use faults::database::{number, run};
use faults::frazil::{Frazil, Launch};
use faults::wait::until;
use faults::writer::identity::spark_batch;

use crate::load::Load;
use crate::probe::{Probe, TABLE};

const TABLES: usize = 6;

/// A primary and its standby, which has a commit before the primary acknowledges it.
struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    async fn new() -> Self {
        let primary = Cluster::start(&[("wal_level", "replica"), ("max_wal_senders", "4")]);
        let standby = primary.standby("s1");
        // Only now, so that the standby waits for nobody when it takes over.
        let url = primary.url("postgres");
        run(&url, "ALTER SYSTEM SET synchronous_standby_names = 's1'").await;
        run(&url, "SELECT pg_reload_conf()").await;
        until("the standby is synchronous", async || {
            let found = number(&url, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").await;
            (found == 1).then_some(())
        })
        .await;
        Self { primary, standby }
    }

    /// Both servers, this one first.
    fn url(first: &Cluster, second: &Cluster) -> String {
        let parameters = "sslmode=disable&target_session_attrs=read-write";
        format!("postgres://postgres@{},{}/postgres?{parameters}", first.address(), second.address())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_go_on_at_the_new_primary_and_none_that_was_acknowledged_is_lost() {
    let mut pair = Pair::new().await;
    let server = Frazil::start(&Launch::on(&Pair::url(&pair.primary, &pair.standby))).await;
    let load = Load::begin(&server.catalog(), TABLES).await;
    load.wait_for_more(20).await;
    pair.primary.kill();
    pair.standby.promote();
    load.wait_for_more(50).await;
    // The old one is back, and must not be written to.
    pair.primary.demote();
    pair.primary.run();
    load.wait_for_more(50).await;
    load.end().await;
}

/// It stands still with its connections open: nothing that waits for it keeps the others from the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_go_on_at_the_new_primary_while_the_old_one_hangs() {
    let pair = Pair::new().await;
    let server = Frazil::start(&Launch::on(&Pair::url(&pair.primary, &pair.standby))).await;
    let catalog = server.catalog();
    let mut probe = Probe::new(&catalog).await;
    let before = probe.append("before", spark_batch()).await;
    probe.send(&before).await.unwrap().expect(200);
    let under_way = probe.append("under-way", spark_batch()).await;
    pair.primary.freeze();
    let told = {
        let (writer, under_way) = (probe.writer.clone(), under_way.clone());
        tokio::spawn(async move { writer.send(&under_way).await })
    };
    pair.standby.promote();
    until("the table loads", async || (catalog.get(TABLE).await.ok()?.status == 200).then_some(())).await;
    assert!(probe.table().await.has(before.snapshot_id));
    let told = told.await.unwrap();
    probe.settle(&under_way, told).await;
    pair.primary.thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_passes_over_a_server_that_only_reads() {
    let pair = Pair::new().await;
    let server = Frazil::start(&Launch::on(&Pair::url(&pair.standby, &pair.primary))).await;
    Probe::new(&server.catalog()).await;
}

/// Its sessions are ended by nobody: they are left for the server that takes writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_is_made_read_only_is_left() {
    let pair = Pair::new().await;
    let server = Frazil::start(&Launch::on(&Pair::url(&pair.primary, &pair.standby))).await;
    let load = Load::begin(&server.catalog(), TABLES).await;
    load.wait_for_more(20).await;
    let primary = pair.primary.url("postgres");
    run(&primary, "ALTER SYSTEM SET default_transaction_read_only = on").await;
    run(&primary, "SELECT pg_reload_conf()").await;
    until("commits are refused", async || (load.told(&[500, 503]) > 0).then_some(())).await;
    pair.standby.promote();
    load.wait_for_more(20).await;
    load.end().await;
}
