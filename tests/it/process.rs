//! The process: it is ready or not, bears too much, and ends without cutting off what it has begun.

use std::time::Duration;

use frazil::config::Config;
use frazil::process::Server;
use frazil::telemetry;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::raw::{HANGS_AFTER, begun, connection, other_half};
use crate::server::{TestServer, on_both_stores};

on_both_stores! {
    a_server_that_runs_is_live_and_ready,
    metrics_name_routes_and_no_names,
}

async fn a_server_that_runs_is_live_and_ready(server: &TestServer) {
    assert_eq!(server.get("/health/live").await.expect(200).json(), json!({"status": "live"}));
    assert_eq!(server.get("/health/ready").await.expect(200).json(), json!({"status": "ready"}));
}

async fn metrics_name_routes_and_no_names(server: &TestServer) {
    server.create_namespace(&["a-name-to-be-kept-out"]).await;
    server.head("/namespaces/a-name-to-be-kept-out").await.expect(204);
    let text = server.get("/metrics").await.expect(200).text;
    assert!(
        text.contains(
            r#"frazil_http_requests_total{method="HEAD",route="/v1/{prefix}/namespaces/{namespace}",status="204"}"#
        ),
        "{text}"
    );
    assert!(text.contains("frazil_http_request_duration_seconds_bucket"), "{text}");
    assert!(!text.contains("a-name-to-be-kept-out"), "{text}");
}

#[tokio::test]
async fn a_database_that_is_gone_makes_the_server_unready_and_not_dead() {
    let server = TestServer::on_postgres().await;
    server.get("/health/ready").await.expect(200);
    server.lose_database().await;
    server.get("/health/ready").await.refused(503, "ServiceUnavailableException");
    server.get("/health/live").await.expect(200);
    let refusal = server.get("/namespaces/n").await.refused(503, "ServiceUnavailableException");
    let id = refusal.header("x-request-id").unwrap();
    assert!(refusal.message().contains(id), "{}", refusal.text);
    server.post("/namespaces", json!({"namespace": ["n"]})).await.expect(503);
    server.end().await;
}

/// A store that does not answer holds the only place.
#[tokio::test]
async fn what_is_too_much_is_turned_away_untouched() {
    let server = TestServer::with(|config| config.limits.concurrent_requests = 1).await;
    let store = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let body = json!({"name": "lake", "location": "s3://lake/x", "storage": {
        "type": "s3", "region": "us-east-1", "path-style": true, "access-key-id": "a", "secret-access-key": "b",
        "endpoint": format!("http://{}", store.local_addr().unwrap()),
    }});
    let (held, ()) = tokio::join!(server.post("/management/v1/warehouses", body), async {
        let asked = store.accept().await.unwrap();
        let refusal = server.get("/namespaces").await.refused(429, "TooManyRequestsException");
        assert!(refusal.message().contains("too many requests"), "{}", refusal.text);
        for path in ["/health/live", "/health/ready", "/metrics", "/openapi.yaml"] {
            server.get(path).await.expect(200);
        }
        drop((asked, store));
    });
    assert!(!held.status.is_success() && held.status != 429, "{}", held.text);
    server.get("/namespaces").await.expect(200);
    server.end().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let server = TestServer::with(|config| config.limits.body_timeout_ms = 50).await;
    let mut begun = begun(&server).await;
    let mut answer = String::new();
    begun.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("RequestTimeoutException"), "{answer}");
    server.end().await;
}

/// What both versions of HTTP may begin with, and nothing at all, tell of no version yet.
#[tokio::test]
async fn a_client_that_does_not_say_its_version_is_not_waited_for() {
    let server = TestServer::with(|config| config.server.header_timeout_ms = 50).await;
    for said in ["", "P", "PRI * HTTP/2.0\r\n", "POST /v1/config HTTP"] {
        let mut begun = connection(&server).await;
        begun.write_all(said.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = timeout(HANGS_AFTER, begun.read_to_string(&mut answer)).await;
        read.expect("the connection is closed").unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{said}: {answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn http_2_is_spoken_to_those_who_begin_with_it() {
    let server = TestServer::on_sqlite().await;
    let mut begun = connection(&server).await;
    begun.set_nodelay(true).unwrap();
    const SETTINGS: u8 = 4;
    let empty_settings = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];
    for part in [&b"PRI * HT"[..], b"TP/2.0\r\n\r\nSM\r\n\r\n", &empty_settings] {
        begun.write_all(part).await.unwrap();
    }
    let mut head = [0; 9];
    begun.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], SETTINGS);
    drop(begun);
    server.end().await;
}

#[tokio::test]
async fn a_server_that_ends_finishes_what_it_has_begun() {
    let server = TestServer::with(|config| config.server.drain_notice_ms = 60_000).await;
    let begun = begun(&server).await;
    server.begin_to_end();
    for _ in 0..500 {
        if server.get("/health/ready").await.status == 503 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let refusal = server.get("/health/ready").await.refused(503, "ServiceUnavailableException");
    assert!(refusal.message().contains("about to end"), "{}", refusal.text);
    assert!(other_half(begun).await.starts_with("HTTP/1.1 200"));
    server.head("/namespaces/n").await.expect(204);
}

#[tokio::test]
async fn a_request_under_way_outlives_the_end_of_listening() {
    let server = TestServer::on_sqlite().await;
    let begun = begun(&server).await;
    server.begin_to_end();
    let address = server.address().to_owned();
    for _ in 0..500 {
        if TcpStream::connect(&address).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(TcpStream::connect(&address).await.is_err(), "the server still takes connections");
    assert!(other_half(begun).await.starts_with("HTTP/1.1 200"));
    server.end().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_data_is_refused() {
    let server = TestServer::on_sqlite().await;
    let mut config = Config::default();
    config.server.listen = ([127, 0, 0, 1], 0).into();
    config.storage.data_dir = server.data.path().to_owned();
    let refusal = Server::open(config, telemetry::recorder().handle()).await.err().unwrap();
    assert!(refusal.to_string().contains("frazil.db"), "{refusal}");
    server.end().await;
}

#[tokio::test]
async fn what_was_made_is_there_after_a_restart() {
    for server in [TestServer::on_sqlite().await, TestServer::on_postgres().await] {
        server.create_namespace(&["n"]).await;
        let made = server.create_table("n", "t").await;
        let server = server.again().await;
        assert_eq!(server.get("/namespaces/n/tables/t").await.expect(200).json(), made);
        server.end().await;
    }
}

#[tokio::test]
async fn further_places_are_allowed_by_the_settings() {
    let elsewhere = tempfile::tempdir().unwrap();
    let place = format!("file://{}", elsewhere.path().display());
    let allowed = place.clone();
    let server = TestServer::with(|config| config.storage.allowed_locations = vec![allowed]).await;
    server.create_namespace(&["n"]).await;
    let body = json!({"name": "t", "schema": crate::server::schema(), "location": format!("{place}/t")});
    server.send(Method::POST, "/namespaces/n/tables", &[], Some(body.to_string().into())).await.expect(200);
    assert!(elsewhere.path().join("t/metadata").is_dir());
    server.end().await;
}

#[tokio::test]
async fn a_first_start_makes_no_warehouse_where_the_settings_say_so() {
    let server = TestServer::with(|config| config.storage.default_warehouse = false).await;
    let listed = server.get("/management/v1/warehouses").await.expect(200).json();
    assert_eq!(listed["warehouses"], json!([]));
    server.end().await;
}
