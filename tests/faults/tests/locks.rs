//! A peer that vanishes while it holds the row of a table.

use faults::database::{Database, through};
use faults::frazil::{Frazil, Launch};
use faults::proxy::postgres::{Fault, Place};
use faults::proxy::{Gate, Proxy};
use faults::wait::until;
use faults::writer::Prepared;
use faults::writer::identity::spark_batch;
use serde_json::{Value, json};

use crate::probe::{Probe, TABLE};

fn transaction_of_two(first: &Prepared, second: &Prepared) -> Value {
    let part = |prepared: &Prepared, name: &str| {
        let mut part = prepared.body.clone();
        part["identifier"] = json!({"namespace": ["n"], "name": name});
        part
    };
    json!({"table-changes": [part(first, "t"), part(second, "u")]})
}

/// The database ends the peer's session by the time-outs that its role has; nobody has to help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_row_lock_of_a_peer_that_vanished_ends_by_itself() {
    let database = Database::create().await;
    let proxy = Proxy::postgres(&database.address()).await;
    let peer = Frazil::start(&Launch::on(&through(&database.url(), &proxy.address()))).await;
    let mut server = Frazil::idle(&peer.data);
    server.run(&Launch::on(&database.url())).await;
    let mut probe = Probe::new(&server.catalog()).await;
    server.catalog().create_table("n", "u", &json!({})).await;
    let mut other = Probe::of(&server.catalog(), "/namespaces/n/tables/u");
    let base = probe.table().await;
    let (first, second) = (probe.append("peer", spark_batch()).await, other.append("peer", spark_batch()).await);
    // All of the transaction arrives but its COMMIT: its rows are locked, and the peer is gone.
    let gate = Gate::closed();
    proxy.plan(Fault::at_commit_of("UPDATE tabular", Place::Late(gate.clone())));
    let (peers, body) = (peer.catalog(), transaction_of_two(&first, &second));
    let told_to_peer = tokio::spawn(async move { peers.post("/transactions/commit", &body).await });
    proxy.wait_for(1).await;
    peer.signal("STOP");
    let prepared = probe.append_on(&base, "mine", spark_batch());
    let told = until("the lock ends", async || {
        let told = probe.writer.send(&prepared).await.unwrap();
        // Certainly not applied, and to be tried again: until the lock ends.
        assert!(matches!(told.status, 200 | 503), "{told:?}");
        (told.status == 200).then_some(told)
    })
    .await;
    // What the peer still had to say comes too late for everybody.
    gate.open();
    peer.signal("CONT");
    let told_to_peer = told_to_peer.await.unwrap().unwrap();
    assert!(matches!(told_to_peer.status, 409 | 503), "{told_to_peer:?}");
    assert!(probe.settle(&prepared, Ok(told)).await);
    let table = server.catalog().load(TABLE).await;
    assert!(table["snapshots"].as_array().unwrap().iter().all(|known| known["snapshot-id"] != first.snapshot_id));
}
