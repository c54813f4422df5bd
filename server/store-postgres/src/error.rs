//! Sorts what the driver says by what is certain afterwards.

use catalog::store::StoreError;
use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// The store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the database cannot be reached")]
    Connect(#[source] sqlx::Error),
    #[error(
        "the connection pooler refuses a setting that every session begins with: write \
         'ignore_startup_parameters = extra_float_digits,options' into the settings of PgBouncer"
    )]
    StartupParameter(#[source] sqlx::Error),
    #[error(
        "the connection pooler gives sessions to several clients and takes the prepared statements of one for another's: \
         use PgBouncer 1.21 or later with max_prepared_statements above 0, or pool_mode = session, or no pooler; frazil has \
         a pool of its own"
    )]
    StatementsMixed,
    #[error(
        "the schema cannot be brought up to date through a connection pooler in transaction mode, which loses the lock that \
         lines up replicas: run 'frazil migrate' with the URL of the database itself first"
    )]
    MigratesThroughPooler,
    #[error(
        "the sessions of the database have synchronous_commit = {set}, so that acknowledged commits can be lost, and a \
         pooler keeps them from setting it: ALTER ROLE … SET synchronous_commit = on"
    )]
    NotDurable { set: String },
    #[error("the database is PostgreSQL {version}: frazil needs version 15 or later")]
    TooOld { version: String },
    #[error(
        "the database is a copy that has not ended: run the same 'frazil store copy' again, until it says that all is copied"
    )]
    HalfCopied,
    #[error(
        "{sessions} sessions of a running frazil are in the database: stop all servers first, for what they change is not \
         copied"
    )]
    InUse { sessions: i64 },
    #[error(
        "the database has migration {version}, which this version of frazil does not know: \
         start the version that made it, or a later one"
    )]
    SchemaTooNew { version: i64 },
    #[error("the database's schema is not up to date: run 'frazil migrate' first")]
    SchemaTooOld,
    #[error("the database's schema cannot be brought up to date")]
    Migrate(#[source] MigrateError),
}

/// The name of the key that swap and resolver compete for. Its violation says nothing of the swap: ask its row.
const ATTEMPT_KEY: &str = "attempt_id";

const UNIQUE_VIOLATION: &str = "23505";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
const PROTOCOL_VIOLATION: &str = "08P01";

/// For what a start fails with.
pub(crate) fn unreachable(error: sqlx::Error) -> OpenError {
    let refused = database(&error)
        .is_some_and(|answer| answer.code() == PROTOCOL_VIOLATION && answer.message().contains("startup parameter"));
    match refused {
        true => OpenError::StartupParameter(error),
        false => OpenError::Connect(error),
    }
}

/// For what fails before anything was sent that could commit.
pub(crate) fn aborted(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Aborted(error.into())
}

/// For a statement inside of a transaction whose COMMIT was not sent.
pub(crate) fn before_commit(error: sqlx::Error) -> StoreError {
    match violated(&error) {
        Some(ATTEMPT_KEY) => StoreError::OutcomeUnknown(Box::new(error)),
        _ => aborted(error),
    }
}

/// For the message that commits: COMMIT, or a statement in autocommit.
pub(crate) fn committing(error: sqlx::Error) -> StoreError {
    let certain = database(&error).is_some_and(|answer| {
        let error_only = answer.severity() == PgSeverity::Error;
        error_only && says_aborted(answer.code(), answer.constraint())
    });
    match certain {
        true => aborted(error),
        false => StoreError::OutcomeUnknown(Box::new(error)),
    }
}

/// Is the transaction certainly aborted by an answer of severity ERROR with this SQLSTATE?
fn says_aborted(code: &str, constraint: Option<&str>) -> bool {
    match code {
        UNIQUE_VIOLATION => constraint != Some(ATTEMPT_KEY),
        SERIALIZATION_FAILURE | DEADLOCK_DETECTED | LOCK_NOT_AVAILABLE => true,
        _ => code.starts_with("23"),
    }
}

/// The constraint whose violation the database answered.
pub(crate) fn violated(error: &sqlx::Error) -> Option<&str> {
    let answer = database(error)?;
    let error_only = answer.severity() == PgSeverity::Error;
    answer.constraint().filter(|_| error_only && answer.code().starts_with("23"))
}

/// The transaction was aborted for the sake of another one. It may be tried again at once.
pub(crate) fn collided(error: &sqlx::Error) -> bool {
    database(error).is_some_and(|answer| {
        answer.severity() == PgSeverity::Error && [SERIALIZATION_FAILURE, DEADLOCK_DETECTED].contains(&answer.code())
    })
}

/// A row lock was not to be had within `lock_timeout`.
pub(crate) fn timed_out(error: &sqlx::Error) -> bool {
    database(error).is_some_and(|answer| answer.code() == LOCK_NOT_AVAILABLE)
}

pub(crate) fn database(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_that_rule_a_commit_out_are_certain() {
        let certain = [
            ("23505", Some("lineage_snapshot")),
            ("23503", Some("tabular_namespace")),
            ("23514", None),
            ("40001", None),
            ("40P01", None),
            ("55P03", None),
        ];
        for (code, constraint) in certain {
            assert!(says_aborted(code, constraint), "{code}");
        }
        let in_doubt = [
            ("23505", Some("attempt_id")),
            ("57P01", None),
            ("57P02", None),
            ("57014", None),
            ("08006", None),
            ("08P01", None),
            ("40003", None),
            ("XX000", None),
            ("53100", None),
            ("25006", None),
            ("22021", None),
        ];
        for (code, constraint) in in_doubt {
            assert!(!says_aborted(code, constraint), "{code}");
        }
    }

    #[test]
    fn what_is_not_the_databases_word_leaves_a_commit_in_doubt() {
        let io = || sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        for error in [io(), sqlx::Error::WorkerCrashed, sqlx::Error::Protocol("?".into())] {
            assert!(matches!(committing(error), StoreError::OutcomeUnknown(_)));
        }
        assert!(matches!(before_commit(io()), StoreError::Aborted(_)));
    }
}
