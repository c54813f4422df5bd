//! A copy of the file that is made while a server uses it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions, Connection};

use crate::error::OpenError;
use crate::options;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Open(OpenError),
    #[error("'{}' exists: name a new file", path.display())]
    Exists { path: PathBuf },
    #[error("the backup cannot be written")]
    Write(#[source] sqlx::Error),
    #[error("the backup is not sound, and was left at '{}': {told}", path.display())]
    Unsound { path: PathBuf, told: String },
    #[error("the backup cannot be put in its place")]
    Place(#[source] io::Error),
}

/// Writes all of the database, as it is at one moment, into the new file `to`, checked and flushed to disk. Servers go on.
pub async fn backup(path: &Path, to: &Path) -> Result<(), BackupError> {
    if !path.exists() {
        return Err(BackupError::Open(OpenError::Missing { path: path.to_path_buf() }));
    }
    let part = PathBuf::from(format!("{}.part", to.display()));
    if to.exists() {
        return Err(BackupError::Exists { path: to.to_path_buf() });
    }
    // What is left of one that was cut off.
    remove(&part).map_err(BackupError::Place)?;
    let mut conn = existing(path).await.map_err(|error| BackupError::Open(OpenError::Open(error)))?;
    write(&mut conn, &part).await.map_err(BackupError::Write)?;
    let told = check(&part).await.map_err(BackupError::Write)?;
    if told != "ok" {
        return Err(BackupError::Unsound { path: part, told });
    }
    place(&part, to).map_err(BackupError::Place)
}

async fn existing(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    options(path).create_if_missing(false).connect().await
}

async fn write(conn: &mut SqliteConnection, part: &Path) -> Result<(), sqlx::Error> {
    sqlx::query("VACUUM INTO $1").bind(part.display().to_string()).execute(conn).await.map(drop)
}

async fn check(part: &Path) -> Result<String, sqlx::Error> {
    let mut copy = existing(part).await?;
    let told = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut copy).await?;
    copy.close().await?;
    Ok(told)
}

/// Under its name it is whole, even after a crash of the machine.
fn place(part: &Path, to: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    std::fs::rename(part, to)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn remove(part: &Path) -> io::Result<()> {
    match std::fs::remove_file(part) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
