//! Requests and answers that are lost, late, cut or repeated on their way.

use faults::catalog::Catalog;
use faults::frazil::Frazil;
use faults::proxy::http::{Fault, What};
use faults::proxy::{Gate, Proxy};
use faults::wait::until;
use faults::writer::identity::{Keys, flink, spark_batch};
use faults::writer::{Change, Retry, Table, Writer};
use serde_json::json;

use crate::probe::{Probe, TABLE, data};

/// A server, the way to it that can be spoiled, and a writer that goes this way.
struct Way {
    server: Frazil,
    proxy: Proxy<Fault>,
    probe: Probe,
}

impl Way {
    async fn new() -> Self {
        let server = Frazil::on_sqlite().await;
        let probe = Probe::new(&server.catalog()).await;
        let proxy = Proxy::http(&server.address()).await;
        Self { server, proxy, probe }
    }

    /// A client that goes through the proxy.
    fn catalog(&self) -> Catalog {
        Catalog::at(&self.proxy.address())
    }

    /// What befalls the next commit.
    fn befalls(&self, what: What) {
        self.proxy.plan(Fault::of(&["POST", TABLE], what));
    }

    async fn rows_are(&self, keys: &[&str]) {
        let table = self.probe.table().await;
        table.assert_whole();
        let rows = table.rows();
        assert_eq!(rows.keys().collect::<Vec<_>>(), keys);
        assert!(rows.values().all(|count| *count == 1), "{rows:?}");
    }
}

fn job(checkpoint: i64) -> Keys {
    flink("job", "operator", checkpoint)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_cut_anywhere_changes_nothing() {
    let mut way = Way::new().await;
    let commit = way.probe.append("row", job(1)).await;
    let length = commit.body.to_string().len();
    for bytes in [0, 1, 40, length / 2, length] {
        way.befalls(What::CutRequest(bytes));
        way.catalog().post(TABLE, &commit.body).await.unwrap_err();
        assert!(!way.probe.table().await.has(commit.snapshot_id));
    }
    way.rows_are(&["first"]).await;
    way.catalog().post(TABLE, &commit.body).await.unwrap().expect(200);
    way.rows_are(&["first", "row"]).await;
}

/// The client does not look; the process that follows it commits the checkpoint again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_whose_answer_was_lost_is_there_once_after_a_restart() {
    for what in [What::LoseAnswer, What::CutAnswer(20)] {
        let mut way = Way::new().await;
        let base = way.probe.table().await;
        let files = vec![data(&base, &["row"])];
        let commit = way.probe.change_on(&base, Change::FastAppend(files.clone()), job(1));
        way.befalls(what);
        way.catalog().post(TABLE, &commit.body).await.unwrap_err();
        until("the commit lands", async || way.probe.table().await.has(commit.snapshot_id).then_some(())).await;
        let again = way.probe.change_on(&way.probe.table().await, Change::FastAppend(files), job(1));
        let answer = way.probe.send(&again).await.unwrap().expect(200);
        assert_eq!(answer.duplicate_of, Some(commit.snapshot_id));
        way.rows_are(&["first", "row"]).await;
    }
}

/// The first process is dead when its request arrives; its successor has committed the same files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_arrives_after_its_successor_adds_nothing() {
    let mut way = Way::new().await;
    let base = way.probe.table().await;
    let files = vec![data(&base, &["row"])];
    let late = way.probe.change_on(&base, Change::FastAppend(files.clone()), job(1));
    let gate = Gate::closed();
    way.befalls(What::Hold(gate.clone()));
    let sent = {
        let (catalog, body) = (way.catalog(), late.body.clone());
        tokio::spawn(async move { catalog.post(TABLE, &body).await })
    };
    way.proxy.wait_for(1).await;
    let successor = way.probe.change_on(&base, Change::FastAppend(files), job(1));
    way.probe.send(&successor).await.unwrap().expect(200);
    gate.open();
    let answer = sent.await.unwrap().unwrap().expect(200);
    assert_eq!(answer.duplicate_of, Some(successor.snapshot_id));
    way.rows_are(&["first", "row"]).await;
}

/// Something in between sends it again, and the client hears the second answer alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_sent_twice_is_there_once_and_told_so() {
    let mut way = Way::new().await;
    for keys in [job(1), spark_batch()] {
        let commit = way.probe.append("row", keys.clone()).await;
        way.befalls(What::Repeat);
        way.catalog().post(TABLE, &commit.body).await.unwrap().expect(200);
        let table = way.probe.table().await;
        table.assert_whole();
        assert_eq!(table.chain().iter().filter(|id| **id == commit.snapshot_id).count(), 1);
    }
}

/// The answer was lost, others went on, and the same request comes again: nobody's commit falls off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_comes_again_over_other_commits_leaves_them_there() {
    let mut way = Way::new().await;
    let commit = way.probe.append("mine", spark_batch()).await;
    way.befalls(What::LoseAnswer);
    way.catalog().post(TABLE, &commit.body).await.unwrap_err();
    until("the commit lands", async || way.probe.table().await.has(commit.snapshot_id).then_some(())).await;
    let on_top = way.probe.land_row("on-top", spark_batch()).await;
    let answer = way.catalog().post(TABLE, &commit.body).await.unwrap().expect(200);
    assert_eq!(answer.json()["metadata"]["current-snapshot-id"], on_top.snapshot_id);
    way.rows_are(&["first", "mine", "on-top"]).await;
}

/// The stock client's own retries come over a lossy way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stock_writer_gets_through_conflicts_and_cleans_up_after_itself() {
    let mut way = Way::new().await;
    let mut writer = Writer::of(&way.catalog(), TABLE, 4_711).retrying(Retry::STOCK);
    let table = writer.load().await;
    way.probe.land_row("other", spark_batch()).await;
    let draft = writer.draft(&table, Change::FastAppend(vec![data(&table, &["mine"])]), spark_batch());
    let ended = writer.see_through(&draft, table).await;
    assert_eq!(ended.attempts(), 2);
    ended.landed();
    way.rows_are(&["first", "mine", "other"]).await;
}

/// One sink, several tables and branches, one checkpoint for all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_goes_to_several_tables_and_branches() {
    let way = Way::new().await;
    let catalog = way.server.catalog();
    for name in ["a", "b", "c"] {
        catalog.create_table("n", name, &json!({})).await;
        let path = format!("/namespaces/n/tables/{name}");
        let mut probe = Probe::of(&catalog, &path);
        let first = probe.land_row("before", spark_batch()).await;
        let branch =
            json!({"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": first.snapshot_id});
        let body = json!({"requirements": [], "updates": [branch]});
        catalog.post(&path, &body).await.unwrap().expect(200);
        for branch in ["main", "b"] {
            let table = Table::of(probe.table().await.metadata, branch);
            let files = vec![data(&table, &["row"])];
            for is_again in [false, true] {
                let table = Table::of(probe.table().await.metadata, branch);
                let commit = probe.change_on(&table, Change::FastAppend(files.clone()), job(1));
                let answer = probe.send(&commit).await.unwrap().expect(200);
                assert_eq!(answer.duplicate_of.is_some(), is_again);
            }
            let table = Table::of(probe.table().await.metadata, branch);
            assert_eq!(table.rows().keys().collect::<Vec<_>>(), ["before", "row"]);
        }
    }
}
