//! Warehouses: a name, a root location, and what else may lie where.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::{Error, Kind, Result};
use crate::files::Place;
use crate::ident::{WarehouseId, WarehouseName};
use crate::store::StoreError;

/// The warehouse that `GET /v1/config` answers for when the client names none.
const DEFAULT_NAME: &str = "default";

/// For how long a process may go on with a warehouse that another has changed. Its id, name and root never change.
const REMEMBERED: Duration = Duration::from_secs(5);

/// Bound of the warehouses kept in memory, in entries.
const REMEMBERED_MAX: u64 = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warehouse {
    pub id: WarehouseId,
    pub name: WarehouseName,
    /// Where its files may lie, and how they are reached.
    pub place: Place,
}

/// An expected answer of [`WarehouseStore::create_warehouse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarehouseCreated {
    Created,
    NameTaken,
}

#[async_trait]
pub trait WarehouseStore: Send + Sync + 'static {
    async fn warehouse(&self, name: &WarehouseName) -> Result<Option<Warehouse>, StoreError>;

    /// In the order of names, at most `limit`.
    async fn warehouses(&self, limit: u32) -> Result<Vec<Warehouse>, StoreError>;

    async fn create_warehouse(&self, warehouse: &Warehouse, at_ms: i64) -> Result<WarehouseCreated, StoreError>;

    /// Replaces where files may lie besides the root, and the storage settings.
    async fn update_place(&self, id: WarehouseId, place: &Place) -> Result<(), StoreError>;
}

/// Finds warehouses by name.
#[derive(Clone)]
pub struct Warehouses {
    store: Arc<dyn WarehouseStore>,
    remembered: moka::future::Cache<WarehouseName, Arc<Warehouse>>,
}

impl Warehouses {
    pub fn new(store: Arc<dyn WarehouseStore>) -> Self {
        let remembered = moka::future::Cache::builder().max_capacity(REMEMBERED_MAX).time_to_live(REMEMBERED).build();
        Self { store, remembered }
    }

    /// The warehouse of that name, which is also its prefix.
    pub async fn get(&self, name: &str) -> Result<Arc<Warehouse>> {
        let missing = || Error::new(Kind::NoSuchWarehouse, format!("Warehouse does not exist: {name}"));
        // A name that cannot be does not exist: the rules for names are asked where one is made.
        let parsed = WarehouseName::parse(name).map_err(|_| missing())?;
        if let Some(warehouse) = self.remembered.get(&parsed).await {
            return Ok(warehouse);
        }
        let warehouse = Arc::new(self.store.warehouse(&parsed).await?.ok_or_else(missing)?);
        self.remembered.insert(parsed, warehouse.clone()).await;
        Ok(warehouse)
    }

    /// The one named `default`, else the only one there is.
    pub async fn get_default(&self) -> Result<Arc<Warehouse>> {
        match self.get(DEFAULT_NAME).await {
            Err(error) if error.kind() == Kind::NoSuchWarehouse => {}
            found => return found,
        }
        let mut all = self.store.warehouses(2).await?;
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(Arc::new(only)),
            _ => Err(Error::new(
                Kind::NoSuchWarehouse,
                "there is no warehouse named 'default': name one with ?warehouse=",
            )),
        }
    }

    /// Fails where the store does not answer.
    pub async fn check(&self) -> Result<()> {
        self.store.warehouses(1).await?;
        Ok(())
    }

    /// Makes `warehouse` where the database holds none at all; with racing replicas one of them does.
    pub async fn create_first(&self, warehouse: Warehouse, at_ms: i64) -> Result<()> {
        if self.store.warehouses(1).await?.is_empty() {
            self.store.create_warehouse(&warehouse, at_ms).await?;
        }
        Ok(())
    }

    /// Sets which further locations the warehouse of that name allows.
    pub async fn allow(&self, name: &WarehouseName, allowed: &[crate::location::Location]) -> Result<()> {
        let Some(mut warehouse) = self.store.warehouse(name).await? else {
            return Err(Error::new(Kind::NoSuchWarehouse, format!("Warehouse does not exist: {name}")));
        };
        if warehouse.place.allowed != allowed {
            warehouse.place.allowed = allowed.to_vec();
            self.store.update_place(warehouse.id, &warehouse.place).await?;
            self.remembered.invalidate(name).await;
        }
        Ok(())
    }
}
