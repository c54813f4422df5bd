//! Idempotency-Keys that race.

use faults::database::Database;
use faults::frazil::{Frazil, Launch};
use faults::writer::identity::spark_batch;
use uuid::Uuid;

use crate::held::Held;
use crate::probe::{Probe, TABLE};

/// Two replicas take the same request; the one that loses at the database gives the winner's answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_request_that_two_replicas_take_both_tell_the_same_end() {
    let database = Database::create().await;
    let launch = Launch::on(&database.url());
    let mut winner = Frazil::start(&launch).await;
    let mut probe = Probe::new(&winner.catalog()).await;
    let held = Held::at("metadata-written@1");
    let mut loser = Frazil::idle(&winner.data);
    loser.run(&launch.failing_at(&held.arming())).await;
    let commit = probe.append("once", spark_batch()).await;
    let key = Uuid::now_v7().to_string();
    let late = {
        let (catalog, key, body) = (loser.catalog(), key.clone(), commit.body.clone());
        tokio::spawn(async move { catalog.post_with_key(TABLE, &key, &body).await.unwrap() })
    };
    held.wait().await;
    let first = winner.catalog().post_with_key(TABLE, &key, &commit.body).await.unwrap().expect(200);
    held.release();
    let second = late.await.unwrap().expect(200);
    assert_eq!(first.json()["metadata-location"], second.json()["metadata-location"]);
    probe.table().await.assert_whole();
    probe.assert_clean().await;
    winner.terminate();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_comes_with_another_body_is_refused_loudly() {
    let server = Frazil::on_sqlite().await;
    let mut probe = Probe::new(&server.catalog()).await;
    let base = probe.table().await;
    let [one, other] = ["one", "other"].map(|key| probe.append_on(&base, key, spark_batch()));
    let key = Uuid::now_v7().to_string();
    server.catalog().post_with_key(TABLE, &key, &one.body).await.unwrap().expect(200);
    server.catalog().post_with_key(TABLE, &key, &other.body).await.unwrap().expect(422);
}
