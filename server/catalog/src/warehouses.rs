//! Warehouses: a name, a root location, what else may lie where, and what their clients are told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::audit;
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::files::{Files, Place, Storage};
use crate::idempotency::Mutations;
use crate::ident::{WarehouseId, WarehouseName};
use crate::listing::{Listing, PageRequest};
use crate::location::Location;
use crate::store::Page;

mod rules;
mod settings;
pub mod store;

pub use rules::{WarehouseChange, WarehouseSettings};
use store::{WarehouseContent, WarehouseCreated, WarehouseDeleted, WarehouseListed, WarehouseStore, WarehouseUpdated};

/// The warehouse that `GET /v1/config` answers for when the client names none.
const DEFAULT_NAME: &str = "default";

/// For how long a process may go on with a warehouse that another has changed. Its id, name and root never change.
const REMEMBERED: Duration = Duration::from_secs(5);

/// Bound of the warehouses kept in memory, in entries.
const REMEMBERED_MAX: u64 = 10_000;

/// The version of a warehouse that was never changed.
const FIRST_VERSION: i64 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warehouse {
    pub id: WarehouseId,
    pub name: WarehouseName,
    /// Where its files may lie, and how they are reached.
    pub place: Place,
    /// What clients are told, unless they know better themselves.
    pub defaults: BTreeMap<String, String>,
    /// What clients are told, whatever they were configured with.
    pub overrides: BTreeMap<String, String>,
    /// Bumped on every change.
    pub version: i64,
}

impl Warehouse {
    /// With no settings for clients, and never changed.
    pub fn new(id: WarehouseId, name: WarehouseName, place: Place) -> Self {
        Self { id, name, place, defaults: BTreeMap::new(), overrides: BTreeMap::new(), version: FIRST_VERSION }
    }

    /// What a client is told before anything else, to take where it has no settings of its own. It holds how the files
    /// are reached, for iceberg-rust forgets what comes with a table after its first commit.
    pub fn client_defaults(&self) -> BTreeMap<String, String> {
        let mut defaults = self.place.storage.client_config();
        defaults.extend(self.defaults.clone());
        defaults
    }

    /// What a client is told with each table: how it reaches the files. Never a secret.
    pub fn table_config(&self) -> BTreeMap<String, String> {
        settings::replaced(self.place.storage.client_config(), &self.defaults, &self.overrides)
    }
}

/// A warehouse to be made.
#[derive(Debug, Clone)]
pub struct NewWarehouse {
    pub name: WarehouseName,
    pub location: Location,
    pub settings: WarehouseSettings,
}

/// Finds warehouses by name, and makes, changes and deletes them.
#[derive(Clone)]
pub struct Warehouses {
    store: Arc<dyn WarehouseStore>,
    files: Arc<Files>,
    mutations: Mutations,
    remembered: moka::future::Cache<WarehouseName, Arc<Warehouse>>,
}

impl Warehouses {
    pub fn new(store: Arc<dyn WarehouseStore>, files: Arc<Files>, mutations: Mutations) -> Self {
        let remembered = moka::future::Cache::builder().max_capacity(REMEMBERED_MAX).time_to_live(REMEMBERED).build();
        Self { store, files, mutations, remembered }
    }

    /// The warehouse of that name, which is also its prefix.
    pub async fn get(&self, name: &str) -> Result<Arc<Warehouse>> {
        let parsed = known(name)?;
        if let Some(warehouse) = self.remembered.get(&parsed).await {
            return Ok(warehouse);
        }
        let warehouse = Arc::new(self.read(&parsed).await?);
        self.remembered.insert(parsed, warehouse.clone()).await;
        Ok(warehouse)
    }

