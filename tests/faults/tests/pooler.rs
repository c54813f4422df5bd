//! PgBouncer in transaction mode between the server and its database: its word is not the database's.

use faults::bouncer::Bouncer;
use faults::database::{Database, number, run, through};
use faults::frazil::{Frazil, Launch};
use faults::proxy::postgres::{Fault, Place};
use faults::proxy::{Gate, Proxy};
use faults::wait::until;
use faults::writer::identity::spark_batch;

use crate::connection::SWAP;
use crate::probe::Probe;

/// Sessions of the catalog in the database, which the bouncer holds.
const SESSIONS: &str = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()";

/// A server that reaches its database through the bouncer and a proxy behind it.
struct Pooled {
    database: Database,
    /// Between bouncer and database.
    behind: Proxy<Fault>,
    bouncer: Bouncer,
    _before: Proxy<Fault>,
    server: Frazil,
}

impl Pooled {
    async fn new() -> Self {
        let database = Database::create().await;
        // The role's time-outs are set by a start without the bouncer.
        Frazil::start(&Launch::on(&database.url())).await.terminate();
        let behind = Proxy::postgres(&database.address()).await;
        let bouncer = Bouncer::before(&behind.address(), 5);
        // Before version 1.21 PgBouncer takes the statements of all clients for one client's.
        let before = Proxy::postgres_with_names_apart(&bouncer.address()).await;
        let url = through(&database.url(), &before.address());
        let launch = Launch::on(&url).set("commit.deadline_ms", 20_000);
        Self { server: Frazil::start(&launch).await, database, behind, bouncer, _before: before }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_go_through_the_pooler() {
    let pooled = Pooled::new().await;
    let mut probe = Probe::new(&pooled.server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    let told = probe.send(&prepared).await;
    assert_eq!(told.as_ref().unwrap().status, 200, "{told:?}");
    assert!(probe.settle(&prepared, told).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_ended_behind_the_pooler_leaves_no_wrong_answer() {
    let pooled = Pooled::new().await;
    let mut probe = Probe::new(&pooled.server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    let gate = Gate::closed();
    pooled.behind.plan(Fault::at(SWAP, Place::HoldAnswer(gate.clone())));
    let end_it = async {
        pooled.behind.wait_for(1).await;
        let url = pooled.database.url();
        run(&url, &format!("SELECT pg_terminate_backend(pid) {SESSIONS}")).await;
        until("no session is left", async || {
            (number(&url, &format!("SELECT count(*) {SESSIONS}")).await == 0).then_some(())
        })
        .await;
        gate.open();
    };
    let (told, ()) = tokio::join!(probe.send(&prepared), end_it);
    probe.settle(&prepared, told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_behind_the_pooler_leaves_no_wrong_answer() {
    for place in [Place::BeforeStatement, Place::AfterSync, Place::BeforeCommandComplete, Place::BeforeReadyForQuery] {
        let pooled = Pooled::new().await;
        let mut probe = Probe::new(&pooled.server.catalog()).await;
        let prepared = probe.append("second", spark_batch()).await;
        pooled.behind.plan(Fault::at(SWAP, place));
        let told = probe.send(&prepared).await;
        assert_eq!(pooled.behind.happened(), 1);
        probe.settle(&prepared, told).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_is_killed_leaves_no_wrong_answer() {
    let mut pooled = Pooled::new().await;
    let mut probe = Probe::new(&pooled.server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    let gate = Gate::closed();
    pooled.behind.plan(Fault::at(SWAP, Place::HoldAnswer(gate.clone())));
    let sent = {
        let (writer, prepared) = (probe.writer.clone(), prepared.clone());
        tokio::spawn(async move { writer.send(&prepared).await })
    };
    pooled.behind.wait_for(1).await;
    pooled.bouncer.kill();
    gate.open();
    pooled.bouncer.run();
    let told = sent.await.unwrap();
    probe.settle(&prepared, told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_takes_the_statements_of_one_client_for_anothers_is_refused() {
    let database = Database::create().await;
    Frazil::start(&Launch::on(&database.url())).await.terminate();
    let bouncer = Bouncer::before(&database.address(), 5);
    let log = Frazil::refused(&Launch::on(&through(&database.url(), &bouncer.address())));
    assert!(log.contains("takes the prepared statements of one for another's"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_schema_is_brought_up_to_date_through_a_pooler_in_transaction_mode() {
    let database = Database::create().await;
    let bouncer = Bouncer::before(&database.address(), 5);
    let before = Proxy::postgres_with_names_apart(&bouncer.address()).await;
    let log = Frazil::refused(&Launch::on(&through(&database.url(), &before.address())));
    assert!(log.contains("run 'frazil migrate' with the URL of the database itself first"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_refuses_the_settings_of_a_session_is_told_how_to_take_them() {
    let database = Database::create().await;
    let strict =
        [("pool_mode", "session"), ("default_pool_size", "40"), ("ignore_startup_parameters", "extra_float_digits")];
    let bouncer = Bouncer::with(&database.address(), &strict);
    let log = Frazil::refused(&Launch::on(&through(&database.url(), &bouncer.address())));
    assert!(log.contains("ignore_startup_parameters = extra_float_digits,options"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_in_session_mode_is_as_good_as_none() {
    let database = Database::create().await;
    let session = [("pool_mode", "session"), ("default_pool_size", "40"), ("server_reset_query", "DISCARD ALL")];
    let bouncer = Bouncer::with(&database.address(), &session);
    let server = Frazil::start(&Launch::on(&through(&database.url(), &bouncer.address()))).await;
    let mut probe = Probe::new(&server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    let told = probe.send(&prepared).await;
    assert!(probe.settle(&prepared, told).await);
}
