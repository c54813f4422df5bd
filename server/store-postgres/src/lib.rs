//! The catalog's state kept in PostgreSQL, 15 and later.

use std::sync::Arc;

use catalog::store::{StoreError, sent};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, PgPool};

mod columns;
mod commit_log;
mod commits;
mod error;
mod events;
mod examine;
mod hosts;
mod idempotency;
mod lineage;
mod migrate;
mod namespaces;
mod pool;
mod pooler;
mod pools;
mod principals;
mod purge;
mod replica;
mod sessions;
mod tabulars;
#[cfg(test)]
mod tests;
mod transfer;
mod warehouses;

pub use error::OpenError;
pub use examine::examine;
pub use migrate::MIGRATOR;
pub use sessions::PostgresOptions;
pub use transfer::PostgresTransfer;

use error::{aborted, unreachable};
use hosts::Hosts;
use pool::{Lent, Pool, in_time};
use replica::Replica;
use sessions::{hosts, parsed, session};

/// Begins a transaction of several statements, durable on a synchronous standby too when its COMMIT is acknowledged.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = on";

/// All ports of the catalog over one pool; clones share it.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: Pool,
    replica: Option<Arc<Replica>>,
}

impl PostgresStore {
    /// Connects, of several servers to the one that takes writes, and brings the schema up to date; of several processes
    /// that do so at once, one does and the others wait.
    pub async fn connect(options: &PostgresOptions) -> Result<Self, OpenError> {
        let (hosts, primary) = reached(options).await?;
        migrate::migrate(&primary).await?;
        Self::opened(options, hosts, primary).await
    }

    /// As [`Self::connect`], over a database whose schema somebody else brings up to date; any other is refused.
    pub async fn open(options: &PostgresOptions) -> Result<Self, OpenError> {
        let (hosts, primary) = reached(options).await?;
        Self::opened(options, hosts, primary).await
    }

    async fn opened(options: &PostgresOptions, hosts: Hosts, primary: PgConnectOptions) -> Result<Self, OpenError> {
        migrate::check(&primary).await?;
        let hosts = hosts.each(|host| session(host, options.statement_timeout));
        let pool = Pool::open(hosts, sessions::pool(options.connections, options.wait)).await.map_err(unreachable)?;
        sessions::check_settings(&pool.now()).await?;
        Ok(Self { pool, replica: standby(options)?.map(Arc::new) })
    }

    /// Over a pool whose database has the schema of [`MIGRATOR`].
    pub fn over(pool: PgPool) -> Self {
        Self { pool: Pool::over(pool), replica: None }
    }

    /// Does the database answer?
    pub async fn ping(&self) -> Result<(), StoreError> {
        let mut conn = self.acquire().await?;
        in_time(sent("ping", &mut *conn).ping()).await.map_err(aborted)
    }

    async fn acquire(&self) -> Result<Lent, StoreError> {
        self.pool.lend().await.map_err(aborted)
    }

    /// A connection of its own, outside of the pool, to whatever is the primary now.
    async fn fresh(&self) -> Result<PgConnection, StoreError> {
        self.pool.fresh().await.map_err(aborted)
    }
}

/// The servers, and the one of them that takes writes, through no pooler that mixes statements up.
async fn reached(options: &PostgresOptions) -> Result<(Hosts, PgConnectOptions), OpenError> {
    let hosts = hosts(&options.url)?;
    let primary = hosts.find().await.map_err(unreachable)?;
    pooler::check_statements(&primary).await?;
    Ok((hosts, primary))
}

/// It may be away at the start, and come later.
fn standby(options: &PostgresOptions) -> Result<Option<Replica>, OpenError> {
    let Some(url) = &options.replica_url else {
        return Ok(None);
    };
    let session = session(parsed(url)?, options.statement_timeout);
    let pool = sessions::pool(options.connections, options.wait).connect_lazy_with(session);
    Ok(Some(Replica::new(pool, options.replica_lag_max)))
}

/// Gives the connection back to the pool, unless its last word is in doubt: then nothing more is sent on it.
fn give_back<T>(conn: Lent, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
    if matches!(outcome, Err(StoreError::OutcomeUnknown(_))) {
        conn.give_up();
    }
    outcome
}