    /// The one named `default`, else the only one there is.
    pub async fn get_default(&self) -> Result<Arc<Warehouse>> {
        match self.get(DEFAULT_NAME).await {
            Err(error) if error.kind() == Kind::NoSuchWarehouse => {}
            found => return found,
        }
        let mut all = self.store.warehouses(&first(2)).await?;
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(Arc::new(only.warehouse?)),
            _ => Err(Error::new(
                Kind::NoSuchWarehouse,
                "there is no warehouse named 'default': name one with ?warehouse=",
            )),
        }
    }

    /// Fails where the store does not answer.
    pub async fn check(&self) -> Result<()> {
        self.store.warehouses(&first(1)).await?;
        Ok(())
    }

    /// Without those that cannot be read: they are told in the log.
    pub async fn list(&self, _ctx: &RequestContext, page: &PageRequest) -> Result<Listing<Warehouse>> {
        let listed = self.store.warehouses(&page.probe()?).await?;
        let Listing { entries, next_page_token } = page.cut_by(listed, |listed| listed.name.as_str());
        Ok(Listing { entries: entries.into_iter().filter_map(readable).collect(), next_page_token })
    }

    /// As it is in the database now, whatever this process remembers.
    pub async fn load(&self, _ctx: &RequestContext, name: &str) -> Result<Warehouse> {
        self.read(&known(name)?).await
    }

    /// Makes a warehouse once its store has shown that it can be used.
    pub async fn create(&self, ctx: &RequestContext, new: NewWarehouse) -> Result<Warehouse> {
        let (this, ctx) = (self.clone(), ctx.clone());
        self.mutations.to_its_end(async move { this.make(&ctx, new).await }).await
    }

    async fn make(&self, ctx: &RequestContext, new: NewWarehouse) -> Result<Warehouse> {
        let NewWarehouse { name, location, settings } = new;
        let storage = settings.storage.unwrap_or_else(|| Storage::for_location(&location));
        storage.check_given()?;
        let mut place = Place { root: location, allowed: settings.allowed, storage };
        rules::check(&place, &settings.defaults, &settings.overrides)?;
        if self.store.warehouse(&name).await?.is_some() {
            return Err(name_taken(&name));
        }
        place.storage = self.files.seal(&place.storage)?;
        self.files.probe(&place, ctx.new_id()).await?;
        let WarehouseSettings { defaults, overrides, .. } = settings;
        let made = Warehouse { defaults, overrides, ..Warehouse::new(WarehouseId(ctx.new_id()), name, place) };
        match self.store.create_warehouse(&made, ctx.now_ms()).await? {
            WarehouseCreated::Created => {}
            WarehouseCreated::NameTaken => return Err(name_taken(&made.name)),
            WarehouseCreated::RootTaken { by } => return Err(root_taken(&made.place.root, &by)),
        }
        audit::record(audit::Entry::new(ctx, "warehouse.create").warehouse(&made.name));
        tracing::info!(warehouse = %made.name, root = %made.place.root, "a warehouse was made");
        Ok(made)
    }

    /// Replaces all settings of a warehouse once its store has shown that it can be used with them. A secret that is left
    /// out stays, if it belongs to the same key.
    pub async fn update(&self, ctx: &RequestContext, name: &str, change: WarehouseChange) -> Result<Warehouse> {
        let (this, ctx, name) = (self.clone(), ctx.clone(), known(name)?);
        self.mutations.to_its_end(async move { this.change(&ctx, &name, change).await }).await
    }

    async fn change(&self, ctx: &RequestContext, name: &WarehouseName, change: WarehouseChange) -> Result<Warehouse> {
        let now = self.read(name).await?;
        rules::check_meant(&change, &now)?;
        let WarehouseSettings { storage, allowed, defaults, overrides } = change.settings;
        let mut place = Place { allowed, storage: rules::storage_after(storage, &now.place)?, ..now.place };
        rules::check(&place, &defaults, &overrides)?;
        place.storage = self.files.seal(&place.storage)?;
        self.files.probe(&place, ctx.new_id()).await?;
        let wanted = Warehouse { place, defaults, overrides, id: now.id, name: now.name, version: now.version };
        let updated = self.store.update_warehouse(&wanted).await?;
        self.remembered.invalidate(name).await;
        match updated {
            WarehouseUpdated::Updated => {
                audit::record(audit::Entry::new(ctx, "warehouse.update").warehouse(&wanted.name));
                Ok(Warehouse { version: wanted.version + 1, ..wanted })
            }
            WarehouseUpdated::Changed => Err(rules::changed(&wanted)),
        }
    }

    /// Deletes a warehouse that holds nothing. Its files stay, but for those that drops have left to be deleted.
    pub async fn delete(&self, ctx: &RequestContext, name: &str) -> Result<()> {
        let (this, ctx, name) = (self.clone(), ctx.clone(), known(name)?);
        self.mutations.to_its_end(async move { this.remove(&ctx, &name).await }).await
    }

    async fn remove(&self, ctx: &RequestContext, name: &WarehouseName) -> Result<()> {
        let warehouse = self.read(name).await?;
        let deleted = self.store.delete_warehouse(warehouse.id).await;
        self.remembered.invalidate(name).await;
        match deleted? {
            WarehouseDeleted::Deleted => {
                audit::record(audit::Entry::new(ctx, "warehouse.delete").warehouse(name));
                tracing::info!(warehouse = %name, "a warehouse was deleted");
                Ok(())
            }
            WarehouseDeleted::Missing => Err(missing(name.as_str())),
            WarehouseDeleted::NotEmpty(content) => Err(not_empty(name, content)),
        }
    }

    /// Makes `warehouse` where the database holds none at all; with racing replicas one of them does.
    pub async fn create_first(&self, warehouse: &Warehouse, at_ms: i64) -> Result<()> {
        rules::check_place(&warehouse.place)?;
        if self.store.warehouses(&first(1)).await?.is_empty() {
            self.store.create_warehouse(warehouse, at_ms).await?;
        }
        Ok(())
    }

    /// Sets which further locations `home` allows, if it still is the warehouse of that name and root.
    pub async fn allow(&self, home: &Warehouse) -> Result<()> {
        let Some(mut warehouse) = self.store.warehouse(&home.name).await? else {
            return Ok(());
        };
        if warehouse.place.root != home.place.root || warehouse.place.allowed == home.place.allowed {
            return Ok(());
        }
        warehouse.place.allowed = home.place.allowed.clone();
        // With racing replicas one of them does.
        self.store.update_warehouse(&warehouse).await?;
        self.remembered.invalidate(&home.name).await;
        Ok(())
    }

    async fn read(&self, name: &WarehouseName) -> Result<Warehouse> {
        self.store.warehouse(name).await?.ok_or_else(|| missing(name.as_str()))
    }
}

