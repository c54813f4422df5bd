//! What clients are told before anything else.

use serde_json::json;

use crate::operations::advertised;
use crate::server::{TestServer, on_both_stores};

on_both_stores! {
    a_client_learns_its_prefix_and_what_is_served,
    a_warehouse_that_does_not_exist_is_not_found,
    there_is_no_config_below_a_prefix,
}

async fn a_client_learns_its_prefix_and_what_is_served(server: &TestServer) {
    let config = server.get("/v1/config?warehouse=default").await.expect(200).json();
    assert_eq!(config["overrides"], json!({"prefix": "default"}));
    let told = json!({"frazil.commit-deadline-ms": "30000", "frazil.commit.rebase": "stock-appends",
        "frazil.commit.rebase.anonymous": "false"});
    assert_eq!(config["defaults"], told);
    assert_eq!(config["idempotency-key-lifetime"], "PT30M");
    let mut endpoints: Vec<String> = serde_json::from_value(config["endpoints"].clone()).unwrap();
    endpoints.sort();
    assert_eq!(endpoints, advertised());
    for default in ["/v1/config", "/v1/config?warehouse="] {
        assert_eq!(server.get(default).await.expect(200).json(), config);
    }
}

async fn a_warehouse_that_does_not_exist_is_not_found(server: &TestServer) {
    for name in ["nope", "s3%3A%2F%2Fbucket", "DEFAULT", "a%00"] {
        let answer = server.get(&format!("/v1/config?warehouse={name}")).await;
        answer.refused(404, "NoSuchWarehouseException");
    }
    server.get("/v1/nope/namespaces").await.refused(404, "NoSuchWarehouseException");
    server.get("/v1/%64efault/namespaces").await.expect(200);
}

async fn there_is_no_config_below_a_prefix(server: &TestServer) {
    for path in ["/v1/default/config", "/v1/nope/config"] {
        server.get(path).await.refused(404, "NoSuchEndpointException");
    }
}

#[tokio::test]
async fn the_public_address_is_told_where_it_is_known() {
    let server = TestServer::with(|config| {
        config.server.public_url = Some("https://catalog.example/ice".into());
        config.commit.deadline_ms = 7_000;
    })
    .await;
    let config = server.get("/v1/config").await.expect(200).json();
    assert_eq!(config["overrides"], json!({"prefix": "default", "uri": "https://catalog.example/ice"}));
    assert_eq!(config["defaults"]["frazil.commit-deadline-ms"], "7000");
    server.end().await;
}
