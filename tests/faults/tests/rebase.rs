//! What a careless rebase would break, each in a table that would show it.

use faults::frazil::Frazil;
use faults::writer::files::{Content, local};
use faults::writer::identity::{flink, kafka_connect, spark_batch, spark_streaming};
use faults::writer::{Change, Draft, Prepared, Table};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::probe::{Probe, TABLE, data, equality_deletes, position_deletes};

/// A server and a table whose commits are rebased as far as that goes.
async fn streaming(version: u32) -> (Frazil, Probe) {
    table_with(&json!({"frazil.commit.rebase": "streaming", "format-version": version.to_string()})).await
}

async fn table_with(properties: &Value) -> (Frazil, Probe) {
    let server = Frazil::on_sqlite().await;
    let probe = Probe::with(&server.catalog(), properties).await;
    (server, probe)
}

/// A job at a checkpoint.
fn job(name: &str, checkpoint: i64) -> Vec<(String, String)> {
    flink(name, "operator", checkpoint)
}

/// Jobs that have committed before, so that none is a newcomer.
async fn warm(probe: &mut Probe, jobs: &[&str]) {
    for name in jobs {
        probe.land_row(&format!("warm-{name}"), job(name, 1)).await;
    }
}

async fn lands(probe: &mut Probe, prepared: &Prepared) {
    probe.send(prepared).await.unwrap().expect(200);
}

async fn conflicts(probe: &mut Probe, prepared: &Prepared) {
    let before = probe.table().await.metadata;
    probe.send(prepared).await.unwrap().refused(409, "CommitFailedException");
    assert_eq!(probe.table().await.metadata, before, "a refusal changed the table");
}

async fn rows_are(probe: &Probe, keys: &[&str]) {
    let table = probe.table().await;
    table.assert_whole();
    let rows = table.rows();
    let warm = |key: &&String| !key.starts_with("warm-") && *key != "first";
    let found: Vec<&String> = rows.keys().filter(warm).collect();
    assert_eq!(found, keys);
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");
    probe.assert_clean().await;
}

fn merging(table: &Table, keys: &[&str]) -> Change {
    Change::MergingAppend { files: vec![data(table, keys)], min_count: 2 }
}

/// An insert-only MERGE comes as an append with the keys of an INSERT: only its writer knows that it read the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_merges_that_insert_the_same_key_one_must_read_again() {
    let (_server, mut probe) = streaming(2).await;
    let base = probe.table().await;
    let merges = [(), ()].map(|()| probe.append_on(&base, "same-key", spark_batch()));
    lands(&mut probe, &merges[0]).await;
    conflicts(&mut probe, &merges[1]).await;
    rows_are(&probe, &["same-key"]).await;
}

/// Rows that were there before an upgrade keep the ids that the first commit after it gave them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merging_append_built_before_the_first_commit_of_version_3_leaves_row_ids_alone() {
    let (server, mut probe) = streaming(2).await;
    warm(&mut probe, &["a", "b"]).await;
    upgrade(&server).await;
    let base = probe.table().await;
    let mine = probe.change_on(&base, merging(&base, &["merged"]), job("a", 2));
    let first = probe.append_on(&base, "fast", job("b", 2));
    lands(&mut probe, &first).await;
    let before = row_ids(&probe.table().await);
    lands(&mut probe, &mine).await;
    let after = row_ids(&probe.table().await);
    assert!(before.iter().all(|known| after.contains(known)), "{before:?} {after:?}");
    rows_are(&probe, &["fast", "merged"]).await;
}

/// Each data file of the head with the row id that its manifest begins with.
fn row_ids(table: &Table) -> Vec<(String, i64)> {
    let manifests = table.manifests().into_iter().filter(|manifest| manifest.content == Content::Data);
    let mut ids = Vec::new();
    for manifest in manifests {
        let mut next = manifest.first_row_id.unwrap();
        for entry in faults::writer::table::read_manifest(&manifest) {
            ids.push((entry.file.path, next));
            next += entry.file.records;
        }
    }
    ids
}

async fn upgrade(server: &Frazil) {
    let update = json!({"action": "upgrade-format-version", "format-version": 3});
    let body = json!({"requirements": [], "updates": [update]});
    server.catalog().post(TABLE, &body).await.unwrap().expect(200);
}

/// A list of the old version has no place for row ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_built_before_an_upgrade_is_built_again() {
    let (server, mut probe) = streaming(2).await;
    warm(&mut probe, &["a", "b"]).await;
    let base = probe.table().await;
    let draft = probe.writer.draft(&base, Change::FastAppend(vec![data(&base, &["late"])]), job("a", 2));
    let old = probe.attempt(&draft, &base);
    upgrade(&server).await;
    probe.land_row("new", job("b", 2)).await;
    conflicts(&mut probe, &old).await;
    let again = probe.attempt(&draft, &probe.table().await);
    lands(&mut probe, &again).await;
    rows_are(&probe, &["late", "new"]).await;
}

