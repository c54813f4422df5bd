//! Races of swaps: of those that want the same thing one gets it, and nobody waits for ever.

use futures::future::join_all;
use uuid::Uuid;

use super::world::{
    Checked, RACERS, World, create, create_as, drop_of, ident, of_kind, rename, replace, step, with_lineage,
};
use crate::commits::store::{PointerChange, Swap, SwapOutcome};
use crate::idempotency::Answer;
use crate::store::Store;
use crate::tabulars::TabularKind;

/// Runs all swaps at once; returns how many were applied, and what became of the others.
async fn race(store: &dyn Store, swaps: &[Swap]) -> Checked<(usize, Vec<SwapOutcome>)> {
    let outcomes = join_all(swaps.iter().map(|swap| store.swap(swap))).await;
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (applied, others): (Vec<_>, Vec<_>) =
        outcomes.into_iter().partition(|outcome| *outcome == SwapOutcome::Applied);
    Ok((applied.len(), others))
}

fn alone(world: &World<'_>, changes: Vec<PointerChange>) -> Vec<Swap> {
    changes.into_iter().map(|change| world.swap(vec![change])).collect()
}

pub async fn of_racing_creators_of_a_name_one_wins(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let kind = |n: usize| match n % 2 {
        0 => TabularKind::Table,
        _ => TabularKind::View,
    };
    let creates: Vec<_> = (0..RACERS).map(|n| Checked::Ok(of_kind(create("t")?, kind(n)))).collect::<Checked<_>>()?;
    let (winners, losers) = race(store, &alone(&world, creates)).await?;
    let taken = SwapOutcome::NameTaken { kind: world.pointer("t").await?.kind, ident: ident("t")? };
    assert_eq!(winners, 1);
    assert!(losers.iter().all(|outcome| *outcome == taken), "{losers:?}");
    Ok(())
}

pub async fn of_racing_moves_from_one_base_one_wins(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let base = world.table("t").await?;
    let moves = (1..=20).map(|n| with_lineage(step(&base), &[n])).collect();
    let (winners, losers) = race(store, &alone(&world, moves)).await?;
    assert_eq!(winners, 1);
    assert!(losers.iter().all(|outcome| *outcome == SwapOutcome::Lost), "{losers:?}");
    assert_eq!(world.pointer("t").await?.version, 2);
    let ids: Vec<i64> = (1..=20).collect();
    assert_eq!(store.landed(world.warehouse, Some(base.uuid), &ids).await?.len(), 1);
    Ok(())
}

pub async fn of_racing_registers_of_a_uuid_one_wins(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let uuid = Uuid::now_v7();
    let register = |n| create_as(&format!("t{n}"), uuid, &format!("file:///w/t{n}"));
    let registers = (0..RACERS).map(register).collect::<Checked<_>>()?;
    let (winners, losers) = race(store, &alone(&world, registers)).await?;
    assert_eq!(winners, 1);
    let refused = |outcome: &SwapOutcome| matches!(outcome, SwapOutcome::UuidTaken { .. });
    assert!(losers.iter().all(refused), "{losers:?}");
    Ok(())
}

pub async fn of_racing_moves_with_one_key_one_wins(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let receipt = world.receipt(Answer::Empty);
    let mut swaps = Vec::new();
    for n in 0..RACERS {
        let made = world.table(&format!("t{n}")).await?;
        let mut swap = world.swap(vec![step(&made)]);
        swap.receipts = vec![receipt.clone()];
        swaps.push(swap);
    }
    let (winners, losers) = race(store, &swaps).await?;
    assert_eq!(winners, 1);
    assert!(losers.iter().all(|outcome| *outcome == SwapOutcome::KeyTaken), "{losers:?}");
    Ok(())
}

pub async fn swaps_with_the_same_keys_in_any_order_end(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for turn in 0..5 {
        let receipts: Vec<_> = (0..10).map(|_| world.receipt(Answer::Empty)).collect();
        let mut swaps = Vec::new();
        for n in 0..6 {
            let made = world.table(&format!("t{turn}-{n}")).await?;
            let change = if n < 3 { step(&made) } else { replace(&made, made.uuid, &format!("file:///w/{turn}/{n}")) };
            let mut swap = world.swap(vec![change]);
            swap.receipts.clone_from(&receipts);
            swap.receipts.rotate_left(n);
            swaps.push(swap);
        }
        let (winners, losers) = race(store, &swaps).await?;
        assert_eq!(winners, 1);
        assert!(losers.iter().all(|outcome| *outcome == SwapOutcome::KeyTaken), "{losers:?}");
    }
    Ok(())
}

pub async fn swaps_over_the_same_tables_in_any_order_end(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for _ in 0..4 {
        let base = match world.find("a").await? {
            Some(_) => [world.pointer("a").await?, world.pointer("b").await?],
            None => [world.table("a").await?, world.table("b").await?],
        };
        let there_and_back = |n: usize| {
            let mut changes: Vec<_> = base.iter().map(step).collect();
            if n % 2 == 1 {
                changes.reverse();
            }
            world.swap(changes)
        };
        let swaps: Vec<_> = (0..6).map(there_and_back).collect();
        let (winners, losers) = race(store, &swaps).await?;
        assert_eq!(winners, 1);
        assert!(losers.iter().all(|outcome| *outcome == SwapOutcome::Lost), "{losers:?}");
        let now = [world.pointer("a").await?, world.pointer("b").await?];
        assert_eq!(now.map(|p| p.version), base.map(|p| p.version + 1));
    }
    Ok(())
}

pub async fn transactions_that_create_in_opposite_order_end(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let mut swaps = Vec::new();
    for n in 0..6 {
        let mut changes = vec![create("a")?, create("b")?];
        if n % 2 == 1 {
            changes.reverse();
        }
        swaps.push(world.swap(changes));
    }
    let (winners, losers) = race(store, &swaps).await?;
    assert_eq!((winners, losers.len()), (1, 5));
    Ok(())
}

pub async fn renames_across_each_other_end(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (a, b) = (world.table("a").await?, world.table("b").await?);
    for _ in 0..10 {
        let swaps = alone(&world, vec![rename(&a, ident("b")?), rename(&b, ident("a")?)]);
        let (winners, losers) = race(store, &swaps).await?;
        assert_eq!(winners, 0);
        let refused = |outcome: &SwapOutcome| matches!(outcome, SwapOutcome::NameTaken { .. });
        assert!(losers.iter().all(refused), "{losers:?}");
    }
    Ok(())
}

pub async fn of_a_move_a_rename_and_a_drop_one_wins(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for n in 0..10 {
        let made = world.table(&format!("t{n}")).await?;
        let changes = vec![step(&made), rename(&made, ident(&format!("u{n}"))?), drop_of(&made)];
        let (winners, losers) = race(store, &alone(&world, changes)).await?;
        assert_eq!((winners, losers), (1, vec![SwapOutcome::Lost; 2]));
    }
    Ok(())
}
