//! Many writers of one table.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use faults::catalog::Catalog;
use faults::frazil::{Frazil, Launch};
use faults::wait::until;
use faults::writer::identity::{flink, spark_batch};
use faults::writer::{Change, DataFile, Ended, Retry, Writer};
use futures::future::join_all;
use serde_json::json;

use crate::held::Held;
use crate::probe::{Probe, TABLE, data};

const WRITERS: u64 = 32;

/// A writer with a number, which commits `commits` rows without trying any of them again.
async fn append_rows(catalog: Catalog, number: u64, commits: u64, retry: Retry) -> Vec<Ended> {
    let mut writer = Writer::of(&catalog, TABLE, 1000 + number).retrying(retry);
    let mut ended = Vec::new();
    for commit in 0..commits {
        let table = writer.load().await;
        let change = Change::FastAppend(vec![data(&table, &[&format!("w{number:02}-{commit}")])]);
        let draft = writer.draft(&table, change, spark_batch());
        ended.push(writer.see_through(&draft, table).await);
    }
    ended
}

async fn crowd(catalog: &Catalog, commits: u64, retry: Retry) -> Vec<Ended> {
    let writers = (0..WRITERS).map(|number| tokio::spawn(append_rows(catalog.clone(), number, commits, retry)));
    join_all(writers).await.into_iter().flat_map(Result::unwrap).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_append_of_32_writers_lands_at_its_first_attempt() {
    let server = Frazil::on_postgres(Launch::default()).await;
    let properties = json!({"frazil.commit.rebase": "append", "frazil.commit.rebase.anonymous": "true"});
    let probe = Probe::with(&server.catalog(), &properties).await;
    let ended = crowd(&server.catalog(), 4, Retry::NONE).await;
    for ended in ended {
        ended.landed();
    }
    let table = probe.table().await;
    table.assert_whole();
    let rows = table.rows();
    assert_eq!(rows.len() as u64, 1 + 4 * WRITERS);
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");
    let total = &table.snapshot(table.head().unwrap())["summary"]["total-records"];
    assert_eq!(total.as_str().unwrap().parse::<u64>().unwrap(), 1 + 4 * WRITERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_rebase_every_writer_finishes_with_retries_enough_and_none_sees_a_fault() {
    let server = Frazil::on_sqlite().await;
    let probe = Probe::with(&server.catalog(), &json!({"frazil.commit.rebase": "off"})).await;
    let ended = crowd(&server.catalog(), 1, Retry::times(200)).await;
    for ended in ended {
        ended.landed();
    }
    assert_eq!(probe.table().await.rows().len() as u64, 1 + WRITERS);
}

/// 16 jobs whose commits are always rebased move the head without a pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_gets_through_beside_16_writers_that_never_wait() {
    static DONE: AtomicBool = AtomicBool::new(false);
    let server = Frazil::on_sqlite().await;
    let catalog = server.catalog();
    let properties = json!({"frazil.commit.rebase": "streaming"});
    let mut probe = Probe::with(&catalog, &properties).await;
    let target = data(&probe.table().await, &["merged-away"]);
    probe.land(|_| Change::FastAppend(vec![target.clone()]), spark_batch()).await;
    let jobs = (0..16).map(|number| tokio::spawn(stream(catalog.clone(), number, &DONE)));
    let jobs: Vec<_> = jobs.collect();
    // Until the jobs are under way, there is nothing to get through.
    until("jobs that commit", async || (probe.table().await.chain().len() > 64).then_some(())).await;
    let mut merge = Writer::of(&catalog, TABLE, 5000).retrying(Retry::STOCK);
    let table = merge.load().await;
    let change = Change::Overwrite { removed: vec![target.path.clone()], added: vec![data(&table, &["merged-in"])] };
    let draft = merge.draft(&table, change, spark_batch());
    let ended = merge.see_through(&draft, table).await;
    DONE.store(true, Ordering::SeqCst);
    for job in jobs {
        job.await.unwrap();
    }
    ended.landed();
    let table = probe.table().await;
    table.assert_whole();
    let rows = table.rows();
    assert!(rows.contains_key("merged-in") && !rows.contains_key("merged-away"), "{rows:?}");
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");
}

/// Commits until it is told to stop, and at most 400 times.
async fn stream(catalog: Catalog, number: u64, done: &AtomicBool) {
    let mut writer = Writer::of(&catalog, TABLE, 2000 + number).retrying(Retry::times(50));
    let job = format!("job-{number}");
    for checkpoint in 1..=400 {
        if done.load(Ordering::SeqCst) {
            return;
        }
        let table = writer.load().await;
        let file: DataFile = data(&table, &[&format!("{job}-{checkpoint}")]);
        let draft = writer.draft(&table, Change::FastAppend(vec![file]), flink(&job, "operator", checkpoint));
        writer.see_through(&draft, table).await.landed();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_full_queue_turns_away_is_untouched() {
    let mut server = Frazil::on_sqlite().await;
    let mut probe = Probe::new(&server.catalog()).await;
    server.terminate();
    let held = Held::at("metadata-written@1");
    server.run(&Launch::default().set("commit.queue_max", 2).failing_at(&held.arming())).await;
    let base = probe.table().await;
    let commits: Vec<_> =
        (0..8).map(|number| probe.append_on(&base, &format!("row-{number}"), spark_batch())).collect();
    let send = |number: usize| {
        let (writer, commit) = (probe.writer.clone(), commits[number].clone());
        tokio::spawn(async move { writer.send(&commit).await.unwrap() })
    };
    let first = send(0);
    held.wait().await;
    let others: Vec<_> = (1..8).map(send).collect();
    // Those for whom there is no place are answered while the first one is still held.
    until("requests that are turned away", async || {
        (others.iter().filter(|other| other.is_finished()).count() >= 5).then_some(())
    })
    .await;
    held.release();
    first.await.unwrap().expect(200);
    let mut turned_away = 0;
    for (other, commit) in others.into_iter().zip(&commits[1..]) {
        let told = other.await.unwrap();
        assert!(matches!(told.status, 409 | 429), "{told:?}");
        assert!(!probe.table().await.has(commit.snapshot_id));
        if told.status == 429 {
            assert!(told.retry_after, "{told:?}");
            turned_away += 1;
        }
    }
    assert_eq!(turned_away, 5);
    probe.assert_clean().await;
}

/// While commits wait their turn, loads do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_held_keeps_no_reader_and_no_other_table_waiting() {
    let mut server = Frazil::on_sqlite().await;
    let mut probe = Probe::new(&server.catalog()).await;
    server.catalog().create_table("n", "u", &json!({})).await;
    server.terminate();
    let held = Held::at("metadata-written@1");
    server.run(&Launch::default().failing_at(&held.arming())).await;
    let commit = probe.append("held", spark_batch()).await;
    let sent = {
        let (writer, commit) = (probe.writer.clone(), commit.clone());
        tokio::spawn(async move { writer.send(&commit).await.unwrap() })
    };
    held.wait().await;
    probe.table().await;
    let mut other = Probe::of(&server.catalog(), "/namespaces/n/tables/u");
    tokio::time::timeout(Duration::from_secs(60), other.land_row("row", spark_batch())).await.unwrap();
    held.release();
    sent.await.unwrap().expect(200);
}
