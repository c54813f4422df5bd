//! Tables from their creation to their end.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{TestServer, append, on_both_stores, schema};

const TABLE: &str = "/namespaces/n/tables/t";
const TABLES: &str = "/namespaces/n/tables";

on_both_stores! {
    a_table_is_made_and_loaded,
    a_staged_table_comes_with_its_first_commit,
    the_current_schema_of_a_new_table_may_be_named_last,
    a_table_lies_where_the_warehouse_lets_it,
    a_dropped_table_can_be_registered_again,
    a_purged_table_loses_its_files,
    an_unregistered_table_tells_its_last_metadata,
    a_table_is_renamed_across_namespaces,
    register_with_overwrite_points_elsewhere,
    reports_are_taken_of_tables_that_exist,
    hints_that_cannot_be_served_are_no_error,
    a_missing_function_is_named_as_such,
}

/// Where a `file://` location is on disk.
fn on_disk(location: &Value) -> PathBuf {
    PathBuf::from(location.as_str().unwrap().strip_prefix("file://").unwrap())
}

async fn a_table_is_made_and_loaded(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let body = json!({"name": "t", "schema": schema(), "properties": {"format-version": "3", "a": "1"}, "stage-create": null,
        "partition-spec": {"fields": [{"source-id": 1, "name": "b", "transform": "bucket[4]"}]}, "unknown": {}});
    let made = server.post(TABLES, body).await.expect(200).json();
    assert_eq!(made["metadata"]["format-version"], 3);
    assert_eq!(made["metadata"]["next-row-id"], 0);
    assert_eq!(made["metadata"]["properties"]["a"], "1");
    assert_eq!(made["config"], json!({}));
    assert!(on_disk(&made["metadata-location"]).is_file());
    assert!(on_disk(&made["metadata"]["location"]).join("data").is_dir());
    let loaded = server.get(TABLE).await.expect(200).json();
    assert_eq!(loaded, made);
    assert_eq!(std::fs::read_to_string(on_disk(&made["metadata-location"])).unwrap(), loaded_text(server).await);
    for body in
        [json!({}), json!({"name": "u"}), json!({"name": "u", "schema": null}), json!({"name": 7, "schema": {}})]
    {
        server.post(TABLES, body).await.refused(400, "BadRequestException");
    }
    server.post(TABLES, json!({"name": "t", "schema": schema()})).await.refused(409, "AlreadyExistsException");
    let nowhere = json!({"name": "t", "schema": schema()});
    server.post("/namespaces/nope/tables", nowhere).await.refused(404, "NoSuchNamespaceException");
    server.get("/namespaces/nope/tables/t").await.refused(404, "NoSuchTableException");
}

/// The metadata out of the answer, byte for byte.
async fn loaded_text(server: &TestServer) -> String {
    let text = server.get(TABLE).await.expect(200).text;
    let (_, after) = text.split_once("\"metadata\":").unwrap();
    after.rsplit_once(",\"config\"").unwrap().0.to_owned()
}

async fn a_staged_table_comes_with_its_first_commit(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let staged = server.post(TABLES, json!({"name": "t", "schema": schema(), "stage-create": true})).await.expect(200);
    assert_eq!(staged.header("etag"), None);
    let (staged, metadata) = (staged.json(), staged.json()["metadata"].take());
    assert_eq!(staged.get("metadata-location"), None);
    assert!(on_disk(&metadata["location"]).join("metadata").is_dir());
    server.head(TABLE).await.expect(404);
    assert_eq!(server.get(TABLES).await.json()["identifiers"], json!([]));
    let commit = json!({"requirements": [{"type": "assert-create"}], "updates": [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]});
    let made = server.post(TABLE, commit.clone()).await.expect(200).json();
    assert_eq!(made["metadata"]["table-uuid"], metadata["table-uuid"]);
    server.post(TABLE, commit).await.refused(409, "CommitFailedException");
}

/// The order in which DuckDB sends the parts of a new table.
async fn the_current_schema_of_a_new_table_may_be_named_last(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let staged = server.post(TABLES, json!({"name": "t", "schema": schema(), "stage-create": true})).await.expect(200);
    let metadata = staged.json()["metadata"].take();
    let source = &metadata["schemas"][0]["fields"][0]["id"];
    let commit = json!({"requirements": [{"type": "assert-create"}], "updates": [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": [
            {"name": "p", "transform": "identity", "source-id": source, "field-id": 1000}]}},
        {"action": "set-default-spec", "spec-id": 0},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": 0},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-current-schema", "schema-id": 0},
    ]});
    let made = server.post(TABLE, commit).await.expect(200).json();
    assert_eq!(made["metadata"]["partition-specs"][0]["fields"][0]["name"], "p");
}

async fn a_table_lies_where_the_warehouse_lets_it(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let location = server.create_table("n", "t").await["metadata"]["location"].as_str().unwrap().to_owned();
    for bad in [
        "file:///elsewhere/t",
        "s3://bucket/t",
        "hdfs://n/t",
        "relative",
        &format!("{location}/below"),
        &format!("{location}/../x"),
    ] {
        let body = json!({"name": "u", "schema": schema(), "location": bad});
        let refusal = server.post(TABLES, body).await.refused(400, "BadRequestException");
        assert!(refusal.message().contains("location"), "{}", refusal.text);
    }
    server.head("/namespaces/n/tables/u").await.expect(404);
}

