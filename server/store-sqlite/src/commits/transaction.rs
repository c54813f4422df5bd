//! A swap as one transaction: the only one that writes, so that what is checked in it stays true until its COMMIT.

use catalog::commits::overlap::Overlap;
use catalog::commits::store::{News, PointerChange, Swap, SwapOutcome, Target};
use catalog::idempotency::store::Kept;
use catalog::ident::{TableIdent, TabularId};
use catalog::store::{StoreError, sent};
use catalog::tabulars::{Pointer, TabularKind};
use sqlx::{Connection, SqliteConnection};
use uuid::Uuid;

use super::{owners, rows};
use crate::columns;
use crate::error::{beginning, in_doubt, in_transaction};
use crate::{BEGIN, commit_log, events, idempotency, namespaces, purge};

/// Why a transaction ends without its COMMIT.
enum Stop {
    Refused(SwapOutcome),
    Failed(StoreError),
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        Stop::Failed(in_transaction(error))
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Stop::Failed(error)
    }
}

pub(super) async fn run(conn: &mut SqliteConnection, swap: &Swap) -> Result<SwapOutcome, StoreError> {
    let mut tx = sent("begin", conn).begin_with(BEGIN).await.map_err(beginning)?;
    match write(&mut tx, swap).await {
        Ok(()) => match sent("commit", tx).commit().await {
            Ok(()) => Ok(SwapOutcome::Applied),
            Err(error) => Err(in_doubt(error)),
        },
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::Refused(outcome)) => match sent("rollback", tx).rollback().await {
            Ok(()) => Ok(outcome),
            Err(error) => Err(in_doubt(error)),
        },
    }
}

async fn write(conn: &mut SqliteConnection, swap: &Swap) -> Result<(), Stop> {
    for from in swap.expected() {
        check_unchanged(conn, from).await?;
    }
    for change in swap.in_order() {
        match change {
            PointerChange::Drop { from } => delete(conn, from).await?,
            PointerChange::Rename { from, to } => rename(conn, swap, from, to).await?,
            PointerChange::Move { from, target, news } => {
                check_uuid(conn, swap, from.kind, target, from.id).await?;
                update(conn, from, target).await?;
                remember(conn, swap, target.uuid, news, target.uuid != from.uuid || swap.adopts).await?;
            }
            PointerChange::Create { id, ident, kind, target, news } => {
                let namespace_id = free_name(conn, swap, ident, *id).await?;
                check_uuid(conn, swap, *kind, target, *id).await?;
                insert(conn, swap, (*id, *kind), (namespace_id, &ident.name), target).await?;
                remember(conn, swap, target.uuid, news, true).await?;
            }
        }
    }
    check_places(conn, swap).await?;
    rows::insert_attempt(conn, swap).await?;
    for receipt in &swap.receipts {
        if idempotency::insert(conn, receipt).await? == Kept::KeyTaken {
            return Err(Stop::Refused(SwapOutcome::KeyTaken));
        }
    }
    commit_log::insert(conn, &swap.log).await?;
    events::insert(conn, &swap.events).await?;
    purge::insert(conn, &swap.purges).await?;
    Ok(())
}

async fn check_unchanged(conn: &mut SqliteConnection, from: &Pointer) -> Result<(), Stop> {
    let found = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM tabular WHERE id = $1 AND version = $2 AND metadata_location = $3) AS "unchanged: bool""#,
        from.id.0,
        from.version,
        from.metadata_location
    )
    .fetch_one(sent("check-unchanged", conn))
    .await?;
    match found {
        true => Ok(()),
        false => Err(Stop::Refused(SwapOutcome::Lost)),
    }
}

/// The id of the name's namespace; the name must be nobody else's.
async fn free_name(
    conn: &mut SqliteConnection,
    swap: &Swap,
    ident: &TableIdent,
    except: TabularId,
) -> Result<Uuid, Stop> {
    let namespace_id = namespaces::id_of(conn, swap.warehouse, &ident.namespace).await?;
    let namespace_id =
        namespace_id.ok_or_else(|| Stop::Refused(SwapOutcome::NamespaceMissing { ident: ident.clone() }))?;
    match owners::of_name(conn, namespace_id, &ident.name, except).await? {
        None => Ok(namespace_id),
        Some(kind) => Err(Stop::Refused(SwapOutcome::NameTaken { kind: columns::kind(&kind)?, ident: ident.clone() })),
    }
}

