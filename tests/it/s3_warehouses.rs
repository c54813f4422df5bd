//! Warehouses on S3, beside others.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::management::WAREHOUSES;
use crate::s3::{Proxy, S3};
use crate::server::{TestServer, append, on_both_stores, schema};

const LAKE: &str = "/management/v1/warehouses/lake";
const NAMESPACE: &str = "/v1/lake/namespaces/n";
const TABLE: &str = "/v1/lake/namespaces/n/tables/t";

on_both_stores! {
    a_warehouse_on_s3_takes_tables_beside_one_on_files,
    clients_are_told_how_to_reach_the_store_and_no_secret,
    another_config_is_another_answer,
    a_table_may_lie_in_another_bucket_of_the_same_store,
    a_secret_that_is_left_out_stays,
    what_is_wrong_with_a_store_is_told,
    a_store_that_falls_silent_keeps_nobody_else_waiting,
    a_store_that_is_silent_makes_no_warehouse,
    a_purge_goes_on_after_its_warehouse,
}

/// Makes the warehouse `lake` at a place of its own, with a namespace; returns its root.
async fn lake(server: &TestServer, s3: &S3) -> String {
    let root = s3.place().await;
    let body = json!({"name": "lake", "location": root, "storage": s3.storage()});
    server.post(WAREHOUSES, body).await.expect(201);
    server.post("/v1/lake/namespaces", json!({"namespace": ["n"]})).await.expect(200);
    root
}

async fn create_table(server: &TestServer, location: Option<&str>) -> Value {
    let body = json!({"name": "t", "schema": schema(), "location": location});
    server.post(&format!("{NAMESPACE}/tables"), body).await.expect(200).json()
}

async fn a_warehouse_on_s3_takes_tables_beside_one_on_files(server: &TestServer) {
    let root = lake(server, &S3::of_the_runner()).await;
    let made = create_table(server, None).await;
    assert!(made["metadata-location"].as_str().unwrap().starts_with(&root), "{made}");
    let committed = server.post(TABLE, append(&made["metadata"], 1)).await.expect(200).json();
    assert_eq!(server.get(TABLE).await.expect(200).json(), committed);
    server.create_namespace(&["n"]).await;
    let local = server.create_table("n", "t").await;
    assert_eq!(local["config"], json!({}));
    assert!(local["metadata-location"].as_str().unwrap().starts_with("file:"), "{local}");
}

async fn clients_are_told_how_to_reach_the_store_and_no_secret(server: &TestServer) {
    let s3 = S3::of_the_runner();
    lake(server, &s3).await;
    let made = create_table(server, None).await;
    let expected = json!({"s3.endpoint": s3.endpoint, "s3.path-style-access": "true", "s3.region": s3.region,
        "client.region": s3.region});
    assert_eq!(made["config"], expected);
    let committed = server.post(TABLE, append(&made["metadata"], 1)).await.expect(200);
    assert_eq!(committed.json()["config"], expected);
    // iceberg-rust forgets what came with the table when it commits, and goes on with this.
    let config = server.get("/v1/config?warehouse=lake").await.expect(200).json();
    for (setting, value) in expected.as_object().unwrap() {
        assert_eq!(config["defaults"][setting], *value, "{setting}");
    }
    let answers = [
        committed,
        server.get(TABLE).await,
        server.get(LAKE).await,
        server.get(WAREHOUSES).await,
        server.get("/v1/config?warehouse=lake").await,
        server.put(LAKE, json!({"storage": s3.storage()})).await,
        server.get("/metrics").await,
    ];
    for answer in answers {
        let answer = answer.expect(200);
        assert!(!answer.text.contains(&s3.secret_access_key), "{}: {}", answer.asked, answer.text);
        assert!(!answer.text.contains("sealed:"), "{}: {}", answer.asked, answer.text);
    }
}

async fn another_config_is_another_answer(server: &TestServer) {
    let s3 = S3::of_the_runner();
    lake(server, &s3).await;
    create_table(server, None).await;
    let first = server.get(TABLE).await.expect(200);
    let etag = first.header("etag").unwrap().to_owned();
    let known = [("if-none-match", etag.as_str())];
    server.send(Method::GET, TABLE, &known, None).await.expect(304);
    let changed = json!({"storage": s3.storage(), "defaults": {"s3.endpoint": "https://s3.example", "x": "y"}});
    server.put(LAKE, changed).await.expect(200);
    let second = server.send(Method::GET, TABLE, &known, None).await.expect(200);
    assert_eq!(second.json()["config"]["s3.endpoint"], "https://s3.example");
    assert_eq!(second.json()["config"]["x"], Value::Null, "what the store does not say is told by /v1/config");
    assert_eq!(second.json()["metadata"], first.json()["metadata"]);
}

