//! Cases of [`crate::events::EventStore`].

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::world::{AT_MS, Checked, RACERS, World, create, drop_of, ident, replace, step};
use crate::commits::store::{PointerChange, Swap, SwapOutcome};
use crate::events::{Cursor, Event, What};
use crate::store::Store;
use crate::tabulars::{Pointer, TabularKind};

/// A commit to that table.
pub(super) fn event(table: &Pointer, world: &World<'_>) -> Checked<Event> {
    Ok(Event {
        warehouse: world.warehouse,
        tabular: table.id,
        kind: table.kind,
        uuid: table.uuid,
        ident: ident("t")?,
        what: What::Committed,
        metadata_location: table.metadata_location.clone(),
        snapshot_id: None,
        ref_name: None,
        at_ms: AT_MS,
    })
}

fn telling(world: &World<'_>, change: PointerChange, events: &[Event]) -> Swap {
    let mut swap = world.swap(vec![change]);
    swap.events = events.to_vec();
    swap
}

/// Whatever is told after `after`, in pages, until there are `count`: transactions of others may hold them back a while.
async fn told(store: &dyn Store, mut after: Option<Cursor>, limit: u32, count: usize) -> Checked<Vec<(Cursor, Event)>> {
    let read = async {
        let mut told = Vec::new();
        while told.len() < count {
            let page = store.events(after.as_ref(), limit).await?;
            assert!(page.len() <= limit as usize);
            after = page.last().map(|(cursor, _)| cursor.clone()).or(after);
            told.extend(page);
            tokio::task::yield_now().await;
        }
        Ok(told)
    };
    timeout(Duration::from_secs(120), read).await?
}

async fn events(store: &dyn Store, after: Option<Cursor>, limit: u32, count: usize) -> Checked<Vec<Event>> {
    Ok(told(store, after, limit, count).await?.into_iter().map(|(_, event)| event).collect())
}

/// Tells one more event, which is all that there is.
pub(super) async fn assert_silent(world: &World<'_>) -> Checked {
    let made = world.table("last").await?;
    let last = Event { what: What::Dropped, ..event(&made, world)? };
    let swap = telling(world, drop_of(&made), std::slice::from_ref(&last));
    assert_eq!(world.store.swap(&swap).await?, SwapOutcome::Applied);
    assert_eq!(events(world.store, None, 100, 1).await?, [last]);
    Ok(())
}

pub async fn an_event_comes_back_as_it_was_told(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let bare = event(&made, &world)?;
    let every = [What::Created, What::Committed, What::Registered, What::Renamed, What::Dropped];
    let mut all = every.map(|what| Event { what, ..bare.clone() }).to_vec();
    all.push(Event { kind: TabularKind::View, snapshot_id: Some(i64::MIN), ref_name: Some("b\0".into()), ..bare });
    for change in [step(&made), create("u")?, drop_of(&made)] {
        let swap = telling(&world, change, &all);
        store.swap(&swap).await?;
    }
    // The drop came too late.
    assert_eq!(events(store, None, 100, 2 * all.len()).await?, [all.clone(), all].concat());
    Ok(())
}

pub async fn events_are_read_in_pages_from_any_place_on(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let mut now = world.table("t").await?;
    let mut all = Vec::new();
    for n in 0..6 {
        let pair = [0, 1].map(|of_two| n * 2 + of_two);
        let change = if n % 2 == 0 { step(&now) } else { replace(&now, now.uuid, &format!("file:///w/{n}")) };
        let base = event(&now, &world)?;
        let events = pair.map(|snapshot_id| Event { snapshot_id: Some(snapshot_id), ..base.clone() });
        assert_eq!(store.swap(&telling(&world, change, &events)).await?, SwapOutcome::Applied);
        all.extend(events);
        now = world.pointer("t").await?;
    }
    for limit in [1, 5, 12, 100] {
        assert_eq!(events(store, None, limit, all.len()).await?, all, "{limit}");
    }
    for (n, (cursor, _)) in told(store, None, 100, all.len()).await?.into_iter().enumerate() {
        let after = &all[n + 1..];
        assert_eq!(events(store, Some(cursor), 5, after.len()).await?, after);
    }
    assert!(store.events(Some(&Cursor("odd".to_owned())), 1).await.is_err());
    Ok(())
}

pub async fn a_swap_that_is_not_applied_tells_nothing(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let old = world.table("t").await?;
    world.must(step(&old)).await?;
    for change in [step(&old), create("t")?, drop_of(&old)] {
        let swap = telling(&world, change, &[event(&old, &world)?]);
        assert_ne!(store.swap(&swap).await?, SwapOutcome::Applied);
    }
    assert_silent(&world).await
}

/// Commits to many tables at once beside a reader: it sees each event once, and those of a table in the order of their
/// commits.
pub async fn a_reader_beside_racing_commits_misses_and_doubles_nothing(store: &dyn Store) -> Checked {
    const COMMITS: i64 = 10;
    let world = World::new(store).await?;
    let all = RACERS * COMMITS as usize;
    let mut tables = Vec::new();
    for n in 0..RACERS {
        tables.push((format!("t{n}"), world.table(&format!("t{n}")).await?));
    }
    let commit = async |(name, table): &(String, Pointer)| -> Checked {
        let mut now = table.clone();
        for n in 0..COMMITS {
            let told = Event { snapshot_id: Some(n), ..event(&now, &world)? };
            let change = if n % 3 == 2 { replace(&now, now.uuid, &format!("{}x", now.location)) } else { step(&now) };
            assert_eq!(store.swap(&telling(&world, change, &[told])).await?, SwapOutcome::Applied);
            now = world.pointer(name).await?;
        }
        Ok(())
    };
    let (committed, read) = futures::join!(join_all(tables.iter().map(commit)), events(store, None, 7, all));
    committed.into_iter().collect::<Checked<Vec<()>>>()?;
    let mut last = HashMap::new();
    for event in read? {
        let before = last.insert(event.uuid, event.snapshot_id).flatten();
        assert_eq!(event.snapshot_id, Some(before.map_or(0, |before: i64| before + 1)));
    }
    assert!(last.values().all(|last| *last == Some(COMMITS - 1)) && last.len() == RACERS);
    Ok(())
}

pub async fn old_events_are_forgotten_oldest_first(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let base = event(&made, &world)?;
    let aged = [2, 3, 0, 1].map(|age| Event { at_ms: AT_MS - age, ..base.clone() });
    assert_eq!(store.swap(&telling(&world, step(&made), &aged)).await?, SwapOutcome::Applied);
    let second = told(store, None, 9, 4).await?.swap_remove(1).0;
    let left = async || -> Checked<Vec<i64>> {
        Ok(store.events(None, 9).await?.iter().map(|(_, event)| AT_MS - event.at_ms).collect())
    };
    assert_eq!(store.forget_events(AT_MS, 2).await?, 2);
    assert_eq!(left().await?, [0, 1]);
    assert_eq!(store.forget_events(AT_MS, 100).await?, 1);
    assert_eq!(store.forget_events(AT_MS, 100).await?, 0);
    assert_eq!(left().await?, [0]);
    // A place outlives the events before it, and no later event comes before it.
    let now = world.pointer("t").await?;
    assert_eq!(store.forget_events(AT_MS + 1, 100).await?, 1);
    let next = Event { snapshot_id: Some(1), ..base };
    assert_eq!(store.swap(&telling(&world, step(&now), std::slice::from_ref(&next))).await?, SwapOutcome::Applied);
    assert_eq!(events(store, Some(second), 9, 1).await?, [next]);
    Ok(())
}
