//! Views from their creation to their end.

use serde_json::{Value, json};

use crate::server::{TestServer, on_both_stores, schema};

const VIEW: &str = "/namespaces/n/views/v";
const VIEWS: &str = "/namespaces/n/views";

on_both_stores! {
    a_view_is_made_replaced_and_dropped,
    tables_and_views_share_their_names,
    a_view_is_no_table_and_a_table_is_no_view,
    a_dropped_view_can_be_registered_again,
}

fn version(id: i32, sql: &str) -> Value {
    json!({"version-id": id, "timestamp-ms": 1_700_000_000_000_i64, "schema-id": 0, "summary": {},
        "default-namespace": ["n"], "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}]})
}

pub fn view(name: &str) -> Value {
    json!({"name": name, "schema": schema(), "view-version": version(1, "select 1")})
}

async fn a_view_is_made_replaced_and_dropped(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let made = server.post(VIEWS, view("v")).await.expect(200).json();
    assert_eq!(made["metadata"]["current-version-id"], 1);
    let loaded = server.get(VIEW).await.expect(200);
    assert_eq!(loaded.json(), made);
    let known = [("if-none-match", loaded.header("etag").unwrap())];
    server.send(reqwest::Method::GET, VIEW, &known, None).await.expect(304);
    server.head(VIEW).await.expect(204);
    let uuid = &made["metadata"]["view-uuid"];
    let replace = |uuid: &Value| {
        json!({"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": [
            {"action": "add-view-version", "view-version": version(2, "select 2")},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]})
    };
    let other = json!("0197d5ca-9c2f-7d5e-8f6a-0123456789ab");
    server.post(VIEW, replace(&other)).await.refused(409, "CommitFailedException");
    let now = server.post(VIEW, replace(uuid)).await.expect(200).json();
    assert_eq!(now["metadata"]["current-version-id"], 2);
    assert_eq!(now["metadata"]["view-uuid"], *uuid);
    server.post(VIEW, json!({"updates": [{"action": "fly"}]})).await.refused(400, "BadRequestException");
    let rename = json!({"source": {"namespace": ["n"], "name": "v"}, "destination": {"namespace": ["n"], "name": "w"}});
    server.post("/views/rename", rename.clone()).await.expect(204);
    server.post("/views/rename", rename).await.refused(404, "NoSuchViewException");
    server.delete(&format!("{VIEWS}/w")).await.expect(204);
    server.delete(&format!("{VIEWS}/w")).await.refused(404, "NoSuchViewException");
}

async fn tables_and_views_share_their_names(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    server.post(VIEWS, view("v")).await.expect(200);
    let refusal = server.post(VIEWS, view("t")).await.refused(409, "AlreadyExistsException");
    assert_eq!(refusal.message(), "Table with same name already exists: n.t");
    for stage in [false, true] {
        let body = json!({"name": "v", "schema": schema(), "stage-create": stage});
        let refusal = server.post("/namespaces/n/tables", body).await.refused(409, "AlreadyExistsException");
        assert_eq!(refusal.message(), "View with same name already exists: n.v");
    }
}

async fn a_view_is_no_table_and_a_table_is_no_view(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    server.post(VIEWS, view("v")).await.expect(200);
    let (as_table, as_view) = ("/namespaces/n/tables/v", "/namespaces/n/views/t");
    server.get(as_table).await.refused(404, "NoSuchTableException");
    server.head(as_table).await.expect(404);
    server.delete(as_table).await.refused(404, "NoSuchTableException");
    server.post(as_table, json!({"requirements": [], "updates": []})).await.refused(404, "NoSuchTableException");
    server.get(as_view).await.refused(404, "NoSuchViewException");
    server.head(as_view).await.expect(404);
    server.delete(as_view).await.refused(404, "NoSuchViewException");
    server.post(as_view, json!({"updates": []})).await.refused(404, "NoSuchViewException");
    server.head(VIEW).await.expect(204);
    server.head("/namespaces/n/tables/t").await.expect(204);
}

async fn a_dropped_view_can_be_registered_again(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let made = server.post(VIEWS, view("v")).await.expect(200).json();
    let register = json!({"name": "back", "metadata-location": made["metadata-location"]});
    server.delete(VIEW).await.expect(204);
    let back = server.post("/namespaces/n/register-view", register.clone()).await.expect(200).json();
    assert_eq!(back["metadata"], made["metadata"]);
    server.post("/namespaces/n/register-view", register).await.refused(409, "AlreadyExistsException");
}
