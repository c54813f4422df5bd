//! Names are data: whatever can be made can be reached.

use serde_json::json;

use crate::server::{TestServer, on_both_stores, schema};
use crate::views::view;

on_both_stores! {
    a_space_may_be_sent_as_a_plus,
    a_real_plus_wins_over_a_space,
    names_of_any_characters_round_trip,
    levels_are_told_apart_before_they_are_decoded,
    a_parent_is_found_in_every_spelling,
    names_differ_by_case,
    a_name_that_cannot_be_made_is_not_there,
    a_dot_segment_cannot_be_made_a_name,
}

async fn a_space_may_be_sent_as_a_plus(server: &TestServer) {
    server.create_namespace(&["a b"]).await;
    server.create_table("a%20b", "my table").await;
    for table in ["/namespaces/a%20b/tables/my%20table", "/namespaces/a+b/tables/my+table"] {
        server.get(table).await.expect(200);
        server.head(table).await.expect(204);
        server.append(table, table.len() as i64).await.expect(200);
    }
    server.get("/namespaces/a+b").await.expect(200);
    server.get("/namespaces?parent=a+b").await.expect(200);
    server.get("/namespaces/a+b/views").await.expect(200);
    server.delete("/namespaces/a+b/tables/my+table").await.expect(204);
    server.delete("/namespaces/a+b").await.expect(204);
    server.get("/namespaces/a+b").await.refused(404, "NoSuchNamespaceException");
}

async fn a_real_plus_wins_over_a_space(server: &TestServer) {
    for name in ["a+b", "a b"] {
        server.create_namespace(&[name]).await;
    }
    for (path, name) in [("a+b", "a+b"), ("a%2Bb", "a+b"), ("a%20b", "a b")] {
        let answer = server.get(&format!("/namespaces/{path}")).await.expect(200);
        assert_eq!(answer.json()["namespace"], json!([name]), "{path}");
    }
    server.delete("/namespaces/a%2Bb").await.expect(204);
    let answer = server.get("/namespaces/a+b").await.expect(200);
    assert_eq!(answer.json()["namespace"], json!(["a b"]));
    server.get("/namespaces/a%2Bb").await.refused(404, "NoSuchNamespaceException");
}

async fn names_of_any_characters_round_trip(server: &TestServer) {
    let namespace = "n%2F.%25";
    server.create_namespace(&["n/.%"]).await;
    for (name, encoded) in [
        ("some/t", "some%2Ft"),
        ("a.b.c", "a.b.c"),
        ("...", "..."),
        ("100%", "100%25"),
        ("%2F", "%252F"),
        ("été 雪", "%C3%A9t%C3%A9%20%E9%9B%AA"),
        ("a?b#c&d=e", "a%3Fb%23c%26d%3De"),
        ("\"quoted\" 'name'", "%22quoted%22%20'name'"),
        ("*_%\\", "*_%25%5C"),
    ] {
        let made = server.create_table(namespace, name).await;
        let table = format!("/namespaces/{namespace}/tables/{encoded}");
        let loaded = server.metadata(&table).await;
        assert_eq!(loaded["table-uuid"], made["metadata"]["table-uuid"], "{name}");
        server.append(&table, 1).await.expect(200);
        let listed = server.get(&format!("/namespaces/{namespace}/tables")).await.expect(200).json();
        assert_eq!(listed["identifiers"], json!([{"namespace": ["n/.%"], "name": name}]));
        let away = json!({"source": {"namespace": ["n/.%"], "name": name}, "destination": {"namespace": ["n/.%"], "name": "x"}});
        server.post("/tables/rename", away).await.expect(204);
        server.delete(&format!("/namespaces/{namespace}/tables/x")).await.expect(204);
    }
}

