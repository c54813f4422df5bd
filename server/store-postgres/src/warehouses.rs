//! Warehouses in table `warehouse`.

use async_trait::async_trait;
use catalog::files::Place;
use catalog::ident::{WarehouseId, WarehouseName};
use catalog::location::Location;
use catalog::store::StoreError;
use catalog::warehouses::{Warehouse, WarehouseCreated, WarehouseStore};
use uuid::Uuid;

use crate::columns::{from_json, json, location};
use crate::error::{aborted, committing};
use crate::{PostgresStore, give_back};

struct Row {
    id: Uuid,
    name: String,
    root: String,
    allowed: String,
    storage: String,
}

#[async_trait]
impl WarehouseStore for PostgresStore {
    async fn warehouse(&self, name: &WarehouseName) -> Result<Option<Warehouse>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            "SELECT id, name, root, allowed, storage FROM warehouse WHERE name = $1",
            name.as_str()
        )
        .fetch_optional(&self.pool)
        .await
        .map_err(aborted)?;
        row.map(Warehouse::try_from).transpose()
    }

    async fn warehouses(&self, limit: u32) -> Result<Vec<Warehouse>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            "SELECT id, name, root, allowed, storage FROM warehouse ORDER BY name LIMIT $1",
            i64::from(limit)
        )
        .fetch_all(&self.pool)
        .await
        .map_err(aborted)?;
        rows.into_iter().map(Warehouse::try_from).collect()
    }

    async fn create_warehouse(&self, warehouse: &Warehouse, at_ms: i64) -> Result<WarehouseCreated, StoreError> {
        let mut conn = self.acquire().await?;
        // warehouse_name decides between racing creators.
        let inserted = sqlx::query!(
            "INSERT INTO warehouse (id, name, root, allowed, storage, created_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (name) DO NOTHING",
            warehouse.id.0,
            warehouse.name.as_str(),
            warehouse.place.root.as_str(),
            further_places(&warehouse.place),
            json(&warehouse.place.storage),
            at_ms
        )
        .execute(&mut *conn)
        .await
        .map_err(committing);
        match give_back(conn, inserted)?.rows_affected() {
            0 => Ok(WarehouseCreated::NameTaken),
            _ => Ok(WarehouseCreated::Created),
        }
    }

    async fn update_place(&self, id: WarehouseId, place: &Place) -> Result<(), StoreError> {
        let mut conn = self.acquire().await?;
        let updated = sqlx::query!(
            "UPDATE warehouse SET allowed = $2, storage = $3 WHERE id = $1",
            id.0,
            further_places(place),
            json(&place.storage)
        )
        .execute(&mut *conn)
        .await
        .map_err(committing);
        match give_back(conn, updated)?.rows_affected() {
            1 => Ok(()),
            _ => Err(aborted(format!("there is no warehouse with id {id}"))),
        }
    }
}

/// As column `allowed`.
fn further_places(place: &Place) -> String {
    json(&place.allowed.iter().map(Location::as_str).collect::<Vec<_>>())
}

/// Out of the columns `root`, `allowed` and `storage`.
pub(crate) fn place(root: &str, allowed: &str, storage: &str) -> Result<Place, StoreError> {
    let allowed: Vec<String> = from_json(allowed)?;
    Ok(Place {
        root: location(root)?,
        allowed: allowed.iter().map(|text| location(text)).collect::<Result<_, _>>()?,
        storage: from_json(storage)?,
    })
}

impl TryFrom<Row> for Warehouse {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Warehouse {
            id: WarehouseId(row.id),
            name: WarehouseName::parse(&row.name).map_err(aborted)?,
            place: place(&row.root, &row.allowed, &row.storage)?,
        })
    }
}
