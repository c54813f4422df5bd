//! The connection to PostgreSQL ends before, inside and after the message that commits.

use faults::catalog::Told;
use faults::database::{Database, through};
use faults::frazil::{Frazil, Launch};
use faults::proxy::postgres::{Fault, Place};
use faults::proxy::{Gate, Proxy};
use faults::writer::Prepared;
use faults::writer::identity::spark_batch;
use serde_json::{Value, json};

use crate::probe::{Probe, TABLE};

/// In the statement that moves one pointer and commits by itself.
pub const SWAP: &str = "set_config('synchronous_commit'";
/// In a transaction that moves several.
const MOVES: &str = "UPDATE tabular";

const OTHER: &str = "/namespaces/n/tables/u";

/// A server whose connection to the database can be cut.
struct Cut {
    server: Frazil,
    proxy: Proxy<Fault>,
    _database: Database,
}

impl Cut {
    async fn new() -> Self {
        let database = Database::create().await;
        let proxy = Proxy::postgres(&database.address()).await;
        let launch = Launch::on(&through(&database.url(), &proxy.address()));
        Self { server: Frazil::start(&launch).await, proxy, _database: database }
    }

    /// What becomes of a commit of one table that meets this.
    async fn commit(place: Place) -> Outcome {
        let cut = Self::new().await;
        let mut probe = Probe::new(&cut.server.catalog()).await;
        let prepared = probe.append("second", spark_batch()).await;
        cut.proxy.plan(Fault::at(SWAP, place));
        let told = probe.send(&prepared).await;
        assert_eq!(cut.proxy.happened(), 1, "the swap came by: {told:?}");
        let status = told.as_ref().unwrap().status;
        Outcome { landed: probe.settle(&prepared, told).await, status }
    }

    /// What becomes of a commit of two tables that meets this at its COMMIT.
    async fn transaction(place: Place) -> Outcome {
        let cut = Self::new().await;
        let catalog = cut.server.catalog();
        let mut probe = Probe::new(&catalog).await;
        catalog.create_table("n", "u", &json!({})).await;
        let mut other = Probe::of(&catalog, OTHER);
        let parts = [probe.append("second", spark_batch()).await, other.append("second", spark_batch()).await];
        cut.proxy.plan(Fault::at_commit_of(MOVES, place));
        let told = catalog.post("/transactions/commit", &transaction(&parts)).await;
        assert_eq!(cut.proxy.happened(), 1, "the COMMIT came by: {told:?}");
        let [first, second] = parts;
        let both = other.table().await.has(second.snapshot_id);
        let status = told.as_ref().unwrap().status;
        let landed = probe.settle(&first, as_one(told)).await;
        assert_eq!(landed, both, "half a transaction landed");
        Outcome { landed, status }
    }
}

/// 204 says of a transaction what 200 says of a commit.
fn as_one(told: Told) -> Told {
    told.map(|answer| match answer.status {
        204 => faults::catalog::Answer { status: 200, ..answer },
        _ => answer,
    })
}

fn transaction(parts: &[Prepared; 2]) -> Value {
    let names = ["t", "u"];
    let changes = parts.iter().zip(names).map(|(part, name)| {
        let mut change = part.body.clone();
        change["identifier"] = json!({"namespace": ["n"], "name": name});
        change
    });
    json!({"table-changes": changes.collect::<Vec<_>>()})
}

#[derive(Debug)]
struct Outcome {
    landed: bool,
    status: u16,
}

impl Outcome {
    /// It was carried out, and the answer says so.
    #[track_caller]
    fn is_applied(&self) {
        assert!(self.landed && matches!(self.status, 200 | 204), "{self:?}");
    }

    /// The answer is not that of something unknown: the database could be asked.
    #[track_caller]
    fn is_certain(&self) {
        assert_ne!(self.status, 500, "{self:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_of_which_nothing_was_sent_is_not_taken_for_applied() {
    Cut::commit(Place::BeforeStatement).await.is_certain();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_that_was_sent_in_part_is_not_taken_for_applied() {
    Cut::commit(Place::InsideStatement).await.is_certain();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_that_was_sent_and_not_answered_is_applied() {
    Cut::commit(Place::AfterSync).await.is_applied();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_whose_end_is_not_told_is_applied() {
    Cut::commit(Place::BeforeCommandComplete).await.is_applied();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_after_which_the_database_is_not_said_to_be_ready_is_applied() {
    Cut::commit(Place::BeforeReadyForQuery).await.is_applied();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_whose_commit_was_not_sent_is_not_taken_for_applied() {
    Cut::transaction(Place::BeforeStatement).await.is_certain();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_whose_commit_was_sent_in_part_is_not_taken_for_applied() {
    Cut::transaction(Place::InsideStatement).await.is_certain();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_whose_commit_was_not_answered_is_applied() {
    Cut::transaction(Place::AfterSync).await.is_applied();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_after_which_the_database_is_not_said_to_be_ready_is_applied() {
    Cut::transaction(Place::BeforeReadyForQuery).await.is_applied();
}

/// The resolver is first: what arrives after it finds its attempt taken, and changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_that_arrives_after_it_was_given_up_changes_nothing() {
    let cut = Cut::new().await;
    let mut probe = Probe::new(&cut.server.catalog()).await;
    let (gate, prepared) = (Gate::closed(), probe.append("second", spark_batch()).await);
    cut.proxy.plan(Fault::at(SWAP, Place::Late(gate.clone())));
    let told = probe.send(&prepared).await;
    let before = probe.table().await;
    gate.open();
    let answered = told.as_ref().unwrap().status;
    assert!(matches!(answered, 200 | 503), "{told:?}");
    assert_eq!(probe.settle(&prepared, told).await, answered == 200);
    let after = probe.table().await;
    let moved = after.last_sequence_number() - before.last_sequence_number();
    assert_eq!(moved, i64::from(answered != 200), "the late swap changed the table");
}

/// The proxy can tell the swap from everything else that a server says to its database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_swap_passes() {
    let cut = Cut::new().await;
    let probe = Probe::new(&cut.server.catalog()).await;
    cut.proxy.plan(Fault::at(SWAP, Place::BeforeStatement));
    probe.writer.load().await;
    cut.server.catalog().get("/namespaces").await.unwrap().expect(200);
    assert_eq!(cut.proxy.happened(), 0);
    assert_eq!(cut.server.catalog().get(TABLE).await.unwrap().status, 200);
}
