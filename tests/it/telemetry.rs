//! What the server tells of its requests: lines of the log, the audit log, traces.
//!
//! Each test has the events of its own thread alone, so all of them run on one thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use frazil::config::{LogConfig, LogFormat, TelemetryConfig};
use frazil::telemetry::Telemetry;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use reqwest::Method;
use serde_json::{Value, json};
use tracing::dispatcher::DefaultGuard;

use crate::auth::{created, log_in, token};
use crate::management::{WAREHOUSES, place};
use crate::receiver::Receiver;
use crate::server::{TestServer, append};

const TABLE: &str = "/namespaces/n/tables/t";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn traceparent() -> String {
    format!("00-{TRACE_ID}-{CALLER}-01")
}

/// The events of this thread while it lives.
struct Told {
    text: Arc<Mutex<String>>,
    telemetry: Telemetry,
    _events: DefaultGuard,
}

impl Told {
    fn with(log: &LogConfig, otlp_endpoint: Option<String>) -> Self {
        let text = Arc::<Mutex<String>>::default();
        let (kept, traces) = (text.clone(), TelemetryConfig { otlp_endpoint, ..TelemetryConfig::default() });
        let write = Box::new(move |line: &str| kept.lock().unwrap().push_str(line));
        let (telemetry, events) = Telemetry::prepare(log, &traces, write).unwrap();
        Self { text, telemetry, _events: tracing::dispatcher::set_default(&events) }
    }

    fn as_json(filter: &str) -> Self {
        Self::with(&LogConfig { format: LogFormat::Json, filter: filter.to_owned() }, None)
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The lines of one request with this message.
    fn of(&self, request_id: &str, message: &str) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["request_id"] == request_id && line["message"] == message);
        lines
    }
}

/// Appends a snapshot in a request of that name.
async fn append_as(server: &TestServer, request_id: &str, snapshot_id: i64, headers: &[(&str, &str)]) {
    let body = append(&server.metadata(TABLE).await, snapshot_id).to_string();
    let headers = [&[("x-request-id", request_id)], headers].concat();
    server.send(Method::POST, TABLE, &headers, Some(body.into())).await.expect(200);
}

async fn server_with_table() -> TestServer {
    let server = TestServer::on_sqlite().await;
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    server
}

#[track_caller]
fn assert_fields(line: &Value, expected: &[(&str, Value)]) {
    for (name, value) in expected {
        assert_eq!(&line[*name], value, "{name} of {line}");
    }
}

#[tokio::test]
async fn the_line_of_an_answer_says_whose_request_it_was_and_what_became_of_it() {
    let told = Told::as_json("info");
    let server = server_with_table().await;
    append_as(&server, "r-1", 1, &[("traceparent", &traceparent())]).await;
    let answered = told.of("r-1", "answered");
    assert_eq!(answered.len(), 1, "{answered:?}");
    let expected = [
        ("level", json!("INFO")),
        ("method", json!("POST")),
        ("route", json!("/v1/{prefix}/namespaces/{namespace}/tables/{table}")),
        ("trace_id", json!(TRACE_ID)),
        ("principal", json!("anonymous")),
        ("warehouse", json!("default")),
        ("namespace", json!("n")),
        ("table", json!("t")),
        ("status", json!(200)),
        ("outcome", json!("committed")),
    ];
    assert_fields(&answered[0], &expected);
    assert!(answered[0]["latency_ms"].is_f64() && answered[0]["timestamp"].is_string(), "{}", answered[0]);
    let refused = [("x-request-id", "r-2")];
    server.send(Method::GET, "/namespaces/gone/tables/t", &refused, None).await.expect(404);
    assert_fields(&told.of("r-2", "answered")[0], &[("status", json!(404)), ("outcome", json!("refused"))]);
    server.end().await;
}

#[tokio::test]
async fn no_secret_and_no_query_comes_into_the_log() {
    // What the client of this test says of itself is not of interest.
    let told = Told::as_json("debug,reqwest=off,hyper=off,hyper_util=off");
    let server = server_with_table().await;
    let secret = [("authorization", "Bearer hush-token"), ("cookie", "hush=cookie")];
    server.send(Method::GET, "/namespaces?parent=hush-query", &secret, None).await.expect(404);
    server.send(Method::GET, "/v1/nowhere?token=hush-query", &secret, None).await.expect(404);
    let storage =
        json!({"type": "s3", "endpoint": "http://127.0.0.1:1", "access-key-id": "id", "secret-access-key": "hush-key"});
    let lake = json!({"name": "lake", "location": "s3://lake/x", "storage": storage}).to_string();
    server.send(Method::POST, WAREHOUSES, &secret, Some(lake.into())).await;
    assert!(told.text().contains("answered"), "{}", told.text());
    let leaks: Vec<Value> = told.lines().into_iter().filter(|line| line.to_string().contains("hush")).collect();
    // The refusal of a parent names it.
    assert!(
        leaks.iter().all(|line| line["message"].as_str().unwrap().contains("does not exist: hush-query")),
        "{leaks:?}"
    );
    server.end().await;
}

