//! Namespaces in table `namespace`.

use std::collections::BTreeMap;

use async_trait::async_trait;
use catalog::idempotency::Receipt;
use catalog::idempotency::store::Kept;
use catalog::ident::{NamespaceIdent, WarehouseId};
use catalog::namespaces::store::{NamespaceCreated, NamespaceDropped, NamespaceStore, NamespaceUpdated, NewNamespace};
use catalog::namespaces::{Namespace, PropertiesChange};
use catalog::store::{Page, StoreError, sent};
use sqlx::{Connection, PgConnection, PgPool};

use crate::columns::{from_json, json, parts, text};
use crate::error::{aborted, before_commit, committing, violated};
use crate::pool::{in_time, in_time_or};
use crate::{BEGIN, PostgresStore, give_back, idempotency};

#[async_trait]
impl NamespaceStore for PostgresStore {
    async fn namespace(&self, warehouse: WarehouseId, ident: &NamespaceIdent) -> Result<Option<Namespace>, StoreError> {
        let properties = sqlx::query_scalar!(
            "SELECT properties FROM namespace WHERE warehouse_id = $1 AND parts = $2",
            warehouse.0,
            &parts(ident)
        )
        .fetch_optional(sent("namespace", &self.pool))
        .await
        .map_err(aborted)?;
        let namespace =
            |properties: String| Ok(Namespace { ident: ident.clone(), properties: from_json(&properties)? });
        properties.map(namespace).transpose()
    }

    async fn list_namespaces(
        &self,
        warehouse: WarehouseId,
        parent: Option<&NamespaceIdent>,
        page: &Page,
    ) -> Result<Option<Vec<String>>, StoreError> {
        match parent {
            Some(parent) => self.listed(|pool| names_below(pool, warehouse, parent, page)).await,
            None => self.listed(|pool| top_names(pool, warehouse, page)).await,
        }
    }

    async fn create_namespace(
        &self,
        new: &NewNamespace,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceCreated, StoreError> {
        let mut conn = self.acquire().await?;
        let created = match in_time(insert(&mut conn, new, receipt)).await {
            Ok(true) => Ok(NamespaceCreated::Created),
            Ok(false) => Ok(NamespaceCreated::ParentMissing),
            Err(error) => match violated(&error) {
                Some("namespace_name") => Ok(NamespaceCreated::AlreadyExists),
                // The parent was dropped between our look and our insert.
                Some("namespace_parent") => Ok(NamespaceCreated::ParentMissing),
                Some("namespace_warehouse_id_fkey") => Ok(NamespaceCreated::WarehouseMissing),
                Some(idempotency::KEY_ONCE) => Ok(NamespaceCreated::KeyTaken),
                _ => Err(committing(error)),
            },
        };
        give_back(conn, created)
    }

    async fn update_namespace(
        &self,
        warehouse: WarehouseId,
        ident: &NamespaceIdent,
        change: &PropertiesChange,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceUpdated, StoreError> {
        let mut conn = self.acquire().await?;
        let updated = in_time_or(committing, update(&mut conn, (warehouse, ident), change, receipt)).await;
        give_back(conn, updated)
    }

    async fn drop_namespace(
        &self,
        warehouse: WarehouseId,
        ident: &NamespaceIdent,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceDropped, StoreError> {
        let mut conn = self.acquire().await?;
        let dropped = match in_time(delete(&mut conn, (warehouse, ident), receipt)).await {
            Ok(true) => Ok(NamespaceDropped::Dropped),
            Ok(false) => Ok(NamespaceDropped::Missing),
            Err(error) => match violated(&error) {
                Some("namespace_parent" | "tabular_namespace") => Ok(NamespaceDropped::NotEmpty),
                Some(idempotency::KEY_ONCE) => Ok(NamespaceDropped::KeyTaken),
                _ => Err(committing(error)),
            },
        };
        give_back(conn, dropped)
    }
}

async fn top_names(pool: PgPool, warehouse: WarehouseId, page: &Page) -> Result<Option<Vec<String>>, sqlx::Error> {
    // No name is empty, so all come after ''. A limit of null is none. In the order of the index: the planner does not see
    // that a null parent is the same for all.
    let names = sqlx::query_scalar!(
        "SELECT name FROM namespace
          WHERE warehouse_id = $1 AND parent_id IS NULL AND name > $2
          ORDER BY parent_id, name LIMIT $3",
        warehouse.0,
        text(page.after.as_deref().unwrap_or_default()),
        page.limit.map(i64::from)
    );
    names.fetch_all(sent("list-namespaces", &pool)).await.map(Some)
}

async fn names_below(
    pool: PgPool,
    warehouse: WarehouseId,
    parent: &NamespaceIdent,
    page: &Page,
) -> Result<Option<Vec<String>>, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT ARRAY(SELECT child.name FROM namespace child
                         WHERE child.warehouse_id = $1 AND child.parent_id = parent.id AND child.name > $3
                         ORDER BY child.name LIMIT $4) AS "names!"
             FROM namespace parent
            WHERE parent.warehouse_id = $1 AND parent.parts = $2"#,
        warehouse.0,
        &parts(parent),
        text(page.after.as_deref().unwrap_or_default()),
        page.limit.map(i64::from)
    )
    .fetch_optional(sent("list-namespaces", &pool))
    .await
}

/// Inserts namespace and receipt in one statement; false where the parent is missing.
///
/// namespace_name decides between racing creators, namespace_parent between this and a drop of the parent.
async fn insert(conn: &mut PgConnection, new: &NewNamespace, receipt: Option<&Receipt>) -> Result<bool, sqlx::Error> {
    let parent = new.ident.parent().as_ref().map(parts);
    let made = sqlx::query!(
        "WITH parent AS (
             SELECT id FROM namespace WHERE warehouse_id = $2 AND parts = $3
             UNION ALL
             SELECT NULL WHERE $3::text[] IS NULL
         ), made AS (
             INSERT INTO namespace (id, warehouse_id, parent_id, name, parts, properties, created_at_ms)
             SELECT $1, $2, parent.id, $4, $5, $6, $7 FROM parent
             RETURNING id
         ), kept AS (
             INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
             SELECT $2, $8, $9, $10, $7 FROM made WHERE $8::uuid IS NOT NULL
         )
         SELECT id FROM made",
        new.id.0,
        new.warehouse.0,
        parent.as_deref(),
        new.ident.name(),
        new.ident.levels(),
        json(&new.properties),
        new.at_ms,
        receipt.map(|receipt| receipt.key),
        receipt.map(|receipt| receipt.binding.as_slice()),
        receipt.map(|receipt| json(&receipt.answer))
    )
    .fetch_optional(sent("create-namespace", conn))
    .await?;
    Ok(made.is_some())
}

