//! Slow and malicious clients: what they do is bounded, and others do not notice.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::raw::{HANGS_AFTER, begun, begun_with, connection, h2, head, other_half, rest};
use crate::server::TestServer;

const TABLE: &str = "/namespaces/n/tables/t";

/// How many idle connections a test opens, where the limit of open files lets it.
const IDLE_MAX: usize = 9_500;

/// What all other tests of this process need of the limit.
const HANDLES_FOR_OTHERS: usize = 900;

async fn with_table(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
}

/// A head that grows by a byte at a time, for as long as it is let.
async fn drip(mut connection: TcpStream) {
    connection.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
    while connection.write_all(b"x").await.is_ok() {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_head_that_drips_is_cut_off() {
    let server = TestServer::with(|config| config.server.header_timeout_ms = 2_000).await;
    let mut dripping = tokio::task::JoinSet::new();
    for _ in 0..50 {
        dripping.spawn(drip(connection(&server).await));
    }
    with_table(&server).await;
    server.append(TABLE, 1).await.expect(200);
    timeout(HANGS_AFTER, dripping.join_all()).await.expect("each is cut off");
    server.end().await;
}

#[tokio::test]
async fn a_connection_that_was_answered_may_be_idle_for_a_time_only() {
    let server = TestServer::with(|config| config.server.header_timeout_ms = 50).await;
    let mut kept = connection(&server).await;
    kept.write_all(b"HEAD /health/live HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(head(&mut kept).await.starts_with("HTTP/1.1 200"));
    assert!(rest(&mut kept).await.is_empty());
    let mut kept = connection(&server).await;
    h2::begin(&mut kept).await;
    assert!(h2::next(&mut kept, h2::GO_AWAY).await.is_some());
    server.end().await;
}

#[tokio::test]
async fn bodies_that_are_waited_for_take_no_place_of_others() {
    let server = TestServer::with(|config| config.limits.concurrent_requests = 1).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(begun(&server).await);
    }
    with_table(&server).await;
    server.append(TABLE, 1).await.expect(200);
    server.delete(TABLE).await.expect(204);
    server.delete("/namespaces/n").await.expect(204);
    let answers = [other_half(slow.pop().unwrap()).await, other_half(slow.pop().unwrap()).await];
    assert!(answers[0].starts_with("HTTP/1.1 200") && answers[1].starts_with("HTTP/1.1 409"), "{answers:?}");
    server.end().await;
}

#[tokio::test]
async fn large_bodies_share_a_bound_and_small_ones_do_not_notice() {
    let (path, bound, part) = ("/v1/default/namespaces/n/tables", 1 << 20, vec![b' '; 1 << 20]);
    let server = TestServer::with(|config| config.limits.bodies_bytes = bound).await;
    let large = || server.send(Method::POST, "/namespaces/n/tables", &[], Some(part.clone()));
    // Whichever of the two the server reads first, the other one finds no room; it is to be the second.
    let filled = async {
        loop {
            let slow = begun_with(&server, path, "content-length: 2000000", &part).await;
            for _ in 0..20 {
                if large().await.status == 429 {
                    return slow;
                }
            }
        }
    };
    let slow = timeout(HANGS_AFTER, filled).await.expect("two are too many");
    with_table(&server).await;
    server.append(TABLE, 1).await.expect(200);
    drop(slow);
    while large().await.status == 429 {}
    large().await.refused(400, "BadRequestException");
    server.end().await;
}

async fn refused_head(server: &TestServer, head: &str) -> String {
    let mut connection = connection(server).await;
    // The server may hang up before it has read all of it.
    let _ = connection.write_all(head.as_bytes()).await;
    rest(&mut connection).await
}

#[tokio::test]
async fn a_huge_head_is_refused_and_one_with_many_headers_too() {
    let server = TestServer::on_sqlite().await;
    let huge = format!("GET /health/live HTTP/1.1\r\nhost: x\r\ntoken: {}\r\n\r\n", "x".repeat(1 << 17));
    let many = format!("GET /health/live HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(101));
    for head in [huge, many] {
        let answer = refused_head(&server, &head).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let bearable = format!(
        "GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntoken: {}\r\n{}\r\n",
        "x".repeat(1 << 15),
        "a: b\r\n".repeat(90)
    );
    let answer = refused_head(&server, &bearable).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    server.end().await;
}

fn gzip(plain: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    plain.for_each(|part| encoder.write_all(&part).unwrap());
    encoder.finish().unwrap()
}

/// Spaces may stand before any JSON.
fn spaces(mebibytes: usize) -> impl Iterator<Item = Vec<u8>> {
    std::iter::repeat_n(vec![b' '; 1 << 20], mebibytes)
}

#[tokio::test]
async fn a_bomb_is_measured_by_what_comes_out_of_it() {
    let server = TestServer::with(|config| config.limits.metadata_body_bytes = 2 << 20).await;
    with_table(&server).await;
    let bomb = gzip(spaces(64));
    assert!(bomb.len() < 1 << 20, "{} bytes", bomb.len());
    let packed = [("content-encoding", "gzip")];
    for path in ["/namespaces", TABLE, "/transactions/commit"] {
        let answer = server.send(Method::POST, path, &packed, Some(bomb.clone())).await;
        answer.refused(413, "PayloadTooLargeException");
    }
    // One in the other, however it is named.
    let nested = gzip(std::iter::once(bomb));
    for encodings in [&[("content-encoding", "gzip, gzip")][..], &[packed[0], packed[0]]] {
        let answer = server.send(Method::POST, TABLE, encodings, Some(nested.clone())).await;
        answer.refused(415, "UnsupportedMediaTypeException");
    }
    server.append(TABLE, 1).await.expect(200);
    server.end().await;
}

/// The frame of Zstandard may ask for a window of 128 MiB with its first bytes.
#[tokio::test]
async fn a_body_in_zstd_is_refused_unread() {
    let server = TestServer::on_sqlite().await;
    let window_of_128_mebibytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88];
    let packed = [("content-encoding", "zstd")];
    let answer = server.send(Method::POST, "/namespaces", &packed, Some(window_of_128_mebibytes)).await;
    answer.refused(415, "UnsupportedMediaTypeException");
    server.end().await;
}

#[tokio::test]
async fn a_silent_connection_makes_room_for_one_that_speaks() {
    let server = TestServer::with(|config| config.server.connections = 1).await;
    let mut silent = connection(&server).await;
    server.get("/namespaces").await.expect(200);
    assert!(rest(&mut silent).await.is_empty());
    server.end().await;
}

#[tokio::test]
async fn health_is_told_where_there_is_no_place_for_more_connections() {
    let server = TestServer::with(|config| config.server.connections = 1).await;
    let held = begun(&server).await;
    for path in ["/health/live", "/health/ready"] {
        server.get(path).await.expect(200);
    }
    let refusal = server.get("/namespaces").await.refused(429, "TooManyRequestsException");
    assert_eq!(refusal.header("connection"), Some("close"));
    assert!(other_half(held).await.starts_with("HTTP/1.1 200"));
    server.head("/namespaces/n").await.expect(204);
    server.end().await;
}

/// As many as the limit of open files lets there be: each takes one handle of the client and one of the server.
fn idle_connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: usize = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    (soft.saturating_sub(HANDLES_FOR_OTHERS) / 2).clamp(30, IDLE_MAX)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_idle_connections_are_in_nobodys_way() {
    let wanted = idle_connections();
    let server = TestServer::with(|config| config.server.connections = config.server.connections.min(wanted / 2)).await;
    with_table(&server).await;
    let mut idle = Vec::with_capacity(wanted);
    let mut snapshot_id = 0;
    while idle.len() < wanted {
        for _ in 0..(wanted / 10).max(1) {
            idle.push(connection(&server).await);
        }
        snapshot_id += 1;
        server.append(TABLE, snapshot_id).await.expect(200);
        server.get("/health/ready").await.expect(200);
    }
    // Those that came first had to go.
    let mut first = idle.swap_remove(0);
    let mut said = Vec::new();
    timeout(HANGS_AFTER, first.read_to_end(&mut said)).await.expect("it was closed").unwrap();
    assert!(said.is_empty());
    server.append(TABLE, snapshot_id + 1).await.expect(200);
    server.end().await;
}

#[tokio::test]
async fn streams_that_are_taken_back_at_once_end_the_connection() {
    let server = TestServer::on_sqlite().await;
    let mut rapid = connection(&server).await;
    h2::begin(&mut rapid).await;
    assert!(h2::next(&mut rapid, h2::SETTINGS).await.is_some());
    let cancel = 8_u32.to_be_bytes();
    let flood = (0..2_000).map(|number| 2 * number + 1);
    let flood: Vec<u8> =
        flood.flat_map(|stream| [h2::live(stream), h2::frame(h2::RESET, 0, stream, &cancel)].concat()).collect();
    let _ = rapid.write_all(&flood).await;
    let gone = h2::next(&mut rapid, h2::GO_AWAY).await.expect("it is told why");
    assert_eq!(gone.payload[4..8], h2::ENHANCE_YOUR_CALM.to_be_bytes());
    server.get("/health/live").await.expect(200);
    server.end().await;
}

#[tokio::test]
async fn a_request_that_is_given_up_leaves_no_trace() {
    let server = TestServer::with(|config| config.limits.concurrent_requests = 1).await;
    for _ in 0..10 {
        drop(begun(&server).await);
    }
    server.post("/namespaces", json!({"namespace": ["n"]})).await.expect(200);
    server.end().await;
}
