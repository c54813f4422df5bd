//! The rules of the catalog. No HTTP and no SQL is known here.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

pub mod audit;
mod avro;
mod blocking;
pub mod commits;
pub mod context;
pub mod coordination;
pub mod documents;
pub mod error;
pub mod events;
pub mod failpoint;
pub mod files;
pub mod finding;
pub mod idempotency;
pub mod ident;
pub mod listing;
pub mod location;
pub mod metadata;
pub mod metrics_reports;
pub mod namespaces;
pub mod principals;
pub mod purge;
pub mod reachable;
pub mod store;
pub mod tables;
pub mod tabulars;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transfer;
pub mod view_metadata;
pub mod views;
pub mod warehouses;

/// What the catalog is built with, from the configuration.
#[derive(Debug, Clone)]
pub struct CatalogOptions {
    pub files: files::FilesOptions,
    /// What secrets of warehouses are encrypted with.
    pub secrets_key: Option<files::SecretsKey>,
    /// Bound of the metadata documents kept in memory, in bytes, tables and views each.
    pub cache_bytes: u64,
    pub commits: commits::CommitOptions,
}

/// Every feature over one store; cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    pub warehouses: warehouses::Warehouses,
    pub namespaces: namespaces::Namespaces,
    pub tables: tables::Tables,
    pub commits: commits::Commits,
    pub coordination: coordination::Coordination,
    pub views: views::Views,
    pub metrics_reports: metrics_reports::MetricsReports,
    pub purges: purge::Purges,
    pub principals: principals::Principals,
    pub mutations: idempotency::Mutations,
    pub files: Arc<files::Files>,
    pub watch: commits::watch::Watch,
    pub pools: Arc<dyn store::Pools>,
}

impl Catalog {
    /// Mutations under way are tracked by `running`: a process that stops waits for them.
    pub fn new(store: Arc<dyn store::Store>, options: CatalogOptions, running: TaskTracker) -> Self {
        let principals = principals::Principals::new(store.clone(), options.secrets_key.clone());
        let files = Arc::new(files::Files::new(options.files, options.secrets_key));
        let documents = documents::Documents::new(files.clone(), options.cache_bytes);
        let mutations = idempotency::Mutations::new(store.clone(), running.clone());
        let queues = commits::queue::Queues::new(options.commits.queue);
        let watch = commits::watch::Watch::new(options.commits.tables_shown_max);
        let shared = (queues.clone(), watch.clone());
        let tabulars = tabulars::Tabulars::new(store.clone(), documents.clone(), mutations.clone(), shared);
        let tables = tables::Tables::new(store.clone(), tabulars.clone(), documents.clone(), files.clone());
        Self {
            warehouses: warehouses::Warehouses::new(store.clone(), files.clone(), mutations.clone()),
            namespaces: namespaces::Namespaces::new(store.clone(), mutations.clone()),
            commits: commits::Commits::new(
                store.clone(),
                (tables.clone(), mutations.clone(), queues, watch.clone()),
                options.commits,
                running,
            ),
            coordination: coordination::Coordination::new(store.clone(), tabulars.clone(), documents.clone()),
            views: views::Views::new(store.clone(), tabulars, documents.clone()),
            metrics_reports: metrics_reports::MetricsReports::new(tables.clone()),
            purges: purge::Purges::new(store.clone(), documents, files.clone()),
            pools: store,
            watch,
            principals,
            tables,
            mutations,
            files,
        }
    }
}
