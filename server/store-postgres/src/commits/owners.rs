//! Who has what a swap wants.

use catalog::commits::overlap::Overlap;
use catalog::ident::{TableIdent, TabularId, WarehouseId};
use catalog::store::{StoreError, sent};
use catalog::tabulars::TabularKind;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::columns::{kind, parts, table_ident, text};
use crate::error::aborted;

/// What the table or view of that name is.
pub(super) async fn of_name(
    conn: &mut PgConnection,
    warehouse: WarehouseId,
    ident: &TableIdent,
) -> Result<Option<TabularKind>, StoreError> {
    let owner = sqlx::query_scalar!(
        "SELECT t.kind FROM tabular t JOIN namespace n ON n.id = t.namespace_id
          WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3",
        warehouse.0,
        &parts(&ident.namespace),
        text(&ident.name)
    )
    .fetch_optional(sent("owner-of-name", conn))
    .await
    .map_err(aborted)?;
    owner.as_deref().map(kind).transpose()
}

/// The live table (or view) with that UUID.
pub(super) async fn of_uuid(
    conn: &mut PgConnection,
    warehouse: WarehouseId,
    kind: TabularKind,
    uuid: Uuid,
) -> Result<Option<TableIdent>, StoreError> {
    let owner = sqlx::query!(
        "SELECT n.parts, t.name FROM tabular t JOIN namespace n ON n.id = t.namespace_id
          WHERE t.warehouse_id = $1 AND t.kind = $2 AND t.uuid = $3",
        warehouse.0,
        kind.as_str(),
        uuid
    )
    .fetch_optional(sent("owner-of-uuid", conn))
    .await
    .map_err(aborted)?;
    owner.map(|row| table_ident(row.parts, row.name)).transpose()
}

/// A live table other than `except` whose place overlaps, with its location. Two searches of tabular_place: an OR of
/// both conditions would walk through all tables of the warehouse.
pub(super) async fn of_place(
    conn: &mut PgConnection,
    warehouse: WarehouseId,
    place: &Overlap,
    except: Option<TabularId>,
) -> Result<Option<(TableIdent, String)>, StoreError> {
    let owner = sqlx::query!(
        r#"SELECT n.parts, t.name AS "name!", t.location AS "location!"
             FROM (SELECT namespace_id, name, location FROM tabular
                    WHERE warehouse_id = $1 AND kind = 'table' AND canonical_location = ANY($2)
                      AND id IS DISTINCT FROM $5
                   UNION ALL
                   SELECT namespace_id, name, location FROM tabular
                    WHERE warehouse_id = $1 AND kind = 'table'
                      AND canonical_location >= $3 AND canonical_location < $4
                      AND id IS DISTINCT FROM $5) t
             JOIN namespace n ON n.id = t.namespace_id
            LIMIT 1"#,
        warehouse.0,
        &place.at_or_above,
        place.below_from,
        place.below_until,
        except.map(|id| id.0)
    )
    .fetch_optional(sent("owner-of-place", conn))
    .await
    .map_err(aborted)?;
    owner.map(|row| Ok((table_ident(row.parts, row.name)?, row.location))).transpose()
}
