//! Where the server is found: base path, proxies in between, a listener for metrics.

use frazil::config::Config;
use serde_json::json;

use crate::server::TestServer;

const HEADERS: [(&str, &str); 4] = [
    ("x-forwarded-for", "192.0.2.7"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-host", "catalog.example:8443"),
    ("x-forwarded-prefix", "/ice"),
];

/// The URI that a client with these headers is told, where it is told one.
async fn told(server: &TestServer, headers: &[(&str, &str)]) -> serde_json::Value {
    let answer = server.send(reqwest::Method::GET, "/v1/config", headers, None).await;
    answer.expect(200).json()["overrides"]["uri"].take()
}

#[tokio::test]
async fn who_is_no_trusted_proxy_is_not_believed() {
    for trusted in [vec![], vec!["192.0.2.0/24".to_owned(), "::1".to_owned()]] {
        let server = TestServer::with(|config| config.server.trusted_proxies = trusted).await;
        assert!(told(&server, &HEADERS).await.is_null());
        assert!(told(&server, &[("forwarded", "for=192.0.2.7;proto=https;host=evil.example")]).await.is_null());
        server.end().await;
    }
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_are_told_the_url_that_they_have() {
    let trusted = |config: &mut Config| config.server.trusted_proxies = vec!["127.0.0.0/8".into()];
    let server = TestServer::with(trusted).await;
    assert_eq!(told(&server, &HEADERS).await, "https://catalog.example:8443/ice");
    let standard = [("forwarded", "for=192.0.2.7;proto=https;host=catalog.example")];
    assert_eq!(told(&server, &standard).await, "https://catalog.example");
    assert!(told(&server, &HEADERS[..2]).await.is_null());
    server.end().await;
    let server = TestServer::with(|config| {
        trusted(config);
        config.server.base_path = Some("/catalog".into());
    })
    .await;
    assert_eq!(told(&server, &HEADERS).await, "https://catalog.example:8443/ice/catalog");
    server.end().await;
    let server = TestServer::with(|config| {
        trusted(config);
        config.server.public_url = Some("https://told.example".into());
    })
    .await;
    assert_eq!(told(&server, &HEADERS).await, "https://told.example");
    server.end().await;
}

#[tokio::test]
async fn all_lies_below_the_base_path_and_nothing_beside_it() {
    let server = TestServer::with(|config| config.server.base_path = Some("/catalog/".into())).await;
    assert!(server.base.ends_with("/catalog"));
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    server.append("/namespaces/n/tables/t", 1).await.expect(200);
    for path in ["/health/live", "/health/ready", "/management/v1/warehouses"] {
        server.get(path).await.expect(200);
    }
    let document = server.get("/openapi.yaml").await.expect(200).text;
    assert!(document.contains("servers:\n- url: /catalog\n"), "{}", &document[..500]);
    // A redirection leads there again.
    assert!(server.get("/docs").await.expect(200).text.contains("swagger-ui"));
    let metrics = server.get("/metrics").await.expect(200).text;
    assert!(metrics.contains(r#"route="/v1/{prefix}/namespaces/{namespace}/tables/{table}""#), "{metrics}");
    let missing = server.get("/v1/nope").await.refused(404, "NoSuchEndpointException");
    assert!(missing.message().ends_with("/catalog/v1/nope"), "{}", missing.text);
    let root = server.base.trim_end_matches("/catalog");
    for path in ["/v1/config", "/health/live", "/catalogue/v1/config", "/"] {
        let answer = reqwest::get(format!("{root}{path}")).await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        assert!(answer.headers().contains_key("x-request-id"), "{path}");
        let error: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(error["error"]["type"], "NoSuchEndpointException", "{path}");
    }
    server.end().await;
}

#[tokio::test]
async fn metrics_have_a_listener_of_their_own_where_it_is_configured() {
    let server = TestServer::with(|config| {
        config.server.metrics_listen = Some(([127, 0, 0, 1], 0).into());
        config.server.base_path = Some("/catalog".into());
    })
    .await;
    server.get("/metrics").await.refused(404, "NoSuchEndpointException");
    server.get("/health/ready").await.expect(200);
    let aside = server.metrics_base.clone().unwrap();
    let metrics = reqwest::get(format!("{aside}/metrics")).await.unwrap();
    assert!(metrics.text().await.unwrap().contains("frazil_http_requests_total"));
    let ready = reqwest::get(format!("{aside}/health/ready")).await.unwrap();
    assert_eq!(ready.json::<serde_json::Value>().await.unwrap(), json!({"status": "ready"}));
    for path in ["/v1/config", "/management/v1/warehouses", "/docs", "/openapi.yaml"] {
        assert_eq!(reqwest::get(format!("{aside}{path}")).await.unwrap().status(), 404, "{path}");
    }
    server.end().await;
}
