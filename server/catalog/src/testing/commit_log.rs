//! Cases of [`crate::commits::log::LogStore`].

use uuid::Uuid;

use super::world::{AT_MS, Checked, World, create, drop_of, ident, replace, step};
use crate::commits::identity::{Position, Writer, WriterKind};
use crate::commits::log::{LogEntry, Outcome, Wanted};
use crate::commits::store::SwapOutcome;
use crate::ident::AttemptId;
use crate::store::{Store, StoreError};

fn entry(world: &World<'_>, table_uuid: Uuid) -> Checked<LogEntry> {
    Ok(LogEntry {
        id: Uuid::now_v7(),
        warehouse: world.warehouse,
        table_uuid,
        ident: ident("t")?,
        at_ms: AT_MS,
        request_id: "r".to_owned(),
        principal: "p".to_owned(),
        idempotency_key: None,
        snapshot_id: None,
        ref_name: None,
        writer: None,
        position: None,
        outcome: Outcome::Committed,
        attempt: None,
        duplicate_of: None,
        detail: None,
        waited_ms: 0,
        group_size: 1,
        attempts: 1,
    })
}

/// With everything that an entry can say.
fn full(world: &World<'_>, table_uuid: Uuid) -> Checked<LogEntry> {
    Ok(LogEntry {
        request_id: "r\0".to_owned(),
        principal: "\u{1}\u{2}".to_owned(),
        idempotency_key: Some(Uuid::now_v7()),
        snapshot_id: Some(i64::MIN),
        ref_name: Some("b\0".to_owned()),
        writer: Some(Writer { kind: WriterKind::KafkaConnect, id: "k\0".to_owned(), part: String::new() }),
        position: Some(Position::Mark("\0".to_owned())),
        outcome: Outcome::Rebased,
        attempt: Some(AttemptId(Uuid::now_v7())),
        duplicate_of: Some(i64::MAX),
        detail: Some("it's \"so\"\0".to_owned()),
        waited_ms: 1 << 40,
        group_size: u32::MAX,
        attempts: 3,
        ..entry(world, table_uuid)?
    })
}

pub async fn an_entry_comes_back_as_it_was_written(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let entries = [entry(&world, made.uuid)?, full(&world, made.uuid)?];
    store.write_log(&[]).await?;
    store.write_log(&entries).await?;
    let [bare, full] = entries;
    assert_eq!(store.read_log(world.warehouse, made.uuid, None, 9).await?, [full, bare]);
    Ok(())
}

pub async fn an_entry_that_is_written_twice_is_there_once(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let first = entry(&world, made.uuid)?;
    let second = LogEntry { outcome: Outcome::InDoubt, ..first.clone() };
    store.write_log(std::slice::from_ref(&first)).await?;
    store.write_log(&[second]).await?;
    assert_eq!(store.read_log(world.warehouse, made.uuid, None, 9).await?, [first]);
    Ok(())
}

pub async fn every_outcome_is_kept(store: &dyn Store) -> Checked {
    use Outcome::{Committed, Conflicted, Duplicate, Failed, InDoubt, Rebased, Refused, Unchanged};
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let outcomes = [Committed, Rebased, Duplicate, Unchanged, Refused, Conflicted, Failed, InDoubt];
    for outcome in outcomes {
        store.write_log(&[LogEntry { outcome, ..entry(&world, made.uuid)? }]).await?;
    }
    let newest_first = store.read_log(world.warehouse, made.uuid, None, 100).await?;
    let kept: Vec<_> = newest_first.iter().rev().map(|entry| entry.outcome).collect();
    assert_eq!(kept, outcomes);
    Ok(())
}

pub async fn the_log_is_read_newest_first_in_pages(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (made, other) = (world.table("t").await?, world.table("u").await?);
    let mut all = Vec::new();
    for _ in 0..7 {
        all.push(entry(&world, made.uuid)?);
        store.write_log(&[entry(&world, other.uuid)?]).await?;
    }
    store.write_log(&all).await?;
    all.reverse();
    for limit in [1, 3, 7, 50] {
        let (mut read, mut before) = (Vec::new(), None);
        loop {
            let page = store.read_log(world.warehouse, made.uuid, before, limit).await?;
            let Some(last) = page.last() else { break };
            assert!(page.len() <= limit as usize);
            before = Some(last.id);
            read.extend(page);
        }
        assert_eq!(read, all, "{limit}");
    }
    let stranger = World::bare(store, "stranger").await?;
    assert!(store.read_log(stranger.warehouse, made.uuid, None, 9).await?.is_empty());
    Ok(())
}

