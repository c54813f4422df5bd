//! Our OpenAPI document: it is what the code says, and it names every answer that a test has seen.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use reqwest::Method;
use serde_json::Value;

use crate::server::{Answer, TestServer};

/// The document as it is checked in.
pub static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_norway::from_str(&checked_in()).unwrap());

fn checked_in() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/frazil.yaml");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every operation by its id: method and path.
pub fn operations() -> BTreeMap<String, (String, String)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object().unwrap().iter().filter_map(move |(method, operation)| {
            let id = operation["operationId"].as_str()?;
            Some((id.to_owned(), (method.to_uppercase(), path.clone())))
        })
    });
    operations.collect()
}

/// An answer of a documented operation must be a documented one, down to the kind of its body.
pub fn check(method: &Method, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap_or_default();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let Some(item) = paths.iter().find(|(template, _)| fits(template, path)).map(|(_, item)| item) else {
        return;
    };
    let operation = &item[method.as_str().to_lowercase()];
    if operation.is_null() {
        return;
    }
    let told = &operation["responses"][answer.status.as_str()];
    assert!(told.is_object(), "{} answers {}, which is not documented", answer.asked, answer.status);
    assert_eq!(told["content"].is_object(), !answer.text.is_empty(), "{} {}", answer.asked, answer.status);
}

fn fits(template: &str, path: &str) -> bool {
    let (wanted, given): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    wanted.len() == given.len()
        && wanted.iter().zip(given).all(|(wanted, given)| wanted.starts_with('{') || *wanted == given)
}

#[test]
fn the_checked_in_document_is_what_the_code_says() {
    let generated = frazil::api::document::yaml();
    let differ = || {
        generated
            .lines()
            .zip(checked_in().lines().map(str::to_owned))
            .find(|(ours, theirs)| ours != theirs)
            .map(|(ours, theirs)| format!("{ours} / {theirs}"))
    };
    assert!(generated == checked_in(), "write it anew with `frazil openapi`; the first difference is {:?}", differ());
}

#[tokio::test]
async fn the_document_and_its_pages_are_served() {
    let server = TestServer::on_sqlite().await;
    let answer = server.get("/openapi.yaml").await.expect(200);
    assert_eq!(answer.text, checked_in());
    let page = server.get("/docs/").await.expect(200);
    assert!(page.text.contains("swagger-ui"), "{}", page.text);
    assert!(server.get("/docs/swagger-initializer.js").await.expect(200).text.contains("/openapi.yaml"));
    server.end().await;
}

#[test]
fn every_operation_documents_what_it_can_meet() {
    for (id, (method, path)) in operations() {
        let responses = &DOCUMENT["paths"][&path][method.to_lowercase()]["responses"];
        for status in ["400", "404", "429", "500", "503"] {
            let content = &responses[status]["content"]["application/json"]["schema"]["$ref"];
            let expected = match (method.as_str(), path.as_str(), status) {
                ("HEAD", ..) => Value::Null,
                // In the words of RFC 6749.
                (_, "/v1/oauth/tokens", "400") => "#/components/schemas/OAuthError".into(),
                _ => "#/components/schemas/IcebergErrorResponse".into(),
            };
            assert!(responses[status].is_object(), "{id} {status}");
            assert_eq!(*content, expected, "{id} {status}");
        }
    }
}
