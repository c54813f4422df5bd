//! Servers that start at once, and a database that is of another release.

use faults::database::{Database, number, run};
use faults::frazil::{Frazil, Launch};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_start_at_once_on_an_empty_database_all_serve() {
    let database = Database::create().await;
    let data = tempfile::tempdir().unwrap();
    let mut replicas: Vec<Frazil> = (0..4).map(|_| Frazil::idle(data.path())).collect();
    for replica in &mut replicas {
        replica.begin(&Launch::on(&database.url()));
    }
    for replica in &mut replicas {
        replica.wait_until_ready().await;
    }
    let url = database.url();
    assert_eq!(number(&url, "SELECT count(*) - count(DISTINCT version) FROM _sqlx_migrations").await, 0);
    assert_eq!(number(&url, "SELECT count(*) FROM warehouse").await, 1);
    replicas[0].catalog().create_namespace("n").await;
    for replica in &replicas {
        replica.catalog().get("/namespaces/n").await.unwrap().expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_later_release_is_refused_and_a_server_that_runs_goes_on() {
    let database = Database::create().await;
    let launch = Launch::on(&database.url());
    let server = Frazil::start(&launch).await;
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9999, 'later', true, '', 0)";
    run(&database.url(), later).await;
    let log = Frazil::refused(&launch);
    assert!(log.contains("migration 9999") && log.contains("start the version that made it, or a later one"), "{log}");
    server.catalog().create_namespace("n").await;
}
