//! Warehouses in table `warehouse`.

use async_trait::async_trait;
use catalog::commits::overlap::Overlap;
use catalog::files::Place;
use catalog::ident::{WarehouseId, WarehouseName};
use catalog::location::Location;
use catalog::store::{Page, StoreError, sent};
use catalog::warehouses::Warehouse;
use catalog::warehouses::store::{
    WarehouseContent, WarehouseCreated, WarehouseDeleted, WarehouseListed, WarehouseStore, WarehouseUpdated,
};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::columns::{from_json, json, location, text};
use crate::error::{aborted, before_commit, committing, violated};
use crate::pool::{in_time, in_time_or};
use crate::{BEGIN, PostgresStore, give_back};

struct Row {
    id: Uuid,
    name: String,
    root: String,
    allowed: String,
    storage: String,
    defaults: String,
    overrides: String,
    version: i64,
}

#[async_trait]
impl WarehouseStore for PostgresStore {
    async fn warehouse(&self, name: &WarehouseName) -> Result<Option<Warehouse>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            "SELECT id, name, root, allowed, storage, defaults, overrides, version FROM warehouse WHERE name = $1",
            name.as_str()
        )
        .fetch_optional(sent("warehouse", &self.pool))
        .await
        .map_err(aborted)?;
        row.map(Warehouse::try_from).transpose()
    }

    async fn warehouses(&self, page: &Page) -> Result<Vec<WarehouseListed>, StoreError> {
        // No name is empty, so all come after ''. A limit of null is none.
        let rows = sqlx::query_as!(
            Row,
            "SELECT id, name, root, allowed, storage, defaults, overrides, version
               FROM warehouse WHERE name > $1 ORDER BY name LIMIT $2",
            text(page.after.as_deref().unwrap_or_default()),
            page.limit.map(i64::from)
        )
        .fetch_all(sent("warehouses", &self.pool))
        .await
        .map_err(aborted)?;
        Ok(rows.into_iter().map(|row| WarehouseListed { name: row.name.clone(), warehouse: row.try_into() }).collect())
    }

    async fn create_warehouse(&self, warehouse: &Warehouse, at_ms: i64) -> Result<WarehouseCreated, StoreError> {
        let mut conn = self.acquire().await?;
        let created = in_time_or(committing, create(&mut conn, warehouse, at_ms)).await;
        give_back(conn, created)
    }

    async fn update_warehouse(&self, warehouse: &Warehouse) -> Result<WarehouseUpdated, StoreError> {
        let mut conn = self.acquire().await?;
        let updated = sqlx::query!(
            "UPDATE warehouse SET allowed = $3, storage = $4, defaults = $5, overrides = $6, version = version + 1
              WHERE id = $1 AND version = $2",
            warehouse.id.0,
            warehouse.version,
            further_places(&warehouse.place),
            json(&warehouse.place.storage),
            json(&warehouse.defaults),
            json(&warehouse.overrides)
        )
        .execute(sent("update-warehouse", &mut *conn));
        let updated = in_time(updated).await.map_err(committing);
        match give_back(conn, updated)?.rows_affected() {
            0 => Ok(WarehouseUpdated::Changed),
            _ => Ok(WarehouseUpdated::Updated),
        }
    }

    async fn delete_warehouse(&self, id: WarehouseId) -> Result<WarehouseDeleted, StoreError> {
        let mut conn = self.acquire().await?;
        let deleted = in_time_or(committing, delete(&mut conn, id)).await;
        give_back(conn, deleted)
    }
}

async fn create(conn: &mut PgConnection, warehouse: &Warehouse, at_ms: i64) -> Result<WarehouseCreated, StoreError> {
    let mut tx = sent("begin", &mut *conn).begin_with(BEGIN).await.map_err(aborted)?;
    // Of two that are made at the same time the second one must see the first one's root. Namespaces are made meanwhile.
    sqlx::query!("LOCK TABLE warehouse IN SHARE ROW EXCLUSIVE MODE")
        .execute(sent("create-warehouse", &mut *tx))
        .await
        .map_err(before_commit)?;
    let root = Overlap::of(&warehouse.place.root);
    let owner = owner_of_root(&mut tx, &root).await.map_err(before_commit)?;
    if let Some(owner) = owner.filter(|owner| owner != warehouse.name.as_str()) {
        return Ok(WarehouseCreated::RootTaken { by: WarehouseName::parse(&owner).map_err(aborted)? });
    }
    let inserted = sqlx::query!(
        "INSERT INTO warehouse (id, name, root, canonical_root, allowed, storage, defaults, overrides, version, created_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (name) DO NOTHING",
        warehouse.id.0,
        warehouse.name.as_str(),
        warehouse.place.root.as_str(),
        root.canonical,
        further_places(&warehouse.place),
        json(&warehouse.place.storage),
        json(&warehouse.defaults),
        json(&warehouse.overrides),
        warehouse.version,
        at_ms
    )
    .execute(sent("create-warehouse", &mut *tx))
    .await
    .map_err(before_commit)?;
    if inserted.rows_affected() == 0 {
        return Ok(WarehouseCreated::NameTaken);
    }
    inherit_purges(&mut tx, warehouse.id, &root).await.map_err(before_commit)?;
    sent("commit", tx).commit().await.map_err(committing)?;
    Ok(WarehouseCreated::Created)
}

