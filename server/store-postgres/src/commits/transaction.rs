//! Every other swap: one explicit transaction, checked and written under its locks, COMMIT as a message of its own.

use std::collections::HashMap;

use catalog::commits::overlap::Overlap;
use catalog::commits::store::{News, PointerChange, Swap, SwapOutcome, Target};
use catalog::idempotency::store::Kept;
use catalog::ident::{TableIdent, TabularId, WarehouseId};
use catalog::store::{StoreError, sent};
use catalog::tabulars::{Pointer, TabularKind};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{owners, rows};
use crate::columns::{parts, text};
use crate::error::{aborted, before_commit, collided, committing, violated};
use crate::{BEGIN, commit_log, events, idempotency, purge};

/// Why a transaction ends without its COMMIT.
enum Stop {
    Refused(SwapOutcome),
    /// The name is somebody's: whose is asked after the rollback.
    NameTaken(TableIdent),
    UuidTaken(TabularKind, Uuid),
    Failed(StoreError),
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        match collided(&error) {
            true => Stop::Refused(SwapOutcome::Lost),
            false => Stop::Failed(before_commit(error)),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Stop::Failed(error)
    }
}

pub(super) async fn run(conn: &mut PgConnection, swap: &Swap) -> Result<SwapOutcome, StoreError> {
    let mut tx = sent("begin", &mut *conn).begin_with(BEGIN).await.map_err(aborted)?;
    let stop = match write(&mut tx, swap).await {
        Ok(()) => {
            return match sent("commit", tx).commit().await {
                Ok(()) => Ok(SwapOutcome::Applied),
                Err(error) if collided(&error) => Ok(SwapOutcome::Lost),
                Err(error) => Err(committing(error)),
            };
        }
        Err(Stop::Failed(error)) => return Err(error),
        Err(stop) => stop,
    };
    sent("rollback", tx).rollback().await.map_err(aborted)?;
    conclude(conn, swap.warehouse, stop).await
}

/// Names the owner of what is taken. Where it is gone by now the swap is worth another try.
async fn conclude(conn: &mut PgConnection, warehouse: WarehouseId, stop: Stop) -> Result<SwapOutcome, StoreError> {
    let outcome = match stop {
        Stop::Refused(outcome) => Some(outcome),
        Stop::Failed(error) => return Err(error),
        Stop::NameTaken(ident) => {
            let kind = owners::of_name(conn, warehouse, &ident).await?;
            kind.map(|kind| SwapOutcome::NameTaken { kind, ident })
        }
        Stop::UuidTaken(kind, uuid) => {
            let owner = owners::of_uuid(conn, warehouse, kind, uuid).await?;
            owner.map(|owner| SwapOutcome::UuidTaken { owner })
        }
    };
    Ok(outcome.unwrap_or(SwapOutcome::Lost))
}

async fn write(conn: &mut PgConnection, swap: &Swap) -> Result<(), Stop> {
    lock(conn, swap).await?;
    for change in swap.in_order() {
        match change {
            PointerChange::Drop { from } => delete(conn, from).await?,
            PointerChange::Rename { from, to } => rename(conn, swap, from, to).await?,
            PointerChange::Move { from, target, news } => {
                update(conn, from, target).await?;
                remember(conn, swap, target.uuid, news, target.uuid != from.uuid || swap.adopts).await?;
            }
            PointerChange::Create { id, ident, kind, target, news } => {
                insert(conn, swap, (*id, *kind), ident, target).await?;
                remember(conn, swap, target.uuid, news, true).await?;
            }
        }
    }
    check_places(conn, swap).await?;
    rows::insert_attempt(conn, swap).await?;
    keep(conn, swap).await?;
    commit_log::insert(conn, &swap.log).await?;
    events::insert(conn, &swap.events).await?;
    purge::insert(conn, &swap.purges).await?;
    Ok(())
}

/// Keeps the receipts in the order of their keys, so that no two swaps wait for each other's.
async fn keep(conn: &mut PgConnection, swap: &Swap) -> Result<(), Stop> {
    let mut receipts: Vec<_> = swap.receipts.iter().collect();
    receipts.sort_by_key(|receipt| receipt.key);
    for receipt in receipts {
        if idempotency::insert(conn, receipt).await? == Kept::KeyTaken {
            return Err(Stop::Refused(SwapOutcome::KeyTaken));
        }
    }
    Ok(())
}

/// Takes all locks in one global order, so that no two swaps wait for each other: first the warehouse's row, if a name, a
/// UUID or a place is to be taken or left, then the pointers in the order of their ids.
///
/// The warehouse's row serialises those who take one, and the order of events: whoever takes what another one leaves has a
/// transaction that is younger than the other's, for only the lock begins it.
async fn lock(conn: &mut PgConnection, swap: &Swap) -> Result<(), Stop> {
    if swap.changes.iter().any(|change| change.takes() || matches!(change, PointerChange::Drop { .. })) {
        sqlx::query!("SELECT id FROM warehouse WHERE id = $1 FOR NO KEY UPDATE", swap.warehouse.0)
            .fetch_one(sent("lock-tabulars", &mut *conn))
            .await?;
    }
    let ids: Vec<Uuid> = swap.expected().map(|from| from.id.0).collect();
    let locked = sqlx::query!(
        "SELECT id, version, metadata_location FROM tabular WHERE id = ANY($1) ORDER BY id FOR UPDATE",
        &ids
    )
    .fetch_all(sent("lock-tabulars", conn))
    .await?;
    let found: HashMap<Uuid, (i64, String)> =
        locked.into_iter().map(|row| (row.id, (row.version, row.metadata_location))).collect();
    let unchanged = |from: &Pointer| {
        found.get(&from.id.0).is_some_and(|(version, lies)| *version == from.version && *lies == from.metadata_location)
    };
    match swap.expected().all(unchanged) {
        true => Ok(()),
        false => Err(Stop::Refused(SwapOutcome::Lost)),
    }
}

