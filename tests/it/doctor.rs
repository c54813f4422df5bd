//! `frazil doctor` beside a running server.

use clap::Parser;
use frazil::cli::{Cli, Command};
use frazil::wiring::Machine;
use serde_json::Value;

use crate::server::{TestServer, on_both_stores};

on_both_stores! {
    where_all_is_well_nothing_is_to_be_done,
    a_warehouse_that_cannot_be_written_is_told_and_fails,
    a_table_whose_metadata_file_is_gone_is_told,
}

/// What is printed, and the line that it fails with.
async fn doctor(arguments: &[&str]) -> (String, Result<(), String>) {
    let line = [&["frazil", "doctor"], arguments].concat();
    let Some(Command::Doctor(command)) = Cli::parse_from(line).command else { panic!("another command") };
    let mut printed = Vec::new();
    let result = command.run(&Machine, &mut printed).await.map_err(|error| error.to_string());
    (String::from_utf8(printed).unwrap(), result)
}

/// The findings that are not well.
fn wrong(printed: &str) -> Vec<Value> {
    let found: Vec<Value> = serde_json::from_str(printed).unwrap();
    assert!(!found.is_empty());
    found.into_iter().filter(|finding| finding["verdict"] != "ok").collect()
}

async fn where_all_is_well_nothing_is_to_be_done(server: &TestServer) {
    let url = server.database_url();
    let (printed, result) = doctor(&["--database-url", &url, "--json"]).await;
    assert_eq!(result, Ok(()), "{printed}");
    assert_eq!(wrong(&printed), Vec::<Value>::new());
    let (printed, _) = doctor(&["--database-url", &url]).await;
    for check in ["configuration", "secrets key", "database", "warehouse default", "warehouse default clock"] {
        let told = |line: &str| line.strip_prefix("ok       ").is_some_and(|line| line.starts_with(check));
        assert!(printed.lines().any(told), "{check}: {printed}");
    }
}

async fn a_warehouse_that_cannot_be_written_is_told_and_fails(server: &TestServer) {
    let root = server.data.path().join("warehouse");
    let _ = std::fs::remove_dir_all(&root);
    std::fs::write(&root, "no folder").unwrap();
    let url = server.database_url();
    let (printed, result) = doctor(&["--database-url", &url, "--json"]).await;
    assert!(result.unwrap_err().starts_with("1 of "), "{printed}");
    let wrong = wrong(&printed);
    assert_eq!(wrong.len(), 1, "{printed}");
    assert_eq!((&wrong[0]["check"], &wrong[0]["verdict"]), (&"warehouse default".into(), &"failed".into()));
    assert!(wrong[0]["told"].as_str().unwrap().contains("writing"), "{printed}");
    assert!(wrong[0]["mend"].as_str().unwrap().contains("mend the store"));
}

async fn a_table_whose_metadata_file_is_gone_is_told(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_namespace(&["n", "below"]).await;
    let location = |made: &Value| made["metadata-location"].as_str().unwrap().to_owned();
    server.create_table("n", "whole").await;
    let lost = location(&server.create_table("n%1Fbelow", "lost").await);
    let url = server.database_url();
    let (printed, result) = doctor(&["--database-url", &url, "--tables"]).await;
    assert_eq!(result, Ok(()), "{printed}");
    assert!(printed.contains("2 tables and views have their metadata files"), "{printed}");
    std::fs::remove_file(lost.strip_prefix("file://").unwrap()).unwrap();
    let (printed, result) = doctor(&["--database-url", &url, "--tables", "--json"]).await;
    assert!(result.is_err());
    let wrong = wrong(&printed);
    assert_eq!(wrong.len(), 1, "{printed}");
    assert_eq!(wrong[0]["check"], "warehouse default, n.below.lost");
    assert!(wrong[0]["told"].as_str().unwrap().contains(&lost), "{printed}");
}

#[tokio::test]
async fn what_cannot_be_reached_is_told_once() {
    let (printed, result) = doctor(&["--database-url", "postgres://localhost:1/x?sslmode=disable", "--json"]).await;
    assert!(result.is_err());
    let wrong = wrong(&printed);
    assert_eq!(wrong.len(), 1, "{printed}");
    assert_eq!(wrong[0]["check"], "database");
    assert!(wrong[0]["told"].as_str().unwrap().contains("cannot be reached"));
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_a_finding() {
    let (printed, result) = doctor(&["--set", "commit.queue_max=0"]).await;
    assert_eq!(result.unwrap_err(), "1 of 1 checks failed");
    assert!(printed.contains("commit.queue_max is 0"), "{printed}");
}
