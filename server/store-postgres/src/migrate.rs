//! Brings the schema up to date, beside other replicas that do the same.

use std::cmp::Ordering;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection, Executor};

use crate::error::{OpenError, unreachable};
use crate::pooler;
use crate::sessions::BOUNDS;

pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations/postgres");

/// Roles are rows of the whole cluster, which Postgres does not let two sessions change at once.
const ROLE_LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('frazil: settings of the role', 0))";

/// The first version whose SQL this is.
const VERSION_MIN: i32 = 150_000;

pub(crate) async fn migrate(options: &PgConnectOptions) -> Result<(), OpenError> {
    // The lock that lines up the replicas is waited for without a bound, whatever the role says.
    let options = options.clone().options([("lock_timeout", "0"), ("statement_timeout", "0")]);
    let mut conn = pooler::connect(&options).await?;
    if schema(&mut conn).await? == Schema::TooOld {
        check_version(&mut conn).await?;
        if pooler::shares_sessions(&options).await? {
            return Err(OpenError::MigratesThroughPooler);
        }
        MIGRATOR.run(&mut conn).await.map_err(refused)?;
        if let Err(error) = bound_role(&mut conn).await {
            tracing::warn!(%error, "the timeouts of the database role could not be set; every session sets its own");
        }
    }
    conn.close().await.map_err(unreachable)
}

/// Refuses a database that would have to be migrated first, or to be copied to its end.
pub(crate) async fn check(options: &PgConnectOptions) -> Result<(), OpenError> {
    let mut conn = pooler::connect(options).await?;
    let schema = schema(&mut conn).await?;
    let is_half_copied = schema == Schema::Current && is_half_copied(&mut conn).await.map_err(unreachable)?;
    conn.close().await.map_err(unreachable)?;
    match schema {
        Schema::Current if is_half_copied => Err(OpenError::HalfCopied),
        Schema::Current => Ok(()),
        Schema::TooOld => Err(OpenError::SchemaTooOld),
    }
}

/// Whether a copy was begun here that has not ended.
pub(crate) async fn is_half_copied(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT EXISTS (SELECT 1 FROM copy_under_way) AS "is_half_copied!""#).fetch_one(conn).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    TooOld,
    Current,
}

/// Is there something to do? Asked first, so that a role without the right to create tables can serve.
pub(crate) async fn schema(conn: &mut PgConnection) -> Result<Schema, OpenError> {
    // The table is the migrator's own, so no checked statement knows of it.
    let known = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
    let newest = "SELECT max(version) FROM _sqlx_migrations WHERE success";
    if !sqlx::query_scalar::<_, bool>(known).fetch_one(&mut *conn).await.map_err(unreachable)? {
        return Ok(Schema::TooOld);
    }
    let applied: Option<i64> = sqlx::query_scalar(newest).fetch_one(conn).await.map_err(unreachable)?;
    let ours = MIGRATOR.iter().map(|migration| migration.version).max();
    match applied.cmp(&ours) {
        Ordering::Less => Ok(Schema::TooOld),
        Ordering::Equal => Ok(Schema::Current),
        Ordering::Greater => Err(OpenError::SchemaTooNew { version: applied.unwrap_or_default() }),
    }
}

pub(crate) async fn check_version(conn: &mut PgConnection) -> Result<String, OpenError> {
    let row = sqlx::query!(
        r#"SELECT current_setting('server_version') AS "version!",
                  current_setting('server_version_num')::int AS "number!""#
    )
    .fetch_one(conn)
    .await
    .map_err(unreachable)?;
    match row.number {
        VERSION_MIN.. => Ok(row.version),
        _ => Err(OpenError::TooOld { version: row.version }),
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
