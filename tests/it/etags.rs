//! A table that has not changed is not sent again.

use reqwest::Method;
use serde_json::json;

use crate::server::{Answer, TestServer, on_both_stores};

const TABLE: &str = "/namespaces/n/tables/t";

on_both_stores! {
    a_table_that_has_not_changed_is_not_sent_again,
    a_tag_is_known_in_every_spelling,
    a_thinner_answer_has_a_tag_of_its_own,
    a_table_made_anew_has_another_tag,
}

async fn load(server: &TestServer, path: &str, known: &str) -> Answer {
    server.send(Method::GET, path, &[("if-none-match", known)], None).await
}

fn tag(answer: &Answer) -> String {
    answer.header("etag").unwrap().to_owned()
}

async fn a_table_that_has_not_changed_is_not_sent_again(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    let first = server.get(TABLE).await.expect(200);
    assert_eq!(tag(&load(server, TABLE, &tag(&first)).await.expect(304)), tag(&first));
    let committed = server.append(TABLE, 7).await.expect(200);
    let second = load(server, TABLE, &tag(&first)).await.expect(200);
    assert_ne!(tag(&second), tag(&first));
    assert_eq!(tag(&second), tag(&committed), "a commit tells the tag of what it made");
    server.delete(TABLE).await.expect(204);
    load(server, TABLE, &tag(&second)).await.refused(404, "NoSuchTableException");
}

async fn a_tag_is_known_in_every_spelling(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    let quoted = tag(&server.get(TABLE).await.expect(200));
    assert!(quoted.starts_with('"') && quoted.ends_with('"') && quoted.len() > 2, "{quoted}");
    let bare = quoted.trim_matches('"');
    for known in [quoted.clone(), bare.to_owned(), format!("W/{quoted}"), format!("\"x\", {quoted}"), "*".to_owned()] {
        load(server, TABLE, &known).await.expect(304);
    }
    for other in ["\"x\"", "W/\"x\"", ""] {
        load(server, TABLE, other).await.expect(200);
    }
}

async fn a_thinner_answer_has_a_tag_of_its_own(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    server.append(TABLE, 1).await.expect(200);
    server.append(TABLE, 2).await.expect(200);
    let thin_path = format!("{TABLE}?snapshots=refs");
    let (all, thin) = (server.get(TABLE).await.expect(200), server.get(&thin_path).await.expect(200));
    assert_ne!(tag(&all), tag(&thin));
    assert_eq!(all.json()["metadata"]["snapshots"].as_array().unwrap().len(), 2);
    assert_eq!(thin.json()["metadata"]["snapshots"].as_array().unwrap().len(), 1);
    assert_eq!(thin.json()["metadata-location"], all.json()["metadata-location"]);
    load(server, &thin_path, &tag(&thin)).await.expect(304);
    load(server, &thin_path, &tag(&all)).await.expect(200);
    server.get(&format!("{TABLE}?snapshots=some")).await.refused(400, "BadRequestException");
}

async fn a_table_made_anew_has_another_tag(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    let old = tag(&server.get(TABLE).await.expect(200));
    server.delete(TABLE).await.expect(204);
    let made = json!({"name": "t", "schema": crate::server::schema()});
    let made = server.post("/namespaces/n/tables", made).await.expect(200);
    assert_ne!(tag(&made), old);
    assert_eq!(tag(&load(server, TABLE, &old).await.expect(200)), tag(&made));
}
