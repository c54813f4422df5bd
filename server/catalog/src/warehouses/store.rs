//! The port of warehouses.

use async_trait::async_trait;

use crate::ident::{WarehouseId, WarehouseName};
use crate::store::{Page, StoreError};
use crate::warehouses::Warehouse;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarehouseCreated {
    Created,
    NameTaken,
    /// The root lies in, above or at that of another warehouse.
    RootTaken {
        by: WarehouseName,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarehouseUpdated {
    Updated,
    /// It is no longer the one that was read: another change was quicker, or it is gone.
    Changed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarehouseDeleted {
    Deleted,
    Missing,
    NotEmpty(WarehouseContent),
}

/// What a warehouse holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarehouseContent {
    /// Of all levels.
    pub namespaces: i64,
    pub tables: i64,
    pub views: i64,
}

/// A row of a listing.
#[derive(Debug)]
pub struct WarehouseListed {
    pub name: String,
    /// Fails where the row cannot be read: the others are none the worse.
    pub warehouse: Result<Warehouse, StoreError>,
}

#[async_trait]
pub trait WarehouseStore: Send + Sync + 'static {
    async fn warehouse(&self, name: &WarehouseName) -> Result<Option<Warehouse>, StoreError>;

    /// In the order of names.
    async fn warehouses(&self, page: &Page) -> Result<Vec<WarehouseListed>, StoreError>;

    /// Purges that deleted warehouses left below or above the root go over to the new one: it must not take over files
    /// that are being deleted. So do those of a warehouse whose root was there, if none has them yet.
    async fn create_warehouse(&self, warehouse: &Warehouse, at_ms: i64) -> Result<WarehouseCreated, StoreError>;

    /// Replaces all but id, name and root, if the version is still that of `warehouse`, and makes it the next one.
    async fn update_warehouse(&self, warehouse: &Warehouse) -> Result<WarehouseUpdated, StoreError>;

    /// Deletes it if it holds no namespace. What it has left to purge is still purged, where it lay and as it was reached.
    async fn delete_warehouse(&self, id: WarehouseId) -> Result<WarehouseDeleted, StoreError>;
}
