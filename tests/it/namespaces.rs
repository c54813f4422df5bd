//! Namespaces.

use futures::future::join_all;
use serde_json::json;

use crate::server::{TestServer, on_both_stores};

on_both_stores! {
    a_namespace_comes_back_as_it_was_made,
    a_parent_must_exist,
    only_one_of_racing_creators_wins,
    properties_are_set_and_removed_in_one_step,
    parallel_changes_of_properties_all_survive,
    what_is_not_empty_stays,
}

async fn a_namespace_comes_back_as_it_was_made(server: &TestServer) {
    let body = json!({"namespace": ["n"], "properties": {"owner": "me", "": "empty key"}, "unknown": [1]});
    let made = server.post("/namespaces", body.clone()).await.expect(200).json();
    assert_eq!(made, json!({"namespace": ["n"], "properties": {"owner": "me", "": "empty key"}}));
    assert_eq!(server.get("/namespaces/n").await.expect(200).json(), made);
    server.head("/namespaces/n").await.expect(204);
    server.post("/namespaces", body).await.refused(409, "AlreadyExistsException");
    server.post("/namespaces", json!({"namespace": ["m"], "properties": null})).await.expect(200);
    for levels in [json!([]), json!([""]), json!(["a", ""]), json!("n"), json!(null)] {
        server.post("/namespaces", json!({"namespace": levels})).await.refused(400, "BadRequestException");
    }
}

async fn a_parent_must_exist(server: &TestServer) {
    server.post("/namespaces", json!({"namespace": ["a", "b"]})).await.refused(404, "NoSuchNamespaceException");
    server.create_namespace(&["a"]).await;
    server.create_namespace(&["a", "b"]).await;
    assert_eq!(server.get("/namespaces").await.expect(200).json()["namespaces"], json!([["a"]]));
}

async fn only_one_of_racing_creators_wins(server: &TestServer) {
    let answers = join_all((0..10).map(|_| server.post("/namespaces", json!({"namespace": ["n"]})))).await;
    let won = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(won, 1);
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.status == 409));
}

async fn properties_are_set_and_removed_in_one_step(server: &TestServer) {
    let body = json!({"namespace": ["n"], "properties": {"a": "1", "b": "2"}});
    server.post("/namespaces", body).await.expect(200);
    let change = json!({"removals": ["a", "zzz"], "updates": {"c": "3"}});
    let told = server.post("/namespaces/n/properties", change).await.expect(200).json();
    assert_eq!(told, json!({"updated": ["c"], "removed": ["a"], "missing": ["zzz"]}));
    let both = json!({"removals": ["b"], "updates": {"b": "9"}});
    server.post("/namespaces/n/properties", both).await.refused(422, "UnprocessableEntityException");
    let nothing = server.post("/namespaces/n/properties", json!({})).await.expect(200).json();
    assert_eq!(nothing, json!({"updated": [], "removed": [], "missing": []}));
    assert_eq!(server.get("/namespaces/n").await.json()["properties"], json!({"b": "2", "c": "3"}));
    server.post("/namespaces/x/properties", json!({})).await.refused(404, "NoSuchNamespaceException");
}

async fn parallel_changes_of_properties_all_survive(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let change = |key: u32| server.post("/namespaces/n/properties", json!({"updates": {key.to_string(): "x"}}));
    for answer in join_all((0..8).map(change)).await {
        answer.expect(200);
    }
    let properties = server.get("/namespaces/n").await.json()["properties"].take();
    assert_eq!(properties.as_object().unwrap().len(), 8);
}

async fn what_is_not_empty_stays(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_namespace(&["n", "child"]).await;
    server.delete("/namespaces/n").await.refused(409, "NamespaceNotEmptyException");
    server.delete("/namespaces/n%1Fchild").await.expect(204);
    server.create_table("n", "t").await;
    let refusal = server.delete("/namespaces/n").await.refused(409, "NamespaceNotEmptyException");
    assert!(refusal.message().contains("is not empty"), "{}", refusal.text);
    server.delete("/namespaces/n/tables/t").await.expect(204);
    server.delete("/namespaces/n").await.expect(204);
    server.delete("/namespaces/n").await.refused(404, "NoSuchNamespaceException");
}
