//! The conformance suite, and what only PostgreSQL can show.

use std::cell::Cell;
use std::time::Duration;

use catalog::commits::store::{CommitStore, Resolution, Swap, SwapOutcome};
use catalog::idempotency::Answer;
use catalog::ident::AttemptId;
use catalog::store::{Page, StoreError};
use catalog::tabulars::Pointer;
use catalog::testing::world::{AT_MS, World, create_at, replace};
use catalog::warehouses::store::WarehouseStore;
use sqlx::{ConnectOptions, Executor};
use uuid::Uuid;

use super::*;
use crate::sessions::{BOUNDS, missing_bounds};

mod copies;
mod outbox;
mod release;

catalog::store_conformance!(#[sqlx::test(migrator = "crate::MIGRATOR")] (pool: PgPool) {
    (PostgresStore::over(pool), ())
});

/// A move of table `t`: in one statement, or, where its location changes too, in a transaction of several.
async fn step_to(world: &World<'_>, location: &str) -> Swap {
    let from = table(world).await;
    world.swap(vec![replace(&from, from.uuid, location)])
}

/// Table `t`, even if the first connections to be had are dead.
async fn table(world: &World<'_>) -> Pointer {
    loop {
        if let Ok(table) = world.pointer("t").await {
            return table;
        }
    }
}

async fn settled(store: &PostgresStore, swap: &Swap) -> Resolution {
    loop {
        match store.resolve(swap.attempt, AT_MS).await {
            Ok(Resolution::Pending) | Err(_) => tokio::task::yield_now().await,
            Ok(resolution) => return resolution,
        }
    }
}

