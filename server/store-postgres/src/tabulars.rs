//! Names of tables and views in table `tabular`.

use async_trait::async_trait;
use catalog::ident::{NamespaceIdent, TableIdent, WarehouseId};
use catalog::store::{Page, StoreError, sent};
use catalog::tabulars::{Pointer, TabularKind, TabularStore};
use sqlx::PgPool;

use crate::PostgresStore;
use crate::columns::{PointerRow, parts, text};
use crate::error::aborted;

#[async_trait]
impl TabularStore for PostgresStore {
    async fn pointer(&self, warehouse: WarehouseId, ident: &TableIdent) -> Result<Option<Pointer>, StoreError> {
        let row = sqlx::query_as!(
            PointerRow,
            "SELECT t.id, t.kind, t.uuid, t.location, t.metadata_location, t.version
               FROM tabular t JOIN namespace n ON n.id = t.namespace_id
              WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3",
            warehouse.0,
            &parts(&ident.namespace),
            text(&ident.name)
        )
        .fetch_optional(sent("pointer", &self.pool))
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
        self.listed(|pool| names(pool, warehouse, namespace, (kind, page))).await
    }
}

async fn names(
    pool: PgPool,
    warehouse: WarehouseId,
    namespace: &NamespaceIdent,
    (kind, page): (TabularKind, &Page),
) -> Result<Option<Vec<String>>, sqlx::Error> {
    // No name is empty, so all come after ''. A limit of null is none.
    sqlx::query_scalar!(
        r#"SELECT ARRAY(SELECT t.name FROM tabular t
                         WHERE t.namespace_id = n.id AND t.kind = $3 AND t.name > $4
                         ORDER BY t.name LIMIT $5) AS "names!"
             FROM namespace n
            WHERE n.warehouse_id = $1 AND n.parts = $2"#,
        warehouse.0,
        &parts(namespace),
        kind.as_str(),
        text(page.after.as_deref().unwrap_or_default()),
        page.limit.map(i64::from)
    )
    .fetch_optional(sent("list-tabulars", &pool))
    .await
}
