//! Listings that are read from a standby: what they may miss, and who answers when it is behind or gone.

use faults::catalog::Catalog;
use faults::cluster::Cluster;
use faults::database::run;
use faults::frazil::{Frazil, Launch};
use faults::wait::until;
use serde_json::json;

/// A primary, its standby, and a server that uses both.
struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    fn new() -> Self {
        let primary = Cluster::start(&[("wal_level", "replica"), ("max_wal_senders", "4")]);
        let standby = primary.standby("s1");
        Self { primary, standby }
    }

    async fn server(&self, lag_ms: u32) -> Frazil {
        let launch = Launch::on(&self.primary.url("postgres"))
            .set("database.replica_url", self.standby.url("postgres"))
            .set("database.replica_lag_ms", lag_ms);
        Frazil::start(&launch).await
    }

    /// From now on the standby stays as it is.
    async fn hold(&self) {
        run(&self.standby.url("postgres"), "SELECT pg_wal_replay_pause()").await;
    }
}

/// Longer than any test.
const LAG_MAX_MS: u32 = 3_600_000;

/// The namespaces of a listing.
async fn listed(catalog: &Catalog) -> Vec<String> {
    let listing = catalog.get("/namespaces").await.unwrap().expect(200).json();
    let names = listing["namespaces"].as_array().unwrap();
    names.iter().map(|name| name[0].as_str().unwrap().to_owned()).collect()
}

/// How many listings were answered by one of the two.
async fn answered_by(catalog: &Catalog, who: &str) -> u64 {
    let text = catalog.get("/metrics").await.unwrap().text;
    let name = format!("frazil_database_listings_total{{answered_by=\"{who}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

async fn until_the_replica_answers(catalog: &Catalog) {
    let before = answered_by(catalog, "replica").await;
    until("an answer of the replica", async || {
        listed(catalog).await;
        (answered_by(catalog, "replica").await > before).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listings_alone_come_from_the_replica() {
    let pair = Pair::new();
    let server = pair.server(LAG_MAX_MS).await;
    let catalog = server.catalog();
    catalog.create_namespace("n").await;
    catalog.create_table("n", "early", &json!({})).await;
    until("the replica has the table", async || {
        until_the_replica_answers(&catalog).await;
        let tables = catalog.get("/namespaces/n/tables").await.unwrap().expect(200).text;
        tables.contains("early").then_some(())
    })
    .await;
    pair.hold().await;
    catalog.create_namespace("late").await;
    catalog.create_table("n", "late", &json!({})).await;
    until_the_replica_answers(&catalog).await;
    assert_eq!(listed(&catalog).await, ["n"]);
    let tables = catalog.get("/namespaces/n/tables").await.unwrap().expect(200).text;
    assert!(!tables.contains("late"), "{tables}");
    // What is no listing is as new as ever, and what the replica does not find is asked of the primary.
    catalog.get("/namespaces/late").await.unwrap().expect(200);
    catalog.load("/namespaces/n/tables/late").await;
    catalog.get("/namespaces/late/tables").await.unwrap().expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_behind_is_left_alone() {
    let pair = Pair::new();
    let server = pair.server(1).await;
    let catalog = server.catalog();
    pair.hold().await;
    catalog.create_namespace("late").await;
    until("a listing of the primary", async || (listed(&catalog).await == ["late"]).then_some(())).await;
    let before = answered_by(&catalog, "replica").await;
    for _ in 0..3 {
        assert_eq!(listed(&catalog).await, ["late"]);
    }
    assert_eq!(answered_by(&catalog, "replica").await, before);
    assert!(server.log().contains("listings are read from the primary"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_gone_or_hangs_costs_no_listing_and_is_used_again() {
    let mut pair = Pair::new();
    pair.standby.stop();
    let server = pair.server(LAG_MAX_MS).await;
    let catalog = server.catalog();
    catalog.create_namespace("n").await;
    assert_eq!(listed(&catalog).await, ["n"]);
    pair.standby.run();
    until_the_replica_answers(&catalog).await;
    pair.standby.freeze();
    assert_eq!(listed(&catalog).await, ["n"]);
    pair.standby.thaw();
    until_the_replica_answers(&catalog).await;
}
