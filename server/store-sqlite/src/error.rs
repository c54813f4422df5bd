//! Sorts what the driver says by what is certain afterwards.

use std::path::PathBuf;

use catalog::store::StoreError;
use sqlx::error::ErrorKind;
use sqlx::migrate::MigrateError;

/// The store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("'{}' is in use by another frazil: stop it, or give this one its own data folder", path.display())]
    InUse { path: PathBuf },
    #[error("'{}' cannot be locked", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("there is no database at '{}'", path.display())]
    Missing { path: PathBuf },
    #[error(
        "the database is a copy that has not ended: run the same 'frazil store copy' again, until it says that all is copied"
    )]
    HalfCopied,
    #[error("the database's schema is not up to date: start 'frazil serve', or run 'frazil migrate'")]
    SchemaTooOld,
    #[error("the database cannot be opened")]
    Open(#[source] sqlx::Error),
    #[error(
        "the database has migration {version}, which this version of frazil does not know: \
         start the version that made it, or a later one"
    )]
    SchemaTooNew { version: i64 },
    #[error("the database's schema cannot be brought up to date")]
    Migrate(#[source] MigrateError),
}

/// SQLITE_BUSY. Its extended codes have it in their lowest byte.
const BUSY: i32 = 5;

/// For what fails without a transaction that writes.
pub(crate) fn aborted(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Aborted(error.into())
}

/// For BEGIN.
pub(crate) fn beginning(error: sqlx::Error) -> StoreError {
    match is_busy(&error) {
        true => aborted(error),
        false => in_doubt(error),
    }
}

/// For statements of a transaction that writes. Only a broken constraint leaves the connection in a known state:
/// after a full disk the transaction may be rolled back already, and after a failed fsync the process reads the old
/// version although the commit can be in the file.
pub(crate) fn in_transaction(error: sqlx::Error) -> StoreError {
    let constraint = error.as_database_error().is_some_and(|answer| {
        matches!(
            answer.kind(),
            ErrorKind::UniqueViolation
                | ErrorKind::ForeignKeyViolation
                | ErrorKind::NotNullViolation
                | ErrorKind::CheckViolation
        )
    });
    match constraint {
        true => aborted(error),
        false => in_doubt(error),
    }
}

/// For COMMIT, and for whatever else only a later look at the database decides.
pub(crate) fn in_doubt(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::OutcomeUnknown(error.into())
}

pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|answer| answer.code());
    code.and_then(|code| code.parse::<i32>().ok()).is_some_and(|code| code & 0xff == BUSY)
}