async fn a_table_may_lie_in_another_bucket_of_the_same_store(server: &TestServer) {
    let s3 = S3::of_the_runner();
    lake(server, &s3).await;
    let elsewhere = s3.place_elsewhere().await;
    let location = format!("{elsewhere}/t");
    let body = json!({"name": "t", "schema": schema(), "location": location});
    server.post(&format!("{NAMESPACE}/tables"), body).await.refused(400, "BadRequestException");
    server.put(LAKE, json!({"storage": s3.storage(), "allowed-locations": [elsewhere]})).await.expect(200);
    let made = create_table(server, Some(&location)).await;
    assert!(made["metadata-location"].as_str().unwrap().starts_with(&location), "{made}");
    server.post(TABLE, append(&made["metadata"], 1)).await.expect(200);
}

async fn a_secret_that_is_left_out_stays(server: &TestServer) {
    let s3 = S3::of_the_runner();
    lake(server, &s3).await;
    let shown = server.get(LAKE).await.expect(200).json();
    assert_eq!(shown["storage"]["access-key-id"], s3.access_key_id.as_str());
    assert_eq!(shown["storage"]["secret-access-key"], Value::Null);
    let mut other = server.put(LAKE, shown).await.expect(200).json();
    create_table(server, None).await;
    other["storage"]["access-key-id"] = "another".into();
    let refusal = server.put(LAKE, other).await.refused(400, "BadRequestException");
    assert!(refusal.message().contains("secret-access-key"), "{}", refusal.text);
}

async fn what_is_wrong_with_a_store_is_told(server: &TestServer) {
    let s3 = S3::of_the_runner();
    let root = s3.place().await;
    let with = |field: &str, value: &str| {
        let mut storage = s3.storage();
        storage[field] = value.into();
        storage
    };
    for storage in [
        with("secret-access-key", "wrong-and-hushed"),
        with("access-key-id", "nobody"),
        with("secret-access-key", "env:NO_SUCH_VARIABLE"),
    ] {
        let body = json!({"name": "lake", "location": root, "storage": storage});
        let refusal = server.post(WAREHOUSES, body).await.refused(400, "BadRequestException");
        assert!(!refusal.text.contains("hushed"), "{}", refusal.text);
        assert!(!refusal.text.contains(&s3.secret_access_key), "{}", refusal.text);
        let told = match storage["secret-access-key"].as_str() {
            Some("env:NO_SUCH_VARIABLE") => "NO_SUCH_VARIABLE",
            _ => "writing 's3://",
        };
        assert!(refusal.message().contains(told), "{}", refusal.text);
    }
    server.get(LAKE).await.expect(404);
}

async fn a_store_that_falls_silent_keeps_nobody_else_waiting(server: &TestServer) {
    let s3 = S3::of_the_runner();
    lake(server, &s3).await;
    let proxy = Proxy::before(&s3).await;
    let mut storage = s3.storage();
    storage["endpoint"] = proxy.endpoint.as_str().into();
    let root = s3.place().await;
    server.post(WAREHOUSES, json!({"name": "lost", "location": root, "storage": storage})).await.expect(201);
    server.post("/v1/lost/namespaces", json!({"namespace": ["n"]})).await.expect(200);
    proxy.fall_silent();
    let stuck = join_all((0..100).map(|n| {
        let body = json!({"name": format!("t{n}"), "schema": schema()});
        server.post("/v1/lost/namespaces/n/tables", body)
    }));
    let others = async {
        // As many as are at work in the store at one time.
        proxy.holds(64).await;
        let made = create_table(server, None).await;
        server.post(TABLE, append(&made["metadata"], 1)).await.expect(200);
        server.create_namespace(&["n"]).await;
        server.create_table("n", "t").await;
        server.get("/v1/lost/namespaces").await.expect(200);
    };
    // All of the one is answered while nothing of the other is.
    tokio::select! {
        biased;
        answers = stuck => panic!("{:?}", answers.first()),
        () = others => {}
    }
}

async fn a_store_that_is_silent_makes_no_warehouse(server: &TestServer) {
    let s3 = S3::of_the_runner();
    let proxy = Proxy::before(&s3).await;
    proxy.fall_silent();
    let mut storage = s3.storage();
    storage["endpoint"] = proxy.endpoint.as_str().into();
    let body = json!({"name": "lake", "location": s3.place().await, "storage": storage});
    let refusal = server.post(WAREHOUSES, body).await.refused(400, "BadRequestException");
    assert!(!refusal.text.contains(&s3.secret_access_key), "{}", refusal.text);
    server.get(LAKE).await.expect(404);
}

async fn a_purge_goes_on_after_its_warehouse(server: &TestServer) {
    let s3 = S3::of_the_runner();
    lake(server, &s3).await;
    let made = create_table(server, None).await;
    server.delete(&format!("{TABLE}?purgeRequested=true")).await.expect(204);
    server.delete(NAMESPACE).await.expect(204);
    server.delete(LAKE).await.expect(204);
    s3.wait_until_gone(made["metadata-location"].as_str().unwrap()).await;
}
