//! Warehouses as they are sent. Fields that are not known are refused: a setting must not be lost by its spelling.

use std::collections::BTreeMap;

use catalog::error::{Error, Result};
use catalog::files::Storage;
use catalog::ident::{WarehouseId, WarehouseName};
use catalog::listing::Listing;
use catalog::location::Location;
use catalog::warehouses::{NewWarehouse, Warehouse, WarehouseChange, WarehouseSettings};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::request::json_bodies;

mod storage;

use storage::StorageSettings;

json_bodies! {
    CreateWarehouseRequest: Plain,
    UpdateWarehouseRequest: Plain,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CreateWarehouseRequest {
    /// Also the prefix of its paths: `[a-z0-9][a-z0-9_-]{0,62}`.
    #[schema(example = "lake")]
    name: String,
    /// Where its tables lie; no other warehouse may lie in it, or around it.
    #[schema(example = "s3://bucket/prefix")]
    location: String,
    /// How the store is reached. Without it, all is taken from the environment of the server.
    #[serde(default, deserialize_with = "storage::read")]
    #[schema(value_type = Option<StorageSettings>)]
    storage: Option<Storage>,
    /// Where tables may lie besides the location, in the same type of store.
    allowed_locations: Option<Vec<String>>,
    /// Settings that clients take where they have none of their own; never secrets.
    defaults: Option<BTreeMap<String, String>>,
    /// Settings that clients take whatever they have; never secrets.
    overrides: Option<BTreeMap<String, String>>,
}

/// All that is left out is as with a new warehouse, save secrets: those stay, if they belong to the same key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UpdateWarehouseRequest {
    /// May be sent back as it is, and never changes; so with `name` and `location`.
    id: Option<Uuid>,
    name: Option<String>,
    location: Option<String>,
    /// As it was told: if another change came between, this one is refused. Without it, the other one is overwritten.
    version: Option<i64>,
    /// How the store is reached. Without it, all is taken from the environment of the server.
    #[serde(default, deserialize_with = "storage::read")]
    #[schema(value_type = Option<StorageSettings>)]
    storage: Option<Storage>,
    allowed_locations: Option<Vec<String>>,
    defaults: Option<BTreeMap<String, String>>,
    overrides: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WarehouseResponse {
    id: Uuid,
    name: String,
    location: String,
    /// Without secrets; where a secret is kept (`env:NAME`, `file:PATH`) is told.
    #[schema(value_type = StorageSettings)]
    storage: Storage,
    allowed_locations: Vec<String>,
    defaults: BTreeMap<String, String>,
    overrides: BTreeMap<String, String>,
    /// Grows with every change.
    version: i64,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListWarehousesResponse {
    warehouses: Vec<WarehouseResponse>,
    /// The token of the next page; null after the last one.
    #[schema(required)]
    next_page_token: Option<String>,
}

impl TryFrom<CreateWarehouseRequest> for NewWarehouse {
    type Error = Error;

    fn try_from(request: CreateWarehouseRequest) -> Result<Self> {
        let CreateWarehouseRequest { name, location, storage, allowed_locations, defaults, overrides } = request;
        Ok(Self {
            name: WarehouseName::parse(&name)?,
            location: Location::parse(&location)?,
            settings: settings(storage, allowed_locations, defaults, overrides)?,
        })
    }
}

impl TryFrom<UpdateWarehouseRequest> for WarehouseChange {
    type Error = Error;

    fn try_from(request: UpdateWarehouseRequest) -> Result<Self> {
        let UpdateWarehouseRequest { id, name, location, version, storage, allowed_locations, defaults, overrides } =
            request;
        Ok(Self {
            id: id.map(WarehouseId),
            name,
            location: location.as_deref().map(Location::parse).transpose()?,
            version,
            settings: settings(storage, allowed_locations, defaults, overrides)?,
        })
    }
}

fn settings(
    storage: Option<Storage>,
    allowed: Option<Vec<String>>,
    defaults: Option<BTreeMap<String, String>>,
    overrides: Option<BTreeMap<String, String>>,
) -> Result<WarehouseSettings> {
    let allowed = allowed.unwrap_or_default().iter().map(|text| Location::parse(text)).collect::<Result<_>>()?;
    let (defaults, overrides) = (defaults.unwrap_or_default(), overrides.unwrap_or_default());
    Ok(WarehouseSettings { storage, allowed, defaults, overrides })
}

impl From<Warehouse> for WarehouseResponse {
    fn from(warehouse: Warehouse) -> Self {
        let Warehouse { id, name, place, defaults, overrides, version } = warehouse;
        Self {
            id: id.0,
            name: name.to_string(),
            location: place.root.to_string(),
            storage: place.storage.redacted(),
            allowed_locations: place.allowed.iter().map(Location::to_string).collect(),
            defaults,
            overrides,
            version,
        }
    }
}

impl From<Listing<Warehouse>> for ListWarehousesResponse {
    fn from(listing: Listing<Warehouse>) -> Self {
        let warehouses = listing.entries.into_iter().map(WarehouseResponse::from).collect();
        Self { warehouses, next_page_token: listing.next_page_token }
    }
}
