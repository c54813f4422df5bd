//! A change that is sent again with its key is done once.

use std::io::Write;
use std::net::{Shutdown, TcpStream};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::server::{Answer, TestServer, append, on_both_stores, schema};

const TABLE: &str = "/namespaces/n/tables/t";
const TABLES: &str = "/namespaces/n/tables";

on_both_stores! {
    successes_are_replayed,
    refusals_are_replayed_though_their_cause_is_gone,
    a_key_is_good_for_one_request_only,
    requests_at_once_with_one_key_have_one_effect,
    a_key_is_a_uuid_sent_once,
    what_landed_is_told_before_a_malformed_key_is_refused,
    a_replay_outlives_a_drop,
    a_client_that_hangs_up_finds_all_or_nothing,
}

fn key() -> String {
    Uuid::now_v7().to_string()
}

async fn send(server: &TestServer, method: Method, path: &str, key: &str, body: &Value) -> Answer {
    let body = (!body.is_null()).then(|| body.to_string().into_bytes());
    server.send(method, path, &[("idempotency-key", key)], body).await
}

fn table(name: &str) -> Value {
    json!({"name": name, "schema": schema()})
}

async fn successes_are_replayed(server: &TestServer) {
    let k: Vec<String> = (0..6).map(|_| key()).collect();
    let rename = json!({"source": {"namespace": ["n"], "name": "t"}, "destination": {"namespace": ["n"], "name": "u"}});
    let properties = json!({"updates": {"a": "1"}});
    let mut made = Vec::new();
    for _ in 0..2 {
        send(server, Method::POST, "/namespaces", &k[0], &json!({"namespace": ["n"]})).await.expect(200);
    }
    for _ in 0..2 {
        let told = send(server, Method::POST, "/namespaces/n/properties", &k[1], &properties).await.expect(200);
        assert_eq!(told.json()["updated"], json!(["a"]));
    }
    for _ in 0..2 {
        made.push(send(server, Method::POST, TABLES, &k[2], &table("t")).await.expect(200).json());
    }
    assert_eq!(made[0], made[1]);
    for _ in 0..2 {
        send(server, Method::POST, "/tables/rename", &k[3], &rename).await.expect(204);
    }
    for _ in 0..2 {
        send(server, Method::DELETE, &format!("{TABLES}/u"), &k[4], &Value::Null).await.expect(204);
    }
    for _ in 0..2 {
        send(server, Method::DELETE, "/namespaces/n", &k[5], &Value::Null).await.expect(204);
    }
}

async fn refusals_are_replayed_though_their_cause_is_gone(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    let (taken, missing) = (key(), key());
    send(server, Method::POST, TABLES, &taken, &table("t")).await.refused(409, "AlreadyExistsException");
    send(server, Method::DELETE, &format!("{TABLES}/x"), &missing, &Value::Null)
        .await
        .refused(404, "NoSuchTableException");
    server.delete(TABLE).await.expect(204);
    server.create_table("n", "x").await;
    send(server, Method::POST, TABLES, &taken, &table("t")).await.refused(409, "AlreadyExistsException");
    send(server, Method::DELETE, &format!("{TABLES}/x"), &missing, &Value::Null)
        .await
        .refused(404, "NoSuchTableException");
    server.head(TABLE).await.expect(404);
    server.head(&format!("{TABLES}/x")).await.expect(204);
}

async fn a_key_is_good_for_one_request_only(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let key = key();
    send(server, Method::POST, TABLES, &key, &table("t")).await.expect(200);
    for (method, path, body) in [
        (Method::POST, TABLES, table("u")),
        (Method::DELETE, TABLE, Value::Null),
        (Method::POST, "/namespaces", json!({"namespace": ["m"]})),
    ] {
        send(server, method, path, &key, &body).await.refused(422, "UnprocessableEntityException");
    }
    server.head(TABLE).await.expect(204);
    server.head("/namespaces/m").await.expect(404);
}

async fn requests_at_once_with_one_key_have_one_effect(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let (made, changed) = (key(), key());
    let answers = join_all((0..6).map(async |_| send(server, Method::POST, TABLES, &made, &table("t")).await)).await;
    let first = answers[0].json();
    for answer in answers {
        assert_eq!(answer.expect(200).json(), first);
    }
    let commit = append(&server.metadata(TABLE).await, 5);
    for answer in join_all((0..6).map(async |_| send(server, Method::POST, TABLE, &changed, &commit).await)).await {
        answer.expect(200);
    }
    assert_eq!(server.metadata(TABLE).await["snapshots"].as_array().unwrap().len(), 1);
}

async fn a_key_is_a_uuid_sent_once(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    let commit = json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]});
    for bad in ["not-a-uuid", "", "0197d5ca9c2f7d5e8f6a0123456789ab", "{0197d5ca-9c2f-7d5e-8f6a-0123456789ab}"] {
        send(server, Method::POST, TABLE, bad, &commit).await.refused(400, "BadRequestException");
        send(server, Method::POST, TABLES, bad, &table("u")).await.refused(400, "BadRequestException");
    }
    let (one, two) = (key(), key());
    let twice = [("idempotency-key", one.as_str()), ("idempotency-key", two.as_str())];
    let body = || Some(commit.to_string().into_bytes());
    server.send(Method::POST, TABLE, &twice, body()).await.refused(400, "BadRequestException");
    assert_eq!(server.metadata(TABLE).await["properties"].get("a"), None);
    let version_4 = Uuid::new_v4().to_string();
    let first = send(server, Method::POST, TABLE, &version_4, &commit).await.expect(200).json();
    let again = send(server, Method::POST, TABLE, &version_4.to_uppercase(), &commit).await.expect(200).json();
    assert_eq!(first["metadata-location"], again["metadata-location"]);
}

async fn what_landed_is_told_before_a_malformed_key_is_refused(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    let commit = append(&server.metadata(TABLE).await, 5);
    server.post(TABLE, commit.clone()).await.expect(200);
    let answer = send(server, Method::POST, TABLE, "not-a-uuid", &commit).await.expect(200);
    assert_eq!(answer.json()["metadata"]["current-snapshot-id"], 5);
}

async fn a_replay_outlives_a_drop(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    let key = key();
    let made = send(server, Method::POST, TABLES, &key, &table("t")).await.expect(200).json();
    server.delete(TABLE).await.expect(204);
    let again = send(server, Method::POST, TABLES, &key, &table("t")).await.expect(200).json();
    assert_eq!(again["metadata-location"], made["metadata-location"]);
    server.head(TABLE).await.expect(404);
}

async fn a_client_that_hangs_up_finds_all_or_nothing(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    for snapshot_id in 1..=4 {
        let (key, commit) = (key(), append(&server.metadata(TABLE).await, snapshot_id).to_string());
        let mut connection = TcpStream::connect(server.base.trim_start_matches("http://")).unwrap();
        let head = format!(
            "POST /v1/default{TABLE} HTTP/1.1\r\nhost: x\r\nidempotency-key: {key}\r\ncontent-length: {}\r\n\r\n{commit}",
            commit.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection.shutdown(Shutdown::Both).unwrap();
        let sent_again = [("idempotency-key", key.as_str())];
        server.send(Method::POST, TABLE, &sent_again, Some(commit.into_bytes())).await.expect(200);
        let metadata = server.metadata(TABLE).await;
        assert_eq!(metadata["snapshots"].as_array().unwrap().len() as i64, snapshot_id);
        assert_eq!(metadata["current-snapshot-id"], snapshot_id);
    }
}
