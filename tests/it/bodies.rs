//! What may be sent as a body, whatever the operation.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, TestServer, append, on_both_stores, schema};
use crate::views::view;

const TABLE: &str = "/namespaces/n/tables/t";

on_both_stores! {
    an_array_is_no_object,
    an_identifier_is_an_object_too,
    what_is_optional_may_be_null,
    a_body_that_is_nested_too_deeply_is_refused,
    a_commit_that_landed_is_known_however_deep_its_body_is,
    a_body_may_be_compressed,
    an_encoding_is_known_in_every_spelling,
    an_encoding_that_is_not_known_is_named,
}

async fn a_table(server: &TestServer) -> Value {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await["metadata"].take()
}

async fn send(server: &TestServer, path: &str, body: &str) -> Answer {
    server.send(Method::POST, path, &[], Some(body.into())).await
}

/// The fields of a body in the order of our structs are what serde would take for the body itself.
async fn an_array_is_no_object(server: &TestServer) {
    let metadata = a_table(server).await;
    let (ident, file) = (json!([["n"], "t"]), json!("file:///x/metadata/1.metadata.json"));
    let change = json!([{"action": "set-properties", "updates": {"x": "y"}}]);
    for (path, body) in [
        ("/namespaces", json!([["m"], {"a": "b"}])),
        ("/namespaces/n/properties", json!([])),
        ("/namespaces/n/properties", json!([[], {"a": "b"}])),
        ("/namespaces/n/tables", json!(["u", null, schema(), null, null, null, null])),
        ("/namespaces/n/register", json!(["u", file, null])),
        ("/tables/rename", json!([ident, [["n"], "u"]])),
        (TABLE, json!([[], change])),
        ("/transactions/commit", json!([[[ident, [], change]]])),
        (&format!("{TABLE}/metrics"), json!(["scan-report", "t", 1, {}])),
        ("/namespaces/n/views", json!(["v", null, schema(), {}, null])),
        ("/namespaces/n/register-view", json!(["v", file])),
        ("/namespaces/n/views/v", json!([[], []])),
        ("/namespaces", json!(7)),
        ("/namespaces", json!(null)),
        (TABLE, json!("{}")),
    ] {
        let refusal = server.post(path, body).await.refused(400, "BadRequestException");
        assert!(refusal.message().contains("must be a JSON object"), "{path}: {}", refusal.text);
    }
    assert_eq!(server.metadata(TABLE).await, metadata);
    server.head("/namespaces/m").await.expect(404);
    send(server, "/namespaces", " \r\n\t{\"namespace\": [\"m\"]}").await.expect(200);
}

async fn an_identifier_is_an_object_too(server: &TestServer) {
    a_table(server).await;
    let (array, object) = (json!([["n"], "t"]), json!({"namespace": ["n"], "name": "u"}));
    for path in ["/tables/rename", "/views/rename"] {
        for (source, destination) in [(&array, &object), (&object, &array)] {
            let body = json!({"source": source, "destination": destination});
            let refusal = server.post(path, body).await.refused(400, "BadRequestException");
            assert!(refusal.message().contains("expected an object"), "{}", refusal.text);
        }
    }
    for change in [json!({"identifier": array, "requirements": [], "updates": []}), json!([array, [], []])] {
        server
            .post("/transactions/commit", json!({"table-changes": [change]}))
            .await
            .refused(400, "BadRequestException");
    }
    server.head(TABLE).await.expect(204);
}

async fn what_is_optional_may_be_null(server: &TestServer) {
    a_table(server).await;
    let nothing = json!({"removals": null, "updates": null});
    let told = server.post("/namespaces/n/properties", nothing).await.expect(200).json();
    assert_eq!(told, json!({"updated": [], "removed": [], "missing": []}));
    let table = json!({"name": "u", "schema": schema(), "location": null, "partition-spec": null, "write-order": null,
        "stage-create": null, "properties": null});
    server.post("/namespaces/n/tables", table).await.expect(200);
    server.post(TABLE, json!({"identifier": null, "requirements": null, "updates": []})).await.expect(200);
    let mut view = view("v");
    view["location"] = Value::Null;
    view["properties"] = Value::Null;
    server.post("/namespaces/n/views", view).await.expect(200);
    let change = json!([{"action": "set-properties", "updates": {"x": "y"}}]);
    server
        .post("/namespaces/n/views/v", json!({"identifier": null, "requirements": null, "updates": change}))
        .await
        .expect(200);
}

