//! Cases of [`crate::purge::store::PurgeStore`].

use std::collections::BTreeSet;

use futures::future::join_all;

use super::places::{APART, OVERLAPPING};
use super::world::{AT_MS, Checked, RACERS, World, create, create_at, drop_of, replace, step};
use crate::commits::store::SwapOutcome;
use crate::ident::PurgeId;
use crate::location::Location;
use crate::purge::{PurgeTarget, PurgeTask};
use crate::store::{Page, Store};

/// Writes the tasks beside the creation of a table.
async fn write(world: &World<'_>, tasks: &[PurgeTask]) -> Checked {
    let mut swap = world.swap(vec![create(&format!("t{}", uuid::Uuid::now_v7()))?]);
    swap.purges = tasks.to_vec();
    assert_eq!(world.store.swap(&swap).await?, SwapOutcome::Applied);
    Ok(())
}

/// The task that a drop of the table at that location leaves.
fn of_table(world: &World<'_>, location: &str) -> PurgeTask {
    let target =
        PurgeTarget::Table { location: location.into(), metadata_location: format!("{location}/metadata/1.json") };
    PurgeTask { target, ..world.purge(AT_MS) }
}

async fn is_purging(world: &World<'_>, location: &str) -> Checked<bool> {
    let location = Location::parse(location)?;
    Ok(world.store.is_purging(world.warehouse, &location).await?)
}

pub async fn a_task_is_claimed_with_the_place_of_its_warehouse(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let task = of_table(&world, "file:///w/t");
    write(&world, std::slice::from_ref(&task)).await?;
    let job = store.claim_purge(AT_MS, AT_MS + 10).await?.ok_or("the task is due")?;
    assert_eq!((job.task, job.failures), (task, 0));
    let warehouse = store.warehouses(&Page::ALL).await?.pop().ok_or("the warehouse is there")?.warehouse?;
    assert_eq!(job.place, warehouse.place);
    Ok(())
}

pub async fn a_task_waits_for_its_time_and_the_oldest_comes_first(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let tasks = [world.purge(AT_MS + 2), world.purge(AT_MS + 1), world.purge(AT_MS + 3)];
    write(&world, &tasks).await?;
    let claim = async |now_ms| -> Checked<Option<PurgeId>> {
        Ok(store.claim_purge(now_ms, now_ms + 1_000).await?.map(|job| job.task.id))
    };
    assert_eq!(claim(AT_MS).await?, None);
    assert_eq!(claim(AT_MS + 2).await?, Some(tasks[1].id));
    assert_eq!(claim(AT_MS + 2).await?, Some(tasks[0].id));
    assert_eq!(claim(AT_MS + 2).await?, None);
    Ok(())
}

pub async fn a_holder_that_dies_loses_its_task(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let task = world.purge(AT_MS);
    write(&world, std::slice::from_ref(&task)).await?;
    assert!(store.claim_purge(AT_MS, AT_MS + 10).await?.is_some());
    assert!(store.claim_purge(AT_MS + 9, AT_MS + 20).await?.is_none());
    let again = store.claim_purge(AT_MS + 10, AT_MS + 20).await?;
    assert_eq!(again.map(|job| job.task.id), Some(task.id));
    Ok(())
}

pub async fn a_finished_task_is_gone_and_may_be_finished_twice(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let task = world.purge(AT_MS);
    write(&world, std::slice::from_ref(&task)).await?;
    store.finish_purge(task.id).await?;
    store.finish_purge(task.id).await?;
    assert!(store.claim_purge(AT_MS, AT_MS + 10).await?.is_none());
    Ok(())
}

pub async fn a_postponed_task_comes_back_later_and_knows_its_failures(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let task = world.purge(AT_MS);
    write(&world, std::slice::from_ref(&task)).await?;
    store.claim_purge(AT_MS, AT_MS + 1_000).await?;
    store.postpone_purge(task.id, AT_MS + 5, "denied\u{0}").await?;
    assert!(store.claim_purge(AT_MS + 4, AT_MS + 1_000).await?.is_none());
    let again = store.claim_purge(AT_MS + 5, AT_MS + 1_000).await?;
    assert_eq!(again.map(|job| (job.task.id, job.failures)), Some((task.id, 1)));
    Ok(())
}