/// Ends every other session that is in the middle of something in this database, and counts them.
const TERMINATE: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                          WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'";

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_swap_whose_backend_is_terminated_while_it_waits_is_in_doubt_and_then_aborted(pool: PgPool) {
    let store = PostgresStore::over(pool.clone());
    let world = World::new(&store).await.unwrap();
    let before = world.table("t").await.unwrap();
    let mut killer = pool.acquire().await.unwrap();
    let mut held = pool.begin().await.unwrap();
    held.execute("SELECT id FROM tabular FOR UPDATE").await.unwrap();
    let swap = step_to(&world, &before.location).await;
    let kill = async {
        let waiting = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut *killer).await.unwrap() == 0 {}
    };
    let (swapped, ()) = tokio::join!(store.swap(&swap), kill);
    assert!(matches!(swapped, Err(StoreError::OutcomeUnknown(_))), "{swapped:?}");
    held.rollback().await.unwrap();
    assert_eq!(settled(&store, &swap).await, Resolution::Aborted);
    assert_eq!(world.pointer("t").await.unwrap(), before);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn whatever_is_concluded_of_terminated_swaps_is_true(pool: PgPool) {
    let store = PostgresStore::over(pool.clone());
    let world = World::new(&store).await.unwrap();
    world.must(create_at("t", "file:///w/t0").unwrap()).await.unwrap();
    let mut killer = pool.acquire().await.unwrap();
    let mut version = 1;
    for n in 0..100 {
        // Of two that follow each other, the first changes the location and the second does not.
        let swap = step_to(&world, &format!("file:///w/t{}", n / 2 % 2)).await;
        let ended = Cell::new(false);
        let swapped = async {
            let swapped = store.swap(&swap).await;
            ended.set(true);
            swapped
        };
        let kill = async {
            for _ in 0..n % 7 {
                tokio::task::yield_now().await;
            }
            while !ended.get() && sqlx::query_scalar::<_, i64>(TERMINATE).fetch_one(&mut *killer).await.unwrap() == 0 {}
        };
        let applied = match tokio::join!(swapped, kill).0 {
            Ok(outcome) => outcome == SwapOutcome::Applied,
            Err(StoreError::Aborted(_)) => false,
            Err(StoreError::OutcomeUnknown(_)) => settled(&store, &swap).await == Resolution::Committed,
        };
        version += i64::from(applied);
        assert_eq!(table(&world).await.version, version, "swap {n}");
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_attempt_under_way_is_pending_and_then_what_it_came_to(pool: PgPool) {
    let store = PostgresStore::over(pool.clone());
    for (end, resolution) in [("COMMIT", Resolution::Committed), ("ROLLBACK", Resolution::Aborted)] {
        let attempt = AttemptId(Uuid::now_v7());
        let mut under_way = pool.begin().await.unwrap();
        sqlx::query("INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'committed', 0)")
            .bind(attempt.0)
            .execute(&mut *under_way)
            .await
            .unwrap();
        assert_eq!(store.resolve(attempt, 0).await.unwrap(), Resolution::Pending);
        under_way.execute(end).await.unwrap();
        assert_eq!(store.resolve(attempt, 0).await.unwrap(), resolution);
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_connection_in_doubt_is_not_used_again(pool: PgPool) {
    let store = PostgresStore::over(pool);
    let conn = store.acquire().await.unwrap();
    let size = store.pool.now().size();
    let in_doubt: Result<(), _> = Err(StoreError::OutcomeUnknown("lost".into()));
    assert!(give_back(conn, in_doubt).is_err());
    assert_eq!(store.pool.now().size(), size - 1);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_lock_that_is_not_to_be_had_aborts_the_swap(pool: PgPool) {
    let store = PostgresStore::over(pool.clone());
    let world = World::new(&store).await.unwrap();
    let made = world.table("t").await.unwrap();
    let mut held = pool.begin().await.unwrap();
    held.execute("SELECT id FROM tabular FOR UPDATE").await.unwrap();
    for location in [&made.location, "file:///w/elsewhere"] {
        let swap = step_to(&world, location).await;
        let options = (*pool.connect_options()).clone();
        let hasty = PgPool::connect_with(options.options([("lock_timeout", "10ms")])).await.unwrap();
        let swapped = PostgresStore::over(hasty.clone()).swap(&swap).await;
        assert!(matches!(swapped, Err(StoreError::Aborted(_))), "{swapped:?}");
        hasty.close().await;
    }
}

/// A stranger holds a key that the swap wants, and then wants the row that the swap holds.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_swap_that_is_the_victim_of_a_deadlock_is_lost(pool: PgPool) {
    let options = (*pool.connect_options()).clone().options([("deadlock_timeout", "3s")]);
    let quick_to_look = PgPool::connect_with(options).await.unwrap();
    let store = PostgresStore::over(quick_to_look.clone());
    let world = World::new(&store).await.unwrap();
    let made = world.table("t").await.unwrap();
    for location in [&made.location, "file:///w/elsewhere"] {
        let mut swap = step_to(&world, location).await;
        swap.receipts = vec![world.receipt(Answer::Empty)];
        let mut stranger = pool.begin().await.unwrap();
        stranger.execute("SET LOCAL deadlock_timeout = '60s'").await.unwrap();
        sqlx::query("INSERT INTO idempotency_key VALUES ($1, $2, sha256(''), '', 0)")
            .bind(swap.warehouse.0)
            .bind(swap.receipts[0].key)
            .execute(&mut *stranger)
            .await
            .unwrap();
        let meet = async {
            let waiting = "SELECT count(*) FROM pg_stat_activity
                            WHERE datname = current_database() AND wait_event_type = 'Lock'";
            while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&pool).await.unwrap() == 0 {}
            stranger.execute("SELECT id FROM tabular FOR UPDATE").await.unwrap();
            stranger.rollback().await.unwrap();
        };
        let (swapped, ()) = tokio::join!(store.swap(&swap), meet);
        assert_eq!(swapped.unwrap(), SwapOutcome::Lost);
        assert_eq!(store.swap(&swap).await.unwrap(), SwapOutcome::Applied);
    }
    quick_to_look.close().await;
}

/// A move of the pointer stays on its page only while no index holds what it changes.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn no_index_holds_what_a_move_changes(pool: PgPool) {
    let indexed: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT attname::text FROM pg_index
           JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey)
          WHERE indrelid = 'tabular'::regclass",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert!(indexed.contains(&"name".into()));
    for moved in ["metadata_location", "version"] {
        assert!(!indexed.contains(&moved.into()), "{moved} is indexed");
    }
}

fn options(pool: &PgPool) -> PostgresOptions {
    let url = pool.connect_options().to_url_lossy();
    PostgresOptions { connections: 2, wait: Duration::from_secs(30), ..PostgresOptions::at(url) }
}

async fn connect(pool: &PgPool) -> Result<PostgresStore, OpenError> {
    PostgresStore::connect(&options(pool)).await
}

#[sqlx::test(migrations = false)]
async fn replicas_that_start_on_an_empty_database_all_come_up(pool: PgPool) {
    let started = tokio::join!(connect(&pool), connect(&pool), connect(&pool), connect(&pool));
    for store in [started.0, started.1, started.2, started.3] {
        let store = store.unwrap();
        store.ping().await.unwrap();
        assert!(store.warehouses(&Page::ALL).await.unwrap().is_empty());
        store.pool.now().close().await;
    }
}

#[sqlx::test(migrations = false)]
async fn every_session_has_its_bounds_and_waits_for_durable_commits(pool: PgPool) {
    let store = connect(&pool).await.unwrap();
    // The role has its bounds too, in sessions that begin from now on.
    let mut fresh = PgConnection::connect_with(&pool.connect_options()).await.unwrap();
    let mut ours = store.acquire().await.unwrap();
    for (name, value) in BOUNDS {
        for session in [&mut fresh, &mut *ours] {
            let setting = sqlx::query_scalar("SELECT setting FROM pg_settings WHERE name = $1").bind(name);
            let set: String = setting.fetch_one(session).await.unwrap();
            assert_eq!(set, value, "{name}");
        }
    }
    drop((fresh, ours));
    let statement_timeout: String = sqlx::query_scalar("SHOW statement_timeout").fetch_one(&store.pool).await.unwrap();
    assert_eq!(statement_timeout, "30s");
    assert!(missing_bounds(&store.pool.now()).await.unwrap().is_empty());
    let shown: String = sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&store.pool).await.unwrap();
    assert_eq!(shown, "on");
    store.pool.now().close().await;
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_session_without_its_bounds_is_found_out(pool: PgPool) {
    // As behind a pooler that drops them, with a role that has none either.
    let options = (*pool.connect_options()).clone().options(BOUNDS.map(|(name, _)| (name, "0")));
    let unbounded = PgPool::connect_with(options).await.unwrap();
    assert_eq!(
        missing_bounds(&unbounded).await.unwrap(),
        ["idle_in_transaction_session_timeout", "lock_timeout", "tcp_user_timeout"]
    );
    unbounded.close().await;
}

#[sqlx::test(migrations = false)]
async fn the_role_keeps_the_bounds_in_this_database_alone(pool: PgPool) {
    connect(&pool).await.unwrap().pool.now().close().await;
    let kept = "SELECT setconfig FROM pg_db_role_setting
                 WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
                   AND setrole = current_user::regrole";
    let kept: Vec<String> = sqlx::query_scalar(kept).fetch_one(&pool).await.unwrap();
    assert_eq!(kept, BOUNDS.map(|(name, value)| format!("{name}={value}")));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_schema_of_a_later_version_is_refused(pool: PgPool) {
    pool.execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'later', true, '', 0)",
    )
    .await
    .unwrap();
    let refused = connect(&pool).await.unwrap_err();
    assert!(matches!(refused, OpenError::SchemaTooNew { version: 9999 }), "{refused}");
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn sessions_that_do_not_wait_for_their_commits_are_refused(pool: PgPool) {
    let hasty = (*pool.connect_options()).clone().options([("synchronous_commit", "off")]);
    let hasty = PgPool::connect_with(hasty).await.unwrap();
    let refused = sessions::check_settings(&hasty).await.unwrap_err();
    assert!(matches!(&refused, OpenError::NotDurable { set } if set == "off"), "{refused}");
    hasty.close().await;
}

#[sqlx::test(migrations = false)]
async fn a_schema_that_is_not_up_to_date_is_refused_until_it_is(pool: PgPool) {
    let options = options(&pool);
    assert!(matches!(PostgresStore::open(&options).await, Err(OpenError::SchemaTooOld)));
    connect(&pool).await.unwrap().pool.now().close().await;
    PostgresStore::open(&options).await.unwrap().pool.now().close().await;
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_an_error() {
    let unreachable = PostgresOptions::at("postgres://localhost:1/frazil?sslmode=disable");
    let refused = PostgresStore::connect(&unreachable).await;
    assert!(matches!(refused, Err(OpenError::Connect(_))));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_warehouse_that_cannot_be_read_is_listed_as_such(pool: PgPool) {
    let store = PostgresStore::over(pool.clone());
    for name in ["a", "b"] {
        World::bare(&store, name).await.unwrap();
    }
    pool.execute("UPDATE warehouse SET root = 'odd' WHERE name = 'a'").await.unwrap();
    let listed = store.warehouses(&Page::ALL).await.unwrap();
    let readable: Vec<_> = listed.iter().map(|listed| (listed.name.as_str(), listed.warehouse.is_ok())).collect();
    assert_eq!(readable, [("a", false), ("b", true)]);
}
