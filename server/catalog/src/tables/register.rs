//! `registerTable`: a pointer to a metadata file that is there already, taken as it is.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Loaded, Tables};
use crate::blocking;
use crate::commits::seed;
use crate::commits::store::{News, PointerChange, SwapOutcome, Target};
use crate::commits::swap::refusal;
use crate::context::RequestContext;
use crate::documents::TableDocument;
use crate::error::{Error, Result};
use crate::ident::{TableIdent, TabularId};
use crate::location::Location;
use crate::metadata::{Snapshot, TableMetadata};
use crate::namespaces::{check_part, missing};
use crate::tabulars::{Plan, TabularKind};
use crate::warehouses::Warehouse;
use futures::FutureExt;

#[derive(Debug, Clone)]
pub struct RegisterTable {
    pub ident: TableIdent,
    pub metadata_location: String,
    /// Repoint a table of that name, in one step.
    pub overwrite: bool,
}

impl Tables {
    pub async fn register(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        request: RegisterTable,
    ) -> Result<Loaded> {
        check_part("name", &request.ident.name)?;
        let ident = request.ident.clone();
        let changed = self.tabulars.change(ctx, warehouse, (self.clone(), request), |(this, request), ctx, home| {
            this.plan_register(ctx, home, request).boxed()
        });
        self.answered(warehouse, &ident, changed.await?).await
    }

    async fn plan_register(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        request: &RegisterTable,
    ) -> Result<Plan> {
        if self.namespaces.namespace(warehouse.id, &request.ident.namespace).await?.is_none() {
            return Err(missing(&request.ident.namespace));
        }
        let present = self.tabulars.find(warehouse, &request.ident).await?;
        if let Some(taken) = present.as_ref().filter(|p| !request.overwrite || p.kind != TabularKind::Table) {
            return Err(taken.kind.taken(TabularKind::Table, &request.ident));
        }
        let except = present.as_ref().map(|p| p.id);
        let (document, location) = self.adopt(warehouse, &request.metadata_location, except).await?;
        let target = Target {
            uuid: document.metadata.uuid(),
            location: location.canonical(),
            metadata_location: request.metadata_location.clone(),
        };
        let answer = target.answer();
        let news = self.news(ctx, warehouse, &document.metadata).await?;
        let change = match present {
            Some(from) => PointerChange::Move { from, target, news },
            None => PointerChange::Create {
                id: TabularId(ctx.new_id()),
                ident: request.ident.clone(),
                kind: TabularKind::Table,
                target,
                news,
            },
        };
        Ok(Plan { adopts: true, ..Plan::new(&request.ident, change, answer) })
    }

    /// The document and its location, where neither another table nor a purge has any part in its files.
    ///
    /// The order of the questions leaves no gap. A table that is live when the location is checked is a refusal. One that
    /// was dropped before has its task from the drop on, in one transaction, until its files are gone: a task that is
    /// there is a refusal, and one that is finished has deleted the metadata file as its last, so that the second look
    /// misses it. For what others do from here on, the swap asks for tables and tasks again in its own transaction.
    async fn adopt(
        &self,
        warehouse: &Warehouse,
        metadata_location: &str,
        except: Option<TabularId>,
    ) -> Result<(Arc<TableDocument>, Location)> {
        warehouse.place.check(&Location::parse(metadata_location)?)?;
        let document = self.documents.table_anew(warehouse, metadata_location).await?;
        let foreign = Arc::clone(&document);
        blocking::run(move || foreign.metadata.check_foreign()).await?;
        let location = Location::parse(document.metadata.location())?;
        self.check_not_live(warehouse, &document.metadata, &location, except).await?;
        self.check_location(warehouse, &location, except).await?;
        if self.purges.is_purging(warehouse.id, &location).await? {
            return Err(being_deleted(&location));
        }
        match self.documents.table_anew(warehouse, metadata_location).await?.bytes == document.bytes {
            true => Ok((document, location)),
            false => Err(Error::conflict(format!("{metadata_location} changed while it was registered: try again"))),
        }
    }

    /// A table that is there under another name is told as such, and not as one whose location is taken.
    async fn check_not_live(
        &self,
        warehouse: &Warehouse,
        metadata: &TableMetadata,
        location: &Location,
        except: Option<TabularId>,
    ) -> Result<()> {
        let Some((owner, _)) = self.commits.location_owner(warehouse.id, location, except).await? else {
            return Ok(());
        };
        match self.tabulars.find(warehouse, &owner).await? {
            Some(live) if live.uuid == metadata.uuid() => Err(refusal(SwapOutcome::UuidTaken { owner })),
            _ => Ok(()),
        }
    }

    /// Every snapshot of the document landed, whoever brought it; a UUID that comes back knows most of its own, and all of
    /// its writers. For one that was never here, the summaries tell who wrote what.
    async fn news(&self, ctx: &RequestContext, warehouse: &Warehouse, metadata: &TableMetadata) -> Result<News> {
        let ids: Vec<i64> = metadata.snapshots().map(Snapshot::id).collect();
        let known: HashSet<i64> =
            self.commits.landed(warehouse.id, Some(metadata.uuid()), &ids).await?.into_iter().collect();
        Ok(seed::news(metadata, &known, ctx.now_ms()))
    }
}

fn being_deleted(location: &Location) -> Error {
    Error::unprocessable(format!(
        "the table cannot be registered, for its files are being deleted: a table at {location} (or above or below) was \
         dropped with purge; wait until they are gone, or register a copy elsewhere"
    ))
}