async fn delete(conn: &mut PgConnection, from: &Pointer) -> Result<(), Stop> {
    let deleted = sqlx::query!("DELETE FROM tabular WHERE id = $1 AND version = $2", from.id.0, from.version)
        .execute(sent("delete-tabular", conn))
        .await?;
    one_row(deleted.rows_affected(), SwapOutcome::Lost)
}

async fn rename(conn: &mut PgConnection, swap: &Swap, from: &Pointer, to: &TableIdent) -> Result<(), Stop> {
    let renamed = sqlx::query!(
        "UPDATE tabular SET namespace_id = n.id, name = $5, version = version + 1
           FROM namespace n
          WHERE tabular.id = $1 AND version = $2 AND n.warehouse_id = $3 AND n.parts = $4",
        from.id.0,
        from.version,
        swap.warehouse.0,
        &parts(&to.namespace),
        text(&to.name)
    )
    .execute(sent("rename-tabular", conn))
    .await
    .map_err(|error| taken(error, to, from.kind, from.uuid))?;
    one_row(renamed.rows_affected(), SwapOutcome::NamespaceMissing { ident: to.clone() })
}

async fn update(conn: &mut PgConnection, from: &Pointer, target: &Target) -> Result<(), Stop> {
    let moved = sqlx::query!(
        "UPDATE tabular
            SET version = version + 1, metadata_location = $3, uuid = $4, location = $5, canonical_location = $6
          WHERE id = $1 AND version = $2",
        from.id.0,
        from.version,
        target.metadata_location,
        target.uuid,
        target.location,
        Overlap::of_text(&target.location).canonical
    )
    .execute(sent("move-tabular", conn))
    .await
    .map_err(|error| match violated(&error) {
        Some("tabular_table_uuid" | "tabular_view_uuid") => Stop::UuidTaken(from.kind, target.uuid),
        _ => Stop::from(error),
    })?;
    one_row(moved.rows_affected(), SwapOutcome::Lost)
}

async fn insert(
    conn: &mut PgConnection,
    swap: &Swap,
    (id, kind): (TabularId, TabularKind),
    ident: &TableIdent,
    target: &Target,
) -> Result<(), Stop> {
    let inserted = sqlx::query!(
        "INSERT INTO tabular (id, warehouse_id, namespace_id, name, kind, uuid, location, canonical_location,
                              metadata_location, version)
         SELECT $1, $2, n.id, $4, $5, $6, $7, $8, $9, 1
           FROM namespace n WHERE n.warehouse_id = $2 AND n.parts = $3",
        id.0,
        swap.warehouse.0,
        &parts(&ident.namespace),
        text(&ident.name),
        kind.as_str(),
        target.uuid,
        target.location,
        Overlap::of_text(&target.location).canonical,
        target.metadata_location
    )
    .execute(sent("create-tabular", conn))
    .await
    .map_err(|error| taken(error, ident, kind, target.uuid))?;
    one_row(inserted.rows_affected(), SwapOutcome::NamespaceMissing { ident: ident.clone() })
}

/// Writes what is new of a table. Where its UUID `comes` with the change, it may have been known before, and what is
/// known stays; else a snapshot that is known stops the swap.
async fn remember(conn: &mut PgConnection, swap: &Swap, uuid: Uuid, news: &News, comes: bool) -> Result<(), Stop> {
    let new = rows::insert_lineage(conn, swap, uuid, news).await?;
    if !comes && new < news.lineage.len() as u64 {
        return Err(Stop::Refused(SwapOutcome::SnapshotKnown));
    }
    rows::insert_carried(conn, swap, uuid, news).await?;
    rows::write_ledger(conn, swap, uuid, news, comes).await?;
    Ok(())
}

/// No table that is new or has moved may overlap with another, be it of this swap or not: asked when all are written.
/// What is adopted may not overlap with what is being deleted either. That is asked second: a table that is no longer
/// found has left its task by then.
async fn check_places(conn: &mut PgConnection, swap: &Swap) -> Result<(), Stop> {
    for (id, location) in swap.places_taken() {
        let place = Overlap::of_text(location);
        if let Some((owner, location)) = owners::of_place(conn, swap.warehouse, &place, Some(id)).await? {
            return Err(Stop::Refused(SwapOutcome::LocationTaken { owner, location }));
        }
        if swap.adopts && purge::overlaps(conn, swap.warehouse, &place).await? {
            return Err(Stop::Refused(SwapOutcome::Lost));
        }
    }
    Ok(())
}

/// Sorts the violations that a new name or a new row meets.
fn taken(error: sqlx::Error, ident: &TableIdent, kind: TabularKind, uuid: Uuid) -> Stop {
    match violated(&error) {
        Some("tabular_name") => Stop::NameTaken(ident.clone()),
        Some("tabular_table_uuid" | "tabular_view_uuid") => Stop::UuidTaken(kind, uuid),
        // Dropped between our look and our write.
        Some("tabular_namespace") => Stop::Refused(SwapOutcome::NamespaceMissing { ident: ident.clone() }),
        _ => Stop::from(error),
    }
}

fn one_row(affected: u64, otherwise: SwapOutcome) -> Result<(), Stop> {
    match affected {
        1 => Ok(()),
        _ => Err(Stop::Refused(otherwise)),
    }
}
