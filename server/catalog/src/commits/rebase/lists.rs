//! Manifest lists and manifests by location: read once, for they never change, and kept as long as there is room.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use moka::policy::EvictionPolicy;
use tokio::sync::Semaphore;

use super::class::{self, Told};
use super::manifest::{self, Entry, Status};
use super::manifest_list::{self, Content, List, ManifestFile};
use super::merge::Delta;
use crate::avro;
use crate::commits::lineage::Class;
use crate::files::Files;
use crate::ident::WarehouseId;
use crate::metadata::{Snapshot, TableMetadata};
use crate::warehouses::Warehouse;

/// The largest manifest list or manifest that is read, in bytes; Iceberg's writers aim at 8 MiB.
const FILE_MAX_BYTES: u64 = 32 * 1024 * 1024;

/// How many files are in memory at once while they are read.
const READS_MAX: usize = 8;

/// How many manifests of one snapshot are asked for at once.
const PARALLEL: usize = 4;

type Cache<T> = moka::future::Cache<(WarehouseId, String), Arc<T>>;

/// A manifest list or manifest that is not there, or is not what it should be.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what} cannot be read: {problem}")]
pub struct Unreadable {
    what: String,
    problem: String,
}

impl Unreadable {
    fn new(what: impl Into<String>, problem: impl ToString) -> Self {
        Self { what: what.into(), problem: problem.to_string() }
    }
}

/// Reads manifest lists and manifests.
#[derive(Clone)]
pub struct Lists {
    files: Arc<Files>,
    lists: Cache<List>,
    manifests: Cache<Vec<Entry>>,
    reads: Arc<Semaphore>,
}

