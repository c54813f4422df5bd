//! Cases of [`crate::commits::store::CommitStore::resolve`].

use uuid::Uuid;

use super::world::{AT_MS, Checked, World, create, drop_of, ident, rename, step, with_lineage};
use crate::commits::store::{Resolution, SwapOutcome};
use crate::idempotency::Answer;
use crate::ident::AttemptId;
use crate::store::{Store, StoreError};

pub async fn an_applied_swap_is_committed_however_often_it_is_asked(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    for changes in [vec![step(&made)], vec![create("u")?]] {
        let swap = world.swap(changes);
        assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
        for _ in 0..3 {
            assert_eq!(store.resolve(swap.attempt, AT_MS).await?, Resolution::Committed);
        }
    }
    Ok(())
}

pub async fn an_attempt_that_never_came_is_aborted(store: &dyn Store) -> Checked {
    let attempt = AttemptId(Uuid::now_v7());
    for _ in 0..2 {
        assert_eq!(store.resolve(attempt, AT_MS).await?, Resolution::Aborted);
    }
    Ok(())
}

pub async fn a_refused_swap_is_aborted(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let old = world.table("t").await?;
    world.must(step(&old)).await?;
    for changes in [vec![step(&old)], vec![create("t")?], vec![drop_of(&old)]] {
        let swap = world.swap(changes);
        assert_ne!(store.swap(&swap).await?, SwapOutcome::Applied);
        assert_eq!(store.resolve(swap.attempt, AT_MS).await?, Resolution::Aborted);
    }
    Ok(())
}

pub async fn a_swap_that_comes_after_its_resolver_does_nothing(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    for change in [step(&made), create("u")?, drop_of(&made), rename(&made, ident("u")?)] {
        let mut swap = world.swap(vec![with_lineage(change, &[1])]);
        swap.receipts = vec![world.receipt(Answer::Empty)];
        swap.purges = vec![world.purge(AT_MS)];
        assert_eq!(store.resolve(swap.attempt, AT_MS).await?, Resolution::Aborted);
        let late = store.swap(&swap).await;
        assert!(matches!(late, Err(StoreError::OutcomeUnknown(_))), "{late:?}");
        assert_eq!(store.resolve(swap.attempt, AT_MS).await?, Resolution::Aborted);
        assert!(!world.is_kept(&swap.receipts[0]).await?);
    }
    assert_eq!((world.pointer("t").await?, world.find("u").await?), (made, None));
    assert!(store.landed(world.warehouse, None, &[1]).await?.is_empty());
    assert!(store.claim_purge(AT_MS, AT_MS + 1).await?.is_none());
    Ok(())
}

pub async fn a_swap_that_is_sent_twice_is_applied_once(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let swap = world.swap(vec![step(&made)]);
    assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
    assert_eq!(store.swap(&swap).await?, SwapOutcome::Lost);
    assert_eq!(store.resolve(swap.attempt, AT_MS).await?, Resolution::Committed);
    assert_eq!(world.pointer("t").await?.version, 2);
    Ok(())
}

pub async fn swap_and_resolver_at_the_same_time_agree(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for n in 0..super::world::RACERS {
        let name = format!("t{n}");
        let made = world.table(&name).await?;
        let swap = world.swap(vec![step(&made)]);
        let (swapped, first) = futures::join!(store.swap(&swap), store.resolve(swap.attempt, AT_MS));
        let mut resolution = first?;
        while resolution == Resolution::Pending {
            resolution = store.resolve(swap.attempt, AT_MS).await?;
        }
        let version = world.pointer(&name).await?.version;
        match (swapped, resolution) {
            (Ok(SwapOutcome::Applied), Resolution::Committed) => assert_eq!(version, 2),
            (Err(StoreError::OutcomeUnknown(_)), Resolution::Aborted) => assert_eq!(version, 1),
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(())
}

pub async fn old_attempts_are_forgotten_oldest_first(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let mut attempts = Vec::new();
    for age in [2, 3, 0, 1] {
        let mut swap = world.swap(vec![create(&format!("t{age}"))?]);
        swap.at_ms = AT_MS - age;
        assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
        attempts.push(swap.attempt);
    }
    let [two, three, none, one] = attempts[..] else {
        return Err("four were made".into());
    };
    assert_eq!(store.forget_attempts(AT_MS, 2).await?, 2);
    // One that is forgotten is as if it had never come. From the question on it is remembered again.
    for (attempt, resolution) in
        [(two, Resolution::Aborted), (three, Resolution::Aborted), (one, Resolution::Committed)]
    {
        assert_eq!(store.resolve(attempt, AT_MS).await?, resolution);
    }
    assert_eq!(store.forget_attempts(AT_MS, 100).await?, 1);
    assert_eq!(store.forget_attempts(AT_MS, 100).await?, 0);
    assert_eq!(store.resolve(none, AT_MS).await?, Resolution::Committed);
    Ok(())
}
