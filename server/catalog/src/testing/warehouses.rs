//! Cases of [`crate::warehouses::WarehouseStore`].

use super::world::{AT_MS, Checked, warehouse};
use crate::files::{S3Storage, Storage};
use crate::location::Location;
use crate::store::{Store, StoreError};
use crate::warehouses::WarehouseCreated;

pub async fn a_warehouse_is_found_by_its_name(store: &dyn Store) -> Checked {
    let mut made = warehouse("w")?;
    made.place.allowed = vec![Location::parse("s3://bucket/further")?];
    made.place.storage = Storage::S3(S3Storage { region: Some("eu-north-1".into()), ..S3Storage::default() });
    assert_eq!(store.create_warehouse(&made, AT_MS).await?, WarehouseCreated::Created);
    assert_eq!(store.warehouse(&made.name).await?, Some(made));
    assert_eq!(store.warehouse(&warehouse("other")?.name).await?, None);
    Ok(())
}

pub async fn a_warehouse_name_is_given_once(store: &dyn Store) -> Checked {
    let (first, second) = (warehouse("w")?, warehouse("w")?);
    store.create_warehouse(&first, AT_MS).await?;
    assert_eq!(store.create_warehouse(&second, AT_MS).await?, WarehouseCreated::NameTaken);
    assert_eq!(store.warehouses(10).await?, [first]);
    Ok(())
}

pub async fn warehouses_are_listed_by_name_up_to_the_limit(store: &dyn Store) -> Checked {
    for name in ["b", "a_", "a-", "a"] {
        store.create_warehouse(&warehouse(name)?, AT_MS).await?;
    }
    let names = |listed: Vec<crate::warehouses::Warehouse>| -> Vec<String> {
        listed.iter().map(|listed| listed.name.to_string()).collect()
    };
    assert_eq!(names(store.warehouses(10).await?), ["a", "a-", "a_", "b"]);
    assert_eq!(names(store.warehouses(2).await?), ["a", "a-"]);
    Ok(())
}

pub async fn a_place_is_replaced_but_for_its_root(store: &dyn Store) -> Checked {
    let mut made = warehouse("w")?;
    store.create_warehouse(&made, AT_MS).await?;
    let mut place = made.place.clone();
    place.root = Location::parse("file:///elsewhere")?;
    place.allowed = vec![Location::parse("file:///tmp")?];
    store.update_place(made.id, &place).await?;
    made.place.allowed = place.allowed;
    assert_eq!(store.warehouse(&made.name).await?, Some(made));
    Ok(())
}

pub async fn a_place_of_no_warehouse_is_not_replaced(store: &dyn Store) -> Checked {
    let missing = warehouse("w")?;
    let refused = store.update_place(missing.id, &missing.place).await;
    assert!(matches!(refused, Err(StoreError::Aborted(_))), "{refused:?}");
    Ok(())
}
