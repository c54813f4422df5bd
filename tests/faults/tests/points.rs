//! The server dies at each point of a commit, with a group under way, and is started again.

use std::collections::BTreeSet;

use faults::catalog::Told;
use faults::database::Database;
use faults::frazil::{Frazil, Launch};
use faults::wait::until;
use faults::writer::Prepared;
use faults::writer::identity::flink;
use tokio::task::JoinHandle;

use crate::held::Held;
use crate::probe::Probe;

/// The members of the group that the server dies with.
const MEMBERS: i64 = 4;

/// What must have become of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Landed,
    /// All of it one or the other.
    Either,
}

async fn on_sqlite(point: &str, fate: Fate) {
    dies_at(point, fate, &Launch::default()).await;
}

async fn on_postgres(point: &str, fate: Fate) {
    let database = Database::create().await;
    dies_at(point, fate, &Launch::on(&database.url())).await;
}

/// Each member is a job with a checkpoint behind it, so that it can be rebased over the others.
fn job(member: i64, checkpoint: i64) -> Vec<(String, String)> {
    flink(&format!("job-{member}"), "operator", checkpoint)
}

async fn dies_at(point: &str, fate: Fate, launch: &Launch) {
    let mut server = Frazil::start(launch).await;
    let mut probe = Probe::new(&server.catalog()).await;
    for member in 0..=MEMBERS {
        probe.land_row(&format!("before-{member}"), job(member, 1)).await;
    }
    server.terminate();
    // The first commit goes alone, and is held until the group waits behind it; the group is the point's second time.
    let held = Held::at("metadata-written@1");
    server.run(&launch.clone().failing_at(&format!("{},{point}=kill@2", held.arming()))).await;
    let base = probe.table().await;
    let commits: Vec<Prepared> =
        (0..=MEMBERS).map(|member| probe.append_on(&base, &format!("after-{member}"), job(member, 2))).collect();
    let send = |commit: &Prepared| {
        let (writer, commit) = (probe.writer.clone(), commit.clone());
        tokio::spawn(async move { writer.send(&commit).await })
    };
    let mut sent = vec![send(&commits[0])];
    held.wait().await;
    sent.extend(commits[1..].iter().map(send));
    waiting(&server, MEMBERS).await;
    held.release();
    let mut told: Vec<Told> = Vec::new();
    for answer in sent {
        told.push(answer.await.unwrap());
    }
    assert_eq!(server.wait_for_end(), 128 + 6, "aborted at {point}");
    server.run(launch).await;
    let table = probe.table().await;
    table.assert_whole();
    let landed: BTreeSet<bool> = commits[1..].iter().map(|commit| table.has(commit.snapshot_id)).collect();
    assert_eq!(landed.len(), 1, "half of a group landed");
    let landed = landed.contains(&true);
    assert!(fate == Fate::Either || landed == (fate == Fate::Landed), "{point}: landed is {landed}");
    probe.excuse_leftovers();
    for (commit, told) in commits.iter().zip(told) {
        probe.settle(commit, told).await;
    }
    let rows = probe.table().await.rows();
    assert_eq!(rows.len() as i64, 1 + 2 * (MEMBERS + 1), "{rows:?}");
    assert!(rows.values().all(|count| *count == 1), "{rows:?}");
}

/// Until that many requests wait in the server's queues.
async fn waiting(server: &Frazil, requests: i64) {
    let catalog = server.catalog();
    until("requests that wait", async || (catalog.waiting().await? >= requests as f64).then_some(())).await;
}

macro_rules! dies_at {
    ($($name:ident: $point:literal, $fate:expr;)+) => {
        mod sqlite {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::on_sqlite($point, $fate).await;
            }
        )+}
        mod postgres {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::on_postgres($point, $fate).await;
            }
        )+}
    };
}

dies_at! {
    a_group_that_was_taken_is_lost: "commit-taken", super::Fate::Lost;
    a_group_whose_lists_are_written_is_lost: "lists-written", super::Fate::Lost;
    a_group_whose_metadata_is_written_is_lost: "metadata-written", super::Fate::Lost;
    a_group_whose_swap_is_sent_is_one_or_the_other: "swap-sent", super::Fate::Either;
    a_group_whose_swap_is_applied_has_landed: "swap-applied", super::Fate::Landed;
    a_group_that_is_published_has_landed: "published", super::Fate::Landed;
    a_group_of_which_one_is_answered_has_landed: "answered", super::Fate::Landed;
}

/// A commit that is held once its files are written, and the task that sends it.
struct UnderWay {
    server: Frazil,
    probe: Probe,
    commit: Prepared,
    held: Held,
    sent: JoinHandle<Told>,
}

async fn commit_under_way() -> UnderWay {
    let mut server = Frazil::on_sqlite().await;
    let mut probe = Probe::new(&server.catalog()).await;
    server.terminate();
    let held = Held::at("metadata-written@1");
    server.run(&Launch::default().failing_at(&held.arming())).await;
    let commit = probe.append("second", job(0, 1)).await;
    let sent = {
        let (writer, commit) = (probe.writer.clone(), commit.clone());
        tokio::spawn(async move { writer.send(&commit).await })
    };
    held.wait().await;
    UnderWay { server, probe, commit, held, sent }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_told_to_end_finishes_the_commit_under_way() {
    let UnderWay { mut server, mut probe, commit, held, sent } = commit_under_way().await;
    server.signal("TERM");
    held.release();
    let told = sent.await.unwrap();
    assert_eq!(told.as_ref().unwrap().status, 200);
    assert_eq!(server.wait_for_end(), 0);
    server.run(&Launch::default()).await;
    assert!(probe.settle(&commit, told).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_hangs_up_does_not_cancel_a_commit_whose_files_are_begun() {
    let UnderWay { server: _server, mut probe, commit, held, sent } = commit_under_way().await;
    sent.abort();
    held.release();
    until("the commit lands", async || probe.table().await.has(commit.snapshot_id).then_some(())).await;
    probe.send_again(&commit).await;
    probe.assert_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_for_a_commit_that_fails_is_deleted() {
    let mut server = Frazil::on_sqlite().await;
    let mut probe = Probe::new(&server.catalog()).await;
    server.terminate();
    server.run(&Launch::default().failing_at("metadata-written=error@1")).await;
    let commit = probe.append("second", job(0, 1)).await;
    let told = probe.send(&commit).await;
    assert_eq!(told.as_ref().unwrap().status, 503, "{told:?}");
    assert!(!probe.settle(&commit, told).await);
}
