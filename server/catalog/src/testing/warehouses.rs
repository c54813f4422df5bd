//! Cases of [`crate::warehouses::store::WarehouseStore`].

use std::collections::BTreeMap;

use futures::future::{join, join_all};

use super::world::{AT_MS, Checked, RACERS, World, create_at, drop_of, namespace, warehouse};
use crate::commits::store::SwapOutcome;
use crate::files::{Place, S3Storage, Secret, Storage};
use crate::ident::WarehouseName;
use crate::location::Location;
use crate::namespaces::store::{NamespaceCreated, NamespaceDropped};
use crate::purge::{PurgeTarget, PurgeTask};
use crate::store::{Page, Store};
use crate::warehouses::Warehouse;
use crate::warehouses::store::{WarehouseContent, WarehouseCreated, WarehouseDeleted, WarehouseUpdated};

/// A warehouse at that root.
fn at(name: &str, root: &str) -> Checked<Warehouse> {
    let mut made = warehouse(name)?;
    made.place.root = Location::parse(root)?;
    made.place.storage = Storage::for_location(&made.place.root);
    Ok(made)
}

async fn all(store: &dyn Store) -> Checked<Vec<Warehouse>> {
    let listed = store.warehouses(&Page::ALL).await?;
    Ok(listed.into_iter().map(|listed| listed.warehouse).collect::<Result<_, _>>()?)
}

/// Changes everything that may be changed.
fn change(warehouse: &mut Warehouse) -> Checked {
    let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    warehouse.place.allowed = vec![Location::parse("s3://bucket/further")?];
    warehouse.place.storage = Storage::S3(S3Storage {
        region: Some("eu-north-1".into()),
        access_key_id: Some("id".into()),
        secret_access_key: Some(Secret::new("env:SECRET")),
        ..S3Storage::default()
    });
    warehouse.defaults = map("s3.endpoint", "http://x");
    warehouse.overrides = map("table-override.a", "b\u{e4}\"");
    Ok(())
}

pub async fn a_warehouse_is_found_by_its_name(store: &dyn Store) -> Checked {
    let mut made = at("w", "s3://bucket/w")?;
    change(&mut made)?;
    assert_eq!(store.create_warehouse(&made, AT_MS).await?, WarehouseCreated::Created);
    assert_eq!(store.warehouse(&made.name).await?, Some(made));
    assert_eq!(store.warehouse(&warehouse("other")?.name).await?, None);
    Ok(())
}

pub async fn a_warehouse_name_is_given_once(store: &dyn Store) -> Checked {
    let first = warehouse("w")?;
    store.create_warehouse(&first, AT_MS).await?;
    for second in [warehouse("w")?, at("w", "file:///elsewhere")?] {
        assert_eq!(store.create_warehouse(&second, AT_MS).await?, WarehouseCreated::NameTaken);
    }
    assert_eq!(all(store).await?, [first]);
    Ok(())
}

pub async fn warehouses_are_listed_by_name_in_pages(store: &dyn Store) -> Checked {
    for name in ["b", "a_", "a-", "a"] {
        store.create_warehouse(&warehouse(name)?, AT_MS).await?;
    }
    let names = async |after: Option<&str>, limit| -> Checked<Vec<String>> {
        let page = Page { after: after.map(str::to_owned), limit };
        Ok(store.warehouses(&page).await?.into_iter().map(|listed| listed.name).collect())
    };
    assert_eq!(names(None, None).await?, ["a", "a-", "a_", "b"]);
    assert_eq!(names(None, Some(2)).await?, ["a", "a-"]);
    assert_eq!(names(Some("a-"), Some(2)).await?, ["a_", "b"]);
    assert_eq!(names(Some("b\0"), None).await?, Vec::<String>::new());
    Ok(())
}

pub async fn roots_do_not_overlap(store: &dyn Store) -> Checked {
    store.create_warehouse(&at("w", "s3a://bucket/a/w")?, AT_MS).await?;
    let taken = WarehouseCreated::RootTaken { by: WarehouseName::parse("w")? };
    for root in ["s3://bucket/a/w", "s3n://bucket/a/w/x", "s3://bucket/a", "s3://bucket"] {
        assert_eq!(store.create_warehouse(&at("other", root)?, AT_MS).await?, taken, "{root}");
    }
    for (n, root) in
        ["s3://bucket/a/w2", "s3://bucket/a/v", "s3://bucket2/a/w", "file:///bucket/a/w"].iter().enumerate()
    {
        let made = at(&format!("other{n}"), root)?;
        assert_eq!(store.create_warehouse(&made, AT_MS).await?, WarehouseCreated::Created, "{root}");
    }
    Ok(())
}

