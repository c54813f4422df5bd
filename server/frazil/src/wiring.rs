//! The only place that knows concrete parts: which store, which clock, and how they make a catalog.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catalog::commits::queue::QueueOptions;
use catalog::commits::{CommitOptions, Retention};
use catalog::context::Clock;
use catalog::files::{FilesOptions, Place, Storage};
use catalog::ident::{WarehouseId, WarehouseName};
use catalog::location::Location;
use catalog::principals::Principals;
use catalog::principals::store::PrincipalStore;
use catalog::store::Store;
use catalog::warehouses::Warehouse;
use catalog::{Catalog, CatalogOptions};
use store_postgres::{PostgresOptions, PostgresStore};
use store_sqlite::{OpenError, SqliteStore};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::config::{Config, ConfigError, DatabaseUrl, StorageConfig};
use crate::telemetry;

mod databases;
mod examination;

pub use databases::{backup, source, target};
pub use examination::examine;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A catalog with what belongs to it.
pub struct Wired {
    pub catalog: Catalog,
    pub clock: Arc<dyn Clock>,
    /// Changes under way, which go on when their client hangs up.
    pub running: TaskTracker,
}

/// The clock and the ids of the machine.
pub struct Machine;

impl Clock for Machine {
    #[expect(clippy::disallowed_methods, reason = "the one place where time comes in")]
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}

/// The whole catalog over the configured database, with the warehouse `default` where there is none at all.
pub async fn open(config: &Config) -> Result<Wired, Error> {
    let (clock, running) = (Arc::new(Machine) as Arc<dyn Clock>, TaskTracker::new());
    let store = open_store(config, config.database.migrate).await?;
    let catalog = Catalog::new(store, options(config)?, running.clone());
    let home = default_warehouse(&config.storage, clock.as_ref())?;
    if config.storage.default_warehouse {
        catalog.warehouses.create_first(&home, clock.now_ms()).await?;
    }
    // What the setting says holds from now on.
    catalog.warehouses.allow(&home).await?;
    Ok(Wired { catalog, clock, running })
}

/// The service principals of the configured database, beside a server that may be running, and the clock.
pub async fn principals(config: &Config) -> Result<(Principals, Arc<dyn Clock>), Error> {
    let url = config.database_url();
    let store: Arc<dyn PrincipalStore> = match url.scheme() {
        "sqlite" => match SqliteStore::open(&sqlite_path(&url)).await {
            Err(OpenError::InUse { path }) => Arc::new(SqliteStore::open_beside(&path).await?),
            opened => Arc::new(opened?),
        },
        _ => open_store(config, config.database.migrate).await?,
    };
    Ok((Principals::new(store, config.secrets.read()?), Arc::new(Machine)))
}

/// Brings the database up to date.
pub async fn migrate(config: &Config) -> Result<(), Error> {
    open_store(config, true).await.map(|_| ())
}

async fn open_store(config: &Config, migrate: bool) -> Result<Arc<dyn Store>, Error> {
    let url = config.database_url();
    match url.scheme() {
        "sqlite" => Ok(Arc::new(SqliteStore::open(&sqlite_path(&url)).await?)),
        "postgres" | "postgresql" => {
            let options = postgres_options(config);
            Ok(Arc::new(match migrate {
                true => PostgresStore::connect(&options).await?,
                false => PostgresStore::open(&options).await?,
            }))
        }
        other => Err(unknown_scheme("database.url", other)),
    }
}

fn postgres_options(config: &Config) -> PostgresOptions {
    let database = &config.database;
    PostgresOptions {
        url: config.database_url().reveal().to_owned(),
        connections: database.connections,
        wait: Duration::from_millis(database.wait_ms),
        statement_timeout: Duration::from_millis(database.statement_timeout_ms),
        replica_url: database.replica_url.as_ref().map(|url| url.reveal().to_owned()),
        replica_lag_max: Duration::from_millis(database.replica_lag_ms),
    }
}

/// `sqlite:PATH`, and `sqlite://PATH` as other programs write it.
fn sqlite_path(url: &DatabaseUrl) -> PathBuf {
    let path = url.reveal();
    let path = path.strip_prefix("sqlite:").unwrap_or(path);
    PathBuf::from(path.strip_prefix("//").unwrap_or(path))
}

fn options(config: &Config) -> Result<CatalogOptions, ConfigError> {
    Ok(CatalogOptions {
        files: files_options(config),
        cache_bytes: config.limits.metadata_cache_bytes,
        commits: commit_options(config)?,
        secrets_key: config.secrets.read()?,
    })
}

fn files_options(config: &Config) -> FilesOptions {
    FilesOptions {
        max_concurrent_operations: config.storage.concurrent_operations,
        trace_headers: telemetry::trace_headers,
        own_files: own_files(config),
        ..FilesOptions::default()
    }
}

/// What no secret of a warehouse may be read from.
fn own_files(config: &Config) -> Arc<[PathBuf]> {
    let of_issuers = config.auth.issuers.iter().map(|issuer| &issuer.token_file);
    [&config.file, &config.secrets.key_file].into_iter().chain(of_issuers).flatten().cloned().collect()
}

fn commit_options(config: &Config) -> Result<CommitOptions, ConfigError> {
    let commit = &config.commit;
    Ok(CommitOptions {
        metadata_delete_grace_ms: commit.metadata_delete_grace_ms,
        queue: QueueOptions {
            queue_max: commit.queue_max,
            group_max: commit.group_max,
            turn: Duration::from_millis(commit.turn_ms),
        },
        rebase_max_age: Duration::from_millis(commit.rebase_max_age_ms),
        defaults: commit.defaults()?,
        manifest_cache_bytes: config.limits.manifest_cache_bytes,
        equality_retention: Duration::from_secs(u64::from(commit.ledger_equality_retention_days) * 24 * 60 * 60),
        retention: Retention {
            lineage_days: commit.lineage_retention_days,
            log_days: commit.log_retention_days,
            event_days: commit.event_retention_days,
        },
        tables_shown_max: config.telemetry.tables_max,
    })
}

fn unknown_scheme(setting: &str, scheme: &str) -> Error {
    ConfigError::Refused(format!("{setting} begins with '{scheme}:': write sqlite:PATH or postgres://…")).into()
}

/// The warehouse of a first start: files below the data folder.
fn default_warehouse(config: &StorageConfig, clock: &dyn Clock) -> Result<Warehouse, Error> {
    let root = std::path::absolute(&config.data_dir)?.join("warehouse");
    let root = Location::parse(&format!("file://{}", root.display()))?;
    let allowed = config.allowed_locations.iter().map(|place| Location::parse(place)).collect::<Result<_, _>>()?;
    let place = Place { root, allowed, storage: Storage::default() };
    Ok(Warehouse::new(WarehouseId(clock.new_id()), WarehouseName::parse("default")?, place))
}
