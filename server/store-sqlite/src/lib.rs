//! The catalog's state kept in SQLite: one file, one process, one writer.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catalog::store::{StoreError, sent};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Sqlite, SqlitePool};

mod columns;
mod commit_log;
mod commits;
mod error;
mod events;
mod idempotency;
mod lineage;
mod namespaces;
mod principals;
mod purge;
mod tabulars;
#[cfg(test)]
mod tests;
mod warehouses;

pub use error::OpenError;

use error::aborted;

pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// Connections that read at one time.
const READERS: u32 = 4;

/// For how long a request waits for a connection; the only one that writes is the place where writers queue up.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// For how long a connection waits for a lock of the file. Nobody should hold one but ourselves.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Takes the right to write at once: a transaction that reads first and writes later could not wait for it.
const BEGIN: &str = "BEGIN IMMEDIATE";

/// All ports of the catalog over one file; clones share it.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    readers: SqlitePool,
    writer: SqlitePool,
    /// Held until the last clone is gone; `None` beside the process that holds it.
    _lock: Option<Arc<File>>,
}

impl SqliteStore {
    /// Opens the file, makes it and its folder where there is none, and brings the schema up to date.
    ///
    /// A second process is refused: it would take the first one's unfinished work for finished.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let lock = lock(path)?;
        let store = Self::connect(path, Some(lock)).await?;
        MIGRATOR.run(&store.writer).await.map_err(refused)?;
        Ok(store)
    }

    /// Opens the file beside the server that has it, for rows that no commit of that server depends on. The schema must
    /// be that of this version.
    pub async fn open_beside(path: &Path) -> Result<Self, OpenError> {
        let store = Self::connect(path, None).await?;
        // The table is the migrator's own, so no checked statement knows of it.
        let newest: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
            .fetch_one(sent("schema-version", &store.writer))
            .await
            .map_err(OpenError::Open)?;
        match newest == MIGRATOR.iter().map(|migration| migration.version).max() {
            true => Ok(store),
            false => Err(OpenError::OtherVersion { path: path.to_path_buf() }),
        }
    }

    async fn connect(path: &Path, lock: Option<File>) -> Result<Self, OpenError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(lock.is_some())
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = SqlitePoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT);
        let writer = pool.clone().max_connections(1).connect_with(options.clone()).await;
        let writer = writer.map_err(OpenError::Open)?;
        let options = options.pragma("query_only", "on");
        let readers = pool.max_connections(READERS).connect_lazy_with(options);
        Ok(Self { readers, writer, _lock: lock.map(Arc::new) })
    }

    /// Does the database answer?
    pub async fn ping(&self) -> Result<(), StoreError> {
        let conn = self.readers.acquire().await.map_err(aborted)?;
        sent("ping", conn).ping().await.map_err(aborted)
    }

    async fn writer(&self) -> Result<PoolConnection<Sqlite>, StoreError> {
        self.writer.acquire().await.map_err(aborted)
    }
}

/// Locks `<path>.lock` for this process. The lock ends with the process, however that ends.
fn lock(path: &Path) -> Result<File, OpenError> {
    let lock_path = PathBuf::from(format!("{}.lock", path.display()));
    let opened = match path.parent() {
        Some(folder) => std::fs::create_dir_all(folder),
        None => Ok(()),
    };
    let file = opened
        .and_then(|()| File::options().create(true).append(true).open(&lock_path))
        .map_err(|source| OpenError::Lock { path: lock_path.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_path_buf() }),
        Err(TryLockError::Error(source)) => Err(OpenError::Lock { path: lock_path, source }),
    }
}

fn refused(error: MigrateError) -> OpenError {
    match error {
        MigrateError::VersionMissing(version) => OpenError::SchemaTooNew { version },
        error => OpenError::Migrate(error),
    }
}

/// Gives the connection back to the pool, unless its last word is in doubt: then it is closed as it is.
fn give_back<T>(conn: PoolConnection<Sqlite>, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
    if matches!(outcome, Err(StoreError::OutcomeUnknown(_))) {
        drop(conn.detach());
    }
    outcome
}
