//! Writers as they register, take over and retire, how far they are, and what became of their commits.

use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::server::{Answer, TestServer, append, on_both_stores};

const TABLE: &str = "/namespaces/n/tables/t";
const ROOT: &str = "/coordination/v1/default/namespaces/n/tables/t";
const WRITERS: &str = "/coordination/v1/default/namespaces/n/tables/t/writers";

on_both_stores! {
    a_writer_is_known_from_its_register_on,
    a_take_over_raises_the_epoch_and_a_register_leaves_it,
    take_overs_at_once_each_get_an_epoch_of_their_own,
    a_take_over_with_a_key_is_done_once,
    writers_are_listed_in_pages,
    a_retired_writer_stays_in_the_ledger,
    a_position_is_set_and_taken_away,
    an_id_that_several_writers_have_must_be_told_more_exactly,
    an_id_may_be_any_text,
    who_is_not_known_is_told_apart_from_what_cannot_be,
    what_a_call_cannot_take_is_named,
    a_table_made_anew_has_no_writers_and_one_that_comes_back_has_its_own,
    clients_are_told_of_the_operations_of_the_spec_alone,
    a_commit_moves_the_row_of_its_writer,
    stock_writers_are_known_by_their_summaries,
    a_position_that_landed_is_told_with_its_snapshot,
    a_position_that_was_rolled_back_is_told_as_such,
    a_commit_with_a_lower_epoch_is_refused_after_a_take_over,
    a_reset_lets_a_position_be_taken_again,
    a_commit_takes_a_retirement_back,
    the_commit_log_tells_what_became_of_each_request,
    an_attempt_is_found_by_key_and_by_snapshot,
}

async fn table(server: &TestServer) {
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
}

async fn register(server: &TestServer, body: Value) -> Value {
    server.post(WRITERS, body).await.expect(200).json()
}

async fn writers(server: &TestServer) -> Vec<Value> {
    server.get(WRITERS).await.expect(200).json()["writers"].as_array().unwrap().clone()
}

/// An append to main that names its writer by these entries of its summary.
async fn written(server: &TestServer, snapshot_id: i64, summary: &[(&str, &str)]) -> Value {
    let mut commit = append(&server.metadata(TABLE).await, snapshot_id);
    for (key, value) in summary {
        commit["updates"][0]["snapshot"]["summary"][*key] = (*value).into();
    }
    commit
}

/// Commits what the writer `w` has at a position.
async fn commit_at(server: &TestServer, snapshot_id: i64, position: &str) -> Answer {
    let commit = written(server, snapshot_id, &[("frazil.writer-id", "w"), ("frazil.position", position)]).await;
    server.post(TABLE, commit).await
}

