//! Cases of walks over the lineage, of what is remembered of its snapshots later, and of forgetting them.

use super::world::{AT_MS, Checked, World, create, landed, step, with_news};
use crate::commits::identity::{Counts, Identity, Position, Writer, WriterKind};
use crate::commits::lineage::{Asked, Class, Landed, Mark, Walk};
use crate::commits::store::News;
use crate::store::Store;
use crate::tabulars::Pointer;

/// Table `t` with these snapshots: id, parent, sequence number.
async fn grown<'a>(store: &'a dyn Store, snapshots: &[(i64, Option<i64>, i64)]) -> Checked<(World<'a>, Pointer)> {
    let world = World::new(store).await?;
    let lineage =
        snapshots.iter().map(|&(id, parent_id, sequence_number)| Landed { parent_id, sequence_number, ..landed(id) });
    world.must(with_news(create("t")?, News { lineage: lineage.collect(), ..News::default() })).await?;
    let made = world.pointer("t").await?;
    Ok((world, made))
}

const ALL: Walk = Walk { from: 1, until: None, sequence_number_min: 0, limit: 1_000 };

async fn walked(world: &World<'_>, table: &Pointer, walk: Walk) -> Checked<Vec<i64>> {
    let walked = world.store.walk(world.warehouse, table.uuid, walk).await?;
    Ok(walked.iter().map(|landed| landed.snapshot_id).collect())
}

pub async fn a_walk_goes_back_over_the_parents(store: &dyn Store) -> Checked {
    let tree = [(1, None, 1), (2, Some(1), 2), (3, Some(2), 3), (30, Some(2), 4), (4, Some(3), 5)];
    let (world, table) = grown(store, &tree).await?;
    for (from, expected) in [(4, vec![4, 3, 2, 1]), (30, vec![30, 2, 1]), (1, vec![1]), (9, vec![])] {
        assert_eq!(walked(&world, &table, Walk { from, ..ALL }).await?, expected);
    }
    let whole = store.walk(world.warehouse, table.uuid, Walk { from: 2, ..ALL }).await?;
    let expected = [(2, Some(1), 2), (1, None, 1)];
    let expected = expected.map(|(id, parent_id, sequence_number)| Landed { parent_id, sequence_number, ..landed(id) });
    assert_eq!(whole, expected);
    Ok(())
}

pub async fn a_walk_ends_where_it_is_told_to(store: &dyn Store) -> Checked {
    let chain: Vec<_> = (1..=9).map(|n| (n, Some(n - 1).filter(|&parent| parent > 0), n)).collect();
    let (world, table) = grown(store, &chain).await?;
    let from_nine = Walk { from: 9, ..ALL };
    for (walk, expected) in [
        (Walk { until: Some(7), ..from_nine }, vec![9, 8, 7]),
        (Walk { until: Some(9), ..from_nine }, vec![9]),
        (Walk { sequence_number_min: 8, ..from_nine }, vec![9, 8, 7]),
        (Walk { sequence_number_min: 10, ..from_nine }, vec![9]),
        (Walk { limit: 2, ..from_nine }, vec![9, 8]),
        (Walk { limit: 0, ..from_nine }, vec![]),
        (Walk { until: Some(77), sequence_number_min: 1, limit: 100, ..from_nine }, vec![9, 8, 7, 6, 5, 4, 3, 2, 1]),
    ] {
        assert_eq!(walked(&world, &table, walk).await?, expected, "{walk:?}");
    }
    Ok(())
}

pub async fn a_walk_ends_at_a_gap(store: &dyn Store) -> Checked {
    let (world, table) = grown(store, &[(1, None, 1), (3, Some(2), 3), (4, Some(3), 4)]).await?;
    let walked = store.walk(world.warehouse, table.uuid, Walk { from: 4, ..ALL }).await?;
    let ends: Vec<_> = walked.iter().map(|landed| (landed.snapshot_id, landed.parent_id)).collect();
    assert_eq!(ends, [(4, Some(3)), (3, Some(2))]);
    let other = world.table("other").await?;
    assert!(store.walk(world.warehouse, other.uuid, Walk { from: 4, ..ALL }).await?.is_empty());
    Ok(())
}