async fn a_dropped_table_can_be_registered_again(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let made = server.create_table("n", "t").await;
    let register = |name: &str| json!({"name": name, "metadata-location": made["metadata-location"]});
    let taken = server.post("/namespaces/n/register", register("other")).await.refused(409, "AlreadyExistsException");
    assert!(taken.message().contains("n.t"), "{}", taken.text);
    server.delete(&format!("{TABLE}?purgeRequested=False")).await.expect(204);
    assert!(on_disk(&made["metadata-location"]).is_file());
    let back = server.post("/namespaces/n/register", register("other")).await.expect(200);
    assert!(back.header("etag").is_some());
    assert_eq!(back.json()["metadata"], made["metadata"]);
    server.delete(&format!("{TABLES}/other?purgeRequested=yes")).await.refused(400, "BadRequestException");
    server.head(&format!("{TABLES}/other")).await.expect(204);
}

async fn a_purged_table_loses_its_files(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let made = server.create_table("n", "t").await;
    let file = on_disk(&made["metadata-location"]);
    server.delete(&format!("{TABLE}?purgeRequested=True")).await.expect(204);
    server.head(TABLE).await.expect(404);
    // The answer does not wait for the deletion, so this does.
    for _ in 0..600 {
        if !file.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} is still there", file.display());
}

async fn an_unregistered_table_tells_its_last_metadata(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let made = server.create_table("n", "t").await;
    let commit = append(&made["metadata"], 9);
    let last = server.post(&format!("{TABLE}/unregister"), json!({})).await.expect(200).json();
    assert_eq!(last["metadata-location"], made["metadata-location"]);
    assert!(on_disk(&made["metadata-location"]).is_file());
    server.post(TABLE, commit).await.refused(404, "NoSuchTableException");
    server.post(&format!("{TABLE}/unregister"), json!({})).await.refused(404, "NoSuchTableException");
}

async fn a_table_is_renamed_across_namespaces(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_namespace(&["m"]).await;
    let made = server.create_table("n", "t").await;
    server.create_table("n", "taken").await;
    let rename = |from: Value, to: Value| json!({"source": from, "destination": to});
    let (t, taken) = (json!({"namespace": ["n"], "name": "t"}), json!({"namespace": ["n"], "name": "taken"}));
    let (moved, nowhere) = (json!({"namespace": ["m"], "name": "t2"}), json!({"namespace": ["x"], "name": "t"}));
    server.post("/tables/rename", rename(t.clone(), taken)).await.refused(409, "AlreadyExistsException");
    server.post("/tables/rename", rename(t.clone(), nowhere)).await.refused(404, "NoSuchNamespaceException");
    server.post("/tables/rename", rename(t.clone(), t.clone())).await.expect(204);
    server.post("/tables/rename", rename(t.clone(), moved.clone())).await.expect(204);
    server.post("/tables/rename", rename(t, moved)).await.refused(404, "NoSuchTableException");
    assert_eq!(server.get("/namespaces/m/tables/t2").await.expect(200).json(), made);
    let misnamed = json!({"source": {"namespace": ["n"]}, "destination": {"namespace": ["m"], "name": "x"}});
    let refusal = server.post("/tables/rename", misnamed).await.refused(400, "BadRequestException");
    assert!(refusal.message().contains("'source'") && refusal.message().contains("`name`"), "{}", refusal.text);
}

async fn register_with_overwrite_points_elsewhere(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let first = server.create_table("n", "t").await;
    server.append(TABLE, 3).await.expect(200);
    let back = json!({"name": "t", "metadata-location": first["metadata-location"]});
    server.post("/namespaces/n/register", back.clone()).await.refused(409, "AlreadyExistsException");
    let mut overwrite = back;
    overwrite["overwrite"] = true.into();
    let now = server.post("/namespaces/n/register", overwrite).await.expect(200).json();
    assert_eq!(now["metadata-location"], first["metadata-location"]);
    assert_eq!(server.get(TABLE).await.json()["metadata-location"], first["metadata-location"]);
}

async fn reports_are_taken_of_tables_that_exist(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    let report = json!({"report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "filter": true, "schema-id": 0,
        "projected-field-ids": [1], "projected-field-names": ["id"], "metrics": {}});
    server.post(&format!("{TABLE}/metrics"), report.clone()).await.expect(204);
    server.post(&format!("{TABLES}/x/metrics"), report).await.refused(404, "NoSuchTableException");
    server.post(&format!("{TABLE}/metrics"), json!({"table-name": "t"})).await.refused(400, "BadRequestException");
}

async fn hints_that_cannot_be_served_are_no_error(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    for (index, hint) in ["vended-credentials", "remote-signing", "telepathy"].into_iter().enumerate() {
        let headers = [("x-iceberg-access-delegation", hint), ("content-type", "text/plain")];
        let body = json!({"name": format!("t{index}"), "schema": schema()}).to_string().into_bytes();
        server.send(reqwest::Method::POST, TABLES, &headers, Some(body)).await.expect(200);
        server.send(reqwest::Method::GET, &format!("{TABLES}/t{index}"), &headers, None).await.expect(200);
    }
}

async fn a_missing_function_is_named_as_such(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.get("/namespaces/n/functions/f").await.refused(404, "NoSuchFunctionException");
    server.get("/namespaces/x/functions/f").await.refused(404, "NoSuchNamespaceException");
    server.get("/namespaces/x/functions").await.refused(404, "NoSuchNamespaceException");
}
