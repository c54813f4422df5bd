//! Warehouses that come, change and go, with all rules over this store.

use std::time::Duration;

use catalog::error::Kind;
use catalog::listing::PageRequest;
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

#[tokio::test]
async fn a_row_that_cannot_be_read_is_left_out_and_does_no_harm() {
    let shop = Shop::open().await;
    for name in ["a", "b", "x"] {
        shop.store.create_warehouse(&warehouse(name).unwrap(), AT_MS).await.unwrap();
    }
    shop.store.writer.execute("UPDATE warehouse SET root = 'odd' WHERE name = 'b'").await.unwrap();
    let (ctx, warehouses) = (shop.ctx(), &shop.catalog.warehouses);
    let names = async |token: Option<String>| {
        let listed = warehouses.list(&ctx, &PageRequest { token, size: Some(2) }).await.unwrap();
        let names: Vec<_> = listed.entries.into_iter().map(|listed| listed.name.to_string()).collect();
        (names, listed.next_page_token)
    };
    let (first, token) = names(None).await;
    assert_eq!(first, ["a"]);
    let (second, token) = names(Some(token.expect("more follow"))).await;
    assert_eq!((second, token), (vec!["w".to_owned(), "x".to_owned()], None));
    shop.store.writer.execute("UPDATE warehouse SET allowed = 'odd'").await.unwrap();
    warehouses.check().await.unwrap();
    warehouses.create_first(&warehouse("default").unwrap(), AT_MS).await.unwrap();
    assert!(warehouses.load(&ctx, "a").await.is_err());
    assert_eq!(
        warehouses.load(&ctx, "default").await.unwrap_err().kind(),
        Kind::NoSuchWarehouse,
        "it is not the first"
    );
}