pub async fn of_racing_creators_of_nested_roots_one_wins(store: &dyn Store) -> Checked {
    let nested = |n: usize| at(&format!("w{n}"), &format!("file:///a{}", "/x".repeat(n)));
    let racers = (0..RACERS).map(nested).collect::<Checked<Vec<_>>>()?;
    let created = join_all(racers.iter().map(|racer| store.create_warehouse(racer, AT_MS))).await;
    let created = created.into_iter().collect::<Result<Vec<_>, _>>()?;
    let winner = all(store).await?;
    assert_eq!(winner.len(), 1);
    let taken = WarehouseCreated::RootTaken { by: winner[0].name.clone() };
    assert_eq!(created.iter().filter(|outcome| **outcome == taken).count(), RACERS - 1, "{created:?}");
    Ok(())
}

pub async fn a_change_replaces_all_but_name_and_root(store: &dyn Store) -> Checked {
    let mut made = warehouse("w")?;
    store.create_warehouse(&made, AT_MS).await?;
    let root = made.place.root.clone();
    change(&mut made)?;
    let wanted = Warehouse { name: WarehouseName::parse("other")?, place: made.place.clone(), ..made.clone() };
    assert_eq!(store.update_warehouse(&wanted).await?, WarehouseUpdated::Updated);
    made.version += 1;
    made.place.root = root;
    assert_eq!(store.warehouse(&made.name).await?, Some(made));
    assert_eq!(store.warehouse(&wanted.name).await?, None);
    Ok(())
}

pub async fn a_change_of_what_was_changed_does_nothing(store: &dyn Store) -> Checked {
    let read = warehouse("w")?;
    assert_eq!(store.update_warehouse(&read).await?, WarehouseUpdated::Changed, "there is none");
    store.create_warehouse(&read, AT_MS).await?;
    let racers =
        (0..RACERS).map(|n| Warehouse { defaults: BTreeMap::from([("n".to_owned(), n.to_string())]), ..read.clone() });
    let racers: Vec<_> = racers.collect();
    let updated = join_all(racers.iter().map(|racer| store.update_warehouse(racer))).await;
    let updated = updated.into_iter().collect::<Result<Vec<_>, _>>()?;
    let winners: Vec<_> = (0..RACERS).filter(|n| updated[*n] == WarehouseUpdated::Updated).collect();
    assert_eq!(winners.len(), 1, "{updated:?}");
    let now = store.warehouse(&read.name).await?.ok_or("the warehouse is there")?;
    assert_eq!((now.defaults, now.version), (racers[winners[0]].defaults.clone(), read.version + 1));
    Ok(())
}

pub async fn an_empty_warehouse_is_deleted_with_its_name_and_its_root(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let table = world.table("t").await?;
    world.must(drop_of(&table)).await?;
    assert_eq!(store.drop_namespace(world.warehouse, &namespace(&["ns"])?, None).await?, NamespaceDropped::Dropped);
    assert_eq!(store.delete_warehouse(world.warehouse).await?, WarehouseDeleted::Deleted);
    assert_eq!(store.delete_warehouse(world.warehouse).await?, WarehouseDeleted::Missing);
    assert_eq!(all(store).await?, []);
    assert_eq!(store.create_warehouse(&warehouse("w")?, AT_MS).await?, WarehouseCreated::Created);
    Ok(())
}

pub async fn a_warehouse_that_holds_something_stays(store: &dyn Store) -> Checked {
    let (world, other) = (World::new(store).await?, World::bare(store, "other").await?);
    world.namespace(&["ns", "child"]).await?;
    world.table("t").await?;
    world.view("v").await?;
    let content = WarehouseContent { namespaces: 2, tables: 1, views: 1 };
    assert_eq!(store.delete_warehouse(world.warehouse).await?, WarehouseDeleted::NotEmpty(content));
    world.pointer("t").await?;
    assert_eq!(store.delete_warehouse(other.warehouse).await?, WarehouseDeleted::Deleted);
    Ok(())
}

