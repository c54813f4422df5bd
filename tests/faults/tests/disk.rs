//! SQLite on a disk that is full or does not flush.

use faults::disk::{Disk, Trouble};
use faults::frazil::{Frazil, Launch};
use faults::writer::identity::spark_batch;

use crate::probe::Probe;

/// What becomes of a commit that meets the trouble; afterwards the disk is sound and, if `dies`, the process another.
async fn commit_in(trouble: Trouble, dies: bool) -> (bool, u16) {
    let disk = Disk::sound();
    let launch = disk.under(Launch::default()).set("commit.deadline_ms", 2_000);
    let mut server = Frazil::start(&launch).await;
    let mut probe = Probe::new(&server.catalog()).await;
    let prepared = probe.append("second", spark_batch()).await;
    disk.fail(trouble);
    let told = probe.send(&prepared).await;
    let status = told.as_ref().unwrap().status;
    assert!(matches!(status, 500 | 503), "{told:?}");
    if dies {
        server.kill();
    }
    disk.mend(trouble);
    if dies {
        server.run(&launch).await;
    }
    (probe.settle(&prepared, told).await, status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_on_a_full_disk_is_certain_once_there_is_room() {
    commit_in(Trouble::Full, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_on_a_full_disk_is_certain_after_the_process_died() {
    commit_in(Trouble::Full, true).await;
}

/// The process reads the old version from then on, although what it wrote is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_was_not_flushed_is_unknown_and_then_certain() {
    let (_, status) = commit_in(Trouble::FlushLog, false).await;
    assert_eq!(status, 500, "the database cannot be asked either");
}

/// Its death brings the commit back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_was_not_flushed_is_certain_after_the_process_died() {
    let (_, status) = commit_in(Trouble::FlushLog, true).await;
    assert_eq!(status, 500, "the database cannot be asked either");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_flushes_nothing_for_a_while_costs_no_commit() {
    let (_, status) = commit_in(Trouble::Flush, true).await;
    assert_eq!(status, 500);
}
