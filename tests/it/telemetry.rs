//! What the server tells of its requests: lines of the log, the audit log, traces.
//!
//! What takes the events is that of the process, for stores work on threads of their own; so each test looks for what is its
//! own by ids and names that no other test uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use frazil::config::{LogConfig, LogFormat, TelemetryConfig};
use frazil::telemetry::Telemetry;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use reqwest::Method;
use serde_json::{Value, json};

use crate::auth::{created, log_in, token};
use crate::management::{WAREHOUSES, place};
use crate::receiver::Receiver;
use crate::server::{TestServer, append};

const TABLE: &str = "/namespaces/n/tables/t";
const CALLER: &str = "00f067aa0ba902b7";

fn traceparent(trace_id: &str) -> String {
    format!("00-{trace_id}-{CALLER}-01")
}

/// All that this process tells from now on.
struct Told {
    text: Arc<Mutex<String>>,
    telemetry: Telemetry,
    receiver: Receiver,
}

static TOLD: LazyLock<Told> = LazyLock::new(|| {
    let (receiver, text) = (Receiver::answering("200 OK"), Arc::<Mutex<String>>::default());
    // What other tests ask is not traced: there is room for so many spans only.
    let endpoint = Some(format!("{}/v1/traces", receiver.url));
    let traces = TelemetryConfig { otlp_endpoint: endpoint, trace_ratio: 0.0, ..TelemetryConfig::default() };
    let (log, kept) = (LogConfig { format: LogFormat::Json, ..LogConfig::default() }, text.clone());
    let write = Box::new(move |line: &str| kept.lock().unwrap().push_str(line));
    let (telemetry, events) = Telemetry::prepare(&log, &traces, write).unwrap();
    tracing::dispatcher::set_global_default(events).unwrap();
    Told { text, telemetry, receiver }
});

