//! The conformance suite, and what only SQLite can show.

use catalog::commits::store::{CommitStore, Resolution, Swap, SwapOutcome};
use catalog::ident::AttemptId;
use catalog::principals::store::{PrincipalStore, StoredKey};
use catalog::tabulars::TabularStore;
use catalog::testing::scratch_folder;
use catalog::testing::world::{AT_MS, World, create, ident, with_lineage};
use sqlx::{ConnectOptions, Executor};
use uuid::Uuid;

use super::*;

mod copies;
mod managed;
mod registers;
mod release;

catalog::store_conformance!(#[tokio::test] () {
    let folder = scratch_folder().unwrap();
    (SqliteStore::open(&folder.path().join("frazil.db")).await.unwrap(), folder)
});

#[test]
fn no_statement_has_a_bare_bound() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains(concat!("LIMIT ", "$")), "{}: write LIMIT +$n", path.display());
            }
        }
    }
}

#[tokio::test]
async fn a_second_server_on_the_same_file_is_refused() {
    let folder = scratch_folder().unwrap();
    let path = folder.path().join("deeper/frazil.db");
    let first = SqliteStore::open(&path).await.unwrap();
    let refused = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(&refused, OpenError::InUse { path: used } if *used == path));
    assert!(refused.to_string().contains("in use by another frazil"));
    first.ping().await.unwrap();
    drop(first);
    SqliteStore::open(&path).await.unwrap();
}

#[tokio::test]
async fn principals_can_be_made_beside_the_server_that_has_the_file() {
    let folder = scratch_folder().unwrap();
    let path = folder.path().join("frazil.db");
    assert!(SqliteStore::open_beside(&path).await.is_err(), "there is no file yet");
    let first = SqliteStore::open(&path).await.unwrap();
    let beside = SqliteStore::open_beside(&path).await.unwrap();
    let key = StoredKey { id: Uuid::now_v7(), secret: "s".to_owned(), created_at_ms: AT_MS };
    assert_eq!(beside.signing_key(&key).await.unwrap(), key);
    let other = StoredKey { id: Uuid::now_v7(), ..key.clone() };
    assert_eq!(first.signing_key(&other).await.unwrap(), key);
    first.writer.execute("DELETE FROM _sqlx_migrations WHERE version > 1").await.unwrap();
    let refused = SqliteStore::open_beside(&path).await.unwrap_err();
    assert!(matches!(refused, OpenError::SchemaTooOld), "{refused}");
}

#[tokio::test]
async fn what_was_committed_is_there_after_a_restart() {
    let folder = scratch_folder().unwrap();
    let path = folder.path().join("frazil.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let world = World::new(&store).await.unwrap();
    let swap = world.swap(vec![create("t").unwrap()]);
    assert_eq!(store.swap(&swap).await.unwrap(), SwapOutcome::Applied);
    drop(store);
    let store = SqliteStore::open(&path).await.unwrap();
    let ident = ident("t").unwrap();
    assert!(store.pointer(swap.warehouse, &ident).await.unwrap().is_some());
    assert_eq!(store.resolve(swap.attempt, AT_MS).await.unwrap(), Resolution::Committed);
}

#[tokio::test]
async fn a_schema_of_a_later_version_is_refused() {
    let folder = scratch_folder().unwrap();
    let path = folder.path().join("frazil.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9999, 'later', true, x'', 0)";
    store.writer.execute(later).await.unwrap();
    drop(store);
    let refused = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(refused, OpenError::SchemaTooNew { version: 9999 }), "{refused}");
}

#[tokio::test]
async fn commits_are_synced_and_readers_cannot_write() {
    let folder = scratch_folder().unwrap();
    let store = SqliteStore::open(&folder.path().join("frazil.db")).await.unwrap();
    for (pragma, expected) in [("synchronous", "2"), ("foreign_keys", "1"), ("journal_mode", "wal")] {
        let sql = sqlx::AssertSqlSafe(format!("SELECT CAST({pragma} AS text) FROM pragma_{pragma}"));
        let set: String = sqlx::query_scalar(sql).fetch_one(&store.writer).await.unwrap();
        assert_eq!(set, expected, "{pragma}");
    }
    assert!(store.readers.execute("DELETE FROM attempt").await.is_err());
}

#[tokio::test]
async fn a_disk_that_fills_up_leaves_nothing_of_a_swap() {
    let folder = scratch_folder().unwrap();
    let store = SqliteStore::open(&folder.path().join("frazil.db")).await.unwrap();
    let world = World::new(&store).await.unwrap();
    let snapshots: Vec<i64> = (0..20_000).collect();
    let swap = world.swap(vec![with_lineage(create("t").unwrap(), &snapshots)]);
    // The connection may not let the file grow.
    store.writer.execute("PRAGMA max_page_count = 1").await.unwrap();
    let full = store.swap(&swap).await;
    assert!(matches!(full, Err(StoreError::OutcomeUnknown(_))), "{full:?}");
    // The next connection may, for the one in doubt is gone.
    assert_eq!(store.resolve(swap.attempt, AT_MS).await.unwrap(), Resolution::Aborted);
    assert_eq!(world.find("t").await.unwrap(), None);
    let again = Swap { attempt: AttemptId(Uuid::now_v7()), ..swap };
    assert_eq!(store.swap(&again).await.unwrap(), SwapOutcome::Applied);
}

#[tokio::test]
async fn a_file_that_is_busy_aborts_a_swap_and_keeps_a_resolver_waiting() {
    let folder = scratch_folder().unwrap();
    let path = folder.path().join("frazil.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let world = World::new(&store).await.unwrap();
    let swap = world.swap(vec![create("t").unwrap()]);
    let mut stranger = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    let held = stranger.begin_with(BEGIN).await.unwrap();
    store.writer.execute("PRAGMA busy_timeout = 1").await.unwrap();
    let busy = store.swap(&swap).await;
    assert!(matches!(busy, Err(StoreError::Aborted(_))), "{busy:?}");
    assert_eq!(store.resolve(swap.attempt, AT_MS).await.unwrap(), Resolution::Pending);
    held.rollback().await.unwrap();
    assert_eq!(store.resolve(swap.attempt, AT_MS).await.unwrap(), Resolution::Aborted);
    assert_eq!(world.find("t").await.unwrap(), None);
}

#[tokio::test]
async fn a_reader_at_an_old_state_keeps_a_resolver_waiting() {
    let folder = scratch_folder().unwrap();
    let store = SqliteStore::open(&folder.path().join("frazil.db")).await.unwrap();
    let world = World::new(&store).await.unwrap();
    let swap = world.swap(vec![create("t").unwrap()]);
    let mut reader = store.readers.begin().await.unwrap();
    reader.execute("SELECT count(*) FROM attempt").await.unwrap();
    assert_eq!(store.swap(&swap).await.unwrap(), SwapOutcome::Applied);
    store.writer.execute("PRAGMA busy_timeout = 1").await.unwrap();
    assert_eq!(store.resolve(swap.attempt, AT_MS).await.unwrap(), Resolution::Pending);
    reader.rollback().await.unwrap();
    assert_eq!(store.resolve(swap.attempt, AT_MS).await.unwrap(), Resolution::Committed);
}
