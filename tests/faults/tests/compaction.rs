//! Compaction beside streaming writers, in both orders.

use faults::frazil::Frazil;
use faults::writer::files::Content;
use faults::writer::identity::{flink, spark_batch};
use faults::writer::{Change, Prepared, Table};
use serde_json::json;

use crate::probe::{Probe, data, equality_deletes};

/// A table with two files of old rows, and two jobs that write on.
async fn table(version: u32) -> (Frazil, Probe) {
    let server = Frazil::on_sqlite().await;
    let properties = json!({"frazil.commit.rebase": "streaming", "format-version": version.to_string()});
    let mut probe = Probe::with(&server.catalog(), &properties).await;
    for (job, key) in [("a", "old-1"), ("b", "old-2")] {
        probe.land_row(key, flink(job, "operator", 1)).await;
    }
    (server, probe)
}

/// All live data files become one, as old as the table is.
fn compaction(table: &Table, sequence_number: Option<i64>) -> Change {
    let live: Vec<_> = table.live_files().into_iter().filter(|live| live.file.content == Content::Data).collect();
    let keys: Vec<&str> = live.iter().flat_map(|live| live.file.keys()).collect();
    let removed = live.iter().map(|live| live.file.path.clone()).collect();
    Change::Rewrite { removed, added: vec![data(table, &keys)], sequence_number }
}

fn upsert(table: &Table, key: &str) -> Change {
    Change::RowDelta { data: vec![data(table, &[key])], deletes: vec![equality_deletes(table, &[key])] }
}

async fn lands(probe: &mut Probe, prepared: &Prepared) {
    probe.send(prepared).await.unwrap().expect(200);
}

async fn rows_are(probe: &Probe, keys: &[&str]) {
    let table = probe.table().await;
    table.assert_whole();
    let rows = table.rows();
    assert_eq!(rows.keys().collect::<Vec<_>>(), keys);
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");
    probe.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_passes_appends_that_came_before_it() {
    for version in [2, 3] {
        let (_server, mut probe) = table(version).await;
        let base = probe.table().await;
        let replace = probe.change_on(&base, compaction(&base, Some(base.last_sequence_number())), spark_batch());
        probe.land_row("new-1", flink("a", "operator", 2)).await;
        probe.land_row("new-2", flink("b", "operator", 2)).await;
        lands(&mut probe, &replace).await;
        rows_are(&probe, &["first", "new-1", "new-2", "old-1", "old-2"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_pass_a_compaction_that_came_before_them() {
    for version in [2, 3] {
        let (_server, mut probe) = table(version).await;
        let base = probe.table().await;
        let append = probe.append_on(&base, "new-1", flink("a", "operator", 2));
        let merging = Change::MergingAppend { files: vec![data(&base, &["new-2"])], min_count: 2 };
        let merging = probe.change_on(&base, merging, flink("b", "operator", 2));
        probe.land(|table| compaction(table, Some(table.last_sequence_number())), spark_batch()).await;
        lands(&mut probe, &append).await;
        lands(&mut probe, &merging).await;
        rows_are(&probe, &["first", "new-1", "new-2", "old-1", "old-2"]).await;
    }
}

/// The compacted rows are as old as the files that they come from, so that deletes still reach them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_passes_equality_deletes_that_came_before_it() {
    for version in [2, 3] {
        let (_server, mut probe) = table(version).await;
        let base = probe.table().await;
        let replace = probe.change_on(&base, compaction(&base, Some(base.last_sequence_number())), spark_batch());
        probe.land(|table| upsert(table, "old-1"), flink("a", "operator", 2)).await;
        lands(&mut probe, &replace).await;
        rows_are(&probe, &["first", "old-1", "old-2"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equality_deletes_pass_a_compaction_that_came_before_them() {
    for version in [2, 3] {
        let (_server, mut probe) = table(version).await;
        let base = probe.table().await;
        let delta = probe.change_on(&base, upsert(&base, "old-1"), flink("a", "operator", 2));
        probe.land(|table| compaction(table, Some(table.last_sequence_number())), spark_batch()).await;
        lands(&mut probe, &delta).await;
        rows_are(&probe, &["first", "old-1", "old-2"]).await;
    }
}

/// Without its own age the compacted row would come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_that_makes_rows_younger_does_not_pass_equality_deletes() {
    let (_server, mut probe) = table(2).await;
    let base = probe.table().await;
    let replace = probe.change_on(&base, compaction(&base, None), spark_batch());
    probe.land(|table| upsert(table, "old-1"), flink("a", "operator", 2)).await;
    probe.send(&replace).await.unwrap().refused(409, "CommitFailedException");
    rows_are(&probe, &["first", "old-1", "old-2"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_are_rewritten_beside_appends_and_equality_deletes() {
    for version in [2, 3] {
        let (_server, mut probe) = table(version).await;
        let base = probe.table().await;
        let rewrite = probe.change_on(&base, Change::RewriteManifests, spark_batch());
        probe.land_row("new-1", flink("a", "operator", 2)).await;
        probe.land(|table| upsert(table, "old-1"), flink("b", "operator", 2)).await;
        lands(&mut probe, &rewrite).await;
        rows_are(&probe, &["first", "new-1", "old-1", "old-2"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_compactions_of_the_same_files_one_is_refused() {
    let (_server, mut probe) = table(2).await;
    let base = probe.table().await;
    let replaces =
        [(), ()].map(|()| probe.change_on(&base, compaction(&base, Some(base.last_sequence_number())), spark_batch()));
    lands(&mut probe, &replaces[0]).await;
    probe.send(&replaces[1]).await.unwrap().refused(409, "CommitFailedException");
    rows_are(&probe, &["first", "old-1", "old-2"]).await;
}

/// Rounds of compaction beside appends and upserts: neither starves, and no key is lost or doubled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_and_streaming_go_on_beside_each_other() {
    let (_server, mut probe) = table(2).await;
    for round in 2..12 {
        let base = probe.table().await;
        let replace = probe.change_on(&base, compaction(&base, Some(base.last_sequence_number())), spark_batch());
        let append = probe.append_on(&base, &format!("a-{round:02}"), flink("a", "operator", round));
        let delta = probe.change_on(&base, upsert(&base, "old-2"), flink("b", "operator", round));
        let order = match round % 3 {
            0 => [&append, &delta, &replace],
            1 => [&replace, &append, &delta],
            _ => [&append, &replace, &delta],
        };
        for commit in order {
            lands(&mut probe, commit).await;
        }
    }
    let table = probe.table().await;
    table.assert_whole();
    let rows = table.rows();
    assert_eq!(rows.len(), 3 + 10, "{rows:?}");
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");
}
