//! What the last release sends is still understood by this one's schema.

use catalog::testing::scratch_folder;
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr, Statement};

use crate::SqliteStore;

const LAST_RELEASE: &str = include_str!("../../../../migrations/last_release/sqlite.sql");

#[tokio::test]
async fn the_statements_of_the_last_release_are_served() {
    let folder = scratch_folder().unwrap();
    let store = SqliteStore::open(&folder.path().join("frazil.db")).await.unwrap();
    let statements: Vec<&str> = LAST_RELEASE.split("\n;\n").map(str::trim).skip(1).collect();
    assert!(statements.len() > 50, "only {}", statements.len());
    for sql in statements {
        let prepared = (&store.readers).prepare(AssertSqlSafe(sql).into_sql_str()).await;
        let prepared = prepared.unwrap_or_else(|error| panic!("{error}: {sql}"));
        assert_eq!(prepared.sql().as_str(), sql);
    }
}
