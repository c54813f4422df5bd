//! All parts of an installation, looked at one by one.

use std::sync::Arc;

use catalog::context::Clock;
use catalog::error::Error as Refused;
use catalog::files::Files;
use catalog::finding::Finding;
use catalog::store::{Page, Store};
use catalog::warehouses::Warehouse;
use catalog::warehouses::store::WarehouseListed;
use store_postgres::{PostgresOptions, PostgresStore};
use store_sqlite::SqliteStore;

use super::{Error, files_options, postgres_options, sqlite_path};
use crate::config::Config;

mod tables;

/// Object stores tell the time of a file in whole seconds.
const STORE_CLOCK_STEP_MS: i64 = 1_000;

/// What holds of the settings, of the database and of the storage of each warehouse; with `tables`, of every table too.
/// Nothing is changed, but for an object that is written and deleted.
pub async fn examine(config: &Config, clock: &dyn Clock, tables: bool) -> Vec<Finding> {
    let mut found = vec![of_secrets(config)];
    let url = config.database_url();
    found.extend(match url.is_postgres() {
        true => store_postgres::examine(&postgres_options(config), clock).await,
        false => store_sqlite::examine(&sqlite_path(&url)).await,
    });
    found.extend(of_warehouses(config, clock, tables).await);
    found
}

fn of_secrets(config: &Config) -> Finding {
    let check = "secrets key";
    match config.secrets.read() {
        Ok(Some(_)) => Finding::ok(check, "is set"),
        Ok(None) => Finding::ok(check, "is not set: secrets of warehouses can only be named as env:NAME or file:PATH"),
        Err(error) => Finding::failed(check, error.to_string(), "mend secrets.key or secrets.key_file"),
    }
}

async fn of_warehouses(config: &Config, clock: &dyn Clock, tables: bool) -> Vec<Finding> {
    // Why it cannot be opened was told of the database.
    let Ok(store) = look(config).await else {
        return Vec::new();
    };
    let listed = match store.warehouses(&Page::ALL).await {
        Ok(listed) => listed,
        Err(error) => {
            let error = Refused::from(error);
            return vec![Finding::failed("warehouses", error.to_string(), "look at the findings of the database")];
        }
    };
    let files = Files::new(files_options(config), config.secrets.read().ok().flatten());
    let mut found = Vec::new();
    for WarehouseListed { name, warehouse } in listed {
        match warehouse {
            Ok(warehouse) => {
                found.extend(of_storage(&warehouse, &files, clock).await);
                if tables {
                    found.extend(tables::examine(store.as_ref(), &warehouse, &files).await);
                }
            }
            Err(error) => found.push(Finding::failed(
                format!("warehouse {name}"),
                Refused::from(error).to_string(),
                "its row in table warehouse cannot be read: mend or restore it",
            )),
        }
    }
    found
}

/// The database as it is, not brought up to date, and the primary alone.
async fn look(config: &Config) -> Result<Arc<dyn Store>, Error> {
    let url = config.database_url();
    Ok(match url.is_postgres() {
        true => {
            Arc::new(PostgresStore::open(&PostgresOptions { replica_url: None, ..postgres_options(config) }).await?)
        }
        false => Arc::new(SqliteStore::look(&sqlite_path(&url)).await?),
    })
}

async fn of_storage(warehouse: &Warehouse, files: &Files, clock: &dyn Clock) -> Vec<Finding> {
    let (check, before_ms) = (format!("warehouse {}", warehouse.name), clock.now_ms());
    match files.probe(&warehouse.place, clock.new_id()).await {
        Ok(written_ms) => {
            let asked_ms = (before_ms, clock.now_ms());
            let told = format!("'{}' can be written once, read, listed and deleted", warehouse.place.root);
            let of_clock = Finding::of_clock(format!("{check} clock"), written_ms, asked_ms, STORE_CLOCK_STEP_MS);
            vec![Finding::ok(check, told), of_clock]
        }
        Err(error) => {
            let mend = "mend the store, or 'frazil warehouse update' the settings";
            vec![Finding::failed(check, error.message().to_owned(), mend)]
        }
    }
}
