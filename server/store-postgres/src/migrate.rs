//! Brings the schema up to date, beside other replicas that do the same.

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::BOUNDS;
use crate::error::OpenError;

pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations/postgres");

/// Roles are rows of the whole cluster, which Postgres does not let two sessions change at once.
const ROLE_LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('frazil: settings of the role', 0))";

pub(crate) async fn migrate(options: &PgConnectOptions) -> Result<(), OpenError> {
    // The lock that lines up the replicas is waited for without a bound, whatever the role says.
    let options = options.clone().options([("lock_timeout", "0")]);
    let mut conn = PgConnection::connect_with(&options).await.map_err(OpenError::Connect)?;
    if !is_current(&mut conn).await? {
        MIGRATOR.run(&mut conn).await.map_err(refused)?;
        if let Err(error) = bound_role(&mut conn).await {
            tracing::warn!(%error, "the timeouts of the database role could not be set; every session sets its own");
        }
    }
    conn.close().await.map_err(OpenError::Connect)
}

/// Refuses a database that would have to be migrated first.
pub(crate) async fn check(options: &PgConnectOptions) -> Result<(), OpenError> {
    let mut conn = PgConnection::connect_with(options).await.map_err(OpenError::Connect)?;
    let current = is_current(&mut conn).await?;
    conn.close().await.map_err(OpenError::Connect)?;
    match current {
        true => Ok(()),
        false => Err(OpenError::SchemaTooOld),
    }
}

/// Is there nothing to do? Asked first, so that a role without the right to create tables can serve.
async fn is_current(conn: &mut PgConnection) -> Result<bool, OpenError> {
    // The table is the migrator's own, so no checked statement knows of it.
    let known = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
    let newest = "SELECT max(version) FROM _sqlx_migrations WHERE success";
    if !sqlx::query_scalar::<_, bool>(known).fetch_one(&mut *conn).await.map_err(OpenError::Connect)? {
        return Ok(false);
    }
    let applied: Option<i64> = sqlx::query_scalar(newest).fetch_one(conn).await.map_err(OpenError::Connect)?;
    let ours = MIGRATOR.iter().map(|migration| migration.version).max();
    match (applied, ours) {
        (Some(version), Some(ours)) if version > ours => Err(OpenError::SchemaTooNew { version }),
        (applied, ours) => Ok(applied == ours),
    }
}

fn refused(error: MigrateError) -> OpenError {
    match error {
        MigrateError::VersionMissing(version) => OpenError::SchemaTooNew { version },
        error => OpenError::Migrate(error),
    }
}

/// Gives the role the bounds of every session, in this database, so that they hold for whoever else uses it.
async fn bound_role(conn: &mut PgConnection) -> Result<(), sqlx::Error> {
    let mut tx = conn.begin().await?;
    tx.execute(ROLE_LOCK).await?;
    for (name, value) in BOUNDS {
        let alter = format!(
            "DO $$ BEGIN
                 EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET {name} = %L', current_database(), '{value}');
             END $$"
        );
        tx.execute(AssertSqlSafe(alter)).await?;
    }
    tx.commit().await
}
