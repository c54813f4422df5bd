//! Warehouses that come, change and go, with all rules over this store.

use std::time::Duration;

use catalog::testing::world::warehouse;
use catalog::warehouses::store::{WarehouseCreated, WarehouseStore};
use tokio::time::timeout;

use super::registers::Shop;
use super::*;

#[tokio::test]
async fn a_deletion_goes_on_when_its_client_hangs_up() {
    let shop = Shop::open().await;
    let other = warehouse("other").unwrap();
    assert_eq!(shop.store.create_warehouse(&other, AT_MS).await.unwrap(), WarehouseCreated::Created);
    let ctx = shop.ctx();
    // Asked for once and then dropped.
    assert!(timeout(Duration::ZERO, shop.catalog.warehouses.delete(&ctx, "other")).await.is_err());
    shop.running.close();
    shop.running.wait().await;
    assert_eq!(shop.store.warehouse(&other.name).await.unwrap(), None);
}
