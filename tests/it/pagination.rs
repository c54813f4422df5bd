//! Listings, whole and in pages.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::server::{TestServer, on_both_stores, schema};

on_both_stores! {
    a_client_that_does_not_page_gets_everything,
    pages_of_any_size_hold_every_entry_once,
    an_entry_that_goes_between_two_pages_takes_no_other_with_it,
    tables_and_views_are_listed_in_pages_too,
    a_token_or_size_that_cannot_be_is_refused,
}

async fn children(server: &TestServer, count: u32) {
    server.create_namespace(&["p"]).await;
    let name = |n: u32| format!("n{n:03}");
    join_all((0..count).map(async |n| server.create_namespace(&["p", &name(n)]).await)).await;
}

/// The last parts of all entries, page by page.
async fn walk(server: &TestServer, path: &str, entries: &str, size: u32) -> Vec<Value> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let page = server.get(&format!("{path}{sign}pageSize={size}&pageToken={token}")).await.expect(200).json();
        let part = page[entries].as_array().unwrap();
        assert!(part.len() <= size as usize, "{page}");
        found.extend(part.iter().cloned());
        match page["next-page-token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => return found,
        }
        assert!(!token.is_empty() && found.len() < 1_000);
    }
}

async fn a_client_that_does_not_page_gets_everything(server: &TestServer) {
    children(server, 125).await;
    let all = server.get("/namespaces?parent=p").await.expect(200).json();
    assert_eq!(all["namespaces"].as_array().unwrap().len(), 125);
    assert_eq!(all["next-page-token"], Value::Null);
}

async fn pages_of_any_size_hold_every_entry_once(server: &TestServer) {
    children(server, 24).await;
    let all = server.get("/namespaces?parent=p").await.expect(200).json()["namespaces"].take();
    for size in [1, 2, 5, 8, 23, 24, 25, 1_000_000] {
        assert_eq!(json!(walk(server, "/namespaces?parent=p", "namespaces", size).await), all, "{size}");
    }
}

async fn an_entry_that_goes_between_two_pages_takes_no_other_with_it(server: &TestServer) {
    children(server, 6).await;
    let page = server.get("/namespaces?parent=p&pageSize=3&pageToken=").await.expect(200).json();
    server.delete("/namespaces/p%1Fn002").await.expect(204);
    server.delete("/namespaces/p%1Fn003").await.expect(204);
    let token = page["next-page-token"].as_str().unwrap();
    let rest = server.get(&format!("/namespaces?parent=p&pageSize=3&pageToken={token}")).await.expect(200).json();
    assert_eq!(rest["namespaces"], json!([["p", "n004"], ["p", "n005"]]));
}

async fn tables_and_views_are_listed_in_pages_too(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    for name in ["a", "b", "c"] {
        server.create_table("n", &format!("t{name}")).await;
        let view = json!({"name": format!("v{name}"), "schema": schema(), "view-version": {
            "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["n"],
            "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}});
        server.post("/namespaces/n/views", view).await.expect(200);
    }
    for (kind, first) in [("tables", "ta"), ("views", "va")] {
        let found = walk(server, &format!("/namespaces/n/{kind}"), "identifiers", 2).await;
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], json!({"namespace": ["n"], "name": first}));
        server.get(&format!("/namespaces/nope/{kind}")).await.refused(404, "NoSuchNamespaceException");
    }
    let none = json!({"identifiers": [], "next-page-token": null});
    assert_eq!(server.get("/namespaces/n/functions?pageToken=&pageSize=1").await.expect(200).json(), none);
}

async fn a_token_or_size_that_cannot_be_is_refused(server: &TestServer) {
    children(server, 3).await;
    server.create_table("p", "t").await;
    for query in [
        "pageSize=abc",
        "pageSize=0",
        "pageSize=-1",
        "pageSize=",
        "pageSize=1&pageSize=2",
        "pageToken=%00x%FF",
        "pageToken=zz",
    ] {
        for listing in
            ["/namespaces?parent=p&", "/namespaces/p/tables?", "/namespaces/p/views?", "/namespaces/p/functions?"]
        {
            server.get(&format!("{listing}{query}")).await.refused(400, "BadRequestException");
        }
    }
    let named = server.get("/namespaces?pageSize=abc").await.refused(400, "BadRequestException");
    assert!(named.message().contains("pageSize"), "{}", named.text);
}
