//! Commits to several tables at once.

use serde_json::{Value, json};

use crate::server::{TestServer, append, on_both_stores};

const COMMIT: &str = "/transactions/commit";

on_both_stores! {
    all_tables_change_or_none_does,
    a_transaction_sent_again_has_one_effect,
    a_transaction_that_contradicts_itself_is_refused,
}

fn change(name: &str, mut commit: Value) -> Value {
    commit["identifier"] = json!({"namespace": ["n"], "name": name});
    commit
}

async fn two_tables(server: &TestServer) -> (Value, Value) {
    server.create_namespace(&["n"]).await;
    let mut tables = (server.create_table("n", "a").await, server.create_table("n", "b").await);
    (tables.0["metadata"].take(), tables.1["metadata"].take())
}

async fn snapshots(server: &TestServer, name: &str) -> usize {
    let metadata = server.metadata(&format!("/namespaces/n/tables/{name}")).await;
    metadata["snapshots"].as_array().map_or(0, Vec::len)
}

async fn all_tables_change_or_none_does(server: &TestServer) {
    let (a, b) = two_tables(server).await;
    let stale = json!({"requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 99}],
        "updates": [{"action": "set-properties", "updates": {"x": "1"}}]});
    let half = json!({"table-changes": [change("a", append(&a, 1)), change("b", stale)]});
    server.post(COMMIT, half).await.refused(409, "CommitFailedException");
    assert_eq!((snapshots(server, "a").await, snapshots(server, "b").await), (0, 0));
    let whole = json!({"table-changes": [change("a", append(&a, 1)), change("b", append(&b, 2))]});
    server.post(COMMIT, whole).await.expect(204);
    assert_eq!((snapshots(server, "a").await, snapshots(server, "b").await), (1, 1));
}

async fn a_transaction_sent_again_has_one_effect(server: &TestServer) {
    let (a, b) = two_tables(server).await;
    let whole = json!({"table-changes": [change("a", append(&a, 1)), change("b", append(&b, 2))]});
    for _ in 0..2 {
        server.post(COMMIT, whole.clone()).await.expect(204);
    }
    assert_eq!((snapshots(server, "a").await, snapshots(server, "b").await), (1, 1));
}

async fn a_transaction_that_contradicts_itself_is_refused(server: &TestServer) {
    let (a, _) = two_tables(server).await;
    for changes in [
        json!([]),
        json!([change("a", append(&a, 1)), change("a", append(&a, 2))]),
        json!([append(&a, 1)]),
        json!([{"identifier": {"namespace": [], "name": "a"}, "requirements": [], "updates": []}]),
    ] {
        server.post(COMMIT, json!({"table-changes": changes})).await.refused(400, "BadRequestException");
    }
    let missing = json!({"table-changes": [change("nope", json!({"requirements": [], "updates": []}))]});
    server.post(COMMIT, missing).await.refused(404, "NoSuchTableException");
    assert_eq!(snapshots(server, "a").await, 0);
}