impl Told {
    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// The lines that hold a text.
    fn with(&self, text: &str) -> Vec<Value> {
        let all = self.text();
        all.lines().filter(|line| line.contains(text)).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The lines of one request with this message.
    fn of(&self, request_id: &str, message: &str) -> Vec<Value> {
        let mut lines = self.with(request_id);
        lines.retain(|line| line["request_id"] == request_id && line["message"] == message);
        lines
    }

    /// The spans of one trace, once there are so many: a thread of the store may end one after the answer.
    async fn trace(&self, trace_id: &str, count: usize) -> Vec<Span> {
        for _ in 0..1_000 {
            let spans = self.received(trace_id);
            if spans.len() >= count {
                return spans;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.received(trace_id)
    }

    fn received(&self, trace_id: &str) -> Vec<Span> {
        self.telemetry.flush();
        let requests = self.receiver.taken();
        assert!(requests.iter().all(|request| request.head[0].starts_with("post /v1/traces")), "{requests:?}");
        let exported = requests.iter().map(|request| ExportTraceServiceRequest::decode(&request.body[..]).unwrap());
        let spans = exported.flat_map(|all| all.resource_spans).flat_map(|of| of.scope_spans).flat_map(|of| of.spans);
        spans.filter(|span| hex(&span.trace_id) == trace_id).collect()
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
    let (told, trace_id) = (&*TOLD, "4bf92f3577b34da6a3ce929d0e0e4701");
    let server = server_with_table().await;
    append_as(&server, "line-1", 1, &[("traceparent", &traceparent(trace_id))]).await;
    let answered = told.of("line-1", "answered");
    assert_eq!(answered.len(), 1, "{answered:?}");
    let expected = [
        ("level", json!("INFO")),
        ("method", json!("POST")),
        ("route", json!("/v1/{prefix}/namespaces/{namespace}/tables/{table}")),
        ("trace_id", json!(trace_id)),
        ("principal", json!("anonymous")),
        ("warehouse", json!("default")),
        ("namespace", json!("n")),
        ("table", json!("t")),
        ("status", json!(200)),
        ("outcome", json!("committed")),
    ];
    assert_fields(&answered[0], &expected);
    assert!(answered[0]["latency_ms"].is_f64() && answered[0]["timestamp"].is_string(), "{}", answered[0]);
    let refused = [("x-request-id", "line-2")];
    server.send(Method::GET, "/namespaces/gone/tables/t", &refused, None).await.expect(404);
    assert_fields(&told.of("line-2", "answered")[0], &[("status", json!(404)), ("outcome", json!("refused"))]);
    server.end().await;
}

#[tokio::test]
async fn a_probe_that_succeeds_is_no_news() {
    let told = &*TOLD;
    let server = TestServer::on_sqlite().await;
    for path in ["/health/live", "/health/ready", "/metrics"] {
        server.send(Method::GET, path, &[("x-request-id", "probe-1")], None).await.expect(200);
    }
    assert_eq!(told.of("probe-1", "answered"), Vec::<Value>::new());
    server.end().await;
}

#[tokio::test]
async fn no_secret_and_no_query_comes_into_the_log() {
    let told = &*TOLD;
    let server = server_with_table().await;
    let secret = [("authorization", "Bearer unsaid-token"), ("cookie", "unsaid=cookie"), ("x-request-id", "secret-1")];
    server.send(Method::GET, "/namespaces?parent=unsaid-query", &secret, None).await.expect(404);
    let storage = json!({"type": "s3", "endpoint": "http://127.0.0.1:1", "access-key-id": "id",
        "secret-access-key": "unsaid-key"});
    let lake = json!({"name": "lake", "location": "s3://lake/x", "storage": storage}).to_string();
    server.send(Method::POST, WAREHOUSES, &secret, Some(lake.into())).await;
    assert_eq!(told.of("secret-1", "answered").len(), 2);
    assert_eq!(told.with("unsaid"), Vec::<Value>::new());
    server.end().await;
}

#[tokio::test]
async fn who_logged_in_is_named_in_log_and_audit() {
    let told = &*TOLD;
    let server = TestServer::with(|config| config.auth.principals = true).await;
    let (id, secret) = created(&server, "named-loader").await;
    let bearer = format!("Bearer {}", token(log_in(&server, &id, &secret).await));
    let body = json!({"namespace": ["n"]}).to_string();
    for (request_id, headers) in [("who-1", vec![("authorization", &bearer[..])]), ("who-2", Vec::new())] {
        let headers = [&[("x-request-id", request_id)], &headers[..]].concat();
        server.send(Method::POST, "/namespaces", &headers, Some(body.clone().into())).await;
    }
    assert_fields(&told.of("who-1", "answered")[0], &[("principal", json!("named-loader")), ("status", json!(200))]);
    assert_fields(&told.of("who-2", "answered")[0], &[("principal", json!("anonymous")), ("status", json!(401))]);
    assert_fields(&told.of("who-1", "changed")[0], &[("principal", json!("named-loader"))]);
    let mut made = told.with("principal.create");
    made.retain(|line| line["subject"] == "named-loader");
    assert_fields(&made[0], &[("target", json!("audit")), ("principal", json!("operator"))]);
    server.end().await;
}

#[tokio::test]
async fn each_change_is_told_once_in_the_audit_log() {
    let told = &*TOLD;
    let server = TestServer::on_sqlite().await;
    let twice = async |path: &str, body: Value, key: &str, request_ids: [&str; 2]| {
        for request_id in request_ids {
            let headers = [("idempotency-key", key), ("x-request-id", request_id)];
            server.send(Method::POST, path, &headers, Some(body.to_string().into())).await.expect(200);
        }
    };
    let (table, namespace) = ("/namespaces/audited/tables/t", json!({"namespace": ["audited"]}));
    twice("/namespaces", namespace, "0197d5ca-9c2f-7d5e-8f6a-0123456789aa", ["audit-1", "audit-2"]).await;
    server.create_table("audited", "t").await;
    let commit = append(&server.metadata(table).await, 1);
    twice(table, commit, "0197d5ca-9c2f-7d5e-8f6a-0123456789ab", ["audit-3", "audit-4"]).await;
    let (from, to) = (json!({"namespace": ["audited"], "name": "t"}), json!({"namespace": ["audited"], "name": "u"}));
    server.post("/tables/rename", json!({"source": from, "destination": to})).await.expect(204);
    server.delete("/namespaces/audited/tables/u").await.expect(204);
    server.delete("/namespaces/audited").await.expect(204);
    server.delete("/namespaces/audited").await.expect(404);
    let lake = json!({"name": "audited-lake", "location": place(&server, "lake")});
    server.post(WAREHOUSES, lake).await.expect(201);
    let mut lines = told.with("audited");
    lines.retain(|line| line["target"] == "audit");
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
        ("principal", json!("anonymous")),
        ("request_id", json!("audit-3")),
        ("warehouse", json!("default")),
        ("namespace", json!("audited")),
        ("table", json!("t")),
        ("outcome", json!("committed")),
        ("snapshot_id", json!(1)),
    ];
    assert_fields(&lines[2], &commit);
    assert_fields(&lines[3], &[("table", json!("u")), ("subject", json!("audited.t")), ("outcome", json!("applied"))]);
    assert_fields(&told.of("audit-2", "answered")[0], &[("outcome", json!("replayed"))]);
    // Its snapshot is known, whatever its key is.
    assert_fields(&told.of("audit-4", "answered")[0], &[("outcome", json!("duplicate"))]);
    server.end().await;
}

#[tokio::test]
async fn each_commit_of_a_group_is_an_event_of_its_own_request() {
    let told = &*TOLD;
    let server = server_with_table().await;
    let uuid = server.metadata(TABLE).await["table-uuid"].clone();
    let ids: Vec<String> = (0..8).map(|number| format!("group-{number}")).collect();
    let requests = ids.iter().map(|id| {
        let update = json!({"action": "set-properties", "updates": {id: "1"}});
        let body = json!({"requirements": [{"type": "assert-table-uuid", "uuid": uuid}], "updates": [update]});
        let server = &server;
        async move {
            let headers = [("x-request-id", &id[..])];
            server.send(Method::POST, TABLE, &headers, Some(body.to_string().into())).await.expect(200)
        }
    });
    futures::future::join_all(requests).await;
    for id in &ids {
        let events = told.of(id, "changed");
        assert_eq!(events.len(), 1, "{events:?}");
        assert_fields(&events[0], &[("action", json!("table.commit")), ("outcome", json!("committed"))]);
        // Each in its own trace.
        assert_eq!(events[0]["trace_id"], told.of(id, "answered")[0]["trace_id"]);
    }
    let traces: BTreeSet<String> = ids.iter().map(|id| told.of(id, "changed")[0]["trace_id"].to_string()).collect();
    assert_eq!(traces.len(), ids.len());
    server.end().await;
}

#[tokio::test]
async fn the_stages_of_a_commit_arrive_by_otlp_in_the_trace_of_the_caller() {
    let (told, trace_id) = (&*TOLD, "4bf92f3577b34da6a3ce929d0e0e4702");
    let server = server_with_table().await;
    append_as(&server, "stages-1", 1, &[("traceparent", &traceparent(trace_id))]).await;
    server.end().await;
    let spans = told.trace(trace_id, 9).await;
    let names: BTreeMap<&[u8], &str> = spans.iter().map(|span| (&span.span_id[..], &span.name[..])).collect();
    let parent =
        |span: &Span| names.get(&span.parent_span_id[..]).map_or(hex(&span.parent_span_id), |&name| name.into());
    let parents: BTreeMap<&str, String> = spans.iter().map(|span| (&span.name[..], parent(span))).collect();
    let request = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}";
    let expected = [
        (request, CALLER),
        ("commit", request),
        ("commit queue", "commit"),
        ("commit group", "commit"),
        ("commit read", "commit group"),
        ("commit judge", "commit group"),
        ("commit files", "commit group"),
        ("files write", "commit files"),
        ("commit swap", "commit group"),
    ];
    assert_eq!(parents, expected.map(|(name, parent)| (name, parent.to_owned())).into());
}

#[tokio::test]
async fn object_stores_are_told_the_trace() {
    LazyLock::force(&TOLD);
    let (store, trace_id) = (Receiver::answering("403 Forbidden"), "4bf92f3577b34da6a3ce929d0e0e4703");
    let server = TestServer::on_sqlite().await;
    let storage = json!({"type": "s3", "endpoint": store.url, "path-style": true, "access-key-id": "id",
        "secret-access-key": "secret"});
    let lake = json!({"name": "lake", "location": "s3://lake/x", "storage": storage}).to_string();
    let headers = [("traceparent", &traceparent(trace_id)[..]), ("tracestate", "a=b")];
    server.send(Method::POST, WAREHOUSES, &headers, Some(lake.into())).await.expect(400);
    server.end().await;
    let asked = store.taken();
    assert!(!asked.is_empty());
    for request in asked {
        let traceparent = request.header("traceparent").unwrap_or_default();
        assert!(traceparent.starts_with(&format!("00-{trace_id}-")) && !traceparent.contains(CALLER), "{request:?}");
        assert_eq!(request.header("tracestate"), Some("a=b"));
    }
}

#[tokio::test]
async fn of_what_no_caller_traces_the_configured_share_is_traced() {
    let told = &*TOLD;
    let server = TestServer::on_sqlite().await;
    for (request_id, headers) in [("share-1", Vec::new()), ("share-2", vec![("traceparent", "00-nonsense")])] {
        let headers = [&[("x-request-id", request_id)], &headers[..]].concat();
        server.send(Method::GET, "/namespaces", &headers, None).await.expect(200);
        let trace_id = told.of(request_id, "answered")[0]["trace_id"].as_str().unwrap().to_owned();
        assert_eq!((trace_id.len(), told.received(&trace_id).len()), (32, 0));
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
