//! Copies of the whole database.

use std::collections::BTreeSet;

use catalog::transfer::{TABLES, Target};
use sqlx::PgPool;

use super::{connect, options};
use crate::{OpenError, PostgresTransfer};

/// What has no copy: numbers of this cluster, and what is of the migrator or of the copy itself.
const LEFT_BEHIND: [&str; 2] = ["outbox.xid", "outbox.serial"];
const NO_STATE: [&str; 2] = ["_sqlx_migrations", "copy_under_way"];

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn every_column_is_copied(pool: PgPool) {
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = current_schema()",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    let columns = columns.into_iter().filter(|(table, _)| !NO_STATE.contains(&table.as_str()));
    let all: BTreeSet<String> = columns.map(|(table, column)| format!("{table}.{column}")).collect();
    let copied =
        TABLES.iter().flat_map(|table| table.columns.iter().map(|column| format!("{}.{}", table.name, column.name)));
    let told: BTreeSet<String> = copied.chain(LEFT_BEHIND.map(str::to_owned)).collect();
    assert_eq!(told, all);
}

#[sqlx::test(migrations = false)]
async fn a_copy_that_has_not_ended_is_not_served(pool: PgPool) {
    let url = options(&pool).url;
    let mut copy = PostgresTransfer::target(&url).await.unwrap();
    copy.begin(0).await.unwrap();
    assert!(matches!(connect(&pool).await, Err(OpenError::HalfCopied)));
    assert!(matches!(PostgresTransfer::source(&url).await, Err(OpenError::HalfCopied)));
    copy.end().await.unwrap();
    connect(&pool).await.unwrap().pool.now().close().await;
}

#[sqlx::test(migrations = false)]
async fn a_database_that_is_served_is_not_copied(pool: PgPool) {
    let url = options(&pool).url;
    let served = connect(&pool).await.unwrap();
    for refused in [PostgresTransfer::source(&url).await, PostgresTransfer::target(&url).await] {
        assert!(matches!(refused, Err(OpenError::InUse { .. })), "{refused:?}");
    }
    served.pool.now().close().await;
}
