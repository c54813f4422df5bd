//! Warehouses, as operators make, change and delete them.

use serde_json::{Value, json};

use crate::nobody::Nobody;
use crate::server::{TestServer, on_both_stores, schema};

pub const WAREHOUSES: &str = "/management/v1/warehouses";
const LAKE: &str = "/management/v1/warehouses/lake";

on_both_stores! {
    a_warehouse_on_files_is_made_and_used,
    warehouses_are_listed_in_pages,
    a_name_and_a_location_are_given_once,
    a_warehouse_that_holds_something_stays,
    a_deleted_warehouse_may_be_made_again,
    an_update_replaces_all_but_name_and_location,
    a_change_does_not_overwrite_another_one_unseen,
    what_is_not_there_is_not_found,
    a_body_that_cannot_be_is_told_with_its_field,
    clients_are_told_the_settings_of_their_warehouse,
    a_store_that_cannot_be_reached_is_told_and_nothing_is_made,
}

/// A place in the server's own folder.
pub fn place(server: &TestServer, name: &str) -> String {
    format!("file://{}/{name}", server.data.path().display())
}

/// Makes the warehouse `lake` on local files.
async fn lake(server: &TestServer) -> Value {
    let body = json!({"name": "lake", "location": place(server, "lake")});
    server.post(WAREHOUSES, body).await.expect(201).json()
}

async fn a_warehouse_on_files_is_made_and_used(server: &TestServer) {
    let made = lake(server).await;
    let location = place(server, "lake");
    let expected = json!({"id": made["id"], "name": "lake", "location": location, "storage": {"type": "file"},
        "allowed-locations": [], "defaults": {}, "overrides": {}, "version": 1});
    assert_eq!(made, expected);
    assert!(made["id"].is_string());
    assert_eq!(server.get(LAKE).await.expect(200).json(), made);
    let config = server.get("/v1/config?warehouse=lake").await.expect(200).json();
    assert_eq!(config["overrides"]["prefix"], "lake");
    server.post("/v1/lake/namespaces", json!({"namespace": ["n"]})).await.expect(200);
    let body = json!({"name": "t", "schema": schema()});
    let table = server.post("/v1/lake/namespaces/n/tables", body).await.expect(200).json();
    assert!(table["metadata-location"].as_str().unwrap().starts_with(&location), "{table}");
    assert_eq!(table["config"], json!({}));
    server.get("/v1/default/namespaces/n").await.expect(404);
}