async fn update(
    conn: &mut PgConnection,
    (warehouse, ident): (WarehouseId, &NamespaceIdent),
    change: &PropertiesChange,
    receipt: Option<&Receipt>,
) -> Result<NamespaceUpdated, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(aborted)?;
    // The row's lock puts changes of one namespace in line; it lets creators below the namespace pass.
    let row = sqlx::query!(
        "SELECT id, properties FROM namespace WHERE warehouse_id = $1 AND parts = $2 FOR NO KEY UPDATE",
        warehouse.0,
        &parts(ident)
    )
    .fetch_optional(sent("update-namespace", &mut *tx))
    .await
    .map_err(before_commit)?;
    let Some(row) = row else {
        return Ok(NamespaceUpdated::Missing);
    };
    let mut properties: BTreeMap<String, String> = from_json(&row.properties)?;
    let changed = change.apply(&mut properties);
    if let Some(receipt) = receipt {
        let receipt = Receipt { answer: changed.answer(), ..receipt.clone() };
        if idempotency::insert(&mut tx, &receipt).await.map_err(before_commit)? == Kept::KeyTaken {
            return Ok(NamespaceUpdated::KeyTaken);
        }
    }
    sqlx::query!("UPDATE namespace SET properties = $2 WHERE id = $1", row.id, json(&properties))
        .execute(sent("update-namespace", &mut *tx))
        .await
        .map_err(before_commit)?;
    sent("commit", tx).commit().await.map_err(committing)?;
    Ok(NamespaceUpdated::Updated(changed))
}

/// Deletes the namespace and keeps the receipt in one statement; false where there was none.
///
/// namespace_parent and tabular_namespace refuse one that holds something, creators that are under way included.
async fn delete(
    conn: &mut PgConnection,
    (warehouse, ident): (WarehouseId, &NamespaceIdent),
    receipt: Option<&Receipt>,
) -> Result<bool, sqlx::Error> {
    let gone = sqlx::query!(
        "WITH gone AS (
             DELETE FROM namespace WHERE warehouse_id = $1 AND parts = $2 RETURNING id
         ), kept AS (
             INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
             SELECT $1, $3, $4, $5, $6 FROM gone WHERE $3::uuid IS NOT NULL
         )
         SELECT id FROM gone",
        warehouse.0,
        &parts(ident),
        receipt.map(|receipt| receipt.key),
        receipt.map(|receipt| receipt.binding.as_slice()),
        receipt.map(|receipt| json(&receipt.answer)),
        receipt.map(|receipt| receipt.at_ms)
    )
    .fetch_optional(sent("delete-namespace", conn))
    .await?;
    Ok(gone.is_some())
}
