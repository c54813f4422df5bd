//! Writers that come back: zombies, restarts and replays.

use faults::frazil::Frazil;
use faults::writer::identity::{Keys, flink, kafka_connect, named, spark_streaming};
use faults::writer::{Change, DataFile, Prepared, Table};
use serde_json::{Value, json};

use crate::probe::{Probe, TABLE, data};

async fn table() -> (Frazil, Probe) {
    let server = Frazil::on_sqlite().await;
    let probe = Probe::new(&server.catalog()).await;
    (server, probe)
}

fn job(checkpoint: i64) -> Keys {
    flink("job", "operator", checkpoint)
}

fn append(files: &[DataFile]) -> Change {
    Change::FastAppend(files.to_vec())
}

/// A new process commits these files on the table as it is now.
async fn commit_anew(probe: &mut Probe, files: &[DataFile], keys: Keys) -> (Prepared, faults::catalog::Answer) {
    let table = probe.table().await;
    let prepared = probe.change_on(&table, append(files), keys);
    let answer = probe.send(&prepared).await.unwrap();
    (prepared, answer)
}

async fn rows_are(probe: &Probe, keys: &[&str]) {
    let table = probe.table().await;
    table.assert_whole();
    let rows = table.rows();
    assert_eq!(rows.keys().collect::<Vec<_>>(), keys);
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");
}

async fn change(server: &Frazil, updates: Value) -> Value {
    let body = json!({"requirements": [], "updates": updates});
    server.catalog().post(TABLE, &body).await.unwrap().expect(200).json()
}

