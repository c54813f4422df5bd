//! A disk without room, under the database and under the warehouse.

use faults::cluster::Cluster;
use faults::disk::{Disk, Trouble};
use faults::frazil::{Frazil, Launch};
use faults::wait::until;
use faults::writer::identity::spark_batch;

use crate::load::Load;
use crate::probe::{Probe, TABLE};

const TABLES: usize = 4;
const DEADLINE_MS: u32 = 2_000;

/// Until commits meet the trouble, and then until all is well again.
async fn database_without_room(trouble: Trouble) {
    let disk = Disk::sound();
    let mut cluster = Cluster::start_on(&disk);
    let launch = Launch::on(&cluster.url("postgres")).set("commit.deadline_ms", DEADLINE_MS);
    let server = Frazil::start(&launch).await;
    let load = Load::begin(&server.catalog(), TABLES).await;
    load.wait_for_more(10).await;
    disk.fail(trouble);
    until("commits that are not carried out", async || (load.told(&[500, 503]) > 0).then_some(())).await;
    disk.mend(trouble);
    if !cluster.answers() {
        cluster.run();
    }
    load.wait_for_more(20).await;
    load.end().await;
}

/// PostgreSQL answers with an error, and goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_room_for_its_tables_loses_no_commit_and_tells_no_lie() {
    database_without_room(Trouble::FullTables).await;
}

/// PostgreSQL ends at once, perhaps in the middle of a commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_room_for_its_log_loses_no_commit_and_tells_no_lie() {
    database_without_room(Trouble::FullLog).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warehouse_without_room_takes_no_commit_and_loses_none() {
    let disk = Disk::sound();
    let launch = disk.under(Launch::default());
    let mut server = Frazil::start(&launch).await;
    let mut probe = Probe::new(&server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    disk.fail(Trouble::FullWarehouse);
    let told = probe.send(&prepared).await;
    told.as_ref().unwrap().clone().refused(503, "ServiceUnavailableException");
    server.catalog().get(TABLE).await.unwrap().expect(200);
    // With nothing in memory either.
    server.terminate();
    server.run(&launch).await;
    server.catalog().get(TABLE).await.unwrap().expect(200);
    disk.mend(Trouble::FullWarehouse);
    assert!(!probe.settle(&prepared, told).await);
}
