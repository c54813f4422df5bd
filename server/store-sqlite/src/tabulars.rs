//! Names of tables and views in table `tabular`.

use async_trait::async_trait;
use catalog::ident::{NamespaceIdent, TableIdent, WarehouseId};
use catalog::store::{Page, StoreError, sent};
use catalog::tabulars::{Pointer, TabularKind, TabularStore};
use uuid::Uuid;

use crate::SqliteStore;
use crate::columns::{PointerRow, from_json, limit, parts};
use crate::error::aborted;

#[async_trait]
impl TabularStore for SqliteStore {
    async fn pointer(&self, warehouse: WarehouseId, ident: &TableIdent) -> Result<Option<Pointer>, StoreError> {
        let row = sqlx::query_as!(
            PointerRow,
            r#"SELECT t.id AS "id: Uuid", t.kind, t.uuid AS "uuid: Uuid", t.location, t.metadata_location, t.version
                 FROM tabular t JOIN namespace n ON n.id = t.namespace_id
                WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3"#,
            warehouse.0,
            parts(&ident.namespace),
            ident.name
        )
        .fetch_optional(sent("pointer", &self.readers))
        .await
        .map_err(aborted)?;
        row.map(Pointer::try_from).transpose()
    }

    async fn list_tabulars(
        &self,
        warehouse: WarehouseId,
        namespace: &NamespaceIdent,
        kind: TabularKind,
        page: &Page,
    ) -> Result<Option<Vec<String>>, StoreError> {
        // No name is empty, so all come after ''.
        let after = page.after.as_deref().unwrap_or_default();
        let (kind, limit) = (kind.as_str(), limit(page));
        let names = sqlx::query_scalar!(
            r#"SELECT (SELECT json_group_array(name)
                         FROM (SELECT t.name FROM tabular t
                                WHERE t.namespace_id = n.id AND t.kind = $3 AND t.name > $4
                                ORDER BY t.name LIMIT +$5)) AS "names!: String"
                 FROM namespace n
                WHERE n.warehouse_id = $1 AND n.parts = $2"#,
            warehouse.0,
            parts(namespace),
            kind,
            after,
            limit
        )
        .fetch_optional(sent("list-tabulars", &self.readers))
        .await
        .map_err(aborted)?;
        names.as_deref().map(from_json).transpose()
    }
}
