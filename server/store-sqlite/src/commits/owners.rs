//! Who has what a swap wants. Each of these takes a part in the caller's transaction, if there is one.

use catalog::commits::overlap::Overlap;
use catalog::ident::{TableIdent, TabularId, WarehouseId};
use catalog::store::{StoreError, sent};
use catalog::tabulars::TabularKind;
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::columns::{json, table_ident};

/// A table or view as a row has it.
pub(super) struct Owner {
    parts: String,
    name: String,
    location: String,
}

impl Owner {
    /// Its name, and its location.
    pub(super) fn named(self) -> Result<(TableIdent, String), StoreError> {
        Ok((table_ident(&self.parts, self.name)?, self.location))
    }
}

/// The kind of the table or view of that name, other than `except`.
pub(super) async fn of_name(
    conn: &mut SqliteConnection,
    namespace_id: Uuid,
    name: &str,
    except: TabularId,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "SELECT kind FROM tabular WHERE namespace_id = $1 AND name = $2 AND id <> $3",
        namespace_id,
        name,
        except.0
    )
    .fetch_optional(sent("owner-of-name", conn))
    .await
}

/// The live table (or view) with that UUID, other than `except`.
pub(super) async fn of_uuid(
    conn: &mut SqliteConnection,
    warehouse: WarehouseId,
    kind: TabularKind,
    uuid: Uuid,
    except: TabularId,
) -> Result<Option<Owner>, sqlx::Error> {
    let kind = kind.as_str();
    sqlx::query_as!(
        Owner,
        "SELECT n.parts, t.name, t.location FROM tabular t JOIN namespace n ON n.id = t.namespace_id
          WHERE t.warehouse_id = $1 AND t.kind = $2 AND t.uuid = $3 AND t.id <> $4",
        warehouse.0,
        kind,
        uuid,
        except.0
    )
    .fetch_optional(sent("owner-of-uuid", conn))
    .await
}

/// A live table other than `except` whose place overlaps. Two searches: an OR of both conditions would walk through all
/// tables of the warehouse.
pub(super) async fn of_place(
    conn: &mut SqliteConnection,
    warehouse: WarehouseId,
    place: &Overlap,
    except: Option<TabularId>,
) -> Result<Option<Owner>, sqlx::Error> {
    let (at_or_above, except) = (json(&place.at_or_above), except.map(|id| id.0));
    sqlx::query_as!(
        Owner,
        r#"SELECT n.parts, t.name AS "name!", t.location AS "location!"
             FROM (SELECT namespace_id, name, location FROM tabular
                    WHERE warehouse_id = $1 AND kind = 'table'
                      AND canonical_location IN (SELECT value FROM json_each($2))
                      AND id IS NOT $5
                   UNION ALL
                   SELECT namespace_id, name, location FROM tabular
                    WHERE warehouse_id = $1 AND kind = 'table'
                      AND canonical_location >= $3 AND canonical_location < $4
                      AND id IS NOT $5) t
             JOIN namespace n ON n.id = t.namespace_id
            LIMIT 1"#,
        warehouse.0,
        at_or_above,
        place.below_from,
        place.below_until,
        except
    )
    .fetch_optional(sent("owner-of-place", conn))
    .await
}