pub async fn a_walk_of_thousands_is_in_order(store: &dyn Store) -> Checked {
    let chain: Vec<_> = (1..=5_000).map(|n| (n, Some(n - 1).filter(|&parent| parent > 0), n)).collect();
    let (world, table) = grown(store, &chain).await?;
    let expected: Vec<i64> = (1..=5_000).rev().collect();
    assert_eq!(walked(&world, &table, Walk { from: 5_000, limit: 10_000, ..ALL }).await?, expected);
    Ok(())
}

pub async fn a_class_is_remembered_once(store: &dyn Store) -> Checked {
    let (world, table) = grown(store, &[(1, None, 1), (2, Some(1), 2), (3, Some(2), 3)]).await?;
    let classify = async |classes: &[(i64, Class)]| store.classify(world.warehouse, table.uuid, classes).await;
    classify(&[]).await?;
    classify(&[(1, Class::Replace), (3, Class::EqualityDeltaWithPositions), (9, Class::Append)]).await?;
    classify(&[(1, Class::Other), (2, Class::EqualityDelta)]).await?;
    let walked = store.walk(world.warehouse, table.uuid, Walk { from: 3, ..ALL }).await?;
    let classes: Vec<_> = walked.iter().map(|landed| landed.class).collect();
    assert_eq!(classes, [Class::EqualityDeltaWithPositions, Class::EqualityDelta, Class::Replace].map(Some));
    assert!(store.landed(world.warehouse, Some(table.uuid), &[9]).await?.is_empty());
    Ok(())
}

pub async fn a_class_may_come_with_the_snapshot(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let appended = Landed { class: Some(Class::Append), ..landed(1) };
    world.must(with_news(step(&made), News { lineage: vec![appended.clone()], ..News::default() })).await?;
    assert_eq!(store.walk(world.warehouse, made.uuid, ALL).await?, [appended]);
    Ok(())
}

pub async fn old_snapshots_are_forgotten_oldest_first(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let writer = Writer { kind: WriterKind::Named, id: "w".to_owned(), part: String::new() };
    let identity = Identity { writer, position: Some(Position::Number(1)), epoch: None };
    let old = |age: i64| Landed {
        at_ms: AT_MS - age,
        ref_name: None,
        writer: Some(Mark { identity: identity.clone(), counts: Counts::default() }),
        ..landed(age)
    };
    let carried: Vec<_> = (0..4).map(|age| ("main".to_owned(), age)).collect();
    let brought = News { lineage: [2, 3, 0, 1].map(old).to_vec(), carried, ..News::default() };
    world.must(with_news(step(&made), brought.clone())).await?;
    assert_eq!(store.forget_lineage(AT_MS, 2).await?, 2);
    let left = async || -> Checked<Vec<i64>> {
        let mut left = store.landed(world.warehouse, Some(made.uuid), &[0, 1, 2, 3]).await?;
        left.sort_unstable();
        Ok(left)
    };
    assert_eq!(left().await?, [0, 1]);
    assert_eq!(store.forget_lineage(AT_MS, 100).await?, 1);
    assert_eq!(store.forget_lineage(AT_MS, 100).await?, 0);
    assert_eq!(left().await?, [0]);
    // One that comes again is not on the ref that it was on before.
    let now = world.pointer("t").await?;
    world.must(with_news(step(&now), News { lineage: vec![old(3)], ..News::default() })).await?;
    let asked = Asked { ref_name: "main".to_owned(), identity };
    let found = store.ledger(world.warehouse, made.uuid, &[asked]).await?.same;
    let found: Vec<i64> = found.iter().map(|(_, landed)| landed.snapshot_id).collect();
    assert_eq!(found, [0]);
    Ok(())
}