pub async fn a_request_is_found_by_its_key_and_by_its_snapshot(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let key = Uuid::now_v7();
    let first = LogEntry { idempotency_key: Some(key), snapshot_id: Some(5), ..entry(&world, made.uuid)? };
    let again = LogEntry { outcome: Outcome::Duplicate, id: Uuid::now_v7(), ..first.clone() };
    let others = [entry(&world, made.uuid)?, full(&world, made.uuid)?];
    store.write_log(&[vec![first.clone(), again.clone()], others.to_vec()].concat()).await?;
    for wanted in [Wanted::Key(key), Wanted::Snapshot(5)] {
        let found = store.find_log(world.warehouse, made.uuid, wanted, 9).await?;
        assert_eq!(found, [again.clone(), first.clone()]);
        assert_eq!(store.find_log(world.warehouse, made.uuid, wanted, 1).await?, vec![again.clone()]);
        assert!(store.find_log(world.warehouse, Uuid::now_v7(), wanted, 9).await?.is_empty());
    }
    for wanted in [Wanted::Key(Uuid::now_v7()), Wanted::Snapshot(6)] {
        assert!(store.find_log(world.warehouse, made.uuid, wanted, 9).await?.is_empty());
    }
    Ok(())
}

pub async fn the_entries_of_a_swap_are_there_when_it_is(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let old = world.table("t").await?;
    world.must(step(&old)).await?;
    let mut expected = Vec::new();
    for lost in [true, false] {
        for elsewhere in [true, false] {
            let from = if lost { old.clone() } else { world.pointer("t").await? };
            let location = if elsewhere { format!("file:///w/{}", from.version) } else { from.location.clone() };
            let mut swap = world.swap(vec![replace(&from, from.uuid, &location)]);
            swap.log = vec![full(&world, old.uuid)?, entry(&world, old.uuid)?];
            let outcome = store.swap(&swap).await?;
            assert_eq!(outcome, if lost { SwapOutcome::Lost } else { SwapOutcome::Applied });
            expected.extend((!lost).then_some(swap.log).into_iter().flatten());
        }
    }
    expected.reverse();
    assert_eq!(store.read_log(world.warehouse, old.uuid, None, 9).await?, expected);
    Ok(())
}

pub async fn what_comes_after_its_resolver_leaves_no_entry_and_no_event(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    for change in [step(&made), create("u")?, drop_of(&made)] {
        let mut swap = world.swap(vec![change]);
        swap.log = vec![full(&world, made.uuid)?];
        swap.events = vec![super::events::event(&made, &world)?];
        store.resolve(swap.attempt, AT_MS).await?;
        let late = store.swap(&swap).await;
        assert!(matches!(late, Err(StoreError::OutcomeUnknown(_))), "{late:?}");
    }
    assert!(store.read_log(world.warehouse, made.uuid, None, 9).await?.is_empty());
    super::events::assert_silent(&world).await
}

pub async fn old_entries_are_forgotten_oldest_first(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    for age in [2, 3, 0, 1] {
        store.write_log(&[LogEntry { at_ms: AT_MS - age, ..entry(&world, made.uuid)? }]).await?;
    }
    let left = async || -> Checked<Vec<i64>> {
        let read = store.read_log(world.warehouse, made.uuid, None, 9).await?;
        Ok(read.iter().map(|entry| AT_MS - entry.at_ms).collect())
    };
    assert_eq!(store.forget_log(AT_MS, 2).await?, 2);
    assert_eq!(left().await?, [1, 0]);
    assert_eq!(store.forget_log(AT_MS, 100).await?, 1);
    assert_eq!(store.forget_log(AT_MS, 100).await?, 0);
    assert_eq!(left().await?, [0]);
    Ok(())
}
