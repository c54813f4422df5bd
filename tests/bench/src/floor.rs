//! What no catalog can do without: one durable PUT of the metadata file, and one guarded UPDATE in a transaction of its own.

use std::sync::Arc;
use std::time::Duration;

use faults::writer::Object;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{Connection, Executor};
use tokio::time::Instant;
use uuid::Uuid;

use crate::measure::Samples;
use crate::report::{Result, Row};
use crate::store::Store;

const MAKE_TABLE: &str = "CREATE TABLE IF NOT EXISTS bench_floor (\
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, metadata_location text NOT NULL, version bigint NOT NULL)";
const SWAP: &str =
    "UPDATE bench_floor SET metadata_location = $1, version = version + 1 WHERE id = $2 AND version = $3";

#[derive(Debug)]
pub struct Floor {
    store: Arc<Store>,
    folder: String,
    pointer: Option<Pointer>,
    pub put: Samples,
    pub update: Samples,
    /// Both, one after the other.
    pub both: Samples,
}

/// A row that is swapped from version to version.
#[derive(Debug)]
struct Pointer {
    connection: PgConnection,
    id: i64,
    version: i64,
}

impl Floor {
    /// Without a database there is no UPDATE in it.
    pub async fn new(store: &Arc<Store>, root: &str, postgres: Option<&str>) -> Result<Self> {
        let pointer = match postgres {
            Some(url) => Some(Pointer::make(url).await?),
            None => None,
        };
        Ok(Self {
            store: store.clone(),
            folder: format!("{}/bench-floor-{}", root.trim_end_matches('/'), Uuid::now_v7()),
            pointer,
            put: Samples::default(),
            update: Samples::default(),
            both: Samples::default(),
        })
    }

    /// One turn with a file of this size.
    pub async fn measure(&mut self, bytes: u64) -> Result<()> {
        let location = format!("{}/{}.metadata.json", self.folder, Uuid::now_v7());
        let object = Object { location: location.clone(), bytes: noise(bytes as usize) };
        let start = Instant::now();
        self.store.put_durably(object).await?;
        let put = start.elapsed();
        let update = match &mut self.pointer {
            Some(pointer) => pointer.swap(&location).await?,
            None => Duration::ZERO,
        };
        self.put.add(put);
        self.update.add(update);
        self.both.add(put + update);
        self.store.spare(&location);
        Ok(())
    }

    pub fn row(&self) -> Row {
        let row = Row::default().percentiles("floor_put_", &self.put);
        match self.pointer {
            Some(_) => row.percentiles("floor_update_", &self.update).percentiles("floor_", &self.both),
            None => row,
        }
    }

    /// Of both, where there is a database.
    pub fn p50_ms(&self) -> Option<f64> {
        self.pointer.as_ref().and_then(|_| self.both.percentile_ms(50.0))
    }
}

impl Pointer {
    async fn make(url: &str) -> Result<Self> {
        let pool = PgPoolOptions::new().max_connections(1).connect(url).await?;
        let mut connection = pool.acquire().await?.detach();
        connection.ping().await?;
        connection.execute(MAKE_TABLE).await?;
        let insert =
            sqlx::query_scalar("INSERT INTO bench_floor (metadata_location, version) VALUES ('', 0) RETURNING id");
        let id = insert.fetch_one(&mut connection).await?;
        Ok(Self { connection, id, version: 0 })
    }

    /// One statement, and with it one transaction.
    async fn swap(&mut self, location: &str) -> Result<Duration> {
        let start = Instant::now();
        let swap = sqlx::query(SWAP).bind(location).bind(self.id).bind(self.version);
        let done = swap.execute(&mut self.connection).await?;
        let took = start.elapsed();
        if done.rows_affected() != 1 {
            return Err("the floor's row was changed by somebody else".into());
        }
        self.version += 1;
        Ok(took)
    }
}

/// Text that does not compress to nothing.
fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b'0' + (at.wrapping_mul(2_654_435_761) >> 7) as u8 % 64).collect()
}
