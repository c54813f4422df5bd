//! Two releases side by side: this one's schema serves what the last one sends.

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Executor, PgPool, SqlSafeStr, Statement};

use crate::MIGRATOR;

const LAST_RELEASE: &str = include_str!("../../../../migrations/last_release/postgres.sql");

/// The schema's version then, and the statements.
fn last_release() -> (i64, Vec<&'static str>) {
    let mut parts = LAST_RELEASE.split("\n;\n").map(str::trim);
    let version = parts.next().unwrap().strip_prefix("-- schema ").unwrap().parse().unwrap();
    (version, parts.collect())
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn the_statements_of_the_last_release_are_served(pool: PgPool) {
    let (_, statements) = last_release();
    assert!(statements.len() > 50, "only {}", statements.len());
    for sql in statements {
        let prepared = (&pool).prepare(AssertSqlSafe(sql).into_sql_str()).await;
        let prepared = prepared.unwrap_or_else(|error| panic!("{error}: {sql}"));
        assert_eq!(prepared.sql().as_str(), sql);
    }
}

/// Columns that a row must name, by table.
const NEEDED: &str = "SELECT table_name || '.' || column_name FROM information_schema.columns
                       WHERE table_schema = current_schema() AND is_nullable = 'NO' AND column_default IS NULL
                         AND is_identity = 'NO'";

async fn needed(pool: &PgPool) -> BTreeSet<String> {
    sqlx::query_scalar(NEEDED).fetch_all(pool).await.unwrap().into_iter().collect()
}

#[sqlx::test(migrations = false)]
async fn the_rows_of_the_last_release_are_taken(pool: PgPool) {
    let (version, _) = last_release();
    MIGRATOR.run_to(version, &pool).await.unwrap();
    let then = needed(&pool).await;
    assert!(then.contains("tabular.version"));
    let table = |column: &String| column.split('.').next().unwrap().to_owned();
    let tables: BTreeSet<String> = then.iter().map(table).collect();
    MIGRATOR.run(&pool).await.unwrap();
    let now = needed(&pool).await;
    let new: Vec<_> = now.difference(&then).filter(|column| tables.contains(&table(column))).collect();
    assert!(new.is_empty(), "the last release writes rows without {new:?}");
}
