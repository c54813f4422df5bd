//! The table that everybody works on, as it can be reached: by any replica, if one answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use faults::catalog::{Catalog, Told};
use faults::model::Model;
use faults::random::Random;
use faults::wait::HANGS_AFTER;
use faults::writer::Table;
use serde_json::Value;
use tokio::time::{Instant, sleep};

pub struct World {
    replicas: Vec<Catalog>,
    table: String,
    pub model: Model,
    over: AtomicBool,
}

impl World {
    pub fn of(replicas: Vec<Catalog>, table: &str) -> Arc<Self> {
        Arc::new(Self { replicas, table: table.to_owned(), model: Model::default(), over: AtomicBool::new(false) })
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// The table from any replica that has it; it never goes back.
    pub async fn load(&self, random: &mut Random) -> Table {
        let end = Instant::now() + HANGS_AFTER;
        loop {
            if let Some(table) = self.load_from_one(random).await {
                return table;
            }
            assert!(Instant::now() < end, "no replica loads the table");
            pause(random, 50).await;
        }
    }

    async fn load_from_one(&self, random: &mut Random) -> Option<Table> {
        let at_least = self.model.seen();
        let answer = random.one_of(&self.replicas).get(&self.table).await.ok()?;
        assert!(matches!(answer.status, 200 | 429 | 500 | 503), "{answer:?}");
        let table = (answer.status == 200).then(|| Table::of(answer.json()["metadata"].take(), "main"))?;
        self.model.loaded(at_least, &table);
        Some(table)
    }

    pub async fn post(&self, random: &mut Random, body: &Value) -> Told {
        random.one_of(&self.replicas).post(&self.table, body).await
    }
}

/// Some time up to this; where nobody pauses, nobody else has the machine.
pub async fn pause(random: &mut Random, up_to_ms: u64) {
    sleep(Duration::from_millis(random.below(up_to_ms))).await;
}
