//! The commands that talk to a running server.

use clap::Parser;
use frazil::cli::{Cli, Command};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::management::place;
use crate::nobody::Nobody;
use crate::server::{TestServer, on_both_stores};

on_both_stores! {
    a_warehouse_is_made_shown_changed_and_deleted,
    a_warehouse_that_is_there_is_left_as_it_is,
    warehouses_are_listed_in_a_table,
    a_refusal_is_told_in_the_words_of_the_server,
}

/// What `frazil warehouse` prints, or the line that it fails with.
async fn warehouse(server: &str, arguments: &[&str]) -> Result<String, String> {
    let line = [&["frazil", "warehouse"], arguments, &["--server", server]].concat();
    let Some(Command::Warehouse(command)) = Cli::parse_from(line).command else { panic!("another command") };
    let mut printed = Vec::new();
    command.run(&mut printed).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(printed).unwrap())
}

fn json_of(printed: &str) -> Value {
    serde_json::from_str(printed).unwrap()
}

async fn a_warehouse_is_made_shown_changed_and_deleted(server: &TestServer) {
    let (location, further) = (place(server, "lake"), place(server, "further"));
    let create = ["create", "lake", "--location", &location, "--default", "a=b", "--override", "c=d"];
    let made = warehouse(&server.base, &create).await.unwrap();
    let shown = warehouse(&server.base, &["show", "lake"]).await.unwrap();
    assert_eq!(made, shown);
    let expected = json!({"id": json_of(&made)["id"], "name": "lake", "location": location,
        "storage": {"type": "file"}, "allowed-locations": [], "defaults": {"a": "b"}, "overrides": {"c": "d"},
        "version": 1});
    assert_eq!(json_of(&shown), expected);
    let update = ["update", "lake", "--allowed-location", &further, "--default", "e=f", "--remove-override", "c"];
    let changed = warehouse(&server.base, &update).await.unwrap();
    let mut expected = expected;
    expected["allowed-locations"] = json!([further]);
    expected["defaults"] = json!({"a": "b", "e": "f"});
    expected["overrides"] = json!({});
    expected["version"] = json!(2);
    assert_eq!(json_of(&changed), expected);
    assert_eq!(warehouse(&server.base, &["delete", "lake"]).await.unwrap(), "lake is deleted\n");
    let gone = warehouse(&server.base, &["show", "lake"]).await.unwrap_err();
    assert_eq!(gone, "Warehouse does not exist: lake");
}

async fn a_warehouse_that_is_there_is_left_as_it_is(server: &TestServer) {
    let (first, second) = (place(server, "first"), place(server, "second"));
    let made = warehouse(&server.base, &["create", "lake", "--if-missing", "--location", &first]).await.unwrap();
    let told = warehouse(&server.base, &["create", "lake", "--if-missing", "--location", &second]).await.unwrap();
    assert_eq!(told, "lake is there already\n");
    assert_eq!(warehouse(&server.base, &["show", "lake"]).await.unwrap(), made);
}

async fn warehouses_are_listed_in_a_table(server: &TestServer) {
    let location = place(server, "lake");
    warehouse(&server.base, &["create", "a-lake", "--location", &location]).await.unwrap();
    let home = place(server, "warehouse");
    let listed = warehouse(&format!("{}/", server.base), &["list"]).await.unwrap();
    assert_eq!(listed, format!("a-lake   {location}\ndefault  {home}\n"));
}

async fn a_refusal_is_told_in_the_words_of_the_server(server: &TestServer) {
    let refused = warehouse(&server.base, &["create", "default", "--location", &place(server, "lake")]).await;
    assert_eq!(refused.unwrap_err(), "Warehouse already exists: default");
    let unknown = warehouse(&server.base, &["update", "default", "--storage", "regoin=x"]).await.unwrap_err();
    assert!(unknown.contains("unknown field `regoin`"), "{unknown}");
    let foreign = warehouse(&format!("{}/health/live?", server.base), &["list"]).await.unwrap_err();
    assert!(foreign.contains("not as a Frazil server does"), "{foreign}");
}

/// What `frazil health` prints, or the line that it fails with.
async fn health(url: &str) -> Result<String, String> {
    let Some(Command::Health(command)) = Cli::parse_from(["frazil", "health", "--url", url]).command else {
        panic!("another command")
    };
    let mut printed = Vec::new();
    command.run(&mut printed).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(printed).unwrap())
}

#[tokio::test]
async fn a_server_that_is_ready_is_healthy_and_one_that_is_gone_is_not() {
    let server = TestServer::on_sqlite().await;
    assert_eq!(health(&server.base).await.unwrap(), "ready\n");
    let base = server.base.clone();
    server.end().await;
    let message = health(&base).await.unwrap_err();
    assert!(message.contains("no answer from"), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_in_one_line() {
    let nobody = Nobody::new();
    let message = warehouse(&nobody.url, &["list"]).await.unwrap_err();
    assert!(message.contains(&nobody.url) && message.contains("is the server running?"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

/// Something that answers every request with that body.
async fn answering(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let _ = client.read(&mut [0; 4_096]).await;
            let answer =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = client.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn a_list_that_leads_to_itself_ends() {
    for body in [r#"{"warehouses": [], "next-page-token": ""}"#, r#"{"warehouses": [], "next-page-token": "6c"}"#] {
        let message = warehouse(&answering(body).await, &["list"]).await.unwrap_err();
        assert!(message.contains("not as a Frazil server does"), "{message}");
    }
}