/// Two vectors for one file make a table that nobody can read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_vector_is_not_put_over_another_one_of_the_same_file() {
    let (_server, mut probe) = streaming(3).await;
    warm(&mut probe, &["a", "b"]).await;
    let base = probe.table().await;
    let target = base.live_files()[0].file.clone();
    let delta = |key: &str| Change::RowDelta {
        data: vec![data(&base, &[key])],
        deletes: vec![position_deletes(&base, &target.keys(), &target)],
    };
    let first = probe.change_on(&base, delta("one"), job("a", 2));
    let second = probe.change_on(&base, delta("two"), job("b", 2));
    lands(&mut probe, &first).await;
    conflicts(&mut probe, &second).await;
    rows_are(&probe, &["one"]).await;
}

/// Deletes of rows in a file that is compacted away would be lost, in either order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn position_deletes_and_a_compaction_of_their_file_do_not_pass_each_other() {
    for version in [2, 3] {
        for deletes_first in [true, false] {
            let (_server, mut probe) = streaming(version).await;
            warm(&mut probe, &["a"]).await;
            probe.land(|table| Change::FastAppend(vec![data(table, &["kept", "gone"])]), job("a", 2)).await;
            let base = probe.table().await;
            let target = base.live_files().into_iter().find(|live| live.file.keys() == ["kept", "gone"]).unwrap().file;
            let deletes = Change::RowDelta {
                data: vec![data(&base, &["new"])],
                deletes: vec![position_deletes(&base, &["gone"], &target)],
            };
            let compaction = Change::Rewrite {
                removed: vec![target.path.clone()],
                added: vec![data(&base, &["kept", "gone"])],
                sequence_number: Some(base.last_sequence_number()),
            };
            let deletes = probe.change_on(&base, deletes, job("a", 3));
            let compaction = probe.change_on(&base, compaction, spark_batch());
            let (first, second) = if deletes_first { (deletes, compaction) } else { (compaction, deletes) };
            lands(&mut probe, &first).await;
            conflicts(&mut probe, &second).await;
        }
    }
}

/// Both writers put all manifests into one of their own, as the writers of long-lived tables do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_merge_manifests_on_both_sides_lose_nothing_and_double_nothing() {
    for version in [2, 3] {
        let (_server, mut probe) = streaming(version).await;
        warm(&mut probe, &["a", "b", "c"]).await;
        let base = probe.table().await;
        let commits = ["a", "b", "c"].map(|name| probe.change_on(&base, merging(&base, &[name]), job(name, 2)));
        for commit in &commits {
            lands(&mut probe, commit).await;
        }
        rows_are(&probe, &["a", "b", "c"]).await;
    }
}

/// Sent at once, so that they share a group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merging_appends_of_one_group_all_land_at_their_first_attempt() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for version in [2, 3] {
        let (_server, mut probe) = streaming(version).await;
        warm(&mut probe, &names).await;
        let base = probe.table().await;
        let commits = names.map(|name| probe.change_on(&base, merging(&base, &[name]), job(name, 2)));
        for told in join_all(commits.iter().map(|commit| probe.writer.send(commit))).await {
            told.unwrap().expect(200);
        }
        rows_are(&probe, &names).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timestamps_rise_along_the_branch_whatever_clocks_said() {
    let (_server, mut probe) = streaming(2).await;
    let names = ["equal", "falling", "old"];
    warm(&mut probe, &names).await;
    let base = probe.table().await;
    let now = base.metadata["last-updated-ms"].as_i64().unwrap();
    let times = [now + 5, now - 70_000, now - 3_600_000];
    let drafts = names.map(|name| {
        let change = Change::FastAppend(vec![data(&base, &[name])]);
        probe.writer.draft(&base, change, job(name, 2))
    });
    let same = Draft::new(&base, Change::FastAppend(vec![data(&base, &["same"])]), 77, job("equal", 3));
    for (draft, time) in drafts.into_iter().zip(times) {
        let commit = probe.attempt(&draft.at_ms(time), &base);
        lands(&mut probe, &commit).await;
    }
    // The time of the head once more, from a writer that has seen it.
    let head = probe.table().await;
    let time = head.metadata["last-updated-ms"].as_i64().unwrap();
    let commit = probe.attempt(&same.at_ms(time), &head);
    lands(&mut probe, &commit).await;
    rows_are(&probe, &["equal", "falling", "old", "same"]).await;
}

