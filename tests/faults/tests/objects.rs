//! Object storage that is slow, overloaded, closed or gone, under a warehouse on S3.

use std::time::Duration;

use faults::catalog::Catalog;
use faults::frazil::{Frazil, Launch};
use faults::proxy::http::{Fault, What};
use faults::proxy::{Gate, Proxy};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::probe::Probe;

const LAKE: &str = "/v1/lake/namespaces/n/tables";
const TABLE: &str = "/v1/lake/namespaces/n/tables/t";

/// A server with the warehouse `lake` on the S3 store that the runner has started, and the way to the store.
pub struct Lake {
    pub server: Frazil,
    pub store: Proxy<Fault>,
    launch: Launch,
}

/// The settings of the store. A missing one is a failure: a test that does not run says nothing.
fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `tests/run --only faults`"))
}

impl Lake {
    pub async fn new(launch: Launch) -> Self {
        let (endpoint, filer) = (setting("S3_ENDPOINT"), setting("S3_FILER"));
        let made = reqwest::Client::new().post(format!("{filer}/buckets/faults/")).send().await.unwrap();
        assert!(made.status().is_success() || made.status() == 409, "{}", made.status());
        let store = Proxy::http(endpoint.trim_start_matches("http://")).await;
        let launch = launch.set("secrets.key", "ab".repeat(32));
        let server = Frazil::start(&launch).await;
        let lake = Self { server, store, launch };
        lake.make_warehouse().await;
        lake
    }

    async fn make_warehouse(&self) {
        let storage = json!({"type": "s3", "endpoint": format!("http://{}", self.store.address()), "path-style": true,
            "region": setting("S3_REGION"), "access-key-id": setting("S3_ACCESS_KEY_ID"),
            "secret-access-key": setting("S3_SECRET_ACCESS_KEY")});
        let location = format!("s3://faults/{}", uuid::Uuid::now_v7());
        let warehouse = json!({"name": "lake", "location": location, "storage": storage});
        let catalog = self.catalog();
        catalog.post("/management/v1/warehouses", &warehouse).await.unwrap().expect(201);
        catalog.post("/v1/lake/namespaces", &json!({"namespace": ["n"]})).await.unwrap().expect(200);
        catalog.post(LAKE, &table("t")).await.unwrap().expect(200);
    }

    pub fn catalog(&self) -> Catalog {
        self.server.catalog()
    }

    /// With nothing in memory.
    async fn restart(&mut self) {
        self.server.terminate();
        self.server.run(&self.launch).await;
    }

    /// An append of this snapshot. Nobody reads its list, so there is none.
    async fn append(&self, snapshot_id: i64) -> Value {
        append(&self.catalog().load(TABLE).await, snapshot_id)
    }

    /// What a commit and then a read without memory are answered while the store misbehaves; afterwards all is well.
    async fn misbehaving(fault: What) -> (u16, u16) {
        let mut lake = Self::new(Launch::default()).await;
        let commit = lake.append(1).await;
        lake.store.plan_for_good(Fault::of(&[], fault));
        let told = lake.catalog().post(TABLE, &commit).await.unwrap();
        lake.restart().await;
        let loaded = lake.catalog().get(TABLE).await.unwrap();
        for answer in [&told, &loaded] {
            assert!(answer.status != 503 || answer.retry_after, "{answer:?}");
        }
        lake.store.behave();
        let table = lake.catalog().load(TABLE).await;
        let landed = table["current-snapshot-id"] == 1;
        assert_eq!(landed, told.status == 200, "{told:?}");
        lake.catalog().post(TABLE, &commit).await.unwrap().expect(200);
        assert_eq!(lake.catalog().load(TABLE).await["current-snapshot-id"], 1);
        (told.status, loaded.status)
    }
}

pub fn table(name: &str) -> Value {
    let schema = json!({"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
    ]});
    json!({"name": name, "schema": schema})
}

pub fn append(metadata: &Value, snapshot_id: i64) -> Value {
    let parent = &metadata["refs"]["main"]["snapshot-id"];
    let location = metadata["location"].as_str().unwrap();
    let mut snapshot = json!({
        "snapshot-id": snapshot_id, "sequence-number": metadata["last-sequence-number"].as_i64().unwrap() + 1,
        "timestamp-ms": metadata["last-updated-ms"].as_i64().unwrap() + 1, "schema-id": 0,
        "manifest-list": format!("{location}/metadata/snap-{snapshot_id}.avro"), "summary": {"operation": "append"},
    });
    if !parent.is_null() {
        snapshot["parent-snapshot-id"] = parent.clone();
    }
    json!({
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id},
        ],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_slow_takes_a_commit_all_the_same() {
    assert_eq!(Lake::misbehaving(What::Delay(Duration::from_secs(2))).await, (200, 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_overloaded_takes_nothing_and_says_so() {
    assert_eq!(Lake::misbehaving(What::Refuse(503, "SlowDown")).await, (503, 503));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_denies_everything_is_told_as_such() {
    assert_eq!(Lake::misbehaving(What::Refuse(403, "AccessDenied")).await, (403, 403));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_gone_takes_nothing_and_says_so() {
    assert_eq!(Lake::misbehaving(What::LoseRequest).await, (503, 503));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_answers_nothing_is_not_waited_for() {
    let never = Gate::closed();
    assert_eq!(Lake::misbehaving(What::Hold(never)).await, (503, 503));
}

/// The second try of the write meets what the first one wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_was_lost_is_not_lost() {
    let lake = Lake::new(Launch::default()).await;
    let commit = lake.append(1).await;
    lake.store.plan(Fault::of(&["PUT"], What::LoseAnswer));
    lake.catalog().post(TABLE, &commit).await.unwrap().expect(200);
    assert_eq!(lake.store.happened(), 1);
    assert_eq!(lake.catalog().load(TABLE).await["current-snapshot-id"], 1);
}

/// 200 requests at a warehouse whose store hangs, on a server with places for 64: another warehouse is served meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warehouse_whose_store_hangs_slows_no_other_one() {
    let lake = Lake::new(Launch::default().set("limits.concurrent_requests", 64)).await;
    let catalog = lake.catalog();
    let mut other = Probe::new(&catalog).await;
    let (commit, never) = (lake.append(1).await, Gate::closed());
    lake.store.plan_for_good(Fault::of(&[], What::Hold(never)));
    let at_the_lost_one = (0..200).map(|number| {
        let (catalog, commit) = (catalog.clone(), commit.clone());
        async move {
            match number % 2 {
                0 => catalog.post(TABLE, &commit).await.unwrap(),
                _ => catalog.post(LAKE, &table(&format!("u{number}"))).await.unwrap(),
            }
        }
    });
    let stuck = tokio::spawn(join_all(at_the_lost_one));
    // Some hang in the store, and those for whom the warehouse has no place left are turned away.
    lake.store.wait_for(8).await;
    for number in 0..30 {
        other.land_row(&format!("row-{number}"), faults::writer::identity::spark_batch()).await;
    }
    assert!(!stuck.is_finished(), "the other warehouse was served only when all of this one's requests had ended");
    let told: Vec<u16> = stuck.await.unwrap().iter().map(|answer| answer.status).collect();
    assert!(told.iter().all(|status| matches!(status, 429 | 503)), "{told:?}");
    assert!(told.contains(&429) && told.contains(&503), "{told:?}");
    lake.store.behave();
    catalog.post(TABLE, &commit).await.unwrap().expect(200);
}
