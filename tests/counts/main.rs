//! What a request costs in round trips to the database and operations on files, told by the server's own counters.
//!
//! They count for the whole process, so that nothing else may run beside it: one test, in a binary of its own.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{TestServer, append, schema};

#[expect(dead_code, unused_imports, unused_macros, reason = "shared with the other tests, which use all of it")]
#[path = "../it/server.rs"]
mod server;

/// The other tests hold every answer against the document.
mod document {
    pub fn check(_: &reqwest::Method, _: &str, _: &crate::server::Answer) {}
}

const ROUND_TRIPS: &str = "frazil_sql_round_trips_total";
const OPERATIONS: &str = "frazil_files_operations_total";

/// The counters of one metric by their labels.
type Counted = BTreeMap<String, u64>;

async fn counted(server: &TestServer, metric: &str) -> Counted {
    let text = server.get("/metrics").await.expect(200).text;
    let of_metric = text.lines().filter_map(|line| line.strip_prefix(metric)?.strip_prefix('{')?.split_once("} "));
    of_metric.map(|(labels, value)| (labels.to_owned(), value.parse().unwrap())).collect()
}

/// What grew, by how much.
fn grown(before: &Counted, after: &Counted) -> Counted {
    let by = |(labels, value): (&String, &u64)| (labels.clone(), value - before.get(labels).unwrap_or(&0));
    after.iter().map(by).filter(|(_, by)| *by > 0).collect()
}

struct Cost {
    round_trips: Counted,
    operations: Counted,
}

impl Cost {
    /// Without the reading of the warehouse, which is remembered for five seconds.
    fn round_trips(&self) -> u64 {
        let of_request = |(labels, _): &(&String, &u64)| *labels != "statement=\"warehouse\"";
        self.round_trips.iter().filter(of_request).map(|(_, count)| count).sum()
    }
}

async fn cost_of(server: &TestServer, request: impl Future<Output = ()>) -> Cost {
    let (round_trips, operations) = (counted(server, ROUND_TRIPS).await, counted(server, OPERATIONS).await);
    request.await;
    Cost {
        round_trips: grown(&round_trips, &counted(server, ROUND_TRIPS).await),
        operations: grown(&operations, &counted(server, OPERATIONS).await),
    }
}

/// Makes a table and appends to it, until connections and memory are warm; returns its path.
async fn warm_table(server: &TestServer, name: &str, properties: Value) -> String {
    let body = json!({"name": name, "schema": schema(), "properties": properties});
    server.post("/namespaces/n/tables", body).await.expect(200);
    let table = format!("/namespaces/n/tables/{name}");
    for snapshot_id in 1..=3 {
        append_as_writer(server, &table, snapshot_id).await;
    }
    table
}

async fn written(server: &TestServer, table: &str, snapshot_id: i64) -> Value {
    let mut commit = append(&server.metadata(table).await, snapshot_id);
    let summary = &mut commit["updates"][0]["snapshot"]["summary"];
    summary["frazil.writer-id"] = json!("loader");
    summary["frazil.position"] = json!(snapshot_id.to_string());
    commit
}

async fn append_as_writer(server: &TestServer, table: &str, snapshot_id: i64) {
    let commit = written(server, table, snapshot_id).await;
    server.post(table, commit).await.expect(200);
}

async fn an_append_is_a_read_a_file_and_a_swap(server: &TestServer) {
    for (name, properties) in [("plain", json!({})), ("rebased", json!({"frazil.commit.rebase": "append"}))] {
        let table = warm_table(server, name, properties).await;
        let commit = written(server, &table, 4).await;
        let cost = cost_of(server, async { drop(server.post(&table, commit).await.expect(200)) }).await;
        assert!(cost.round_trips() <= 2, "{name}: {:?}", cost.round_trips);
        let one_file = Counted::from([("operation=\"write\",outcome=\"ok\"".to_owned(), 1)]);
        assert_eq!(cost.operations, one_file, "{name}");
    }
}

async fn a_load_of_what_is_in_memory_is_one_question(server: &TestServer) {
    let table = warm_table(server, "loaded", json!({})).await;
    for path in [table.clone(), format!("{table}?snapshots=refs")] {
        let cost = cost_of(server, async { drop(server.get(&path).await.expect(200)) }).await;
        assert_eq!(cost.round_trips(), 1, "{path}: {:?}", cost.round_trips);
        assert_eq!(cost.operations, Counted::new(), "{path}");
        let tag = server.get(&path).await.header("etag").unwrap().to_owned();
        let known = [("if-none-match", tag.as_str())];
        let again = server.send(Method::GET, &path, &known, None);
        let cost = cost_of(server, async { drop(again.await.expect(304)) }).await;
        assert_eq!(cost.round_trips(), 1, "{path}: {:?}", cost.round_trips);
        assert_eq!(cost.operations, Counted::new(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_requests_cost_is_bounded() {
    for server in [TestServer::on_sqlite().await, TestServer::on_postgres().await] {
        server.create_namespace(&["n"]).await;
        an_append_is_a_read_a_file_and_a_swap(&server).await;
        a_load_of_what_is_in_memory_is_one_question(&server).await;
        server.end().await;
    }
}
