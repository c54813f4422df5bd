//! What landed before is told so, and what may have landed is never refused in a way that makes clients delete files.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::server::{TestServer, append, on_both_stores};

const TABLE: &str = "/namespaces/n/tables/t";

on_both_stores! {
    a_commit_is_known_after_its_branch_went_on_or_back,
    a_commit_is_known_after_its_snapshot_expired,
    a_commit_is_known_before_its_other_faults_are_refused,
    a_commit_that_landed_in_part_is_in_doubt,
    a_commit_to_a_table_that_is_gone_is_in_doubt,
    a_commit_to_a_name_that_means_another_table_is_in_doubt,
    a_table_that_comes_back_knows_its_snapshots,
    twins_at_once_all_land_as_one,
    a_landed_transaction_with_an_entry_that_is_not_there_is_in_doubt,
}

/// A table whose snapshot 1 landed, and the commit that brought it.
async fn landed(server: &TestServer) -> Value {
    server.create_namespace(&["n"]).await;
    let metadata = server.create_table("n", "t").await["metadata"].take();
    let commit = append(&metadata, 1);
    server.post(TABLE, commit.clone()).await.expect(200);
    commit
}

fn update(update: Value) -> Value {
    json!({"requirements": [], "updates": [update]})
}

async fn snapshot_ids(server: &TestServer) -> Vec<i64> {
    let metadata = server.metadata(TABLE).await;
    metadata["snapshots"].as_array().unwrap().iter().map(|snapshot| snapshot["snapshot-id"].as_i64().unwrap()).collect()
}

async fn a_commit_is_known_after_its_branch_went_on_or_back(server: &TestServer) {
    landed(server).await;
    let second = append(&server.metadata(TABLE).await, 2);
    server.post(TABLE, second.clone()).await.expect(200);
    let back = json!({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1});
    server.post(TABLE, update(back)).await.expect(200);
    let now = server.post(TABLE, second).await.expect(200).json();
    assert_eq!(now["metadata"]["current-snapshot-id"], 1);
    assert_eq!(snapshot_ids(server).await, [1, 2]);
}

async fn a_commit_is_known_after_its_snapshot_expired(server: &TestServer) {
    let first = landed(server).await;
    server.append(TABLE, 2).await.expect(200);
    server.post(TABLE, update(json!({"action": "remove-snapshots", "snapshot-ids": [1]}))).await.expect(200);
    server.post(TABLE, first).await.expect(200);
    assert_eq!(snapshot_ids(server).await, [2]);
}

async fn a_commit_is_known_before_its_other_faults_are_refused(server: &TestServer) {
    let mut first = landed(server).await;
    first["updates"].as_array_mut().unwrap().push(json!({"action": "fly-to-the-moon"}));
    first["requirements"] = json!([{"type": "assert-full-moon"}]);
    server.post(TABLE, first).await.expect(200);
}

async fn a_commit_that_landed_in_part_is_in_doubt(server: &TestServer) {
    let mut commit = landed(server).await;
    let next = append(&server.metadata(TABLE).await, 2);
    let added = commit["updates"].as_array_mut().unwrap();
    added.extend(next["updates"].as_array().unwrap().iter().cloned());
    server.post(TABLE, commit).await.refused(500, "CommitStateUnknownException");
    assert_eq!(snapshot_ids(server).await, [1]);
}

async fn a_commit_to_a_table_that_is_gone_is_in_doubt(server: &TestServer) {
    let commit = landed(server).await;
    server.delete(TABLE).await.expect(204);
    server.post(TABLE, commit.clone()).await.refused(500, "CommitStateUnknownException");
    let mut unknown = commit;
    unknown["updates"][0]["snapshot"]["snapshot-id"] = 77.into();
    unknown["updates"][1]["snapshot-id"] = 77.into();
    server.post(TABLE, unknown).await.refused(404, "NoSuchTableException");
}

async fn a_commit_to_a_name_that_means_another_table_is_in_doubt(server: &TestServer) {
    let asserting = landed(server).await;
    let mut silent = asserting.clone();
    silent["requirements"] = json!([]);
    let rename =
        json!({"source": {"namespace": ["n"], "name": "t"}, "destination": {"namespace": ["n"], "name": "other"}});
    server.post("/tables/rename", rename).await.expect(204);
    server.create_table("n", "t").await;
    for commit in [asserting, silent] {
        server.post(TABLE, commit).await.refused(500, "CommitStateUnknownException");
    }
    assert!(server.metadata(TABLE).await["snapshots"].as_array().is_none_or(Vec::is_empty));
}

async fn a_table_that_comes_back_knows_its_snapshots(server: &TestServer) {
    let commit = landed(server).await;
    let last = server.post(&format!("{TABLE}/unregister"), json!({})).await.expect(200).json();
    let register = json!({"name": "t", "metadata-location": last["metadata-location"]});
    server.post("/namespaces/n/register", register).await.expect(200);
    server.post(TABLE, commit).await.expect(200);
    assert_eq!(snapshot_ids(server).await, [1]);
}

async fn twins_at_once_all_land_as_one(server: &TestServer) {
    landed(server).await;
    for id in 2..12 {
        let mut commit = append(&server.metadata(TABLE).await, id);
        // Some clients send no UUID.
        commit["requirements"].as_array_mut().unwrap().remove(0);
        for answer in join_all((0..6).map(|_| server.post(TABLE, commit.clone()))).await {
            assert_eq!(answer.expect(200).json()["metadata"]["current-snapshot-id"], id);
        }
    }
    assert_eq!(snapshot_ids(server).await.len(), 11);
}

async fn a_landed_transaction_with_an_entry_that_is_not_there_is_in_doubt(server: &TestServer) {
    let mut first = landed(server).await;
    server.create_table("n", "u").await;
    let set = json!({"identifier": {"namespace": ["n"], "name": "u"}, "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"only": "here"}}]});
    first["identifier"] = json!({"namespace": ["n"], "name": "t"});
    let whole = json!({"table-changes": [first, set]});
    server.post("/transactions/commit", whole.clone()).await.refused(500, "CommitStateUnknownException");
    server.post("/transactions/commit", json!({"table-changes": [set]})).await.expect(204);
    server.post("/transactions/commit", whole).await.expect(204);
}
