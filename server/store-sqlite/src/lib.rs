//! The catalog's state kept in SQLite: one file, one process, one writer.
//!
//! Its statements say `LIMIT +$1`: where the bound is a bare parameter, SQLite prepares the statement anew each time that it
//! is bound, which takes longer than most of them run.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catalog::store::{StoreError, sent};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Sqlite, SqlitePool};

mod backup;
mod columns;
mod commit_log;
mod commits;
mod error;
mod events;
mod examine;
mod idempotency;
mod lineage;
mod namespaces;
mod pools;
mod principals;
mod purge;
mod tabulars;
#[cfg(test)]
mod tests;
mod transfer;
mod warehouses;

pub use backup::{BackupError, backup};
pub use error::OpenError;
pub use examine::examine;
pub use transfer::SqliteTransfer;

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
        let mut conn = store.writer.acquire().await.map_err(OpenError::Open)?;
        match is_half_copied(&mut conn).await.map_err(OpenError::Open)? {
            true => Err(OpenError::HalfCopied),
            false => Ok(store),
        }
    }

    /// Opens the file beside the server that has it, for rows that no commit of that server depends on. The schema must
    /// be that of this version.
    pub async fn open_beside(path: &Path) -> Result<Self, OpenError> {
        let store = Self::connect(path, None).await?;
        examine::check_schema(&store.readers).await?;
        Ok(store)
    }

    async fn connect(path: &Path, lock: Option<File>) -> Result<Self, OpenError> {
        let options = options(path).create_if_missing(lock.is_some());
        let pool = SqlitePoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT);
        let writer = pool.clone().max_connections(1).connect_with(options.clone()).await;
        let writer = writer.map_err(OpenError::Open)?;
        let readers = pool.max_connections(READERS).connect_lazy_with(options.pragma("query_only", "on"));
        Ok(Self { readers, writer, _lock: lock.map(Arc::new) })
    }

    /// To be read alone, whoever else uses the file. Its schema must be up to date.
    pub async fn look(path: &Path) -> Result<Self, OpenError> {
        if !path.exists() {
            return Err(OpenError::Missing { path: path.to_path_buf() });
        }
        let options = options(path).create_if_missing(false).pragma("query_only", "on");
        let pool = SqlitePoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT).max_connections(1);
        let readers = pool.connect_with(options).await.map_err(OpenError::Open)?;
        examine::check_schema(&readers).await?;
        Ok(Self { writer: readers.clone(), readers, _lock: None })
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

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
}

/// Whether a copy was begun here that has not ended.
async fn is_half_copied(conn: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT EXISTS (SELECT 1 FROM copy_under_way) AS "is_half_copied!: bool""#)
        .fetch_one(sent("half-copied", conn))
        .await
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
