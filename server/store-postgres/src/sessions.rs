//! How sessions with the database are made, and what holds in each of them.

use std::time::Duration;

use catalog::store::sent;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgPool};

use crate::error::{OpenError, unreachable};
use crate::hosts::Hosts;

/// How the database is reached. It holds passwords, so it is never printed.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://…`, of several servers: see [`Hosts`].
    pub url: String,
    /// Connections at most, with the database and with its replica each.
    pub connections: u32,
    /// For how long a request waits for one of them.
    pub wait: Duration,
    /// After this the database gives up on a statement. Zero is never.
    pub statement_timeout: Duration,
    /// A standby that listings are read from.
    pub replica_url: Option<String>,
    /// A standby that is further behind is left alone.
    pub replica_lag_max: Duration,
}

impl PostgresOptions {
    /// With the defaults of all but the URL.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 16,
            wait: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            replica_url: None,
            replica_lag_max: Duration::from_secs(10),
        }
    }
}

/// For how long a statement waits for another one's row. Beyond it the statement is aborted.
const LOCK_TIMEOUT_MS: &str = "5000";
/// After this a transaction whose client says nothing more is aborted, so that its row locks end.
const IDLE_IN_TRANSACTION_TIMEOUT_MS: &str = "10000";
/// After this a client that no longer acknowledges what is sent to it is taken for dead.
const TCP_USER_TIMEOUT_MS: &str = "15000";

/// What every session has and `migrate` gives to the role too.
pub(crate) const BOUNDS: [(&str, &str); 3] = [
    ("lock_timeout", LOCK_TIMEOUT_MS),
    ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT_MS),
    ("tcp_user_timeout", TCP_USER_TIMEOUT_MS),
];

/// How sessions are named, unless the URL names them.
pub(crate) const APPLICATION_NAME: &str = "frazil";

/// A pooled connection that was idle for longer is asked for a sign of life before it is used.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// A pooled connection that nobody wanted for so long is closed.
const IDLE_MAX: Duration = Duration::from_secs(10 * 60);
/// A pooled connection is closed when it is so old: its backend's memory grows, and balancers move on.
const LIFETIME_MAX: Duration = Duration::from_secs(30 * 60);

/// The servers of a URL, not yet with the settings of [`session`].
pub(crate) fn hosts(url: &str) -> Result<Hosts, OpenError> {
    Ok(Hosts::parse(url).map_err(unreachable)?.each(named))
}

/// The one of them that takes writes now.
pub(crate) async fn primary(url: &str) -> Result<PgConnectOptions, OpenError> {
    hosts(url)?.find().await.map_err(unreachable)
}

/// The only server of a URL, likewise.
pub(crate) fn parsed(url: &str) -> Result<PgConnectOptions, OpenError> {
    url.parse().map(named).map_err(unreachable)
}

fn named(options: PgConnectOptions) -> PgConnectOptions {
    match options.get_application_name() {
        Some(_) => options,
        None => options.application_name(APPLICATION_NAME),
    }
}

/// The settings that must hold in every session, whatever the role says.
pub(crate) fn session(options: PgConnectOptions, statement_timeout: Duration) -> PgConnectOptions {
    options.options(BOUNDS).options([
        ("statement_timeout", statement_timeout.as_millis().to_string()),
        ("synchronous_commit", "on".to_owned()),
        ("default_transaction_isolation", "read committed".to_owned()),
    ])
}

/// What all pools have in common.
pub(crate) fn pool(connections: u32, wait: Duration) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(wait)
        .idle_timeout(IDLE_MAX)
        .max_lifetime(LIFETIME_MAX)
        .test_before_acquire(false)
        .before_acquire(|conn, meta| {
            Box::pin(async move {
                if meta.idle_for > TRUSTED_IDLE {
                    sent("ping", conn).ping().await?;
                }
                Ok(true)
            })
        })
}

/// A pooler in between may drop what a session asks for: then only the settings of the role are left.
pub(crate) async fn check_settings(pool: &PgPool) -> Result<(), OpenError> {
    let synchronous_commit = synchronous_commit(pool).await.map_err(unreachable)?;
    if !is_durable(&synchronous_commit) {
        return Err(OpenError::NotDurable { set: synchronous_commit });
    }
    for name in missing_bounds(pool).await.map_err(unreachable)? {
        tracing::warn!(
            "the sessions of the database role have no {name}: a client that dies in a transaction can hold its row locks \
             for long; set it with ALTER ROLE"
        );
    }
    Ok(())
}

pub(crate) async fn synchronous_commit(pool: &PgPool) -> Result<String, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT current_setting('synchronous_commit') AS "set!""#)
        .fetch_one(sent("synchronous-commit", pool))
        .await
}

/// With the other values an acknowledged commit can be lost.
pub(crate) fn is_durable(synchronous_commit: &str) -> bool {
    ["on", "remote_apply"].contains(&synchronous_commit)
}

/// Those of [`BOUNDS`] without a value. A local socket has no use for that of TCP.
pub(crate) async fn missing_bounds(pool: &PgPool) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT name AS "name!" FROM pg_settings
            WHERE name = ANY($1) AND setting = '0' AND (inet_client_addr() IS NOT NULL OR name NOT LIKE 'tcp%')
            ORDER BY name"#,
        &BOUNDS.map(|(name, _)| name.to_owned())
    )
    .fetch_all(sent("missing-bounds", pool))
    .await
}
