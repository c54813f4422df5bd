//! A register against the purge of the files that it names, with all rules over this store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use catalog::commits::CommitOptions;
use catalog::context::{Clock, Principal, RequestContext};
use catalog::error::{Error, Kind};
use catalog::files::{FilesOptions, Place, Storage};
use catalog::ident::{WarehouseId, WarehouseName};
use catalog::location::Location;
use catalog::namespaces::Namespace;
use catalog::purge::store::PurgeStore;
use catalog::tables::{CreateTable, Loaded, RegisterTable};
use catalog::testing::TestClock;
use catalog::testing::world::namespace;
use catalog::warehouses::Warehouse;
use catalog::warehouses::store::WarehouseStore;
use catalog::{Catalog, CatalogOptions};
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::*;

/// A catalog with one warehouse in a scratch folder, and the namespace `ns`.
pub(super) struct Shop {
    pub store: SqliteStore,
    pub catalog: Catalog,
    warehouse: Arc<Warehouse>,
    clock: TestClock,
    /// Changes under way.
    pub running: TaskTracker,
    _folder: tempfile::TempDir,
}

impl Shop {
    pub async fn open() -> Self {
        let folder = scratch_folder().unwrap();
        let store = SqliteStore::open(&folder.path().join("frazil.db")).await.unwrap();
        let root = format!("file://{}/warehouse", folder.path().display());
        let place = Place { root: Location::parse(&root).unwrap(), allowed: Vec::new(), storage: Storage::default() };
        let (id, name) = (WarehouseId(Uuid::now_v7()), WarehouseName::parse("w").unwrap());
        let warehouse = Arc::new(Warehouse::new(id, name, place));
        store.create_warehouse(&warehouse, AT_MS).await.unwrap();
        let options = CatalogOptions {
            files: FilesOptions::default(),
            secrets_key: None,
            cache_bytes: 1 << 20,
            commits: CommitOptions { metadata_delete_grace_ms: 0, ..CommitOptions::default() },
        };
        let running = TaskTracker::new();
        let shop = Self {
            catalog: Catalog::new(Arc::new(store.clone()), options, running.clone()),
            store,
            warehouse,
            clock: TestClock::at(AT_MS),
            running,
            _folder: folder,
        };
        let ns = Namespace { ident: namespace(&["ns"]).unwrap(), properties: BTreeMap::new() };
        let namespaces = &shop.catalog.namespaces;
        namespaces.create(&shop.ctx(), &shop.warehouse, ns).await.unwrap();
        shop
    }

    pub fn ctx(&self) -> RequestContext {
        RequestContext {
            principal: Principal::Anonymous,
            request_id: "1".into(),
            deadline: Instant::now() + Duration::from_secs(60),
            clock: Arc::new(self.clock.clone()),
            idempotency: None,
            noted: Default::default(),
        }
    }

    /// Makes the table `ns.t`, drops it with purge, and tells where its metadata file lies.
    async fn purged_table(&self) -> String {
        let schema = r#"{"type":"struct","fields":[{"id":1,"name":"x","required":false,"type":"long"}]}"#;
        let request = CreateTable {
            ident: ident("t").unwrap(),
            location: None,
            schema: RawValue::from_string(schema.into()).unwrap(),
            partition_spec: None,
            write_order: None,
            stage_create: false,
            properties: BTreeMap::new(),
        };
        let tables = &self.catalog.tables;
        let made = tables.create(&self.ctx(), &self.warehouse, request).await.unwrap();
        tables.drop(&self.ctx(), &self.warehouse, ident("t").unwrap(), true).await.unwrap();
        made.metadata_location.unwrap()
    }

    async fn register(&self, metadata_location: &str) -> Result<Loaded, Error> {
        let request = RegisterTable {
            ident: ident("back").unwrap(),
            metadata_location: metadata_location.to_owned(),
            overwrite: false,
        };
        self.catalog.tables.register(&self.ctx(), &self.warehouse, request).await
    }

    async fn refused(&self, metadata_location: &str) -> Error {
        let refused = self.register(metadata_location).await.unwrap_err();
        let ident = ident("back").unwrap();
        assert_eq!(self.store.pointer(self.warehouse.id, &ident).await.unwrap(), None);
        refused
    }
}

fn on_disk(location: &str) -> PathBuf {
    location.strip_prefix("file://").unwrap().into()
}

/// Copies a metadata file to another name beside it, changed by `change`.
fn copy(metadata_location: &str, name: &str, change: impl Fn(String) -> String) -> String {
    let text = std::fs::read_to_string(on_disk(metadata_location)).unwrap();
    let (folder, _) = metadata_location.rsplit_once('/').unwrap();
    let copied = format!("{folder}/{name}");
    std::fs::write(on_disk(&copied), change(text)).unwrap();
    copied
}

/// The same document under a UUID of its own.
fn another_uuid(text: String) -> String {
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    document["table-uuid"] = Uuid::now_v7().to_string().into();
    document.to_string()
}

#[tokio::test]
async fn a_table_is_not_registered_while_its_files_are_to_be_deleted() {
    let shop = Shop::open().await;
    let file = shop.purged_table().await;
    let clone = copy(&file, "clone.metadata.json", another_uuid);
    for location in [&file, &clone] {
        let refused = shop.refused(location).await;
        assert_eq!(refused.kind(), Kind::Unprocessable);
        assert!(refused.message().contains("being deleted"), "{refused}");
    }
    // The same while somebody is at it.
    let now_ms = shop.clock.now_ms();
    shop.store.claim_purge(now_ms, now_ms + 1).await.unwrap().unwrap();
    assert_eq!(shop.refused(&clone).await.kind(), Kind::Unprocessable);
}

#[tokio::test]
async fn a_table_whose_files_are_deleted_is_not_found() {
    let shop = Shop::open().await;
    let file = shop.purged_table().await;
    assert!(shop.catalog.purges.run_once(&shop.clock).await.unwrap());
    assert!(!on_disk(&file).exists());
    assert_eq!(shop.refused(&file).await.kind(), Kind::NotFound);
}

#[tokio::test]
async fn a_copy_is_registered_when_the_purge_is_over_and_keeps_its_files() {
    let shop = Shop::open().await;
    let file = shop.purged_table().await;
    let clone = copy(&file, "clone.metadata.json", another_uuid);
    while shop.catalog.purges.run_once(&shop.clock).await.unwrap() {}
    shop.register(&clone).await.unwrap();
    assert!(!shop.catalog.purges.run_once(&shop.clock).await.unwrap());
    assert!(on_disk(&clone).exists());
}