async fn levels_are_told_apart_before_they_are_decoded(server: &TestServer) {
    for levels in [&["a"][..], &["a", "b.c"], &["a", "b.c", "d"], &["a%1Fb.c"]] {
        server.create_namespace(levels).await;
    }
    for (path, levels) in
        [("a%1Fb.c", json!(["a", "b.c"])), ("a%1fb.c%1Fd", json!(["a", "b.c", "d"])), ("a%251Fb.c", json!(["a%1Fb.c"]))]
    {
        let answer = server.get(&format!("/namespaces/{path}")).await.expect(200);
        assert_eq!(answer.json()["namespace"], levels, "{path}");
    }
    server.get("/namespaces/a.b.c").await.refused(404, "NoSuchNamespaceException");
    for path in ["a%1F", "%1Fa", "a%1F%1Fb"] {
        server.get(&format!("/namespaces/{path}")).await.refused(400, "BadRequestException");
    }
}

async fn a_parent_is_found_in_every_spelling(server: &TestServer) {
    for levels in [&["p q"][..], &["p q", "r"], &["p q", "r", "s"]] {
        server.create_namespace(levels).await;
    }
    for parent in ["p%20q%1Fr", "p+q%1Fr", "p%2520q%1Fr", "p%2520q%251Fr"] {
        let answer = server.get(&format!("/namespaces?parent={parent}")).await.expect(200);
        assert_eq!(answer.json()["namespaces"], json!([["p q", "r", "s"]]), "{parent}");
    }
    assert_eq!(server.get("/namespaces?parent=").await.expect(200).json()["namespaces"], json!([["p q"]]));
    server.get("/namespaces?parent=nope").await.refused(404, "NoSuchNamespaceException");
}

async fn names_differ_by_case(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "Orders").await;
    server.get("/namespaces/n/tables/orders").await.refused(404, "NoSuchTableException");
    let rename = json!({"source": {"namespace": ["n"], "name": "Orders"}, "destination": {"namespace": ["n"], "name": "ORDERS"}});
    server.post("/tables/rename", rename).await.expect(204);
    server.head("/namespaces/n/tables/ORDERS").await.expect(204);
    server.head("/namespaces/n/tables/Orders").await.expect(404);
}

async fn a_name_that_cannot_be_made_is_not_there(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let bad = "a%00b";
    server.get(&format!("/namespaces/n/tables/{bad}")).await.refused(404, "NoSuchTableException");
    server.delete(&format!("/namespaces/n/tables/{bad}")).await.refused(404, "NoSuchTableException");
    server.get(&format!("/namespaces/{}", "x".repeat(3000))).await.refused(404, "NoSuchNamespaceException");
    for name in ["", ".", "..", "a\u{0}b", "a\u{1f}b", &"x".repeat(3000)] {
        let body = json!({"name": name, "schema": schema()});
        server.post("/namespaces/n/tables", body).await.refused(400, "BadRequestException");
    }
}

/// Clients fold `.` and `..` out of paths, encoded or not: what had such a name could never be asked for.
async fn a_dot_segment_cannot_be_made_a_name(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let made = server.create_table("n", "t").await;
    let ident = |name: &str| json!({"namespace": ["n"], "name": name});
    for name in [".", ".."] {
        let first = json!({"identifier": ident(name), "requirements": [{"type": "assert-create"}], "updates": []});
        for (path, body) in [
            ("/namespaces", json!({"namespace": [name]})),
            ("/namespaces", json!({"namespace": ["n", name]})),
            ("/namespaces/n/tables", json!({"name": name, "schema": schema()})),
            ("/namespaces/n/tables", json!({"name": name, "schema": schema(), "stage-create": true})),
            ("/namespaces/n/register", json!({"name": name, "metadata-location": made["metadata-location"]})),
            ("/tables/rename", json!({"source": ident("t"), "destination": ident(name)})),
            ("/transactions/commit", json!({"table-changes": [first]})),
            ("/namespaces/n/views", view(name)),
        ] {
            server.post(path, body).await.refused(400, "BadRequestException");
        }
    }
    assert_eq!(server.get("/namespaces").await.json()["namespaces"], json!([["n"]]));
    server.delete("/namespaces/n/tables/t").await.expect(204);
    server.delete("/namespaces/n").await.expect(204);
}
