//! The end of a server, as clients with open connections see it.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::raw::{begun, connection, h2, head, other_half, rest};
use crate::server::TestServer;

const LIVE: &[u8] = b"HEAD /health/live HTTP/1.1\r\nhost: x\r\n\r\n";

async fn ask(kept: &mut TcpStream) -> String {
    kept.write_all(LIVE).await.unwrap();
    head(kept).await
}

/// The server has been told to end, and still takes requests for a minute.
async fn told_to_end(server: &TestServer) {
    server.begin_to_end();
    while server.get("/health/ready").await.status != 503 {}
}

fn with_notice(config: &mut frazil::config::Config) {
    config.server.drain_notice_ms = 60_000;
}

#[tokio::test]
async fn the_last_answer_over_a_connection_says_so() {
    let server = TestServer::with(with_notice).await;
    let mut kept = connection(&server).await;
    assert!(!ask(&mut kept).await.contains("connection: close"));
    told_to_end(&server).await;
    assert!(ask(&mut kept).await.contains("connection: close"));
    assert!(rest(&mut kept).await.is_empty());
    // Who comes now is answered, and sent away too.
    assert!(ask(&mut connection(&server).await).await.contains("connection: close"));
}

#[tokio::test]
async fn http_2_is_told_to_go_away_with_its_answer() {
    let server = TestServer::with(with_notice).await;
    let mut kept = connection(&server).await;
    h2::begin(&mut kept).await;
    kept.write_all(&h2::live(1)).await.unwrap();
    assert_eq!(h2::next(&mut kept, h2::HEADERS).await.unwrap().stream, 1);
    told_to_end(&server).await;
    kept.write_all(&h2::live(3)).await.unwrap();
    assert!(h2::next(&mut kept, h2::GO_AWAY).await.is_some());
}

#[tokio::test]
async fn a_request_under_way_is_answered_before_its_connection_ends() {
    let server = TestServer::with(with_notice).await;
    let begun = begun(&server).await;
    told_to_end(&server).await;
    assert!(other_half(begun).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn no_client_can_move_the_last_deadline() {
    let server = TestServer::with(|config| config.server.drain_timeout_ms = 50).await;
    let mut never_ending = begun(&server).await;
    server.end().await;
    assert!(rest(&mut never_ending).await.is_empty());
}

#[tokio::test]
async fn metrics_and_health_are_told_to_the_last() {
    let server = TestServer::with(|config| config.server.metrics_listen = Some(([127, 0, 0, 1], 0).into())).await;
    let aside = server.metrics_base.clone().unwrap();
    let begun = begun(&server).await;
    server.begin_to_end();
    while TcpStream::connect(server.address()).await.is_ok() {}
    assert_eq!(reqwest::get(format!("{aside}/metrics")).await.unwrap().status(), 200);
    assert_eq!(reqwest::get(format!("{aside}/health/ready")).await.unwrap().status(), 503);
    assert!(other_half(begun).await.starts_with("HTTP/1.1 200"));
    server.end().await;
    assert!(reqwest::get(format!("{aside}/metrics")).await.is_err());
}