pub async fn a_namespace_and_the_deletion_of_its_warehouse_exclude_each_other(store: &dyn Store) -> Checked {
    for _ in 0..10 {
        let world = World::bare(store, "w").await?;
        let new = world.new_namespace(&["ns"])?;
        let (created, deleted) =
            join(store.create_namespace(&new, None), store.delete_warehouse(world.warehouse)).await;
        match (created?, deleted?) {
            (NamespaceCreated::Created, WarehouseDeleted::NotEmpty(_)) => {
                store.drop_namespace(world.warehouse, &new.ident, None).await?;
                assert_eq!(store.delete_warehouse(world.warehouse).await?, WarehouseDeleted::Deleted);
            }
            (NamespaceCreated::WarehouseMissing, WarehouseDeleted::Deleted) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(())
}

pub async fn a_deleted_warehouse_takes_no_namespace(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    store.delete_warehouse(world.warehouse).await?;
    let new = world.new_namespace(&["ns"])?;
    assert_eq!(store.create_namespace(&new, None).await?, NamespaceCreated::WarehouseMissing);
    Ok(())
}

/// Drops a table at that location with purge and then all that holds it, its warehouse included.
async fn deleted_with_a_purge(store: &dyn Store, location: &str) -> Checked<(Warehouse, PurgeTask)> {
    let world = World::new(store).await?;
    world.must(create_at("t", location)?).await?;
    let table = world.pointer("t").await?;
    let target =
        PurgeTarget::Table { location: table.location.clone(), metadata_location: table.metadata_location.clone() };
    let task = PurgeTask { target, ..world.purge(AT_MS) };
    let mut swap = world.swap(vec![drop_of(&table)]);
    swap.purges = vec![task.clone()];
    assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
    store.drop_namespace(world.warehouse, &namespace(&["ns"])?, None).await?;
    let warehouse = store.warehouse(&WarehouseName::parse("w")?).await?.ok_or("the warehouse is there")?;
    assert_eq!(store.delete_warehouse(world.warehouse).await?, WarehouseDeleted::Deleted);
    Ok((warehouse, task))
}

pub async fn purges_outlive_their_warehouse(store: &dyn Store) -> Checked {
    let (gone, task) = deleted_with_a_purge(store, "file:///w/t").await?;
    let job = store.claim_purge(AT_MS, AT_MS + 10).await?.ok_or("the task is due")?;
    assert_eq!((job.task, job.place), (task.clone(), gone.place));
    store.finish_purge(task.id).await?;
    assert!(store.claim_purge(AT_MS + 20, AT_MS + 30).await?.is_none());
    Ok(())
}

pub async fn purges_of_a_deleted_warehouse_go_over_to_the_next_one_there(store: &dyn Store) -> Checked {
    let (gone, task) = deleted_with_a_purge(store, "file:///w/t").await?;
    let location = Location::parse("file:///w/t")?;
    let (elsewhere, mut heir) = (at("elsewhere", "file:///elsewhere")?, at("heir", "file:///w")?);
    change(&mut heir)?;
    for made in [&elsewhere, &heir] {
        assert_eq!(store.create_warehouse(made, AT_MS).await?, WarehouseCreated::Created);
    }
    assert!(!store.is_purging(elsewhere.id, &location).await?);
    assert!(store.is_purging(heir.id, &location).await?);
    // Keys may have changed since: those of the heir count, also when it is deleted in its turn.
    let place = Place { storage: heir.place.storage.clone(), ..gone.place };
    for lease in [AT_MS, AT_MS + 10] {
        let job = store.claim_purge(lease, lease + 10).await?.ok_or("the task is due")?;
        assert_eq!((job.task.id, job.task.warehouse, &job.place), (task.id, heir.id, &place));
        store.delete_warehouse(heir.id).await?;
    }
    Ok(())
}

pub async fn purges_at_allowed_locations_go_over_to_the_next_warehouse_there(store: &dyn Store) -> Checked {
    let (_, task) = deleted_with_a_purge(store, "s3://further/t").await?;
    let location = Location::parse("s3a://further/t")?;
    let (there, again) = (at("there", "s3://further")?, at("again", "file:///w")?);
    for made in [&there, &again] {
        assert_eq!(store.create_warehouse(made, AT_MS).await?, WarehouseCreated::Created);
        assert!(store.is_purging(there.id, &location).await?, "whose files they would be");
    }
    store.delete_warehouse(there.id).await?;
    store.delete_warehouse(again.id).await?;
    let again = at("again", "file:///w")?;
    store.create_warehouse(&again, AT_MS).await?;
    assert!(store.is_purging(again.id, &location).await?, "it may allow the same location");
    let job = store.claim_purge(AT_MS, AT_MS + 10).await?.ok_or("the task is due")?;
    assert_eq!((job.task.id, job.place.root), (task.id, again.place.root));
    Ok(())
}
