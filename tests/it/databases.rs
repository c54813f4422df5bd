//! Databases as a whole: copied from one to another, and backed up.

use std::path::Path;

use clap::Parser;
use frazil::cli::{Cli, Command};
use frazil::config::DatabaseUrl;
use frazil::process::Server;
use frazil::telemetry;
use frazil::wiring::Machine;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Database, TestServer};

/// What `frazil store` prints, or the line that it fails with.
async fn store(arguments: &[&str]) -> Result<String, String> {
    let line = [&["frazil", "store"], arguments].concat();
    let Some(Command::Store(command)) = Cli::parse_from(line).command else { panic!("another command") };
    let mut printed = Vec::new();
    command.run(&Machine, &mut printed).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(printed).unwrap())
}

async fn copy(from: &str, to: &str) -> Result<String, String> {
    store(&["copy", "--from", from, "--to", to]).await
}

fn sqlite(data: &Path, name: &str) -> String {
    format!("sqlite:{}", data.join(name).display())
}

async fn serving(data: TempDir, database: Option<Database>, url: String) -> TestServer {
    TestServer::begin(data, database, |config| config.database.url = Some(DatabaseUrl::from(url))).await
}

/// Nested namespaces, a table with snapshots, a view, a writer and a table that is gone: a row in every table.
async fn filled() -> TestServer {
    let server = TestServer::on_sqlite().await;
    for levels in [&["n"][..], &["n", "below"], &["n", "below", "deep"], &["ünï\u{1F9CA}"]] {
        server.create_namespace(levels).await;
    }
    server.create_table("n", "t").await;
    for snapshot_id in [11, 12] {
        server.append("/namespaces/n/tables/t", snapshot_id).await.expect(200);
    }
    server.create_table("n", "gone").await;
    server.delete("/namespaces/n/tables/gone?purgeRequested=true").await.expect(204);
    let key = [("idempotency-key", "0198c0de-0000-7000-8000-000000000001")];
    let body = json!({"namespace": ["keyed"]}).to_string().into();
    server.send(reqwest::Method::POST, "/namespaces", &key, Some(body)).await.expect(200);
    server
}

/// What a client sees of it.
async fn seen(server: &TestServer) -> Vec<Value> {
    let paths = [
        "/v1/config",
        "/namespaces",
        "/namespaces?parent=n",
        "/namespaces/n/tables",
        "/namespaces/n/tables/t",
        "/coordination/v1/default/namespaces/n/tables/t/commits",
    ];
    let mut seen = Vec::new();
    for path in paths {
        seen.push(server.get(path).await.expect(200).json());
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_serves_what_its_source_served_there_and_back() {
    let server = filled().await;
    let before = seen(&server).await;
    let (data, _) = server.stop().await;
    let (database, from) = (Database::create().await, sqlite(data.path(), "frazil.db"));
    let url = database.url();
    let printed = copy(&from, &url).await.unwrap();
    for told in ["namespace                 5 rows", "lineage                   2 rows", "point database.url at it"] {
        assert!(printed.contains(told), "{told}: {printed}");
    }
    let server = serving(data, Some(database), url.clone()).await;
    assert_eq!(seen(&server).await, before);
    server.append("/namespaces/n/tables/t", 13).await.expect(200);
    let then = seen(&server).await;
    let (data, database) = server.stop().await;
    let back = sqlite(data.path(), "back.db");
    copy(&url, &back).await.unwrap();
    let server = serving(data, None, back).await;
    assert_eq!(seen(&server).await, then);
    // What landed before any copy is known.
    server.append("/namespaces/n/tables/t", 11).await.expect(200);
    assert_eq!(seen(&server).await[4]["metadata"], then[4]["metadata"]);
    server.end().await;
    database.unwrap().drop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_was_cut_off_is_not_served_and_goes_on() {
    let server = filled().await;
    let (data, _) = server.stop().await;
    let (database, from) = (Database::create().await, sqlite(data.path(), "frazil.db"));
    let whole = copy(&from, &database.url()).await.unwrap();
    // As it is when the copy ends in the middle of the commit log.
    let cut = "DELETE FROM commit_log WHERE id = (SELECT id FROM commit_log ORDER BY warehouse_id DESC, table_uuid DESC, id DESC LIMIT 1);
               DELETE FROM idempotency_key; DELETE FROM purge; DELETE FROM outbox; INSERT INTO copy_under_way VALUES (0)";
    database.run(cut).await;
    let mut config = frazil::config::Config::default();
    config.storage.data_dir = data.path().to_owned();
    config.database.url = Some(DatabaseUrl::from(database.url()));
    let refusal = Server::open(config, telemetry::recorder().handle()).await.err().unwrap();
    assert!(refusal.to_string().contains("is a copy that has not ended"), "{refusal}");
    assert_eq!(copy(&from, &database.url()).await.unwrap(), whole);
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_goes_into_an_empty_database_from_one_that_nobody_serves() {
    let server = filled().await;
    let database = Database::create().await;
    let served = copy(&server.database_url(), &database.url()).await.unwrap_err();
    assert!(served.contains("is in use by another frazil"), "{served}");
    let (data, _) = server.stop().await;
    let from = sqlite(data.path(), "frazil.db");
    copy(&from, &database.url()).await.unwrap();
    let full = copy(&from, &database.url()).await.unwrap_err();
    assert!(full.contains("is no empty database"), "{full}");
    let foreign = copy("mysql://x", &database.url()).await.unwrap_err();
    assert!(foreign.starts_with("--from begins with 'mysql:'"), "{foreign}");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_made_while_the_server_goes_on() {
    let server = filled().await;
    let before = seen(&server).await;
    let to = server.data.path().join("backup.db");
    let to_text = to.display().to_string();
    let url = server.database_url();
    let backup = ["backup", "--database-url", &url, "--to", &to_text];
    assert_eq!(store(&backup).await.unwrap(), format!("{to_text} is the backup\n"));
    assert_eq!(store(&backup).await.unwrap_err(), format!("'{to_text}' exists: name a new file"));
    server.create_namespace(&["after"]).await;
    let (data, _) = server.stop().await;
    let server = serving(data, None, format!("sqlite:{to_text}")).await;
    assert_eq!(seen(&server).await, before);
    server.end().await;
}

#[tokio::test]
async fn a_backup_of_postgres_is_left_to_its_own_tools() {
    let refused = store(&["backup", "--database-url", "postgres://x/y", "--to", "/nowhere"]).await.unwrap_err();
    assert!(refused.contains("pg_basebackup"), "{refused}");
}
