//! The order of events beside transactions that commit late.

use catalog::commits::store::PointerChange;
use catalog::events::{Cursor, Event, EventStore, What};
use catalog::testing::world::step;

use super::*;

async fn telling(world: &World<'_>, change: PointerChange, snapshot_id: i64) -> Swap {
    let table = table(world).await;
    let told = Event {
        warehouse: world.warehouse,
        tabular: table.id,
        kind: table.kind,
        uuid: table.uuid,
        ident: catalog::testing::world::ident("t").unwrap(),
        what: What::Committed,
        metadata_location: table.metadata_location,
        snapshot_id: Some(snapshot_id),
        ref_name: None,
        at_ms: AT_MS,
    };
    Swap { events: vec![told], ..world.swap(vec![change]) }
}

/// Reads on from `after` until `count` more are told: sessions in other databases of the cluster hold them back too.
async fn read_on(store: &PostgresStore, after: &mut Option<Cursor>, count: usize) -> Vec<Option<i64>> {
    let mut told = Vec::new();
    while told.len() < count {
        for (cursor, event) in store.events(after.as_ref(), 1).await.unwrap() {
            *after = Some(cursor);
            told.push(event.snapshot_id);
        }
    }
    told
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn an_event_whose_transaction_commits_late_is_not_passed_over(pool: PgPool) {
    let store = PostgresStore::over(pool.clone());
    let world = World::new(&store).await.unwrap();
    world.table("t").await.unwrap();
    let mut late = pool.begin().await.unwrap();
    late.execute(
        "INSERT INTO outbox (warehouse_id, tabular_id, kind, table_uuid, namespace, name, what, metadata_location,
                             snapshot_id, at_ms)
         SELECT warehouse_id, id, kind, uuid, '[\"ns\"]', name, 'committed', metadata_location, 1, 0 FROM tabular",
    )
    .await
    .unwrap();
    for snapshot_id in [2, 3] {
        let swap = telling(&world, step(&table(&world).await), snapshot_id).await;
        assert_eq!(store.swap(&swap).await.unwrap(), SwapOutcome::Applied);
    }
    // What is committed already stays unseen while what comes before it may still appear.
    assert!(store.events(None, 9).await.unwrap().is_empty());
    let mut after = None;
    late.commit().await.unwrap();
    let one = read_on(&store, &mut after, 1).await;
    let two = read_on(&store, &mut after, 2).await;
    assert_eq!([one, two].concat(), [1, 2, 3].map(Some));
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_serial_that_is_given_before_an_older_transaction_gets_its_own_does_not_pass_it(pool: PgPool) {
    let store = PostgresStore::over(pool.clone());
    let world = World::new(&store).await.unwrap();
    world.table("t").await.unwrap();
    let mut older = pool.begin().await.unwrap();
    older.execute("SELECT pg_current_xact_id()").await.unwrap();
    let swap = telling(&world, step(&table(&world).await), 2).await;
    assert_eq!(store.swap(&swap).await.unwrap(), SwapOutcome::Applied);
    older
        .execute(
            "INSERT INTO outbox (warehouse_id, tabular_id, kind, table_uuid, namespace, name, what, metadata_location,
                                 snapshot_id, at_ms)
             SELECT warehouse_id, id, kind, uuid, '[\"ns\"]', name, 'committed', metadata_location, 1, 0 FROM tabular",
        )
        .await
        .unwrap();
    older.commit().await.unwrap();
    assert_eq!(read_on(&store, &mut None, 2).await, [1, 2].map(Some));
}

/// Whoever takes a name that another one leaves waits for the lock of both without a transaction id, and so comes second
/// in the outbox too.
#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn who_waits_for_the_warehouse_has_no_transaction_id_yet(pool: PgPool) {
    let store = PostgresStore::over(pool.clone());
    let world = World::new(&store).await.unwrap();
    let made = world.table("t").await.unwrap();
    let mut held = pool.begin().await.unwrap();
    held.execute("SELECT id FROM warehouse FOR NO KEY UPDATE").await.unwrap();
    let drop_and_look = async {
        let waiting = "SELECT backend_xid::text FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let mut seen = Vec::new();
        while seen.is_empty() {
            seen = sqlx::query_scalar::<_, Option<String>>(waiting).fetch_all(&pool).await.unwrap();
        }
        held.rollback().await.unwrap();
        seen
    };
    let swap = world.swap(vec![catalog::testing::world::drop_of(&made)]);
    let (dropped, seen) = tokio::join!(store.swap(&swap), drop_and_look);
    assert_eq!((dropped.unwrap(), seen), (SwapOutcome::Applied, vec![None]));
}