/// The client would delete what is live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_landed_is_never_refused_for_good() {
    let (server, mut probe) = streaming(2).await;
    let commit = probe.land_row("landed", job("a", 1)).await;
    probe.land_row("on-top", job("b", 1)).await;
    let catalog = server.catalog();
    let rename = json!({"source": {"namespace": ["n"], "name": "t"}, "destination": {"namespace": ["n"], "name": "u"}});
    catalog.post("/tables/rename", &rename).await.unwrap().expect(204);
    let told = probe.send(&commit).await.unwrap();
    assert!(told.is_unknown(), "{told:?}");
    catalog.delete("/namespaces/n/tables/u").await.unwrap().expect(204);
    let told = probe.send(&commit).await.unwrap();
    assert!(told.is_unknown(), "{told:?}");
    assert!(std::fs::exists(local(&commit.list)).unwrap());
}

/// In one group, and once more on another head.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_snapshot_sent_twice_is_there_once() {
    let (_server, mut probe) = streaming(2).await;
    warm(&mut probe, &["a", "b"]).await;
    let base = probe.table().await;
    let commit = probe.append_on(&base, "once", job("a", 2));
    for told in join_all((0..8).map(|_| probe.writer.send(&commit))).await {
        told.unwrap().expect(200);
    }
    probe.land_row("other", job("b", 2)).await;
    lands(&mut probe, &commit).await;
    rows_are(&probe, &["once", "other"]).await;
}

/// In its manifests an INSERT OVERWRITE of a partition that holds nothing looks like an append.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_overwrites_of_one_empty_partition_one_must_read_again() {
    let (_server, mut probe) = streaming(2).await;
    warm(&mut probe, &["a", "b"]).await;
    let base = probe.table().await;
    for keys in [[spark_batch(), spark_batch()], [job("a", 2), job("b", 2)]] {
        let base = if keys[0] == spark_batch() { base.clone() } else { probe.table().await };
        let [first, second] =
            keys.map(|keys| probe.change_on(&base, Change::ReplacePartitions(vec![data(&base, &["row"])]), keys));
        lands(&mut probe, &first).await;
        conflicts(&mut probe, &second).await;
    }
}