/// The name of a warehouse whose root overlaps.
async fn owner_of_root(conn: &mut PgConnection, root: &Overlap) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT name FROM warehouse
          WHERE canonical_root = ANY($1) OR (canonical_root >= $2 AND canonical_root < $3)
          ORDER BY name LIMIT 1",
        &root.at_or_above,
        root.below_from,
        root.below_until
    )
    .fetch_optional(sent("warehouse-of-root", conn))
    .await
}

/// What deleted warehouses left to purge is the business of the one in whose root it lies, else of the first one that
/// follows at the old root: it may allow the same further locations.
async fn inherit_purges(conn: &mut PgConnection, heir: WarehouseId, root: &Overlap) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "UPDATE purge SET warehouse_id = $1
          WHERE root IS NOT NULL
            AND (canonical_location = ANY($2) OR (canonical_location >= $3 AND canonical_location < $4)
                 OR (NOT EXISTS (SELECT 1 FROM warehouse w WHERE w.id = purge.warehouse_id)
                     AND (canonical_root = ANY($2) OR (canonical_root >= $3 AND canonical_root < $4))))",
        heir.0,
        &root.at_or_above,
        root.below_from,
        root.below_until
    )
    .execute(sent("inherit-purges", conn))
    .await
    .map(|_| ())
}

async fn delete(conn: &mut PgConnection, id: WarehouseId) -> Result<WarehouseDeleted, StoreError> {
    let content = content(conn, id).await?;
    if content.namespaces > 0 {
        return Ok(WarehouseDeleted::NotEmpty(content));
    }
    let mut tx = sent("begin", &mut *conn).begin_with(BEGIN).await.map_err(aborted)?;
    match delete_empty(&mut tx, id).await {
        Ok(true) => {}
        Ok(false) => return Ok(WarehouseDeleted::Missing),
        // A namespace was made meanwhile.
        Err(error) if violated(&error).is_some() => {
            sent("rollback", tx).rollback().await.map_err(aborted)?;
            return Ok(WarehouseDeleted::NotEmpty(self::content(conn, id).await?));
        }
        Err(error) => return Err(before_commit(error)),
    }
    sent("commit", tx).commit().await.map_err(committing)?;
    Ok(WarehouseDeleted::Deleted)
}

/// False where there is none. Makers of namespaces hold the row: it is waited for them, and the foreign key then sees them.
async fn delete_empty(conn: &mut PgConnection, id: WarehouseId) -> Result<bool, sqlx::Error> {
    let gone =
        sqlx::query!("DELETE FROM warehouse WHERE id = $1 RETURNING root, canonical_root, allowed, storage", id.0)
            .fetch_optional(sent("delete-warehouse", &mut *conn))
            .await?;
    let Some(gone) = gone else {
        return Ok(false);
    };
    // No table is left that could add another one. Those of a deleted warehouse before this one know where it lay, and
    // are reached as this one was.
    sqlx::query!(
        "UPDATE purge SET root = coalesce(root, $2), canonical_root = coalesce(canonical_root, $3),
                          allowed = coalesce(allowed, $4), storage = $5
          WHERE warehouse_id = $1",
        id.0,
        gone.root,
        gone.canonical_root,
        gone.allowed,
        gone.storage
    )
    .execute(sent("delete-warehouse", &mut *conn))
    .await?;
    // Nobody can name the warehouse any more, nor what landed in it.
    sqlx::query!("DELETE FROM lineage WHERE warehouse_id = $1", id.0).execute(sent("delete-warehouse", conn)).await?;
    Ok(true)
}

async fn content(conn: &mut PgConnection, id: WarehouseId) -> Result<WarehouseContent, StoreError> {
    sqlx::query_as!(
        WarehouseContent,
        r#"SELECT (SELECT count(*) FROM namespace WHERE warehouse_id = $1) AS "namespaces!",
                  (SELECT count(*) FROM tabular WHERE warehouse_id = $1 AND kind = 'table') AS "tables!",
                  (SELECT count(*) FROM tabular WHERE warehouse_id = $1 AND kind = 'view') AS "views!""#,
        id.0
    )
    .fetch_one(sent("warehouse-content", conn))
    .await
    .map_err(aborted)
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
            defaults: from_json(&row.defaults)?,
            overrides: from_json(&row.overrides)?,
            version: row.version,
        })
    }
}
