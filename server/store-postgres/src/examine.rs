//! What `frazil doctor` finds of the database.

use catalog::context::Clock;
use catalog::finding::Finding;
use sqlx::PgPool;
use sqlx::postgres::PgConnection;

use crate::error::OpenError;
use crate::migrate::{self, Schema};
use crate::replica::Replica;
use crate::sessions::{self, PostgresOptions, is_durable, missing_bounds, session};
use crate::{pooler, standby};

/// Looks at everything that can be looked at, in the order in which it must work. What cannot be reached ends it.
pub async fn examine(options: &PostgresOptions, clock: &dyn Clock) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Err(finding) = examine_all(options, clock, &mut found).await {
        found.push(finding);
    }
    found
}

async fn examine_all(options: &PostgresOptions, clock: &dyn Clock, found: &mut Vec<Finding>) -> Result<(), Finding> {
    let unreachable =
        |error: OpenError| failed("database", &error, "check database.url, and whether the server can reach it");
    let primary = sessions::primary(&options.url).await.map_err(unreachable)?;
    pooler::check_statements(&primary).await.map_err(unreachable)?;
    let mut conn = pooler::connect(&primary).await.map_err(unreachable)?;
    let version = migrate::check_version(&mut conn).await.map_err(unreachable)?;
    found.push(Finding::ok("database", format!("PostgreSQL {version} answers")));
    if pooler::shares_sessions(&primary).await.map_err(unreachable)? {
        found.push(through_pooler());
    }
    found.push(of_clock(&mut conn, clock).await.map_err(|error| unreachable(OpenError::Connect(error)))?);
    found.push(of_schema(&mut conn).await?);
    let pool = sessions::pool(1, options.wait).connect_lazy_with(session(primary, options.statement_timeout));
    let settings = of_settings(&pool, options.connections).await;
    found.extend(settings.map_err(|error| unreachable(OpenError::Connect(error)))?);
    if let Some(replica) = standby(options).map_err(unreachable)? {
        found.push(of_replica(&replica, &pool).await);
    }
    pool.close().await;
    Ok(())
}

fn through_pooler() -> Finding {
    Finding::warning(
        "database pooler",
        "a pooler in transaction mode stands before the database; it keeps prepared statements apart",
        "let 'frazil migrate' and 'frazil store copy' go to the database itself",
    )
}

async fn of_clock(conn: &mut PgConnection, clock: &dyn Clock) -> Result<Finding, sqlx::Error> {
    let before_ms = clock.now_ms();
    let theirs_ms =
        sqlx::query_scalar!(r#"SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "now_ms!""#)
            .fetch_one(conn)
            .await?;
    Ok(Finding::of_clock("database clock", theirs_ms, (before_ms, clock.now_ms()), 1))
}

async fn of_schema(conn: &mut PgConnection) -> Result<Finding, Finding> {
    let check = "database schema";
    let failed_here = |error: OpenError| failed(check, &error, "do as it says");
    match migrate::schema(conn).await.map_err(failed_here)? {
        Schema::TooOld => Err(Finding::failed(check, "is not up to date", "run 'frazil migrate'")),
        Schema::Current => match migrate::is_half_copied(conn).await {
            Ok(false) => Ok(Finding::ok(check, "is up to date")),
            Ok(true) => Err(failed_here(OpenError::HalfCopied)),
            Err(error) => Err(failed_here(OpenError::Connect(error))),
        },
    }
}

/// Of sessions as the server has them.
async fn of_settings(pool: &PgPool, connections: u32) -> Result<Vec<Finding>, sqlx::Error> {
    let check = "database settings";
    let mut found = Vec::new();
    let synchronous_commit = sessions::synchronous_commit(pool).await?;
    if !is_durable(&synchronous_commit) {
        let error = OpenError::NotDurable { set: synchronous_commit };
        found.push(Finding::failed(check, error.to_string(), "ALTER ROLE … SET synchronous_commit = on"));
    }
    for name in missing_bounds(pool).await? {
        found.push(Finding::warning(check, format!("sessions have no {name}"), format!("ALTER ROLE … SET {name}")));
    }
    let most = sqlx::query_scalar!(r#"SELECT current_setting('max_connections')::bigint AS "most!""#);
    let most = most.fetch_one(pool).await?;
    if i64::from(connections) > most {
        found.push(Finding::warning(
            check,
            format!("the database takes {most} connections, and one server alone may want {connections}"),
            "lower database.connections, or raise max_connections",
        ));
    }
    if found.is_empty() {
        found.push(Finding::ok(check, "commits are durable, and sessions have their time-outs"));
    }
    Ok(found)
}

async fn of_replica(replica: &Replica, primary: &PgPool) -> Finding {
    let check = "database replica";
    let mend = "listings are read from the primary meanwhile; check database.replica_url and the standby";
    match replica.look(primary).await {
        Ok(None) => Finding::ok(check, "is there and up to date"),
        Ok(Some(why)) => Finding::warning(check, why, mend),
        Err(error) => Finding::warning(check, format!("does not answer: {error}"), mend),
    }
}

/// With all its causes in one line.
fn failed(check: &str, error: &dyn std::error::Error, mend: &str) -> Finding {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let chain: Vec<String> = causes.map(ToString::to_string).collect();
    Finding::failed(check, chain.join(": "), mend)
}