#[tokio::test]
async fn who_logged_in_is_named_in_log_and_audit() {
    let told = Told::as_json("info");
    let server = TestServer::with(|config| config.auth.principals = true).await;
    let (id, secret) = created(&server, "loader").await;
    let bearer = format!("Bearer {}", token(log_in(&server, &id, &secret).await));
    let body = json!({"namespace": ["n"]}).to_string();
    for (request_id, headers) in [("r-1", vec![("authorization", &bearer[..])]), ("r-2", Vec::new())] {
        let headers = [&[("x-request-id", request_id)], &headers[..]].concat();
        server.send(Method::POST, "/namespaces", &headers, Some(body.clone().into())).await;
    }
    assert_fields(&told.of("r-1", "answered")[0], &[("principal", json!("loader")), ("status", json!(200))]);
    assert_fields(&told.of("r-2", "answered")[0], &[("principal", json!("anonymous")), ("status", json!(401))]);
    assert_fields(&told.of("r-1", "changed")[0], &[("principal", json!("loader"))]);
    let made = told.lines().into_iter().find(|line| line["action"] == "principal.create").unwrap();
    assert_fields(&made, &[("principal", json!("operator")), ("subject", json!("loader"))]);
    server.end().await;
}

#[tokio::test]
async fn each_change_is_told_once_in_the_audit_log() {
    let told = Told::as_json("warn,audit=info");
    let server = server_with_table().await;
    let key = [("idempotency-key", "0197d5ca-9c2f-7d5e-8f6a-0123456789ab")];
    let body = append(&server.metadata(TABLE).await, 1).to_string();
    for request_id in ["r-1", "r-2"] {
        let headers = [&key[..], &[("x-request-id", request_id)]].concat();
        server.send(Method::POST, TABLE, &headers, Some(body.clone().into())).await.expect(200);
    }
    let rename = json!({"source": {"namespace": ["n"], "name": "t"}, "destination": {"namespace": ["n"], "name": "u"}});
    server.post("/tables/rename", rename).await.expect(204);
    server.delete("/namespaces/n/tables/u").await.expect(204);
    server.delete("/namespaces/n").await.expect(204);
    server.delete("/namespaces/n").await.expect(404);
    let lake = json!({"name": "lake", "location": place(&server, "lake")});
    server.post(WAREHOUSES, lake).await.expect(201);
    let lines = told.lines();
    let actions: Vec<&str> = lines.iter().map(|line| line["action"].as_str().unwrap()).collect();
    let expected = [
        "namespace.create",
        "table.create",
        "table.commit",
        "table.rename",
        "table.drop",
        "namespace.drop",
        "warehouse.create",
    ];
    assert_eq!(actions, expected);
    let commit = [
        ("target", json!("audit")),
        ("principal", json!("anonymous")),
        ("request_id", json!("r-1")),
        ("warehouse", json!("default")),
        ("namespace", json!("n")),
        ("table", json!("t")),
        ("outcome", json!("committed")),
        ("snapshot_id", json!(1)),
    ];
    assert_fields(&lines[2], &commit);
    assert_fields(&lines[3], &[("table", json!("u")), ("subject", json!("n.t")), ("outcome", json!("applied"))]);
    server.end().await;
}

