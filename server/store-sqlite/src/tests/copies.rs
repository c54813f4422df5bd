//! Copies of the whole database, and backups of the file.

use std::collections::BTreeSet;
use std::path::Path;

use catalog::commits::store::CommitStore;
use catalog::finding::Verdict;
use catalog::tabulars::TabularStore;
use catalog::testing::scratch_folder;
use catalog::testing::world::{World, create, ident};
use catalog::transfer::{TABLES, Target};

use crate::{BackupError, OpenError, SqliteStore, SqliteTransfer, backup, examine};

/// What has no copy: numbers of this file, and what is of SQLite, of the migrator or of the copy itself.
const LEFT_BEHIND: &str = "outbox.serial";
const NO_STATE: [&str; 2] = ["_sqlx_migrations", "copy_under_way"];

#[tokio::test]
async fn every_column_is_copied() {
    let folder = scratch_folder().unwrap();
    let store = SqliteStore::open(&folder.path().join("frazil.db")).await.unwrap();
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT s.name, c.name FROM sqlite_schema s, pragma_table_info(s.name) c
          WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite%'",
    )
    .fetch_all(&store.readers)
    .await
    .unwrap();
    let columns = columns.into_iter().filter(|(table, _)| !NO_STATE.contains(&table.as_str()));
    let all: BTreeSet<String> = columns.map(|(table, column)| format!("{table}.{column}")).collect();
    let copied =
        TABLES.iter().flat_map(|table| table.columns.iter().map(|column| format!("{}.{}", table.name, column.name)));
    let told: BTreeSet<String> = copied.chain([LEFT_BEHIND.to_owned()]).collect();
    assert_eq!(told, all);
}

#[tokio::test]
async fn a_copy_that_has_not_ended_is_not_served() {
    let folder = scratch_folder().unwrap();
    let path = folder.path().join("frazil.db");
    let mut copy = SqliteTransfer::target(&path).await.unwrap();
    copy.begin(0).await.unwrap();
    drop(copy);
    assert!(matches!(SqliteStore::open(&path).await, Err(OpenError::HalfCopied)));
    assert!(matches!(SqliteTransfer::source(&path).await, Err(OpenError::HalfCopied)));
    SqliteTransfer::target(&path).await.unwrap().end().await.unwrap();
    SqliteStore::open(&path).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_served_is_not_copied_and_one_that_is_not_there_is_not_made() {
    let folder = scratch_folder().unwrap();
    let path = folder.path().join("frazil.db");
    let missing = SqliteTransfer::source(&path).await;
    assert!(matches!(missing, Err(OpenError::Missing { .. })) && !path.exists());
    let _served = SqliteStore::open(&path).await.unwrap();
    assert!(matches!(SqliteTransfer::source(&path).await, Err(OpenError::InUse { .. })));
}

#[tokio::test]
async fn a_backup_of_a_file_in_use_holds_what_was_committed() {
    let folder = scratch_folder().unwrap();
    let (path, to) = (folder.path().join("frazil.db"), folder.path().join("backup.db"));
    let store = SqliteStore::open(&path).await.unwrap();
    let world = World::new(&store).await.unwrap();
    let swap = world.swap(vec![create("t").unwrap()]);
    store.swap(&swap).await.unwrap();
    std::fs::write(folder.path().join("backup.db.part"), "of a backup that was cut off").unwrap();
    backup(&path, &to).await.unwrap();
    let late = world.swap(vec![create("late").unwrap()]);
    store.swap(&late).await.unwrap();
    let restored = SqliteStore::open(&to).await.unwrap();
    assert!(restored.pointer(swap.warehouse, &ident("t").unwrap()).await.unwrap().is_some());
    assert!(restored.pointer(swap.warehouse, &ident("late").unwrap()).await.unwrap().is_none());
    assert!(!folder.path().join("backup.db.part").exists());
    assert!(matches!(backup(&path, &to).await, Err(BackupError::Exists { .. })));
}

async fn verdict(path: &Path) -> Verdict {
    examine(path).await.into_iter().map(|finding| finding.verdict).max().unwrap()
}

#[tokio::test]
async fn a_file_is_examined_while_it_is_used() {
    let folder = scratch_folder().unwrap();
    let path = folder.path().join("frazil.db");
    assert_eq!(verdict(&path).await, Verdict::Warning);
    assert!(!path.exists());
    let _served = SqliteStore::open(&path).await.unwrap();
    assert_eq!(verdict(&path).await, Verdict::Ok);
    let no_database = folder.path().join("no.db");
    std::fs::write(&no_database, "a text that is no database, however long it may be").unwrap();
    assert_eq!(verdict(&no_database).await, Verdict::Failed);
}
