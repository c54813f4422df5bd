//! The only place that knows concrete parts: which store, which clock, and how they make a catalog.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::standin::Catalog;
use catalog::context::Clock;
use catalog::files::{Place, Storage};
use catalog::ident::{WarehouseId, WarehouseName};
use catalog::location::Location;
use catalog::store::Store;
use catalog::warehouses::Warehouse;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::config::{Config, ConfigError, StorageConfig};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// A catalog with what belongs to it.
pub struct Wired {
    pub catalog: Catalog,
    pub clock: Arc<dyn Clock>,
    /// Changes under way, which go on when their client hangs up.
    pub running: TaskTracker,
}

/// The clock and the ids of the machine.
struct Machine;

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
    let catalog: Catalog = todo(config);
    let home = default_warehouse(&config.storage, clock.as_ref())?;
    let (name, allowed) = (home.name.clone(), home.place.allowed.clone());
    catalog.warehouses.create_first(home, clock.now_ms()).await?;
    allow(&catalog, &name, &allowed).await?;
    Ok(Wired {
        catalog,
        clock,
        running,
    })
}
fn todo(_: &Config) -> Catalog {
    std::process::exit(3)
}

/// Brings the database up to date.
pub async fn migrate(config: &Config) -> Result<(), Error> {
    match config.database_url().scheme() {
        "sqlite" => Ok(()),
        "postgres" | "postgresql" => Ok(()),
        other => Err(unknown_scheme(other)),
    }
}

fn unknown_scheme(scheme: &str) -> Error {
    ConfigError::Refused(format!(
        "database.url begins with '{scheme}:': write sqlite:PATH or postgres://…"
    ))
    .into()
}

/// What `allowed_locations` says holds from now on. A warehouse of another name is not ours to change.
async fn allow(catalog: &Catalog, name: &WarehouseName, allowed: &[Location]) -> Result<(), Error> {
    match catalog.warehouses.allow(name, allowed).await {
        Err(error) if error.kind() == catalog::error::Kind::NoSuchWarehouse => Ok(()),
        done => Ok(done?),
    }
}

/// The warehouse of a first start: files below the data folder.
fn default_warehouse(config: &StorageConfig, clock: &dyn Clock) -> Result<Warehouse, Error> {
    let root = std::path::absolute(&config.data_dir)?.join("warehouse");
    let root = Location::parse(&format!("file://{}", root.display()))?;
    let allowed = config
        .allowed_locations
        .iter()
        .map(|place| Location::parse(place))
        .collect::<Result<_, _>>()?;
    Ok(Warehouse {
        id: WarehouseId(clock.new_id()),
        name: WarehouseName::parse("default")?,
        place: Place {
            root,
            allowed,
            storage: Storage::default(),
        },
    })
}