#[tokio::test]
async fn each_commit_of_a_group_is_an_event_of_its_own_request() {
    let told = Told::as_json("warn,audit=info");
    let server = server_with_table().await;
    server.append(TABLE, 1).await.expect(200);
    let metadata = server.metadata(TABLE).await;
    let update = |key: &str| {
        json!({"requirements": [{"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}],
        "updates": [{"action": "set-properties", "updates": {key: "1"}}]})
        .to_string()
    };
    let ids: Vec<String> = (0..8).map(|number| format!("r-{number}")).collect();
    let requests = ids.iter().map(|id| {
        let (server, body) = (&server, update(id));
        async move { server.send(Method::POST, TABLE, &[("x-request-id", id)], Some(body.into())).await.expect(200) }
    });
    futures::future::join_all(requests).await;
    let commits: BTreeSet<_> = told.lines().iter().skip(3).map(|line| line["request_id"].to_string()).collect();
    assert_eq!(commits, ids.iter().map(|id| format!("\"{id}\"")).collect());
    server.end().await;
}

/// The spans that came to a receiver of OTLP.
fn spans(receiver: &Receiver) -> Vec<Span> {
    let requests = receiver.taken();
    assert!(requests.iter().all(|request| request.head[0].starts_with("post /v1/traces")), "{requests:?}");
    let exported = requests.iter().map(|request| ExportTraceServiceRequest::decode(&request.body[..]).unwrap());
    exported.flat_map(|all| all.resource_spans).flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
}

#[tokio::test]
async fn the_stages_of_a_commit_arrive_by_otlp_in_the_trace_of_the_caller() {
    let receiver = Receiver::answering("200 OK");
    let endpoint = format!("{}/v1/traces", receiver.url);
    let told = Told::with(&LogConfig { filter: "off".to_owned(), ..LogConfig::default() }, Some(endpoint));
    let server = server_with_table().await;
    append_as(&server, "r-1", 1, &[("traceparent", &traceparent())]).await;
    server.end().await;
    told.telemetry.end();
    let mut spans = spans(&receiver);
    assert!(spans.iter().any(|span| hex(&span.trace_id) != TRACE_ID), "nothing but the caller's trace is traced");
    spans.retain(|span| hex(&span.trace_id) == TRACE_ID);
    let names: BTreeMap<&[u8], &str> = spans.iter().map(|span| (&span.span_id[..], &span.name[..])).collect();
    let parents: BTreeMap<&str, &str> = spans
        .iter()
        .map(|span| (&span.name[..], names.get(&span.parent_span_id[..]).copied().unwrap_or("the caller")))
        .collect();
    let request = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}";
    let expected = [
        (request, "the caller"),
        ("commit", request),
        ("commit queue", "commit"),
        ("commit group", "commit"),
        ("commit read", "commit group"),
        ("commit judge", "commit group"),
        ("commit files", "commit group"),
        ("files write", "commit files"),
        ("commit swap", "commit group"),
    ];
    assert_eq!(parents, BTreeMap::from(expected));
    let root = spans.iter().find(|span| span.name == request).unwrap();
    assert_eq!(hex(&root.parent_span_id), CALLER);
}

#[tokio::test]
async fn object_stores_are_told_the_trace() {
    let (receiver, store) = (Receiver::answering("200 OK"), Receiver::answering("403 Forbidden"));
    let endpoint = format!("{}/v1/traces", receiver.url);
    let told = Told::with(&LogConfig { filter: "off".to_owned(), ..LogConfig::default() }, Some(endpoint));
    let server = TestServer::on_sqlite().await;
    let storage = json!({"type": "s3", "endpoint": store.url, "path-style": true, "access-key-id": "id",
        "secret-access-key": "secret"});
    let lake = json!({"name": "lake", "location": "s3://lake/x", "storage": storage}).to_string();
    let headers = [("traceparent", &traceparent()[..]), ("tracestate", "a=b")];
    server.send(Method::POST, WAREHOUSES, &headers, Some(lake.into())).await.expect(400);
    server.end().await;
    told.telemetry.end();
    let asked = store.taken();
    assert!(!asked.is_empty());
    for request in asked {
        let traceparent = request.header("traceparent").unwrap_or_default();
        assert!(traceparent.starts_with(&format!("00-{TRACE_ID}-")) && !traceparent.contains(CALLER), "{request:?}");
        assert_eq!(request.header("tracestate"), Some("a=b"));
    }
}

#[tokio::test]
async fn without_an_exporter_the_log_has_the_trace_of_the_caller_alone() {
    let told = Told::as_json("info");
    let server = TestServer::on_sqlite().await;
    server.send(Method::GET, "/namespaces", &[("x-request-id", "r-1")], None).await.expect(200);
    let headers = [("x-request-id", "r-2"), ("traceparent", "00-nonsense")];
    server.send(Method::GET, "/namespaces", &headers, None).await.expect(200);
    for id in ["r-1", "r-2"] {
        assert_eq!(told.of(id, "answered")[0].get("trace_id"), None);
    }
    server.end().await;
}

#[tokio::test]
async fn metrics_show_tables_by_their_names_up_to_a_number() {
    let server = TestServer::with(|config| config.telemetry.tables_max = 1).await;
    server.create_namespace(&["n"]).await;
    for (name, snapshot_id) in [("t", 1), ("u", 2)] {
        server.create_table("n", name).await;
        server.append(&format!("/namespaces/n/tables/{name}"), snapshot_id).await.expect(200);
    }
    let text = server.get("/metrics").await.expect(200).text;
    for expected in [
        r#"frazil_table_commits_total{warehouse="default",table="n.t",outcome="committed"} 1"#,
        r#"frazil_table_commits_total{table="other",outcome="committed"} 1"#,
        r#"frazil_table_commit_duration_seconds_count{warehouse="default",table="n.t"} 1"#,
        r#"frazil_table_snapshots{warehouse="default",table="n.t"} 1"#,
        r#"frazil_table_metadata_bytes{warehouse="default",table="n.t"} "#,
        r#"frazil_database_connections_max{pool="write"} 1"#,
        concat!(r#"frazil_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    server.delete(TABLE).await.expect(204);
    let text = server.get("/metrics").await.expect(200).text;
    // Writers of other tests are shown by the same process.
    let shows_it = |line: &str| line.starts_with("frazil_table_") && line.contains(r#"table="n.t""#);
    assert!(!text.lines().any(shows_it), "{text}");
    assert!(text.contains(r#"frazil_table_commits_total{table="other",outcome="committed"} 2"#), "{text}");
    server.end().await;
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