impl Lists {
    /// `cache_bytes` bounds what is kept in memory, manifest lists and manifests together.
    pub fn new(files: Arc<Files>, cache_bytes: u64) -> Self {
        let entries_bytes = |entries: &Vec<Entry>| entries.iter().map(Entry::memory_bytes).sum();
        Self {
            files,
            lists: cache(cache_bytes / 2, List::memory_bytes),
            manifests: cache(cache_bytes / 2, entries_bytes),
            reads: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// The paths of data and delete files that a snapshot added: what is marked so in the manifests that it brought.
    pub async fn added_paths(
        &self,
        warehouse: &Warehouse,
        snapshot: &Snapshot,
    ) -> Result<BTreeSet<String>, Unreadable> {
        let id = snapshot.id();
        let list = self.list(warehouse, snapshot).await?;
        let own = list.manifests.iter().filter(|manifest| manifest.added_snapshot_id == id);
        let manifests = self.entries(warehouse, own).await?;
        let added = manifests.iter().flat_map(|(_, entries)| entries.iter());
        let added = added.filter(|entry| entry.status == Status::Added && entry.is_of(id));
        Ok(added.map(|entry| entry.path.clone()).collect())
    }

    /// The manifest list of a snapshot.
    pub(super) async fn list(&self, warehouse: &Warehouse, snapshot: &Snapshot) -> Result<Arc<List>, Unreadable> {
        let snapshot_named = || format!("the manifest list of snapshot {}", snapshot.id());
        let path = snapshot.manifest_list();
        let path = path.ok_or_else(|| Unreadable::new(snapshot_named(), "the snapshot names its manifests itself"))?;
        if snapshot.is_encrypted() {
            return Err(Unreadable::new(snapshot_named(), "it is encrypted"));
        }
        self.read(&self.lists, warehouse, path, manifest_list::read).await
    }

    /// The entries of some manifests, each with its manifest, in their order.
    pub(super) async fn entries<'m>(
        &self,
        warehouse: &Warehouse,
        manifests: impl Iterator<Item = &'m ManifestFile>,
    ) -> Result<Vec<(&'m ManifestFile, Arc<Vec<Entry>>)>, Unreadable> {
        let mut reads = Vec::new();
        for manifest in manifests {
            reads.push(async move {
                let entries = self.read(&self.manifests, warehouse, &manifest.path, manifest::read).await?;
                Ok((manifest, entries))
            });
        }
        futures::stream::iter(reads).buffered(PARALLEL).try_collect().await
    }

    /// What a snapshot did, told by what it changed in its parent's list.
    pub(super) async fn class_of(
        &self,
        warehouse: &Warehouse,
        snapshot: &Snapshot,
        delta: &Delta,
    ) -> Result<Class, Unreadable> {
        let id = snapshot.id();
        if let Told::Class(class) = class::by_lists(&snapshot.summary(), delta) {
            return Ok(class);
        }
        let deletes = self.entries(warehouse, delta.new_of(Content::Deletes)).await?;
        let deletes: Vec<&Entry> = deletes.iter().flat_map(|(_, entries)| entries.iter()).collect();
        if let Told::Class(class) = class::by_deletes(id, &deletes, None) {
            return Ok(class);
        }
        let data = self.entries(warehouse, delta.new_of(Content::Data)).await?;
        let added: HashSet<&str> = data.iter().flat_map(|(_, entries)| class::added_data(id, entries)).collect();
        match class::by_deletes(id, &deletes, Some(&added)) {
            Told::Class(class) => Ok(class),
            Told::Deletes => Ok(Class::Other),
        }
    }

    /// What a snapshot of the table did, read from its list and its parent's.
    pub(super) async fn class_of_landed(
        &self,
        warehouse: &Warehouse,
        metadata: &TableMetadata,
        id: i64,
    ) -> Result<Class, Unreadable> {
        let find =
            |id: i64| metadata.snapshot(id).ok_or_else(|| Unreadable::new(format!("snapshot {id}"), "it expired"));
        let snapshot = find(id)?;
        let own = self.list(warehouse, snapshot).await?;
        let delta = match snapshot.parent_id() {
            Some(parent) => Delta::of(&self.list(warehouse, find(parent)?).await?.manifests, &own.manifests),
            None => Delta::of(&[], &own.manifests),
        };
        self.class_of(warehouse, snapshot, &delta).await
    }

    /// Keeps a list under the location that it is going to have.
    pub(super) async fn remember_list(&self, warehouse: &Warehouse, path: &str, list: List) {
        self.lists.insert((warehouse.id, path.to_owned()), Arc::new(list)).await;
    }

    /// Keeps the entries of a manifest under the location that it is going to have.
    pub(super) async fn remember_manifest(&self, warehouse: &Warehouse, path: &str, entries: Vec<Entry>) {
        self.manifests.insert((warehouse.id, path.to_owned()), Arc::new(entries)).await;
    }

    /// Reads a file and works on it where that holds nobody up; only a few files are in memory at once.
    pub(super) async fn with_file<T: Send + 'static>(
        &self,
        warehouse: &Warehouse,
        path: &str,
        work: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, Unreadable> {
        let _turn = self.reads.acquire().await.expect("the semaphore is never closed");
        let bytes = self.files.read(&warehouse.place, path, FILE_MAX_BYTES).await;
        let bytes = bytes.map_err(|error| Unreadable::new(path, error))?;
        // A panic of the decoder is one more way to be unreadable.
        let done = tokio::task::spawn_blocking(move || work(&bytes)).await;
        done.map_err(|_| Unreadable::new(path, "its decoder gave up"))
    }

    /// Whoever asks for a file while it is being read waits for it.
    async fn read<T: Send + Sync + 'static>(
        &self,
        cache: &Cache<T>,
        warehouse: &Warehouse,
        path: &str,
        decode: fn(&[u8]) -> Result<T, avro::Unreadable>,
    ) -> Result<Arc<T>, Unreadable> {
        let load = async {
            let decoded = self.with_file(warehouse, path, decode).await?;
            decoded.map(Arc::new).map_err(|error| Unreadable::new(path, error))
        };
        let read = cache.try_get_with((warehouse.id, path.to_owned()), load).await;
        read.map_err(Arc::unwrap_or_clone)
    }
}

/// The oldest go first, and what was put in last stays: it may not lie anywhere else yet.
fn cache<T: Send + Sync + 'static>(max_bytes: u64, memory_bytes: fn(&T) -> usize) -> Cache<T> {
    moka::future::Cache::builder()
        .max_capacity(max_bytes)
        .eviction_policy(EvictionPolicy::lru())
        .weigher(move |(_, path): &(WarehouseId, String), kept: &Arc<T>| {
            u32::try_from(path.len() + memory_bytes(kept)).unwrap_or(u32::MAX)
        })
        .build()
}
