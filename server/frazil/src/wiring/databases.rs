//! Whole databases, as the commands that copy them need them.

use std::path::Path;

use catalog::transfer::{Source, Target};
use store_postgres::PostgresTransfer;
use store_sqlite::SqliteTransfer;

use super::{Error, sqlite_path, unknown_scheme};
use crate::config::{Config, DatabaseUrl};

/// A database to be read. No server may use it meanwhile.
pub async fn source(url: &DatabaseUrl) -> Result<Box<dyn Source>, Error> {
    match url.scheme() {
        "sqlite" => Ok(Box::new(SqliteTransfer::source(&sqlite_path(url)).await?)),
        _ if url.is_postgres() => Ok(Box::new(PostgresTransfer::source(url.reveal()).await?)),
        other => Err(unknown_scheme("--from", other)),
    }
}

/// A database to be written.
pub async fn target(url: &DatabaseUrl) -> Result<Box<dyn Target>, Error> {
    match url.scheme() {
        "sqlite" => Ok(Box::new(SqliteTransfer::target(&sqlite_path(url)).await?)),
        _ if url.is_postgres() => Ok(Box::new(PostgresTransfer::target(url.reveal()).await?)),
        other => Err(unknown_scheme("--to", other)),
    }
}

/// Writes the embedded database into the new file `to`, while a server goes on with it.
pub async fn backup(config: &Config, to: &Path) -> Result<(), Error> {
    let url = config.database_url();
    match url.scheme() {
        "sqlite" => Ok(store_sqlite::backup(&sqlite_path(&url), to).await?),
        _ => Err(
            "PostgreSQL is backed up by its own tools: pg_dump for a copy at one moment, pg_basebackup and an archive \
                  of its log for any moment; docs/operations.md tells what goes with it"
                .into(),
        ),
    }
}