async fn roll_back(server: &Frazil, to: i64) {
    let set = json!({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": to});
    change(server, json!([set])).await;
}

/// The answer was lost, the process restarted, and the checkpoint is committed once more with the same files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_that_a_new_process_commits_again_adds_nothing() {
    for keys in [job(5), kafka_connect("sink", r#"{"0":5}"#, "c"), named("writer", Some(5), None)] {
        let (_server, mut probe) = table().await;
        let files = [data(&probe.table().await, &["row"])];
        let (landed, answer) = commit_anew(&mut probe, &files, keys.clone()).await;
        answer.expect(200);
        let (_, answer) = commit_anew(&mut probe, &files, keys.clone()).await;
        assert_eq!(answer.expect(200).duplicate_of, Some(landed.snapshot_id));
        probe.land_row("other", flink("other", "operator", 1)).await;
        let (_, answer) = commit_anew(&mut probe, &files, keys).await;
        assert_eq!(answer.expect(200).duplicate_of, Some(landed.snapshot_id));
        rows_are(&probe, &["first", "other", "row"]).await;
    }
}

/// Spark runs a micro-batch again with new files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_that_is_run_again_adds_nothing() {
    let (_server, mut probe) = table().await;
    let landed = probe.land_row("row", spark_streaming("query", 3)).await;
    let files = [data(&probe.table().await, &["row"])];
    let (_, answer) = commit_anew(&mut probe, &files, spark_streaming("query", 3)).await;
    assert_eq!(answer.expect(200).duplicate_of, Some(landed.snapshot_id));
    rows_are(&probe, &["first", "row"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_is_known_after_its_snapshot_expired() {
    let (server, mut probe) = table().await;
    let files = [data(&probe.table().await, &["row"])];
    let (landed, answer) = commit_anew(&mut probe, &files, job(5)).await;
    answer.expect(200);
    probe.land_row("other", flink("other", "operator", 1)).await;
    change(&server, json!([{"action": "remove-snapshots", "snapshot-ids": [landed.snapshot_id]}])).await;
    let (_, answer) = commit_anew(&mut probe, &files, job(5)).await;
    assert_eq!(answer.expect(200).duplicate_of, Some(landed.snapshot_id));
    rows_are(&probe, &["first", "other", "row"]).await;
}

/// Each has files of its own for the same checkpoint: to acknowledge the second would lose them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_processes_with_one_identity_the_second_is_told_and_not_acknowledged() {
    let (_server, mut probe) = table().await;
    probe.land_row("before", job(1)).await;
    let base = probe.table().await;
    let [mine, theirs] = ["mine", "theirs"].map(|key| probe.append_on(&base, key, job(2)));
    probe.send(&mine).await.unwrap().expect(200);
    let refusal = probe.send(&theirs).await.unwrap().expect(422);
    for id in [mine.snapshot_id, theirs.snapshot_id] {
        assert!(refusal.text.contains(&id.to_string()), "{}", refusal.text);
    }
    rows_are(&probe, &["before", "first", "mine"]).await;
}

/// A zombie's late copy of an older checkpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_copy_of_an_older_checkpoint_adds_nothing() {
    let (_server, mut probe) = table().await;
    let files = [data(&probe.table().await, &["one"])];
    let (landed, answer) = commit_anew(&mut probe, &files, job(1)).await;
    answer.expect(200);
    probe.land_row("two", job(2)).await;
    let (_, answer) = commit_anew(&mut probe, &files, job(1)).await;
    assert_eq!(answer.expect(200).duplicate_of, Some(landed.snapshot_id));
    rows_are(&probe, &["first", "one", "two"]).await;
}

/// It counts from 1 again, and what it writes is new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_without_state_that_uses_its_ids_again_loses_nothing() {
    let (_server, mut probe) = table().await;
    for checkpoint in 1..=3 {
        probe.land_row(&format!("first-run-{checkpoint}"), job(checkpoint)).await;
    }
    for checkpoint in 1..=4 {
        probe.land_row(&format!("second-run-{checkpoint}"), job(checkpoint)).await;
    }
    let rows = probe.table().await.rows();
    assert_eq!(rows.len(), 1 + 3 + 4, "{rows:?}");
}

/// In application mode each run has the same job id and ends at the largest number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_end_at_the_same_checkpoint_all_land() {
    let (_server, mut probe) = table().await;
    for run in ["one", "three", "two"] {
        probe.land_row(run, job(i64::MAX)).await;
    }
    rows_are(&probe, &["first", "one", "three", "two"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_that_was_rolled_back_may_come_again() {
    let (server, mut probe) = table().await;
    let base = probe.table().await;
    let files = [data(&base, &["row"])];
    let (landed, answer) = commit_anew(&mut probe, &files, job(5)).await;
    answer.expect(200);
    roll_back(&server, base.head().unwrap()).await;
    rows_are(&probe, &["first"]).await;
    // The same request is known and adds nothing; a new one is new.
    probe.send(&landed).await.unwrap().expect(200);
    rows_are(&probe, &["first"]).await;
    let (_, answer) = commit_anew(&mut probe, &files, job(5)).await;
    assert_eq!(answer.expect(200).duplicate_of, None);
    rows_are(&probe, &["first", "row"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lower_epoch_is_refused_after_a_take_over() {
    let (server, mut probe) = table().await;
    let writers = format!("/coordination/v1/default{TABLE}/writers");
    let register = |take_over: bool| json!({"writer-id": "writer", "take-over": take_over});
    let epoch = |answer: faults::catalog::Answer| answer.json()["epoch"].as_i64().unwrap();
    let catalog = server.catalog();
    let old = epoch(catalog.post(&writers, &register(false)).await.unwrap());
    probe.land_row("old", named("writer", Some(1), Some(old))).await;
    let new = epoch(catalog.post(&writers, &register(true)).await.unwrap());
    assert!(new > old, "{old} {new}");
    let late = probe.append("late", named("writer", Some(2), Some(old))).await;
    probe.send(&late).await.unwrap().expect(422);
    probe.land_row("new", named("writer", Some(2), Some(new))).await;
    let late = probe.append("late", named("writer", Some(3), Some(old))).await;
    probe.send(&late).await.unwrap().expect(422);
    rows_are(&probe, &["first", "new", "old"]).await;
}

/// A job writes to two branches under one checkpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn branches_have_ledgers_of_their_own() {
    let (server, mut probe) = table().await;
    let head = probe.table().await.head();
    change(&server, json!([{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": head}]))
        .await;
    probe.land_row("on-main", job(1)).await;
    let branch = Table::of(probe.table().await.metadata, "b");
    let on_branch = probe.append_on(&branch, "on-branch", job(1));
    let answer = probe.send(&on_branch).await.unwrap().expect(200);
    assert_eq!(answer.duplicate_of, None);
    rows_are(&probe, &["first", "on-main"]).await;
    let branch = Table::of(probe.table().await.metadata, "b");
    assert_eq!(branch.rows().keys().collect::<Vec<_>>(), ["first", "on-branch"]);
}