async fn warehouses_are_listed_in_pages(server: &TestServer) {
    for name in ["b", "a"] {
        let body = json!({"name": name, "location": place(server, name)});
        server.post(WAREHOUSES, body).await.expect(201);
    }
    let names = |page: &Value| -> Vec<String> {
        let all = page["warehouses"].as_array().unwrap();
        all.iter().map(|warehouse| warehouse["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = server.get(WAREHOUSES).await.expect(200).json();
    assert_eq!((names(&all), &all["next-page-token"]), (vec!["a".into(), "b".into(), "default".into()], &Value::Null));
    let first = server.get(&format!("{WAREHOUSES}?pageSize=2")).await.expect(200).json();
    assert_eq!(names(&first), ["a", "b"]);
    let token = first["next-page-token"].as_str().unwrap();
    let last = server.get(&format!("{WAREHOUSES}?pageSize=2&pageToken={token}")).await.expect(200).json();
    assert_eq!((names(&last), &last["next-page-token"]), (vec!["default".into()], &Value::Null));
    server.get(&format!("{WAREHOUSES}?pageToken=x")).await.refused(400, "BadRequestException");
}

async fn a_name_and_a_location_are_given_once(server: &TestServer) {
    lake(server).await;
    for (name, location) in [
        ("lake", place(server, "other")),
        ("other", place(server, "lake")),
        ("other", place(server, "lake/below")),
        ("other", format!("file:{}", server.data.path().display())),
        ("other", place(server, "warehouse")),
    ] {
        let answer = server.post(WAREHOUSES, json!({"name": name, "location": location})).await;
        answer.refused(409, "AlreadyExistsException");
    }
    let neighbour = json!({"name": "other", "location": place(server, "lake2")});
    server.post(WAREHOUSES, neighbour).await.expect(201);
}

async fn a_warehouse_that_holds_something_stays(server: &TestServer) {
    lake(server).await;
    server.post("/v1/lake/namespaces", json!({"namespace": ["n"]})).await.expect(200);
    let body = json!({"name": "t", "schema": schema()});
    server.post("/v1/lake/namespaces/n/tables", body).await.expect(200);
    let refusal = server.delete(LAKE).await.refused(409, "WarehouseNotEmptyException");
    assert!(refusal.message().contains("1 namespaces, 1 tables and 0 views"), "{}", refusal.text);
    server.get("/v1/lake/namespaces/n/tables/t").await.expect(200);
    server.delete("/v1/lake/namespaces/n/tables/t").await.expect(204);
    server.delete(LAKE).await.refused(409, "WarehouseNotEmptyException");
    server.delete("/v1/lake/namespaces/n").await.expect(204);
    server.delete(LAKE).await.expect(204);
}

async fn a_deleted_warehouse_may_be_made_again(server: &TestServer) {
    let first = lake(server).await;
    server.delete(LAKE).await.expect(204);
    server.get(LAKE).await.refused(404, "NoSuchWarehouseException");
    server.get("/v1/config?warehouse=lake").await.refused(404, "NoSuchWarehouseException");
    server.post("/v1/lake/namespaces", json!({"namespace": ["n"]})).await.refused(404, "NoSuchWarehouseException");
    let second = lake(server).await;
    assert_ne!(first["id"], second["id"]);
    server.post("/v1/lake/namespaces", json!({"namespace": ["n"]})).await.expect(200);
}

async fn an_update_replaces_all_but_name_and_location(server: &TestServer) {
    let mut made = lake(server).await;
    made["allowed-locations"] = json!([place(server, "further")]);
    made["defaults"] = json!({"a": "b"});
    let changed = server.put(LAKE, made.clone()).await.expect(200).json();
    made["version"] = json!(2);
    assert_eq!(changed, made);
    assert_eq!(server.get(LAKE).await.expect(200).json(), made);
    server.post("/v1/lake/namespaces", json!({"namespace": ["n"]})).await.expect(200);
    let body = json!({"name": "t", "schema": schema(), "location": place(server, "further/t")});
    server.post("/v1/lake/namespaces/n/tables", body).await.expect(200);
    for (field, value) in
        [("name", json!("other")), ("location", json!(place(server, "x"))), ("id", json!(uuid::Uuid::nil()))]
    {
        let mut other = made.clone();
        other[field] = value;
        let refusal = server.put(LAKE, other).await.refused(400, "BadRequestException");
        assert!(refusal.message().starts_with(field), "{}", refusal.text);
    }
    server.put(LAKE, json!({})).await.expect(200);
    let emptied = server.get(LAKE).await.expect(200).json();
    assert_eq!((&emptied["allowed-locations"], &emptied["defaults"]), (&json!([]), &json!({})));
}

async fn a_change_does_not_overwrite_another_one_unseen(server: &TestServer) {
    let seen = lake(server).await;
    let with = |key: &str| {
        let mut body = seen.clone();
        body["defaults"] = json!({key: "x"});
        body
    };
    server.put(LAKE, with("first")).await.expect(200);
    server.put(LAKE, with("second")).await.refused(409, "CommitFailedException");
    let now = server.get(LAKE).await.expect(200).json();
    assert_eq!((&now["defaults"], &now["version"]), (&json!({"first": "x"}), &json!(2)));
    let mut again = with("second");
    again["version"] = now["version"].clone();
    server.put(LAKE, again).await.expect(200);
    // Whoever names no version wants to overwrite.
    server.put(LAKE, json!({})).await.expect(200);
}

async fn what_is_not_there_is_not_found(server: &TestServer) {
    for name in ["nope", "Nope", "a%2Fb", "%00"] {
        let path = format!("{WAREHOUSES}/{name}");
        server.get(&path).await.refused(404, "NoSuchWarehouseException");
        server.put(&path, json!({})).await.refused(404, "NoSuchWarehouseException");
        server.delete(&path).await.refused(404, "NoSuchWarehouseException");
    }
    server.post(LAKE, json!({})).await.refused(405, "MethodNotAllowedException");
}

async fn a_body_that_cannot_be_is_told_with_its_field(server: &TestServer) {
    let location = place(server, "lake");
    let with = |field: &str, value: Value| {
        let mut body = json!({"name": "lake", "location": location});
        body[field] = value;
        body
    };
    for (body, told) in [
        (json!({"location": location}), "missing field `name`"),
        (json!({"name": "lake"}), "missing field `location`"),
        (with("name", json!("Lake")), "warehouse name 'Lake'"),
        (with("location", json!("lake")), "location 'lake'"),
        (with("alowed-locations", json!([])), "the nearest one is 'allowed-locations'"),
        (with("allowed-locations", json!(["s3://bucket/x"])), "allowed-locations: 's3://bucket/x' is of type s3"),
        (with("allowed-locations", json!("x")), "at 'allowed-locations'"),
        (with("storage", json!({"type": "s3"})), "storage has type s3"),
        (with("storage", json!({"type": "ftp"})), "`ftp`"),
        (with("storage", json!({"type": "file", "region": "x"})), "unknown field `region`"),
        (with("storage", json!({})), "missing field `type`"),
        (with("defaults", json!({"s3.secret-access-key": "hush"})), "defaults: setting 's3.secret-access-key'"),
        (with("overrides", json!({"token": "hush"})), "overrides: setting 'token'"),
        (with("overrides", json!({"prefix": "x"})), "overrides: setting 'prefix'"),
        (with("defaults", json!({"": "x"})), "defaults: setting ''"),
        (with("defaults", json!({"a": 1})), "at 'defaults.a'"),
    ] {
        let refusal = server.post(WAREHOUSES, body.clone()).await.refused(400, "BadRequestException");
        assert!(refusal.message().contains(told), "{body}: {}", refusal.text);
        assert!(!refusal.text.contains("hush"), "{}", refusal.text);
    }
    server.get(LAKE).await.expect(404);
}

async fn clients_are_told_the_settings_of_their_warehouse(server: &TestServer) {
    let mut made = lake(server).await;
    made["defaults"] = json!({"table-default.write.format.default": "orc", "client.region": "r",
        "frazil.commit.rebase": "append"});
    made["overrides"] = json!({"table-override.owner": "ops"});
    server.put(LAKE, made).await.expect(200);
    let config = server.get("/v1/config?warehouse=lake").await.expect(200).json();
    let defaults = json!({"table-default.write.format.default": "orc", "client.region": "r",
        "frazil.commit-deadline-ms": "30000", "frazil.commit.rebase": "append", "frazil.commit.rebase.anonymous": "false"});
    assert_eq!(config["defaults"], defaults);
    assert_eq!(config["overrides"], json!({"table-override.owner": "ops", "prefix": "lake"}));
    assert!(config["endpoints"].as_array().unwrap().iter().all(|it| !it.as_str().unwrap().contains("management")));
    let other = server.get("/v1/config").await.expect(200).json();
    assert_eq!(other["overrides"], json!({"prefix": "default"}));
}

/// What fails is told, and no secret is.
async fn a_store_that_cannot_be_reached_is_told_and_nothing_is_made(server: &TestServer) {
    let nobody = Nobody::new();
    let body = json!({"name": "lake", "location": "s3://bucket/x", "storage": {"type": "s3", "region": "r",
        "endpoint": nobody.url, "path-style": true, "access-key-id": "id", "secret-access-key": "hush"}});
    let refusal = server.post(WAREHOUSES, body).await.refused(400, "BadRequestException");
    assert!(refusal.message().contains("s3://bucket/x") && !refusal.text.contains("hush"), "{}", refusal.text);
    server.get(LAKE).await.expect(404);
}

#[tokio::test]
async fn a_secret_is_stored_only_where_there_is_a_key() {
    let server = TestServer::with(|config| config.secrets.key = None).await;
    let body = json!({"name": "lake", "location": "s3://bucket/x",
        "storage": {"type": "s3", "region": "r", "access-key-id": "id", "secret-access-key": "hush"}});
    let refusal = server.post(WAREHOUSES, body).await.refused(400, "BadRequestException");
    assert!(refusal.message().contains("secrets.key") && !refusal.text.contains("hush"), "{}", refusal.text);
    server.end().await;
}