async fn check_uuid(
    conn: &mut SqliteConnection,
    swap: &Swap,
    kind: TabularKind,
    target: &Target,
    except: TabularId,
) -> Result<(), Stop> {
    match owners::of_uuid(conn, swap.warehouse, kind, target.uuid, except).await? {
        None => Ok(()),
        Some(owner) => Err(Stop::Refused(SwapOutcome::UuidTaken { owner: owner.named()?.0 })),
    }
}

async fn delete(conn: &mut SqliteConnection, from: &Pointer) -> Result<(), Stop> {
    let deleted = sqlx::query!("DELETE FROM tabular WHERE id = $1 AND version = $2", from.id.0, from.version)
        .execute(sent("delete-tabular", conn))
        .await?;
    one_row(deleted.rows_affected())
}

async fn rename(conn: &mut SqliteConnection, swap: &Swap, from: &Pointer, to: &TableIdent) -> Result<(), Stop> {
    let namespace_id = free_name(conn, swap, to, from.id).await?;
    let renamed = sqlx::query!(
        "UPDATE tabular SET namespace_id = $3, name = $4, version = version + 1 WHERE id = $1 AND version = $2",
        from.id.0,
        from.version,
        namespace_id,
        to.name
    )
    .execute(sent("rename-tabular", conn))
    .await?;
    one_row(renamed.rows_affected())
}

async fn update(conn: &mut SqliteConnection, from: &Pointer, target: &Target) -> Result<(), Stop> {
    let canonical_location = Overlap::of_text(&target.location).canonical;
    let moved = sqlx::query!(
        "UPDATE tabular
            SET version = version + 1, metadata_location = $3, uuid = $4, location = $5, canonical_location = $6
          WHERE id = $1 AND version = $2",
        from.id.0,
        from.version,
        target.metadata_location,
        target.uuid,
        target.location,
        canonical_location
    )
    .execute(sent("move-tabular", conn))
    .await?;
    one_row(moved.rows_affected())
}

async fn insert(
    conn: &mut SqliteConnection,
    swap: &Swap,
    (id, kind): (TabularId, TabularKind),
    (namespace_id, name): (Uuid, &str),
    target: &Target,
) -> Result<(), Stop> {
    let (kind, canonical_location) = (kind.as_str(), Overlap::of_text(&target.location).canonical);
    sqlx::query!(
        "INSERT INTO tabular (id, warehouse_id, namespace_id, name, kind, uuid, location, canonical_location,
                              metadata_location, version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)",
        id.0,
        swap.warehouse.0,
        namespace_id,
        name,
        kind,
        target.uuid,
        target.location,
        canonical_location,
        target.metadata_location
    )
    .execute(sent("create-tabular", conn))
    .await?;
    Ok(())
}

/// Writes what is new of a table. Where its UUID `comes` with the change, it may have been known before, and what is
/// known stays; else a snapshot that is known stops the swap.
async fn remember(conn: &mut SqliteConnection, swap: &Swap, uuid: Uuid, news: &News, comes: bool) -> Result<(), Stop> {
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
async fn check_places(conn: &mut SqliteConnection, swap: &Swap) -> Result<(), Stop> {
    for (id, location) in swap.places_taken() {
        let place = Overlap::of_text(location);
        if let Some(owner) = owners::of_place(conn, swap.warehouse, &place, Some(id)).await? {
            let (owner, location) = owner.named()?;
            return Err(Stop::Refused(SwapOutcome::LocationTaken { owner, location }));
        }
        if swap.adopts && purge::overlaps(conn, swap.warehouse, &place).await? {
            return Err(Stop::Refused(SwapOutcome::Lost));
        }
    }
    Ok(())
}

/// A row that was there a moment ago is still there, unless the swap names it twice.
fn one_row(affected: u64) -> Result<(), Stop> {
    match affected {
        1 => Ok(()),
        _ => Err(Stop::Refused(SwapOutcome::Lost)),
    }
}