fn readable(listed: WarehouseListed) -> Option<Warehouse> {
    match listed.warehouse {
        Ok(warehouse) => Some(warehouse),
        Err(error) => {
            tracing::error!(warehouse = %listed.name, error = ?error, "a warehouse cannot be read");
            None
        }
    }
}

/// A name that cannot be does not exist: the rules for names are asked where one is made.
fn known(name: &str) -> Result<WarehouseName> {
    WarehouseName::parse(name).map_err(|_| missing(name))
}

fn missing(name: &str) -> Error {
    Error::new(Kind::NoSuchWarehouse, format!("Warehouse does not exist: {name}"))
}

fn name_taken(name: &WarehouseName) -> Error {
    Error::new(Kind::AlreadyExists, format!("Warehouse already exists: {name}"))
}

fn root_taken(root: &Location, by: &WarehouseName) -> Error {
    Error::new(
        Kind::AlreadyExists,
        format!("location '{root}' lies in or above the location of warehouse {by}: choose a place of its own"),
    )
}

fn not_empty(name: &WarehouseName, content: WarehouseContent) -> Error {
    let WarehouseContent { namespaces, tables, views } = content;
    Error::new(
        Kind::WarehouseNotEmpty,
        format!(
            "Warehouse {name} is not empty: it holds {namespaces} namespaces, {tables} tables and {views} views; drop them first"
        ),
    )
}

fn first(limit: u32) -> Page {
    Page { after: None, limit: Some(limit) }
}
