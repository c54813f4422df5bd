//! What `frazil doctor` finds of the database.

use std::path::Path;

use catalog::finding::Finding;
use sqlx::SqlitePool;

use crate::error::OpenError;
use crate::{MIGRATOR, SqliteStore};

/// Looks at the file, whether a server uses it or not.
pub async fn examine(path: &Path) -> Vec<Finding> {
    let shown = path.display();
    let store = match SqliteStore::look(path).await {
        Ok(store) => store,
        Err(OpenError::Missing { .. }) => {
            let mend = "none, if no server was ever started here; else check storage.data_dir and database.url";
            return vec![Finding::warning("database", format!("there is none at {shown} yet"), mend)];
        }
        Err(error) => return vec![failed(&error)],
    };
    let sound = sqlx::query_scalar::<_, String>("PRAGMA quick_check(1)").fetch_one(&store.readers).await;
    let finding = match sound {
        Ok(told) if told == "ok" => Finding::ok("database", format!("SQLite, {shown}, is sound and up to date")),
        Ok(told) => Finding::failed("database", told, "stop the server and put the last backup in its place"),
        Err(error) => failed(&OpenError::Open(error)),
    };
    store.readers.close().await;
    vec![finding]
}

/// Without changing anything.
pub(crate) async fn check_schema(pool: &SqlitePool) -> Result<(), OpenError> {
    // The table is the migrator's own, so no checked statement knows of it.
    let known = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations')";
    if !sqlx::query_scalar::<_, bool>(known).fetch_one(pool).await.map_err(OpenError::Open)? {
        return Err(OpenError::SchemaTooOld);
    }
    let newest = "SELECT max(version) FROM _sqlx_migrations WHERE success";
    let applied: Option<i64> = sqlx::query_scalar(newest).fetch_one(pool).await.map_err(OpenError::Open)?;
    let ours = MIGRATOR.iter().map(|migration| migration.version).max();
    match applied {
        Some(version) if applied > ours => Err(OpenError::SchemaTooNew { version }),
        applied if applied < ours => Err(OpenError::SchemaTooOld),
        _ => {
            let mut conn = pool.acquire().await.map_err(OpenError::Open)?;
            match crate::is_half_copied(&mut conn).await.map_err(OpenError::Open)? {
                true => Err(OpenError::HalfCopied),
                false => Ok(()),
            }
        }
    }
}

fn failed(error: &OpenError) -> Finding {
    let source = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
    Finding::failed("database", format!("{error}{source}"), "check database.url, and that the server may read the file")
}