/// A value that is nested as deeply as asked for.
fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

async fn a_body_that_is_nested_too_deeply_is_refused(server: &TestServer) {
    let metadata = a_table(server).await;
    let change = r#""requirements": [], "updates": [{"action": "set-properties", "updates": {"x": "y"}}]"#;
    let schema = schema();
    for (path, members) in [
        ("/namespaces", r#""namespace": ["m"]"#.to_owned()),
        ("/namespaces/n/properties", r#""updates": {"x": "y"}"#.to_owned()),
        ("/namespaces/n/tables", format!(r#""name": "u", "schema": {schema}"#)),
        (TABLE, change.to_owned()),
        (
            "/transactions/commit",
            format!(r#""table-changes": [{{"identifier": {{"namespace": ["n"], "name": "t"}}, {change}}}]"#),
        ),
        (
            &format!("{TABLE}/metrics"),
            r#""report-type": "scan-report", "table-name": "t", "snapshot-id": 1, "metrics": {}"#.to_owned(),
        ),
    ] {
        for depth in [200, 200_000] {
            let body = format!(r#"{{{members}, "x": {}}}"#, nested(depth));
            let refusal = send(server, path, &body).await.refused(400, "BadRequestException");
            assert!(refusal.message().contains("nested deeper"), "{path}: {}", refusal.text);
        }
    }
    assert_eq!(server.metadata(TABLE).await, metadata);
    let bearable = format!(r#"{{"namespace": ["m"], "x": {}}}"#, nested(50));
    send(server, "/namespaces", &bearable).await.expect(200);
}

async fn a_commit_that_landed_is_known_however_deep_its_body_is(server: &TestServer) {
    let metadata = a_table(server).await;
    let commit = append(&metadata, 1);
    server.post(TABLE, commit.clone()).await.expect(200);
    let text = commit.to_string();
    let members = text.strip_prefix('{').unwrap();
    let deep = format!(r#"{{"x": {}, {members}"#, nested(200));
    send(server, TABLE, &deep).await.expect(200);
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

async fn a_body_may_be_compressed(server: &TestServer) {
    let body = gzip(json!({"namespace": ["n"]}).to_string().as_bytes());
    let headers = [("content-encoding", "gzip")];
    server.send(Method::POST, "/namespaces", &headers, Some(body)).await.expect(200);
    server.head("/namespaces/n").await.expect(204);
    let not_gzip = Some(b"{\"namespace\": [\"m\"]}".to_vec());
    server.send(Method::POST, "/namespaces", &headers, not_gzip).await.refused(400, "BadRequestException");
    // What is small on the wire is measured when it is unpacked.
    let bomb = gzip(&vec![b' '; 2 << 20]);
    server.send(Method::POST, "/namespaces", &headers, Some(bomb)).await.refused(413, "PayloadTooLargeException");
}

async fn an_encoding_is_known_in_every_spelling(server: &TestServer) {
    for (encoding, packed) in
        [("gzip", true), ("GZIP", true), ("x-gzip", true), ("identity, Gzip", true), ("Identity", false), ("", false)]
    {
        let plain = json!({"namespace": [format!("in {encoding}")]}).to_string().into_bytes();
        let body = if packed { gzip(&plain) } else { plain };
        server.send(Method::POST, "/namespaces", &[("content-encoding", encoding)], Some(body)).await.expect(200);
    }
}

async fn an_encoding_that_is_not_known_is_named(server: &TestServer) {
    a_table(server).await;
    let body = json!({"namespace": ["m"]}).to_string().into_bytes();
    for encoding in ["br", "zstd", "gzip, gzip", "deflate"] {
        for path in ["/namespaces", TABLE] {
            let refusal = server
                .send(Method::POST, path, &[("content-encoding", encoding)], Some(body.clone()))
                .await
                .refused(415, "UnsupportedMediaTypeException");
            assert!(refusal.message().contains(&format!("'{encoding}'")), "{}", refusal.text);
            assert_eq!(refusal.header("accept-encoding"), Some("gzip"));
        }
    }
    // Where no body is read, its encoding is nobody's matter.
    server.send(Method::DELETE, TABLE, &[("content-encoding", "br")], None).await.expect(204);
}
