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
use sqlx::{Connection, SqliteConnection};
use uuid::Uuid;

use crate::columns::{from_json, json, limit, location};
use crate::error::{aborted, beginning, in_doubt, in_transaction};
use crate::{BEGIN, SqliteStore, give_back};

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
impl WarehouseStore for SqliteStore {
    async fn warehouse(&self, name: &WarehouseName) -> Result<Option<Warehouse>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            r#"SELECT id AS "id: Uuid", name, root, allowed, storage, defaults, overrides, version
                 FROM warehouse WHERE name = $1"#,
            name.as_str()
        )
        .fetch_optional(sent("warehouse", &self.readers))
        .await
        .map_err(aborted)?;
        row.map(Warehouse::try_from).transpose()
    }

    async fn warehouses(&self, page: &Page) -> Result<Vec<WarehouseListed>, StoreError> {
        // No name is empty, so all come after ''.
        let (after, limit) = (page.after.as_deref().unwrap_or_default(), limit(page));
        let rows = sqlx::query_as!(
            Row,
            r#"SELECT id AS "id: Uuid", name, root, allowed, storage, defaults, overrides, version
                 FROM warehouse WHERE name > $1 ORDER BY name LIMIT +$2"#,
            after,
            limit
        )
        .fetch_all(sent("warehouses", &self.readers))
        .await
        .map_err(aborted)?;
        Ok(rows.into_iter().map(|row| WarehouseListed { name: row.name.clone(), warehouse: row.try_into() }).collect())
    }

    async fn create_warehouse(&self, warehouse: &Warehouse, at_ms: i64) -> Result<WarehouseCreated, StoreError> {
        let mut conn = self.writer().await?;
        let created = create(&mut conn, warehouse, at_ms).await;
        give_back(conn, created)
    }

    async fn update_warehouse(&self, warehouse: &Warehouse) -> Result<WarehouseUpdated, StoreError> {
        let mut conn = self.writer().await?;
        let (allowed, storage) = (further_places(&warehouse.place), json(&warehouse.place.storage));
        let (defaults, overrides) = (json(&warehouse.defaults), json(&warehouse.overrides));
        let updated = sqlx::query!(
            "UPDATE warehouse SET allowed = $3, storage = $4, defaults = $5, overrides = $6, version = version + 1
              WHERE id = $1 AND version = $2",
            warehouse.id.0,
            warehouse.version,
            allowed,
            storage,
            defaults,
            overrides
        )
        .execute(sent("update-warehouse", &mut *conn))
        .await
        .map_err(in_transaction);
        match give_back(conn, updated)?.rows_affected() {
            0 => Ok(WarehouseUpdated::Changed),
            _ => Ok(WarehouseUpdated::Updated),
        }
    }

    async fn delete_warehouse(&self, id: WarehouseId) -> Result<WarehouseDeleted, StoreError> {
        let mut conn = self.writer().await?;
        let deleted = delete(&mut conn, id).await;
        give_back(conn, deleted)
    }
}

async fn create(
    conn: &mut SqliteConnection,
    warehouse: &Warehouse,
    at_ms: i64,
) -> Result<WarehouseCreated, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(beginning)?;
    let root = Overlap::of(&warehouse.place.root);
    if is_taken(&mut tx, &warehouse.name).await? {
        return Ok(WarehouseCreated::NameTaken);
    }
    if let Some(owner) = owner_of_root(&mut tx, &root).await? {
        return Ok(WarehouseCreated::RootTaken { by: WarehouseName::parse(&owner).map_err(aborted)? });
    }
    insert(&mut tx, warehouse, &root, at_ms).await?;
    inherit_purges(&mut tx, warehouse.id, &root).await?;
    sent("commit", tx).commit().await.map_err(in_doubt)?;
    Ok(WarehouseCreated::Created)
}

