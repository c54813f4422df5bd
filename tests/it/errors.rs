//! Whatever goes wrong, the answer is one that an Iceberg client can read.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::server::{TestServer, on_both_stores, schema};

on_both_stores! {
    an_unknown_path_or_method_is_told_in_the_shape_of_the_spec,
    bad_json_is_told_with_the_path_of_its_field,
    a_head_that_fails_has_no_body,
    a_refusal_that_reads_no_body_keeps_the_connection,
    a_request_keeps_its_name,
    large_answers_are_compressed_where_the_client_takes_it,
}

async fn an_unknown_path_or_method_is_told_in_the_shape_of_the_spec(server: &TestServer) {
    for path in ["/no/such/path", "/namespaces/n/tables/t/nonsense", "/namespaces/", "/v1", "/v1/", "/v1/oauth/tokens"]
    {
        server.get(path).await.refused(404, "NoSuchEndpointException");
    }
    for (method, path) in
        [(Method::PATCH, "/namespaces/n"), (Method::PUT, "/namespaces"), (Method::DELETE, "/v1/config")]
    {
        let answer = server.send(method, path, &[], None).await.refused(405, "MethodNotAllowedException");
        assert!(answer.header("allow").is_some_and(|allowed| allowed.contains("GET")), "{answer:?}");
    }
}

async fn bad_json_is_told_with_the_path_of_its_field(server: &TestServer) {
    for (body, part) in [
        (r#"{"namespace": ["a", 7]}"#, "'namespace[1]'"),
        (r#"{"properties": {}}"#, "missing field `namespace`"),
        (r#"{"namespace": ["a"], "properties": {"k": {}}}"#, "'properties.k'"),
        (r#"{"namespace": ["a""#, "EOF"),
        ("", "EOF"),
    ] {
        let answer = server.send(Method::POST, "/namespaces", &[], Some(body.into())).await;
        let message = answer.refused(400, "BadRequestException").message();
        assert!(message.contains(part), "{body}: {message}");
    }
}

async fn a_head_that_fails_has_no_body(server: &TestServer) {
    for path in ["/namespaces/n", "/namespaces/n/tables/t", "/namespaces/n/views/v", "/no/such/path"] {
        let answer = server.head(path).await.expect(404);
        assert_eq!(answer.header("content-type"), None, "{path}");
    }
}

/// Sends a request whose body comes only after its head, and reads the answer's status line.
async fn in_two_parts(connection: &mut BufReader<TcpStream>, head: &str, body: &str) -> String {
    let head = format!("{head} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    connection.get_mut().write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    connection.get_mut().write_all(body.as_bytes()).await.unwrap();
    let (mut status, mut line, mut length) = (String::new(), String::new(), 0);
    connection.read_line(&mut status).await.unwrap();
    while line != "\r\n" {
        line.clear();
        assert_ne!(connection.read_line(&mut line).await.unwrap(), 0, "{status} and no more");
        if let Some(told) = line.strip_prefix("content-length: ") {
            length = told.trim().parse().unwrap();
        }
    }
    connection.read_exact(&mut vec![0; length]).await.unwrap();
    status
}

async fn a_refusal_that_reads_no_body_keeps_the_connection(server: &TestServer) {
    let connection = TcpStream::connect(server.base.trim_start_matches("http://")).await.unwrap();
    let mut connection = BufReader::new(connection);
    for (head, status) in [
        ("PUT /v1/default/namespaces", "405"),
        ("POST /v1/default/nowhere", "404"),
        ("POST /v1/nope/namespaces", "404"),
        ("GET /v1/config", "200"),
        ("POST /v1/default/namespaces", "200"),
    ] {
        let told = in_two_parts(&mut connection, head, r#"{"namespace": ["n"]}"#).await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {told}");
    }
}

async fn a_request_keeps_its_name(server: &TestServer) {
    let named = server.send(Method::GET, "/v1/config", &[("x-request-id", "job-7")], None).await;
    assert_eq!(named.header("x-request-id"), Some("job-7"));
    let long = "x".repeat(1_000);
    let renamed = server.send(Method::GET, "/v1/config", &[("x-request-id", &long)], None).await;
    assert_eq!(renamed.header("x-request-id").map(str::len), Some(36));
}

async fn large_answers_are_compressed_where_the_client_takes_it(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let body = json!({"name": "t", "schema": schema(), "properties": {"long": "x".repeat(10_000)}});
    server.post("/namespaces/n/tables", body).await.expect(200);
    let packed = reqwest::Client::new()
        .get(server.url("/namespaces/n/tables/t"))
        .header("accept-encoding", "gzip")
        .send()
        .await
        .unwrap();
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert!(packed.bytes().await.unwrap().len() < 5_000);
    let plain = server.get("/namespaces/n/tables/t").await.expect(200);
    assert_eq!(plain.header("content-encoding"), None);
}

#[tokio::test]
async fn a_body_beyond_its_limit_is_refused() {
    let server = TestServer::with(|config| {
        config.limits.body_bytes = 1_000;
        config.limits.metadata_body_bytes = 5_000;
    })
    .await;
    let names = |count: usize| json!({"namespace": ["n"], "properties": {"k": "x".repeat(count)}});
    server.post("/namespaces", names(2_000)).await.refused(413, "PayloadTooLargeException");
    server.post("/namespaces", names(100)).await.expect(200);
    let table =
        |name: &str, count: usize| json!({"name": name, "schema": schema(), "properties": {"k": "x".repeat(count)}});
    server.post("/namespaces/n/tables", table("t", 2_000)).await.expect(200);
    let refusal = server.post("/namespaces/n/tables", table("u", 6_000)).await.refused(413, "PayloadTooLargeException");
    assert!(refusal.message().contains("5000 bytes"), "{}", refusal.text);
    server.end().await;
}