/// The commit log, once it has so many entries: what changed nothing is written down after its answer.
async fn logged(server: &TestServer, count: usize) -> Vec<Value> {
    for _ in 0..1_000 {
        let page = server.get(&format!("{ROOT}/commits")).await.expect(200).json();
        let commits = page["commits"].as_array().unwrap();
        if commits.len() >= count {
            return commits.clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the log never had {count} entries");
}

async fn update(server: &TestServer, update: Value) {
    server.post(TABLE, json!({"requirements": [], "updates": [update]})).await.expect(200);
}

async fn a_writer_is_known_from_its_register_on(server: &TestServer) {
    table(server).await;
    assert!(writers(server).await.is_empty());
    let made = register(server, json!({"writer-id": "w"})).await;
    let expected = json!({"ref": "main", "kind": "named", "writer-id": "w", "part": "", "position": null,
        "snapshot-id": null, "sequence-number": null, "epoch": 1, "state": "active", "at-ms": made["at-ms"]});
    assert_eq!(made, expected);
    assert!(made["at-ms"].as_i64().unwrap() > 1_000_000_000_000);
    assert_eq!(writers(server).await, std::slice::from_ref(&made));
    assert_eq!(register(server, json!({"writer-id": "w"})).await, made);
    let told = server.get(&format!("{WRITERS}/w/position")).await.expect(200).json();
    assert_eq!(told, json!({"writers": [made]}));
}

async fn a_take_over_raises_the_epoch_and_a_register_leaves_it(server: &TestServer) {
    table(server).await;
    let epoch = async |body: Value| register(server, body).await["epoch"].as_i64().unwrap();
    assert_eq!(epoch(json!({"writer-id": "w", "take-over": true})).await, 1);
    assert_eq!(epoch(json!({"writer-id": "w", "take-over": true})).await, 2);
    assert_eq!(epoch(json!({"writer-id": "w", "take-over": false})).await, 2);
    assert_eq!(epoch(json!({"writer-id": "w", "take-over": null})).await, 2);
    // Each ref, kind and part has an epoch of its own.
    for other in [json!({"ref": "audit"}), json!({"part": "1"}), json!({"kind": "flink", "part": "op"})] {
        let mut body = json!({"writer-id": "w", "take-over": true});
        body.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        assert_eq!(epoch(body).await, 1, "{other}");
    }
    assert_eq!(writers(server).await.len(), 4);
}

async fn take_overs_at_once_each_get_an_epoch_of_their_own(server: &TestServer) {
    table(server).await;
    let body = json!({"writer-id": "w", "take-over": true});
    let answers = join_all((0..8).map(|_| register(server, body.clone()))).await;
    let mut epochs: Vec<i64> = answers.iter().map(|row| row["epoch"].as_i64().unwrap()).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, (1..=8).collect::<Vec<_>>());
    assert_eq!(writers(server).await[0]["epoch"], 8);
}

async fn a_take_over_with_a_key_is_done_once(server: &TestServer) {
    table(server).await;
    let key = Uuid::now_v7().to_string();
    let send = async |body: Value| {
        server.send(Method::POST, WRITERS, &[("Idempotency-Key", &key)], Some(body.to_string().into())).await
    };
    let body = json!({"writer-id": "w", "take-over": true});
    let first = send(body.clone()).await.expect(200).json();
    assert_eq!(register(server, body.clone()).await["epoch"], 2);
    assert_eq!(send(body).await.expect(200).json(), first);
    send(json!({"writer-id": "v"})).await.refused(422, "UnprocessableEntityException");
    assert_eq!(writers(server).await[0]["epoch"], 2);
}

async fn writers_are_listed_in_pages(server: &TestServer) {
    table(server).await;
    for (id, ref_name) in [("c", "main"), ("a", "main"), ("d", "main"), ("b", "audit"), ("B", "main")] {
        register(server, json!({"writer-id": id, "ref": ref_name})).await;
    }
    let all = writers(server).await;
    let names: Vec<_> = all.iter().map(|row| row["writer-id"].as_str().unwrap()).collect();
    assert_eq!(names, ["b", "B", "a", "c", "d"]);
    for size in [1, 2, 4, 5, 6] {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("{WRITERS}?pageSize={size}&pageToken={token}")).await.expect(200).json();
            found.extend(page["writers"].as_array().unwrap().iter().cloned());
            assert!(found.len() <= all.len(), "{page}");
            match page["next-page-token"].as_str() {
                Some(next) => token = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(found, all, "{size}");
    }
}

async fn a_retired_writer_stays_in_the_ledger(server: &TestServer) {
    table(server).await;
    let mut row = register(server, json!({"writer-id": "w"})).await;
    let place = format!("{WRITERS}/w");
    for _ in 0..2 {
        server.delete(&place).await.expect(204);
        row["state"] = "retired".into();
        assert_eq!(writers(server).await, [row.clone()]);
    }
    row["state"] = "active".into();
    assert_eq!(register(server, json!({"writer-id": "w"})).await, row);
}

async fn a_position_is_set_and_taken_away(server: &TestServer) {
    table(server).await;
    let mut row = register(server, json!({"writer-id": "w", "take-over": true})).await;
    let place = format!("{WRITERS}/w/position");
    for position in [json!(7), json!({"0": 4, "1": 9}), json!(i64::MAX), json!(null)] {
        row["position"] = position.clone();
        assert_eq!(server.put(&place, json!({"position": position})).await.expect(200).json(), row);
        assert_eq!(writers(server).await, [row.clone()]);
    }
    for body in [json!({"position": 1.5}), json!({"position": "x"}), json!({"position": {"0": "x"}}), json!({})] {
        let refusal = server.put(&place, body).await.refused(400, "BadRequestException");
        assert!(refusal.message().contains("position"), "{}", refusal.text);
    }
    assert_eq!(writers(server).await, [row]);
}

async fn an_id_that_several_writers_have_must_be_told_more_exactly(server: &TestServer) {
    table(server).await;
    for body in [
        json!({"writer-id": "j", "kind": "flink", "part": "op"}),
        json!({"writer-id": "j", "kind": "flink", "part": "op", "ref": "audit"}),
    ] {
        register(server, body).await;
    }
    let (place, position) = (format!("{WRITERS}/j"), format!("{WRITERS}/j/position"));
    for refusal in [
        server.delete(&place).await,
        server.put(&position, json!({"position": 1})).await,
        server.get(&format!("{position}?position=1")).await,
        server.delete(&format!("{place}?kind=flink&part=op")).await,
    ] {
        let refusal = refusal.refused(400, "BadRequestException");
        assert!(refusal.message().contains("ref=audit kind=flink part=op"), "{}", refusal.text);
    }
    let both = server.get(&position).await.expect(200).json();
    assert_eq!(both["writers"].as_array().unwrap().len(), 2);
    let one = server.get(&format!("{position}?ref=audit&position=1")).await.expect(200).json();
    assert_eq!((one["writers"].as_array().unwrap().len(), &one["landed"]), (1, &json!(false)));
    let changed = server.put(&position, json!({"position": 1, "ref": "audit"})).await.expect(200).json();
    assert_eq!((&changed["ref"], &changed["position"]), (&json!("audit"), &json!(1)));
    server.delete(&format!("{place}?ref=main&kind=flink&part=op")).await.expect(204);
    let states: Vec<_> = writers(server).await.iter().map(|row| row["state"].clone()).collect();
    assert_eq!(states, ["active", "retired"]);
}

async fn an_id_may_be_any_text(server: &TestServer) {
    table(server).await;
    for (id, encoded) in [
        (
            "kafka.connect.offsets.control-iceberg.connect-ice/1",
            "kafka.connect.offsets.control-iceberg.connect-ice%2F1",
        ),
        ("a b+c%2F?#é", "a%20b+c%252F%3F%23%C3%A9"),
        ("...", "..."),
    ] {
        let kind = if id.starts_with("kafka") { "kafka-connect" } else { "named" };
        register(server, json!({"writer-id": id, "kind": kind})).await;
        let told = server.get(&format!("{WRITERS}/{encoded}/position")).await.expect(200).json();
        assert_eq!(told["writers"][0]["writer-id"], id, "{told}");
        server.delete(&format!("{WRITERS}/{encoded}")).await.expect(204);
    }
}

async fn who_is_not_known_is_told_apart_from_what_cannot_be(server: &TestServer) {
    table(server).await;
    register(server, json!({"writer-id": "w"})).await;
    for (id, query) in [("x", ""), ("a%00b", ""), ("w", "?ref=audit"), ("w", "?kind=flink"), ("w", "?part=1")] {
        let refusal = server.delete(&format!("{WRITERS}/{id}{query}")).await.refused(404, "NotFoundException");
        assert!(refusal.message().contains(&format!("'{}'", id.replace("%00", "\0"))), "{}", refusal.text);
        let told = server.get(&format!("{WRITERS}/{id}/position{query}")).await.expect(200).json();
        assert_eq!(told, json!({"writers": []}));
    }
    server.put(&format!("{WRITERS}/x/position"), json!({"position": null})).await.refused(404, "NotFoundException");
    let never = server.get(&format!("{WRITERS}/x/position?position=3")).await.expect(200).json();
    assert_eq!(never, json!({"writers": [], "landed": false}));
    let gone = "/coordination/v1/default/namespaces/n/tables/gone";
    let elsewhere = "/coordination/v1/nowhere/namespaces/n/tables/t";
    for below in ["writers", "writers/w/position", "commits", "attempts/1"] {
        server.get(&format!("{gone}/{below}")).await.refused(404, "NoSuchTableException");
        server.get(&format!("{elsewhere}/{below}")).await.refused(404, "NoSuchWarehouseException");
    }
    server.post(&format!("{gone}/writers"), json!({"writer-id": "w"})).await.refused(404, "NoSuchTableException");
    server.delete(&format!("{gone}/writers/w")).await.refused(404, "NoSuchTableException");
}

async fn what_a_call_cannot_take_is_named(server: &TestServer) {
    table(server).await;
    for (body, field) in [
        (json!({}), "writer-id"),
        (json!({"writer-id": ""}), "writer-id"),
        (json!({"writer-id": 7}), "writer-id"),
        (json!({"writer-id": "a\u{0}b"}), "writer-id"),
        (json!({"writer-id": ".."}), "writer-id"),
        (json!({"writer-id": "x".repeat(2_000)}), "writer-id"),
        (json!({"writer-id": "w", "part": "a\n"}), "part"),
        (json!({"writer-id": "w", "ref": ""}), "ref"),
        (json!({"writer-id": "w", "kind": "fink"}), "kind"),
        (json!({"writer-id": "w", "kind": "arroyo"}), "kind"),
        (json!({"writer-id": "w", "takeover": true}), "take-over"),
        (json!({"writer-id": "w", "take-over": "yes"}), "take-over"),
    ] {
        let refusal = server.post(WRITERS, body).await.refused(400, "BadRequestException");
        assert!(refusal.message().contains(field), "{}", refusal.text);
    }
    for (path, field) in [
        ("writers?pageSize=0", "pageSize"),
        ("writers?pageToken=zz", "pageToken"),
        ("writers?pageToken=6e31", "pageToken"),
        ("commits?pageToken=6e31", "pageToken"),
        ("writers/w/position?kind=fink", "kind"),
        ("writers/w/position?position=x", "position"),
        ("writers/w/position?position=1&kind=kafka-connect", "position"),
        ("attempts/x", "Idempotency-Key"),
        ("attempts/9223372036854775808", "Idempotency-Key"),
    ] {
        let refusal = server.get(&format!("{ROOT}/{path}")).await.refused(400, "BadRequestException");
        assert!(refusal.message().contains(field), "{path}: {}", refusal.text);
    }
    assert!(writers(server).await.is_empty());
}

async fn a_table_made_anew_has_no_writers_and_one_that_comes_back_has_its_own(server: &TestServer) {
    table(server).await;
    let row = register(server, json!({"writer-id": "w", "take-over": true})).await;
    let last = server.post(&format!("{TABLE}/unregister"), json!({})).await.expect(200).json();
    server.get(WRITERS).await.refused(404, "NoSuchTableException");
    let back = json!({"name": "t", "metadata-location": last["metadata-location"]});
    server.post("/namespaces/n/register", back).await.expect(200);
    assert_eq!(writers(server).await, [row]);
    server.delete(TABLE).await.expect(204);
    server.create_table("n", "t").await;
    assert!(writers(server).await.is_empty());
}

async fn clients_are_told_of_the_operations_of_the_spec_alone(server: &TestServer) {
    let config = server.get("/v1/config").await.expect(200).json();
    let endpoints = config["endpoints"].as_array().unwrap();
    assert!(!endpoints.is_empty());
    assert!(endpoints.iter().all(|endpoint| !endpoint.as_str().unwrap().contains("coordination")), "{config}");
}

async fn a_commit_moves_the_row_of_its_writer(server: &TestServer) {
    table(server).await;
    register(server, json!({"writer-id": "w", "take-over": true})).await;
    for (snapshot_id, position) in [(11, json!(1)), (12, json!(2)), (13, json!({"0": 4}))] {
        commit_at(server, snapshot_id, &position.to_string()).await.expect(200);
        let [row] = &writers(server).await[..] else { panic!("one writer has one row") };
        assert_eq!((&row["position"], &row["snapshot-id"]), (&position, &json!(snapshot_id)));
        assert_eq!((&row["sequence-number"], &row["epoch"]), (&json!(snapshot_id - 10), &json!(1)));
    }
}

async fn stock_writers_are_known_by_their_summaries(server: &TestServer) {
    table(server).await;
    let offsets = "kafka.connect.offsets.control.connect-x";
    let flink = [("flink.job-id", "j"), ("flink.operator-id", "o"), ("flink.max-committed-checkpoint-id", "7")];
    let spark = [("spark.sql.streaming.queryId", "q"), ("spark.sql.streaming.epochId", "3")];
    for (snapshot_id, summary, query, position) in [
        (1, &flink[..], "j/position?position=7", json!(7)),
        (2, &[(offsets, r#"{"0":4}"#)], &format!("{offsets}/position?position=%7B%220%22:4%7D"), json!({"0": 4})),
        (3, &spark, "q/position?position=3", json!(3)),
        (4, &[("arroyo.commit-id", "00ff")], "-/position?kind=arroyo&position=00ff", json!("00ff")),
    ] {
        let commit = written(server, snapshot_id, summary).await;
        server.post(TABLE, commit).await.expect(200);
        let told = server.get(&format!("{WRITERS}/{query}")).await.expect(200).json();
        assert_eq!((&told["landed"], &told["snapshot-id"]), (&json!(true), &json!(snapshot_id)), "{told}");
        assert_eq!(told["writers"][0]["position"], position, "{told}");
    }
    let kinds: Vec<_> = writers(server).await.iter().map(|row| row["kind"].clone()).collect();
    assert_eq!(kinds, ["arroyo", "flink", "kafka-connect", "spark-streaming"]);
}

async fn a_position_that_landed_is_told_with_its_snapshot(server: &TestServer) {
    table(server).await;
    for position in 1..=3 {
        commit_at(server, 10 + position, &position.to_string()).await.expect(200);
    }
    let at = async |position: i64, further: &str| {
        let mut told =
            server.get(&format!("{WRITERS}/w/position?position={position}{further}")).await.expect(200).json();
        told.as_object_mut().unwrap().remove("writers");
        told.as_object_mut().unwrap().remove("at-ms");
        told
    };
    assert_eq!(at(2, "").await, json!({"landed": true, "snapshot-id": 12}));
    assert_eq!(at(4, "").await, json!({"landed": false}));
    update(server, json!({"action": "remove-snapshots", "snapshot-ids": [11, 12]})).await;
    assert_eq!(at(2, "").await, json!({"landed": true, "snapshot-id": 12}));
    // A branch that is made at a snapshot takes no writer along.
    update(server, json!({"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 13})).await;
    assert_eq!(at(2, "&ref=b").await, json!({"landed": false}));
}

async fn a_position_that_was_rolled_back_is_told_as_such(server: &TestServer) {
    table(server).await;
    for position in 1..=3 {
        commit_at(server, 10 + position, &position.to_string()).await.expect(200);
    }
    update(server, json!({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 11}))
        .await;
    let at = async |position: i64| server.get(&format!("{WRITERS}/w/position?position={position}")).await.expect(200);
    assert_eq!(at(1).await.json()["snapshot-id"], 11);
    let told = at(3).await.json();
    assert_eq!((&told["landed"], &told["rolled-back-snapshot-id"]), (&json!(false), &json!(13)));
    // It may come again, as another snapshot.
    commit_at(server, 23, "3").await.expect(200);
    let told = at(3).await.json();
    assert_eq!((&told["landed"], &told["snapshot-id"]), (&json!(true), &json!(23)));
    assert_eq!(at(2).await.json()["rolled-back-snapshot-id"], 12);
}

async fn a_commit_with_a_lower_epoch_is_refused_after_a_take_over(server: &TestServer) {
    table(server).await;
    let of_epoch = async |snapshot_id: i64, epoch: &str| {
        let position = snapshot_id.to_string();
        let summary = [("frazil.writer-id", "w"), ("frazil.position", &position), ("frazil.epoch", epoch)];
        server.post(TABLE, written(server, snapshot_id, &summary).await).await
    };
    register(server, json!({"writer-id": "w"})).await;
    of_epoch(1, "1").await.expect(200);
    assert_eq!(register(server, json!({"writer-id": "w", "take-over": true})).await["epoch"], 2);
    of_epoch(2, "1").await.refused(422, "UnprocessableEntityException");
    of_epoch(3, "2").await.expect(200);
    let row = &writers(server).await[0];
    assert_eq!((&row["snapshot-id"], &row["epoch"]), (&json!(3), &json!(2)));
}

async fn a_reset_lets_a_position_be_taken_again(server: &TestServer) {
    table(server).await;
    commit_at(server, 1, "7").await.expect(200);
    // Built on the table as it was before: another process with the same name.
    let mut other = written(server, 2, &[("frazil.writer-id", "w"), ("frazil.position", "7")]).await;
    other["updates"][0]["snapshot"]["summary"]["added-records"] = "5".into();
    other["requirements"].as_array_mut().unwrap().truncate(1);
    let refusal = server.post(TABLE, other.clone()).await.refused(422, "UnprocessableEntityException");
    assert!(refusal.message().contains("position"), "{}", refusal.text);
    let reset = server.put(&format!("{WRITERS}/w/position"), json!({"position": null})).await.expect(200).json();
    assert_eq!((&reset["position"], &reset["snapshot-id"]), (&json!(null), &json!(null)));
    server.post(TABLE, other).await.expect(200);
    assert_eq!(writers(server).await[0]["snapshot-id"], 2);
}

async fn a_commit_takes_a_retirement_back(server: &TestServer) {
    table(server).await;
    commit_at(server, 1, "1").await.expect(200);
    server.delete(&format!("{WRITERS}/w")).await.expect(204);
    assert_eq!(writers(server).await[0]["state"], "retired");
    commit_at(server, 2, "2").await.expect(200);
    assert_eq!(writers(server).await[0]["state"], "active");
}

async fn the_commit_log_tells_what_became_of_each_request(server: &TestServer) {
    table(server).await;
    let late = written(server, 9, &[]).await;
    commit_at(server, 1, "1").await.expect(200);
    server.post(TABLE, late).await.refused(409, "CommitFailedException");
    let twin = written(server, 2, &[("frazil.writer-id", "w"), ("frazil.position", "1")]).await;
    server.post(TABLE, twin).await.expect(200);
    let commits = |page: &Value| page["commits"].as_array().unwrap().clone();
    let all = logged(server, 3).await;
    let told: Vec<_> =
        all.iter().map(|entry| (entry["outcome"].as_str().unwrap(), entry["snapshot-id"].as_i64())).collect();
    assert_eq!(told, [("duplicate", Some(2)), ("conflicted", Some(9)), ("committed", Some(1))]);
    assert_eq!(all[0]["duplicate-of"], 1);
    assert!(all[1]["detail"].is_string(), "{}", all[1]);
    let first = &all[2];
    assert_eq!(first["writer"], json!({"kind": "named", "writer-id": "w", "part": ""}));
    assert_eq!((&first["position"], &first["ref"]), (&json!(1), &json!("main")));
    assert_eq!(first["table"], json!({"namespace": ["n"], "name": "t"}));
    assert_eq!((&first["group-size"], &first["attempts"]), (&json!(1), &json!(1)));
    let page = server.get(&format!("{ROOT}/commits?pageSize=2")).await.expect(200).json();
    assert_eq!(commits(&page), all[..2]);
    let token = page["next-page-token"].as_str().unwrap();
    let rest = server.get(&format!("{ROOT}/commits?pageSize=2&pageToken={token}")).await.expect(200).json();
    assert_eq!((commits(&rest).as_slice(), &rest["next-page-token"]), (&all[2..], &Value::Null));
}

async fn an_attempt_is_found_by_key_and_by_snapshot(server: &TestServer) {
    table(server).await;
    let (key, late) = (Uuid::now_v7().to_string(), written(server, 9, &[]).await);
    let commit = written(server, 1, &[("frazil.writer-id", "w"), ("frazil.position", "1")]).await;
    let headers = [("Idempotency-Key", key.as_str())];
    server.send(Method::POST, TABLE, &headers, Some(commit.to_string().into())).await.expect(200);
    server.post(TABLE, late).await.refused(409, "CommitFailedException");
    logged(server, 2).await;
    let attempt = async |name: &str| server.get(&format!("{ROOT}/attempts/{name}")).await.expect(200).json();
    for name in [key.as_str(), "1"] {
        let told = attempt(name).await;
        assert_eq!((&told["status"], &told["snapshot-id"]), (&json!("landed"), &json!(1)), "{told}");
        assert_eq!((&told["ref"], &told["on-ref"]), (&json!("main"), &json!(true)), "{told}");
        assert_eq!(told["entries"][0]["idempotency-key"], json!(key), "{told}");
    }
    let conflicted = attempt("9").await;
    assert_eq!((&conflicted["status"], &conflicted["snapshot-id"]), (&json!("conflicted"), &json!(9)));
    for name in ["77", "-1", &Uuid::now_v7().to_string()] {
        assert_eq!(attempt(name).await, json!({"status": "unknown", "entries": []}));
    }
    server.append(TABLE, 2).await.expect(200);
    update(server, json!({"action": "remove-snapshots", "snapshot-ids": [1]})).await;
    assert_eq!(attempt("1").await["on-ref"], true);
    let other = json!({"action": "remove-snapshot-ref", "ref-name": "main"});
    update(server, other).await;
    let told = attempt("2").await;
    assert_eq!((&told["status"], &told["on-ref"]), (&json!("landed"), &json!(false)), "{told}");
}