/// The late request of a dead client, whose job goes on under another id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_commit_of_a_killed_job_does_not_pass_its_successors_first_one() {
    let (_server, mut probe) = streaming(2).await;
    for (before, after) in [
        (job("killed", 7), job("restored", 7)),
        (spark_streaming("killed", 7), spark_streaming("restored", 0)),
        (kafka_connect("killed", r#"{"0":7}"#, "c1"), kafka_connect("restored", r#"{"0":7}"#, "c2")),
    ] {
        let base = probe.table().await;
        let rows = data(&base, &["row"]);
        let late = probe.change_on(&base, Change::FastAppend(vec![rows.clone()]), before);
        let successor = probe.change_on(&base, Change::FastAppend(vec![rows]), after);
        lands(&mut probe, &successor).await;
        conflicts(&mut probe, &late).await;
        probe.table().await.assert_whole();
    }
}

/// Once a job is no newcomer any more, its neighbours' commits pass it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_job_costs_its_neighbours_one_conflict_and_no_more() {
    let (_server, mut probe) = streaming(2).await;
    warm(&mut probe, &["old"]).await;
    let base = probe.table().await;
    let draft = probe.writer.draft(&base, Change::FastAppend(vec![data(&base, &["neighbour"])]), job("old", 2));
    let commit = probe.attempt(&draft, &base);
    probe.land_row("newcomer-1", job("new", 1)).await;
    conflicts(&mut probe, &commit).await;
    let again = probe.attempt(&draft, &probe.table().await);
    probe.land_row("newcomer-2", job("new", 2)).await;
    lands(&mut probe, &again).await;
    rows_are(&probe, &["neighbour", "newcomer-1", "newcomer-2"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_is_not_put_over_one_of_the_same_writer() {
    let (_server, mut probe) = streaming(2).await;
    warm(&mut probe, &["a"]).await;
    let base = probe.table().await;
    let [second, third] = [2, 3].map(|checkpoint| probe.append_on(&base, "row", job("a", checkpoint)));
    lands(&mut probe, &second).await;
    conflicts(&mut probe, &third).await;
}

/// A coordinator that is behind would write again what its successor has written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_with_old_offsets_is_fenced_and_adds_nothing() {
    let (_server, mut probe) = streaming(2).await;
    let offsets = |offset: i64| kafka_connect("sink", &format!("{{\"0\":{offset}}}"), &offset.to_string());
    probe.land_row("round-1", offsets(10)).await;
    let base = probe.table().await;
    let rows = data(&base, &["round-2"]);
    let zombie = probe.change_on(&base, Change::FastAppend(vec![rows.clone()]), offsets(15));
    let leader = probe.change_on(&base, Change::FastAppend(vec![rows]), offsets(20));
    lands(&mut probe, &leader).await;
    conflicts(&mut probe, &zombie).await;
    rows_are(&probe, &["round-1", "round-2"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_whose_schema_expired_meanwhile_gets_the_one_of_its_new_place() {
    let (server, mut probe) = streaming(2).await;
    warm(&mut probe, &["a", "b"]).await;
    let base = probe.table().await;
    let commit = probe.append_on(&base, "mine", job("a", 2));
    let mut schema = base.metadata["schemas"][0].clone();
    schema["schema-id"] = json!(1);
    schema["fields"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": 3, "name": "more", "required": false, "type": "string"}));
    let catalog = server.catalog();
    let change = |updates: Value| json!({"requirements": [], "updates": updates});
    let evolve = change(json!([{"action": "add-schema", "schema": schema, "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1}]));
    catalog.post(TABLE, &evolve).await.unwrap().expect(200);
    let between = probe.land_row("between", job("b", 2)).await;
    catalog.post(TABLE, &change(json!([{"action": "remove-schemas", "schema-ids": [0]}]))).await.unwrap().expect(200);
    lands(&mut probe, &commit).await;
    let table = probe.table().await;
    let known: Vec<&Value> =
        table.metadata["schemas"].as_array().unwrap().iter().map(|schema| &schema["schema-id"]).collect();
    assert!(known.contains(&&table.snapshot(commit.snapshot_id)["schema-id"]), "{known:?}");
    assert_eq!(table.snapshot(commit.snapshot_id)["parent-snapshot-id"], between.snapshot_id);
    rows_are(&probe, &["between", "mine"]).await;
}

/// What cannot be read is a conflict, and no fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_whose_list_has_vanished_is_a_conflict() {
    let (_server, mut probe) = streaming(2).await;
    warm(&mut probe, &["a", "b"]).await;
    let base = probe.table().await;
    let commit = probe.append_on(&base, "mine", job("a", 2));
    std::fs::remove_file(local(&commit.list)).unwrap();
    probe.land_row("other", job("b", 2)).await;
    conflicts(&mut probe, &commit).await;
}

/// Equality deletes reach older rows only, wherever they come to stand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upserts_of_two_writers_leave_the_later_row_of_a_key() {
    for version in [2, 3] {
        let (_server, mut probe) = streaming(version).await;
        warm(&mut probe, &["a", "b"]).await;
        let base = probe.table().await;
        let upsert = |key: &str| Change::RowDelta {
            data: vec![data(&base, &[key])],
            deletes: vec![equality_deletes(&base, &[key])],
        };
        let commits =
            [("a", "same"), ("b", "same")].map(|(name, key)| probe.change_on(&base, upsert(key), job(name, 2)));
        for commit in &commits {
            lands(&mut probe, commit).await;
        }
        rows_are(&probe, &["same"]).await;
    }
}

/// A streaming upsert deletes rows of its own new file by their positions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upsert_with_position_deletes_on_its_own_file_is_rebased() {
    for version in [2, 3] {
        let (_server, mut probe) = streaming(version).await;
        warm(&mut probe, &["a", "b"]).await;
        let base = probe.table().await;
        let rows = data(&base, &["replaced", "stays"]);
        let deletes = vec![equality_deletes(&base, &["stays"]), position_deletes(&base, &["replaced"], &rows)];
        let mine = probe.change_on(&base, Change::RowDelta { data: vec![rows], deletes }, job("a", 2));
        probe.land_row("other", job("b", 2)).await;
        lands(&mut probe, &mine).await;
        rows_are(&probe, &["other", "stays"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_property_only_appends_of_streaming_writers_are_rebased() {
    let (_server, mut probe) = table_with(&json!({})).await;
    warm(&mut probe, &["a", "b"]).await;
    let base = probe.table().await;
    let upsert = Change::RowDelta { data: vec![data(&base, &["x"])], deletes: vec![equality_deletes(&base, &["x"])] };
    let [append, upsert, anonymous] = [
        probe.append_on(&base, "append", job("a", 2)),
        probe.change_on(&base, upsert, job("a", 3)),
        probe.append_on(&base, "anonymous", spark_batch()),
    ];
    probe.land_row("other", job("b", 2)).await;
    lands(&mut probe, &append).await;
    conflicts(&mut probe, &upsert).await;
    conflicts(&mut probe, &anonymous).await;
    rows_are(&probe, &["append", "other"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_rebase_off_nothing_is_rebased() {
    let (_server, mut probe) = table_with(&json!({"frazil.commit.rebase": "off"})).await;
    warm(&mut probe, &["a", "b"]).await;
    let base = probe.table().await;
    let append = probe.append_on(&base, "append", job("a", 2));
    probe.land_row("other", job("b", 2)).await;
    conflicts(&mut probe, &append).await;
}
