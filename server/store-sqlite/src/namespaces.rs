//! Namespaces in table `namespace`.

use std::collections::BTreeMap;

use async_trait::async_trait;
use catalog::idempotency::Receipt;
use catalog::idempotency::store::Kept;
use catalog::ident::{NamespaceIdent, WarehouseId};
use catalog::namespaces::store::{NamespaceCreated, NamespaceDropped, NamespaceStore, NamespaceUpdated, NewNamespace};
use catalog::namespaces::{Namespace, PropertiesChange};
use catalog::store::{Page, StoreError, sent};
use sqlx::{Connection, SqliteConnection};
use uuid::Uuid;

use crate::columns::{from_json, json, limit, parts};
use crate::error::{aborted, beginning, in_doubt, in_transaction};
use crate::{BEGIN, SqliteStore, give_back, idempotency, warehouses};

#[async_trait]
impl NamespaceStore for SqliteStore {
    async fn namespace(&self, warehouse: WarehouseId, ident: &NamespaceIdent) -> Result<Option<Namespace>, StoreError> {
        let properties = sqlx::query_scalar!(
            "SELECT properties FROM namespace WHERE warehouse_id = $1 AND parts = $2",
            warehouse.0,
            parts(ident)
        )
        .fetch_optional(sent("namespace", &self.readers))
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
        // No name is empty, so all come after ''.
        let after = page.after.as_deref().unwrap_or_default();
        let limit = limit(page);
        let Some(parent) = parent else {
            let top = sqlx::query_scalar!(
                "SELECT name FROM namespace
                  WHERE warehouse_id = $1 AND parent_id IS NULL AND name > $2
                  ORDER BY name LIMIT +$3",
                warehouse.0,
                after,
                limit
            );
            return top.fetch_all(sent("list-namespaces", &self.readers)).await.map(Some).map_err(aborted);
        };
        let names = sqlx::query_scalar!(
            r#"SELECT (SELECT json_group_array(name)
                         FROM (SELECT child.name FROM namespace child
                                WHERE child.warehouse_id = $1 AND child.parent_id = parent.id AND child.name > $3
                                ORDER BY child.name LIMIT +$4)) AS "names!: String"
                 FROM namespace parent
                WHERE parent.warehouse_id = $1 AND parent.parts = $2"#,
            warehouse.0,
            parts(parent),
            after,
            limit
        )
        .fetch_optional(sent("list-namespaces", &self.readers))
        .await
        .map_err(aborted)?;
        names.as_deref().map(from_json).transpose()
    }

    async fn create_namespace(
        &self,
        new: &NewNamespace,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceCreated, StoreError> {
        let mut conn = self.writer().await?;
        let created = create(&mut conn, new, receipt).await;
        give_back(conn, created)
    }

    async fn update_namespace(
        &self,
        warehouse: WarehouseId,
        ident: &NamespaceIdent,
        change: &PropertiesChange,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceUpdated, StoreError> {
        let mut conn = self.writer().await?;
        let updated = update(&mut conn, (warehouse, ident), change, receipt).await;
        give_back(conn, updated)
    }

    async fn drop_namespace(
        &self,
        warehouse: WarehouseId,
        ident: &NamespaceIdent,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceDropped, StoreError> {
        let mut conn = self.writer().await?;
        let dropped = delete(&mut conn, (warehouse, ident), receipt).await;
        give_back(conn, dropped)
    }
}

/// The namespace's id, read within the caller's transaction.
pub(crate) async fn id_of(
    conn: &mut SqliteConnection,
    warehouse: WarehouseId,
    ident: &NamespaceIdent,
) -> Result<Option<Uuid>, StoreError> {
    sqlx::query_scalar!(
        r#"SELECT id AS "id: Uuid" FROM namespace WHERE warehouse_id = $1 AND parts = $2"#,
        warehouse.0,
        parts(ident)
    )
    .fetch_optional(sent("namespace-id", conn))
    .await
    .map_err(in_transaction)
}

async fn create(
    conn: &mut SqliteConnection,
    new: &NewNamespace,
    receipt: Option<&Receipt>,
) -> Result<NamespaceCreated, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(beginning)?;
    let parent_id = match new.ident.parent() {
        None => None,
        Some(parent) => match id_of(&mut tx, new.warehouse, &parent).await? {
            None => return Ok(NamespaceCreated::ParentMissing),
            found => found,
        },
    };
    if id_of(&mut tx, new.warehouse, &new.ident).await?.is_some() {
        return Ok(NamespaceCreated::AlreadyExists);
    }
    if !warehouses::exists(&mut tx, new.warehouse).await? {
        return Ok(NamespaceCreated::WarehouseMissing);
    }
    if let Some(receipt) = receipt
        && idempotency::insert(&mut tx, receipt).await? == Kept::KeyTaken
    {
        return Ok(NamespaceCreated::KeyTaken);
    }
    let (name, parts, properties) = (new.ident.name(), parts(&new.ident), json(&new.properties));
    sqlx::query!(
        "INSERT INTO namespace (id, warehouse_id, parent_id, name, parts, properties, created_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        new.id.0,
        new.warehouse.0,
        parent_id,
        name,
        parts,
        properties,
        new.at_ms
    )
    .execute(sent("create-namespace", &mut *tx))
    .await
    .map_err(in_transaction)?;
    sent("commit", tx).commit().await.map_err(in_doubt)?;
    Ok(NamespaceCreated::Created)
}

async fn update(
    conn: &mut SqliteConnection,
    (warehouse, ident): (WarehouseId, &NamespaceIdent),
    change: &PropertiesChange,
    receipt: Option<&Receipt>,
) -> Result<NamespaceUpdated, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(beginning)?;
    let row = sqlx::query!(
        r#"SELECT id AS "id: Uuid", properties FROM namespace WHERE warehouse_id = $1 AND parts = $2"#,
        warehouse.0,
        parts(ident)
    )
    .fetch_optional(sent("update-namespace", &mut *tx))
    .await
    .map_err(in_transaction)?;
    let Some(row) = row else {
        return Ok(NamespaceUpdated::Missing);
    };
    let mut properties: BTreeMap<String, String> = from_json(&row.properties)?;
    let changed = change.apply(&mut properties);
    if let Some(receipt) = receipt {
        let receipt = Receipt { answer: changed.answer(), ..receipt.clone() };
        if idempotency::insert(&mut tx, &receipt).await? == Kept::KeyTaken {
            return Ok(NamespaceUpdated::KeyTaken);
        }
    }
    let properties = json(&properties);
    sqlx::query!("UPDATE namespace SET properties = $2 WHERE id = $1", row.id, properties)
        .execute(sent("update-namespace", &mut *tx))
        .await
        .map_err(in_transaction)?;
    sent("commit", tx).commit().await.map_err(in_doubt)?;
    Ok(NamespaceUpdated::Updated(changed))
}

async fn delete(
    conn: &mut SqliteConnection,
    (warehouse, ident): (WarehouseId, &NamespaceIdent),
    receipt: Option<&Receipt>,
) -> Result<NamespaceDropped, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(beginning)?;
    let Some(id) = id_of(&mut tx, warehouse, ident).await? else {
        return Ok(NamespaceDropped::Missing);
    };
    let holds_something = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM namespace WHERE parent_id = $1)
               OR EXISTS (SELECT 1 FROM tabular WHERE namespace_id = $1) AS "holds: bool""#,
        id
    )
    .fetch_one(sent("delete-namespace", &mut *tx))
    .await
    .map_err(in_transaction)?;
    if holds_something {
        return Ok(NamespaceDropped::NotEmpty);
    }
    if let Some(receipt) = receipt
        && idempotency::insert(&mut tx, receipt).await? == Kept::KeyTaken
    {
        return Ok(NamespaceDropped::KeyTaken);
    }
    sqlx::query!("DELETE FROM namespace WHERE id = $1", id)
        .execute(sent("delete-namespace", &mut *tx))
        .await
        .map_err(in_transaction)?;
    sent("commit", tx).commit().await.map_err(in_doubt)?;
    Ok(NamespaceDropped::Dropped)
}
