//! Cases of overlapping locations.

use futures::future::join_all;
use uuid::Uuid;

use super::world::{Checked, RACERS, World, create_at, drop_of, ident, of_kind, replace};
use crate::commits::store::SwapOutcome;
use crate::location::Location;
use crate::store::Store;
use crate::tabulars::TabularKind;

pub(super) const OVERLAPPING: [&str; 6] =
    ["s3://b/a/t", "s3a://b/a/t", "s3n://b/a/t/data", "s3://b/a/t/x/y/z", "s3://b/a", "s3://b"];

pub(super) const APART: [&str; 5] = ["s3://b/a/t2", "s3://b/a/u", "s3://b/a/t-0", "s3://c/a/t", "file:///b/a/t"];

fn taken(name: &str, location: &str) -> Checked<SwapOutcome> {
    Ok(SwapOutcome::LocationTaken { owner: ident(name)?, location: location.to_owned() })
}

pub async fn a_place_at_above_or_below_another_is_taken(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(create_at("t", "s3://b/a/t")?).await?;
    world.must(create_at("mover", "s3://elsewhere/t")?).await?;
    let mover = world.pointer("mover").await?;
    let taken = taken("t", "s3://b/a/t")?;
    for location in OVERLAPPING {
        assert_eq!(world.apply(create_at("new", location)?).await?, taken, "{location}");
        let moved = world.apply(replace(&mover, mover.uuid, location)).await?;
        assert_eq!(moved, taken, "{location}");
    }
    assert_eq!(world.find("new").await?, None);
    assert_eq!(world.pointer("mover").await?, mover);
    Ok(())
}

pub async fn neighbours_may_share_the_beginning_of_a_name(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(create_at("t", "s3://b/a/t")?).await?;
    for location in APART {
        world.must(create_at(location, location)?).await?;
    }
    Ok(())
}

pub async fn the_owner_of_a_place_is_named(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(create_at("t", "s3a://b/a/t")?).await?;
    let made = world.pointer("t").await?;
    let owner = async |location: &str, except| -> Checked<_> {
        let location = Location::parse(location)?;
        Ok(store.location_owner(world.warehouse, &location, except).await?)
    };
    for location in OVERLAPPING {
        let expected = Some((ident("t")?, "s3a://b/a/t".to_owned()));
        assert_eq!(owner(location, None).await?, expected, "{location}");
        assert_eq!(owner(location, Some(made.id)).await?, None);
    }
    for location in APART {
        assert_eq!(owner(location, None).await?, None, "{location}");
    }
    Ok(())
}

pub async fn a_table_may_move_within_its_own_place(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(create_at("t", "s3://b/a/t")?).await?;
    let made = world.pointer("t").await?;
    world.must(replace(&made, made.uuid, "s3://b/a/t/new")).await?;
    // What it has left is free.
    world.must(create_at("u", "s3://b/a/t/old")?).await?;
    let outcome = world.apply(create_at("v", "s3://b/a/t/new/x")?).await?;
    assert_eq!(outcome, taken("t", "s3://b/a/t/new")?);
    Ok(())
}

pub async fn a_dropped_table_leaves_its_place(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(create_at("t", "s3://b/a/t")?).await?;
    let made = world.pointer("t").await?;
    let replaced = vec![create_at("t", "s3://b/a/t")?, drop_of(&made)];
    assert_eq!(store.swap(&world.swap(replaced)).await?, SwapOutcome::Applied);
    let made = world.pointer("t").await?;
    world.must(drop_of(&made)).await?;
    world.must(create_at("u", "s3://b/a/t/x")?).await
}

pub async fn views_own_no_place(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let view = |name| Checked::Ok(of_kind(create_at(name, "s3://b/a/t")?, TabularKind::View));
    world.must(view("v1")?).await?;
    world.must(view("v2")?).await?;
    world.must(create_at("t", "s3://b/a/t")?).await?;
    world.must(view("v3")?).await
}

pub async fn warehouses_do_not_ask_each_other_for_places(store: &dyn Store) -> Checked {
    let (one, two) = (World::new(store).await?, World::bare(store, "two").await?);
    two.namespace(&["ns"]).await?;
    one.must(create_at("t", "s3://b/a/t")?).await?;
    two.must(create_at("t", "s3://b/a/t")?).await
}

pub async fn tables_of_one_swap_may_not_overlap_either(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(create_at("mover", "s3://elsewhere/t")?).await?;
    let mover = world.pointer("mover").await?;
    for changes in [
        vec![create_at("a", "s3://b/t")?, create_at("b", "s3://b/t/x")?],
        vec![create_at("a", "s3://b/t/x")?, create_at("b", "s3://b/t")?],
        vec![replace(&mover, Uuid::now_v7(), "s3://b/t"), create_at("a", "s3a://b/t")?],
    ] {
        let outcome = store.swap(&world.swap(changes)).await?;
        assert!(matches!(outcome, SwapOutcome::LocationTaken { .. }), "{outcome:?}");
    }
    assert_eq!((world.find("a").await?, world.find("b").await?), (None, None));
    Ok(())
}

pub async fn of_racing_creators_of_nested_places_one_wins(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let location = |n: usize| format!("s3://b{}", "/x".repeat(1 + n % 5));
    let mut creates = Vec::new();
    for n in 0..RACERS {
        creates.push(world.apply(create_at(&format!("t{n}"), &location(n))?));
    }
    let mut winners = 0;
    for outcome in join_all(creates).await {
        match outcome? {
            SwapOutcome::Applied => winners += 1,
            outcome => assert!(matches!(outcome, SwapOutcome::LocationTaken { .. }), "{outcome:?}"),
        }
    }
    assert_eq!(winners, 1);
    Ok(())
}
