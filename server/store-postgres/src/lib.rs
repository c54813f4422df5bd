//! The catalog's state kept in PostgreSQL, 15 and later.

use std::time::Duration;

use catalog::store::{StoreError, sent};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{Connection, PgPool, Postgres};

mod columns;
mod commit_log;
mod commits;
mod error;
mod events;
mod idempotency;
mod lineage;
mod migrate;
mod namespaces;
mod principals;
mod purge;
mod tabulars;
#[cfg(test)]
mod tests;
mod warehouses;

pub use error::OpenError;
pub use migrate::MIGRATOR;

use error::aborted;

/// For how long a statement waits for another one's row. Beyond it the statement is aborted.
const LOCK_TIMEOUT_MS: &str = "5000";
/// After this a transaction whose client says nothing more is aborted, so that its row locks end.
const IDLE_IN_TRANSACTION_TIMEOUT_MS: &str = "10000";
/// After this a client that no longer acknowledges what is sent to it is taken for dead.
const TCP_USER_TIMEOUT_MS: &str = "15000";

/// What every session has and `migrate` gives to the role too.
const BOUNDS: [(&str, &str); 3] = [
    ("lock_timeout", LOCK_TIMEOUT_MS),
    ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT_MS),
    ("tcp_user_timeout", TCP_USER_TIMEOUT_MS),
];

/// Begins a transaction of several statements, durable on a synchronous standby too when its COMMIT is acknowledged.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = on";

/// A pooled connection that was idle for longer is asked for a sign of life before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// All ports of the catalog over one pool; clones share it.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: PgPool,
}

impl PostgresStore {
    /// Connects to `postgres://…` and brings the schema up to date; of several that do so at once, one does and the
    /// others wait. Requests wait for one of `pool_size` connections for up to `acquire_timeout`.
    pub async fn connect(url: &str, pool_size: u32, acquire_timeout: Duration) -> Result<Self, OpenError> {
        migrate::migrate(&url.parse().map_err(OpenError::Connect)?).await?;
        Self::open(url, pool_size, acquire_timeout).await
    }

    /// As [`Self::connect`], over a database whose schema somebody else brings up to date; any other is refused.
    pub async fn open(url: &str, pool_size: u32, acquire_timeout: Duration) -> Result<Self, OpenError> {
        let options: PgConnectOptions = url.parse().map_err(OpenError::Connect)?;
        migrate::check(&options).await?;
        let pool = PgPoolOptions::new()
            .max_connections(pool_size)
            .acquire_timeout(acquire_timeout)
            .test_before_acquire(false)
            .before_acquire(|conn, meta| {
                Box::pin(async move {
                    if meta.idle_for > TRUSTED_IDLE {
                        sent("ping", conn).ping().await?;
                    }
                    Ok(true)
                })
            })
            .connect_with(session(options))
            .await
            .map_err(OpenError::Connect)?;
        warn_of_missing_bounds(&pool).await.map_err(OpenError::Connect)?;
        Ok(Self::over(pool))
    }

    /// Over a pool whose database has the schema of [`MIGRATOR`].
    pub fn over(pool: PgPool) -> Self {
        Self { pool }
    }

    /// Does the database answer?
    pub async fn ping(&self) -> Result<(), StoreError> {
        sent("ping", self.acquire().await?).ping().await.map_err(aborted)
    }

    async fn acquire(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        self.pool.acquire().await.map_err(aborted)
    }

    /// A connection of its own, outside of the pool, to whatever is the primary now.
    async fn fresh(&self) -> Result<PgConnection, StoreError> {
        PgConnection::connect_with(&self.pool.connect_options()).await.map_err(aborted)
    }
}

/// The settings that must hold in every session, whatever the role says.
fn session(options: PgConnectOptions) -> PgConnectOptions {
    options.options(BOUNDS).options([("synchronous_commit", "on"), ("default_transaction_isolation", "read committed")])
}

/// A pooler in between may drop what a session asks for: then only the settings of the role are left.
async fn warn_of_missing_bounds(pool: &PgPool) -> Result<(), sqlx::Error> {
    for name in missing_bounds(pool).await? {
        tracing::warn!(
            "the sessions of the database role have no {name}: a client that dies in a transaction can hold its row locks \
             for long; set it with ALTER ROLE"
        );
    }
    Ok(())
}

/// Those of [`BOUNDS`] without a value. A local socket has no use for that of TCP.
async fn missing_bounds(pool: &PgPool) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT name AS "name!" FROM pg_settings
            WHERE name = ANY($1) AND setting = '0' AND (inet_client_addr() IS NOT NULL OR name NOT LIKE 'tcp%')
            ORDER BY name"#,
        &BOUNDS.map(|(name, _)| name.to_owned())
    )
    .fetch_all(sent("missing-bounds", pool))
    .await
}

/// Gives the connection back to the pool, unless its last word is in doubt: then nothing more is sent on it.
fn give_back<T>(conn: PoolConnection<Postgres>, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
    if matches!(outcome, Err(StoreError::OutcomeUnknown(_))) {
        drop(conn.detach());
    }
    outcome
}
