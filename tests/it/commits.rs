//! Commits to one table.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::server::{TestServer, append, on_both_stores};

const TABLE: &str = "/namespaces/n/tables/t";

/// The default of `commit.deadline`.
const COMMIT_DEADLINE: Duration = Duration::from_secs(30);

on_both_stores! {
    an_append_lands_once_however_often_it_is_sent,
    of_racing_appends_on_one_base_one_wins,
    whoever_loses_alone_hears_of_it_long_before_its_time_is_over,
    a_chain_of_snapshots_may_come_with_one_move_of_the_branch,
    a_requirement_that_does_not_hold_is_a_conflict,
    an_unknown_update_refuses_the_whole_commit,
    the_path_names_the_table_whatever_the_body_says,
    a_commit_of_several_megabytes_is_taken,
    a_commit_that_changes_nothing_writes_nothing,
    a_body_that_is_no_commit_is_refused_with_its_fault,
}

async fn table(server: &TestServer) -> Value {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await["metadata"].take()
}

async fn an_append_lands_once_however_often_it_is_sent(server: &TestServer) {
    let commit = append(&table(server).await, 1);
    server.post(TABLE, commit.clone()).await.expect(200);
    server.append(TABLE, 2).await.expect(200);
    let again = server.post(TABLE, commit).await.expect(200).json();
    assert_eq!(again["metadata"]["current-snapshot-id"], 2);
    assert_eq!(again["metadata"]["snapshots"].as_array().unwrap().len(), 2);
}

async fn of_racing_appends_on_one_base_one_wins(server: &TestServer) {
    let base = table(server).await;
    let answers = join_all((1..=10).map(|id| server.post(TABLE, append(&base, id)))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    for answer in answers.into_iter().filter(|answer| answer.status != 200) {
        answer.refused(409, "CommitFailedException");
    }
    assert_eq!(server.metadata(TABLE).await["snapshots"].as_array().unwrap().len(), 1);
}

async fn whoever_loses_alone_hears_of_it_long_before_its_time_is_over(server: &TestServer) {
    let base = table(server).await;
    server.append(TABLE, 1).await.expect(200);
    let losers = async {
        for id in 2..6 {
            server.post(TABLE, append(&base, id)).await.refused(409, "CommitFailedException");
        }
    };
    tokio::time::timeout(COMMIT_DEADLINE / 2, losers).await.expect("nobody else came, and nobody was answered");
}

/// As DuckDB commits a transaction that writes one table twice.
async fn a_chain_of_snapshots_may_come_with_one_move_of_the_branch(server: &TestServer) {
    table(server).await;
    server.append(TABLE, 1).await.expect(200);
    let base = server.metadata(TABLE).await;
    let (second, mut chain) = (append(&base, 2)["updates"][0].take(), append(&base, 3));
    let third = &mut chain["updates"][0]["snapshot"];
    third["parent-snapshot-id"] = json!(2);
    third["sequence-number"] = json!(second["snapshot"]["sequence-number"].as_i64().unwrap() + 1);
    chain["updates"].as_array_mut().unwrap().insert(0, second);
    let now = server.post(TABLE, chain).await.expect(200).json();
    assert_eq!(now["metadata"]["current-snapshot-id"], 3);
    assert_eq!(now["metadata"]["snapshots"].as_array().unwrap().len(), 3);
}

async fn a_requirement_that_does_not_hold_is_a_conflict(server: &TestServer) {
    let metadata = table(server).await;
    let commit = |requirement: Value| json!({"requirements": [requirement], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]});
    for requirement in [
        json!({"type": "assert-table-uuid", "uuid": "0197d5ca-9c2f-7d5e-8f6a-0123456789ab"}),
        json!({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}),
        json!({"type": "assert-current-schema-id", "current-schema-id": 9}),
        json!({"type": "assert-create"}),
    ] {
        server.post(TABLE, commit(requirement)).await.refused(409, "CommitFailedException");
    }
    assert_eq!(server.metadata(TABLE).await, metadata);
}

async fn an_unknown_update_refuses_the_whole_commit(server: &TestServer) {
    let metadata = table(server).await;
    let set = json!({"action": "set-properties", "updates": {"a": "1"}});
    for commit in [
        json!({"requirements": [], "updates": [set, {"action": "fly-to-the-moon"}]}),
        json!({"requirements": [{"type": "assert-full-moon"}], "updates": [set]}),
        json!({"requirements": [], "updates": [set, {"action": "set-current-schema", "schema-id": "x"}]}),
    ] {
        server.post(TABLE, commit).await.refused(400, "BadRequestException");
    }
    assert_eq!(server.metadata(TABLE).await, metadata);
}

async fn the_path_names_the_table_whatever_the_body_says(server: &TestServer) {
    server.create_namespace(&["a"]).await;
    server.create_namespace(&["a", "b"]).await;
    server.create_table("a%1Fb", "t").await;
    let commit = json!({"identifier": {"namespace": ["a.b"], "name": "t"},
        "updates": [{"action": "set-properties", "updates": {"x": "1"}}]});
    let now = server.post("/namespaces/a%1Fb/tables/t", commit).await.expect(200).json();
    assert_eq!(now["metadata"]["properties"]["x"], "1");
}

async fn a_commit_of_several_megabytes_is_taken(server: &TestServer) {
    table(server).await;
    server.append(TABLE, 1).await.expect(200);
    server.append(TABLE, 2).await.expect(200);
    let ids: Vec<i64> = (1_000_000_000_000_000_000..1_000_000_000_000_160_000).chain([1]).collect();
    let commit = json!({"requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2}],
        "updates": [{"action": "remove-snapshots", "snapshot-ids": ids}]});
    assert!(commit.to_string().len() > 3_000_000);
    let now = server.post(TABLE, commit).await.expect(200).json();
    assert_eq!(now["metadata"]["snapshots"].as_array().unwrap().len(), 1);
}

async fn a_commit_that_changes_nothing_writes_nothing(server: &TestServer) {
    table(server).await;
    let before = server.get(TABLE).await.json();
    let commit = json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {}}]});
    assert_eq!(server.post(TABLE, commit).await.expect(200).json(), before);
}

async fn a_body_that_is_no_commit_is_refused_with_its_fault(server: &TestServer) {
    table(server).await;
    let text = |body: &str| server.send(reqwest::Method::POST, TABLE, &[], Some(body.as_bytes().to_vec()));
    for body in ["", "{", "[]", "\"x\"", "{\"updates\": 7}", "{}"] {
        text(body).await.refused(400, "BadRequestException");
    }
    server.post("/namespaces/n/tables/nope", json!({"updates": []})).await.refused(404, "NoSuchTableException");
}
