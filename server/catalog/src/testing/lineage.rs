//! Cases of the lineage: which snapshots have ever landed.

use uuid::Uuid;

use super::world::{
    Checked, World, create, create_as, drop_of, ident, landed, rename, replace, step, with_lineage, with_news,
};
use crate::commits::store::{News, PointerRead, SwapOutcome};
use crate::store::Store;

async fn read(world: &World<'_>, asked: &[i64]) -> Checked<Vec<i64>> {
    let read = world.store.read_pointer(world.warehouse, &ident("t")?, asked, &[]).await?;
    let mut landed = read.landed;
    landed.sort_unstable();
    Ok(landed)
}

pub async fn a_pointer_is_read_with_what_landed_of_the_asked(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    world.must(with_lineage(step(&made), &[1, 2, i64::MAX, i64::MIN])).await?;
    assert_eq!(read(&world, &[]).await?, [] as [i64; 0]);
    assert_eq!(read(&world, &[3, 1]).await?, [1]);
    assert_eq!(read(&world, &[1, i64::MIN, i64::MAX]).await?, [i64::MIN, 1, i64::MAX]);
    let now = store.read_pointer(world.warehouse, &ident("t")?, &[], &[]).await?;
    assert_eq!(now.pointer, Some(world.pointer("t").await?));
    let missing = store.read_pointer(world.warehouse, &ident("u")?, &[1], &[]).await?;
    assert_eq!(missing, PointerRead::default());
    Ok(())
}

pub async fn a_snapshot_lands_once(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    world.must(with_lineage(step(&made), &[1])).await?;
    let now = world.pointer("t").await?;
    let other_place = replace(&now, now.uuid, "file:///w/other");
    for again in [step(&now), other_place] {
        let outcome = world.apply(with_lineage(again, &[2, 1])).await?;
        assert_eq!(outcome, SwapOutcome::SnapshotKnown);
    }
    assert_eq!(world.pointer("t").await?, now);
    assert_eq!(read(&world, &[1, 2]).await?, [1]);
    Ok(())
}

pub async fn two_tables_may_take_the_same_snapshot_id(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for name in ["t", "u"] {
        let made = world.table(name).await?;
        world.must(with_lineage(step(&made), &[1])).await?;
    }
    assert_eq!(store.landed(world.warehouse, None, &[1]).await?, [1]);
    Ok(())
}

pub async fn the_lineage_is_asked_by_table_or_in_the_whole_warehouse(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let stranger = World::bare(store, "stranger").await?;
    let made = world.table("t").await?;
    world.must(with_lineage(step(&made), &[1, 2])).await?;
    for uuid in [None, Some(made.uuid)] {
        let mut known = store.landed(world.warehouse, uuid, &[1, 2, 3]).await?;
        known.sort_unstable();
        assert_eq!(known, [1, 2]);
        assert!(store.landed(stranger.warehouse, uuid, &[1]).await?.is_empty());
    }
    let other = Some(Uuid::now_v7());
    assert!(store.landed(world.warehouse, other, &[1]).await?.is_empty());
    Ok(())
}

pub async fn the_lineage_outlives_rename_and_drop(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("u").await?;
    world.must(with_lineage(step(&made), &[1])).await?;
    let now = world.pointer("u").await?;
    world.must(rename(&now, ident("t")?)).await?;
    assert_eq!(read(&world, &[1]).await?, [1]);
    let now = world.pointer("t").await?;
    world.must(drop_of(&now)).await?;
    assert_eq!(store.landed(world.warehouse, Some(made.uuid), &[1]).await?, [1]);
    Ok(())
}

pub async fn a_table_made_anew_starts_without_lineage(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(with_lineage(create("t")?, &[1])).await?;
    let made = world.pointer("t").await?;
    world.must(drop_of(&made)).await?;
    world.table("t").await?;
    assert_eq!(read(&world, &[1]).await?, [] as [i64; 0]);
    Ok(())
}

pub async fn a_uuid_that_comes_back_finds_its_lineage(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(with_lineage(create("t")?, &[1, 2])).await?;
    let made = world.pointer("t").await?;
    world.must(drop_of(&made)).await?;
    let register = create_as("t", made.uuid, &made.location)?;
    world.must(with_lineage(register, &[2, 3])).await?;
    assert_eq!(read(&world, &[1, 2, 3]).await?, [1, 2, 3]);
    Ok(())
}

pub async fn an_overwrite_with_another_uuid_finds_the_lineage_of_that(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(with_lineage(create("u")?, &[1])).await?;
    let gone = world.pointer("u").await?;
    world.must(drop_of(&gone)).await?;
    let made = world.table("t").await?;
    let overwrite = replace(&made, gone.uuid, &made.location);
    world.must(with_lineage(overwrite, &[1, 2])).await?;
    assert_eq!(read(&world, &[1, 2]).await?, [1, 2]);
    Ok(())
}

pub async fn a_register_of_many_snapshots_is_remembered_whole(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let ids: Vec<i64> = (0..10_000).map(|n| n * 922_337_203_685_477).collect();
    world.must(with_lineage(create("t")?, &ids)).await?;
    assert_eq!(read(&world, &ids).await?, ids);
    Ok(())
}

pub async fn a_staged_snapshot_has_no_ref_and_a_first_one_no_parent(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    for change in [step(&made), create("u")?] {
        let mut bare = landed(1);
        (bare.parent_id, bare.ref_name) = (None, None);
        world.must(with_news(change, News { lineage: vec![bare], ..News::default() })).await?;
    }
    assert_eq!(read(&world, &[1]).await?, [1]);
    Ok(())
}