/// Read within the caller's transaction.
pub(crate) async fn exists(conn: &mut SqliteConnection, id: WarehouseId) -> Result<bool, StoreError> {
    sqlx::query_scalar!(r#"SELECT EXISTS (SELECT 1 FROM warehouse WHERE id = $1) AS "there!: bool""#, id.0)
        .fetch_one(sent("exists", conn))
        .await
        .map_err(in_transaction)
}

async fn is_taken(conn: &mut SqliteConnection, name: &WarehouseName) -> Result<bool, StoreError> {
    let name = name.as_str();
    sqlx::query_scalar!(r#"SELECT EXISTS (SELECT 1 FROM warehouse WHERE name = $1) AS "taken!: bool""#, name)
        .fetch_one(sent("is-taken", conn))
        .await
        .map_err(in_transaction)
}

async fn insert(
    conn: &mut SqliteConnection,
    warehouse: &Warehouse,
    root: &Overlap,
    at_ms: i64,
) -> Result<(), StoreError> {
    let (allowed, storage) = (further_places(&warehouse.place), json(&warehouse.place.storage));
    let (defaults, overrides) = (json(&warehouse.defaults), json(&warehouse.overrides));
    sqlx::query!(
        "INSERT INTO warehouse (id, name, root, canonical_root, allowed, storage, defaults, overrides, version, created_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        warehouse.id.0,
        warehouse.name.as_str(),
        warehouse.place.root.as_str(),
        root.canonical,
        allowed,
        storage,
        defaults,
        overrides,
        warehouse.version,
        at_ms
    )
    .execute(sent("create-warehouse", conn))
    .await
    .map(|_| ())
    .map_err(in_transaction)
}

/// The name of a warehouse whose root overlaps.
async fn owner_of_root(conn: &mut SqliteConnection, root: &Overlap) -> Result<Option<String>, StoreError> {
    let at_or_above = json(&root.at_or_above);
    sqlx::query_scalar!(
        r#"SELECT name AS "name!" FROM warehouse
            WHERE canonical_root IN (SELECT value FROM json_each($1))
               OR (canonical_root >= $2 AND canonical_root < $3)
            ORDER BY name LIMIT 1"#,
        at_or_above,
        root.below_from,
        root.below_until
    )
    .fetch_optional(sent("warehouse-of-root", conn))
    .await
    .map_err(in_transaction)
}

/// What deleted warehouses left to purge is the business of the one in whose root it lies, else of the first one that
/// follows at the old root: it may allow the same further locations.
async fn inherit_purges(conn: &mut SqliteConnection, heir: WarehouseId, root: &Overlap) -> Result<(), StoreError> {
    let at_or_above = json(&root.at_or_above);
    sqlx::query!(
        "UPDATE purge SET warehouse_id = $1
          WHERE root IS NOT NULL
            AND (canonical_location IN (SELECT value FROM json_each($2))
                 OR (canonical_location >= $3 AND canonical_location < $4)
                 OR (NOT EXISTS (SELECT 1 FROM warehouse w WHERE w.id = purge.warehouse_id)
                     AND (canonical_root IN (SELECT value FROM json_each($2))
                          OR (canonical_root >= $3 AND canonical_root < $4))))",
        heir.0,
        at_or_above,
        root.below_from,
        root.below_until
    )
    .execute(sent("inherit-purges", conn))
    .await
    .map(|_| ())
    .map_err(in_transaction)
}

async fn delete(conn: &mut SqliteConnection, id: WarehouseId) -> Result<WarehouseDeleted, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(beginning)?;
    let content = content(&mut tx, id).await?;
    if content.namespaces > 0 {
        return Ok(WarehouseDeleted::NotEmpty(content));
    }
    leave_purges(&mut tx, id).await?;
    // Nobody can name the warehouse any more, nor what landed in it.
    sqlx::query!("DELETE FROM lineage WHERE warehouse_id = $1", id.0)
        .execute(sent("delete-warehouse", &mut *tx))
        .await
        .map_err(in_transaction)?;
    let deleted = sqlx::query!("DELETE FROM warehouse WHERE id = $1", id.0)
        .execute(sent("delete-warehouse", &mut *tx))
        .await
        .map_err(in_transaction)?;
    if deleted.rows_affected() == 0 {
        return Ok(WarehouseDeleted::Missing);
    }
    sent("commit", tx).commit().await.map_err(in_doubt)?;
    Ok(WarehouseDeleted::Deleted)
}

/// The purges that go on get what they need to know of the warehouse. Those of a deleted warehouse before this one know
/// where it lay, and are reached as this one was.
async fn leave_purges(conn: &mut SqliteConnection, id: WarehouseId) -> Result<(), StoreError> {
    sqlx::query!(
        "UPDATE purge SET (root, canonical_root, allowed, storage) =
                          (SELECT coalesce(purge.root, w.root), coalesce(purge.canonical_root, w.canonical_root),
                                  coalesce(purge.allowed, w.allowed), w.storage
                             FROM warehouse w WHERE w.id = $1)
          WHERE warehouse_id = $1",
        id.0
    )
    .execute(sent("leave-purges", conn))
    .await
    .map(|_| ())
    .map_err(in_transaction)
}

async fn content(conn: &mut SqliteConnection, id: WarehouseId) -> Result<WarehouseContent, StoreError> {
    sqlx::query_as!(
        WarehouseContent,
        r#"SELECT (SELECT count(*) FROM namespace WHERE warehouse_id = $1) AS "namespaces!: i64",
                  (SELECT count(*) FROM tabular WHERE warehouse_id = $1 AND kind = 'table') AS "tables!: i64",
                  (SELECT count(*) FROM tabular WHERE warehouse_id = $1 AND kind = 'view') AS "views!: i64""#,
        id.0
    )
    .fetch_one(sent("warehouse-content", conn))
    .await
    .map_err(in_transaction)
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