pub async fn racing_claims_take_each_task_once(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let tasks: Vec<_> = (0..RACERS).map(|_| world.purge(AT_MS)).collect();
    write(&world, &tasks).await?;
    let mut claimed = BTreeSet::new();
    // A claim may pass over a row that another one just holds: only what is left in the end must be gone.
    let claims = (0..2 * RACERS).map(|_| store.claim_purge(AT_MS, AT_MS + 1_000));
    for job in join_all(claims).await {
        if let Some(job) = job? {
            assert!(claimed.insert(job.task.id), "claimed twice");
        }
    }
    while let Some(job) = store.claim_purge(AT_MS, AT_MS + 1_000).await? {
        assert!(claimed.insert(job.task.id), "claimed twice");
    }
    assert_eq!(claimed, tasks.iter().map(|task| task.id).collect());
    Ok(())
}

pub async fn a_swap_that_changes_nothing_leaves_no_task(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let old = world.table("t").await?;
    world.must(step(&old)).await?;
    for changes in [vec![step(&old)], vec![create("t")?], vec![create("u")?, step(&old)]] {
        let mut swap = world.swap(changes);
        swap.purges = vec![world.purge(AT_MS)];
        assert_ne!(store.swap(&swap).await?, SwapOutcome::Applied);
    }
    assert!(store.claim_purge(AT_MS, AT_MS + 10).await?.is_none());
    Ok(())
}

pub async fn a_place_is_purged_from_the_drop_until_the_task_is_finished(store: &dyn Store) -> Checked {
    let (world, other) = (World::new(store).await?, World::bare(store, "other").await?);
    world.must(create_at("t", "s3a://b/a/t")?).await?;
    let dropped = world.pointer("t").await?;
    let mut swap = world.swap(vec![drop_of(&dropped)]);
    let task = of_table(&world, "s3a://b/a/t");
    swap.purges = vec![task.clone(), world.purge(AT_MS)];
    assert!(!is_purging(&world, "s3://b/a/t").await?);
    assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
    // Waiting, taken up and put off.
    for step in 0..3 {
        for location in OVERLAPPING {
            assert!(is_purging(&world, location).await?, "{location}");
            assert!(!is_purging(&other, location).await?, "{location}");
        }
        for location in APART {
            assert!(!is_purging(&world, location).await?, "{location}");
        }
        match step {
            0 => while store.claim_purge(AT_MS, AT_MS + 10).await?.is_some() {},
            _ => store.postpone_purge(task.id, AT_MS + 5, "denied").await?,
        }
    }
    store.finish_purge(task.id).await?;
    assert!(!is_purging(&world, "s3://b/a/t").await?);
    // A single file that goes is nobody's place.
    assert!(!is_purging(&world, "file:///w").await?);
    Ok(())
}

pub async fn a_move_of_one_pointer_may_leave_the_purge_of_a_table_too(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let mut swap = world.swap(vec![step(&made)]);
    swap.purges = vec![of_table(&world, "s3n://b/a/t"), world.purge(AT_MS)];
    assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
    assert!(is_purging(&world, "s3://b/a/t/x").await?);
    assert!(!is_purging(&world, "file:///w").await?);
    Ok(())
}

pub async fn what_adopts_files_waits_until_none_of_them_are_purged(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.must(create_at("mover", "s3://elsewhere/t")?).await?;
    let mover = world.pointer("mover").await?;
    let task = of_table(&world, "s3://b/a/t");
    write(&world, std::slice::from_ref(&task)).await?;
    for location in OVERLAPPING {
        for change in [create_at("new", location)?, replace(&mover, mover.uuid, location)] {
            let mut swap = world.swap(vec![change]);
            swap.adopts = true;
            assert_eq!(store.swap(&swap).await?, SwapOutcome::Lost, "{location}");
        }
    }
    assert_eq!((world.find("new").await?, world.pointer("mover").await?), (None, mover.clone()));
    // New files have new names, so a table that brings its own may go there.
    world.must(create_at("own", "s3://b/a/t")?).await?;
    let own = world.pointer("own").await?;
    world.must(drop_of(&own)).await?;
    store.finish_purge(task.id).await?;
    let mut swap = world.swap(vec![replace(&mover, mover.uuid, "s3://b/a/t")]);
    swap.adopts = true;
    assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
    Ok(())
}
