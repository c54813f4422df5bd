//! What tables and views share: one name space, a pointer to the current metadata file, listings and renames.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use crate::audit;
use crate::commits::queue::{Doors, Queues};
use crate::commits::store::{PointerChange, Swap, SwapOutcome};
use crate::commits::swap::{Swapper, Written, refusal};
use crate::commits::watch::Watch;
use crate::context::RequestContext;
use crate::documents::Documents;
use crate::error::{Error, Kind, Result};
use crate::events::{Event, What};
use crate::idempotency::{Answer, Answered, Mutations, Ran, Ticket};
use crate::ident::{AttemptId, NamespaceIdent, TableIdent, TabularId, WarehouseId};
use crate::listing::{Listing, PageRequest};
use crate::purge::PurgeTask;
use crate::store::{Page, Store, StoreError};
use crate::warehouses::Warehouse;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TabularKind {
    Table,
    View,
}

impl TabularKind {
    /// As the stores keep it.
    pub fn as_str(self) -> &'static str {
        match self {
            TabularKind::Table => "table",
            TabularKind::View => "view",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn of(text: &str) -> Option<Self> {
        [TabularKind::Table, TabularKind::View].into_iter().find(|kind| kind.as_str() == text)
    }

    pub fn missing(self, ident: &TableIdent) -> Error {
        match self {
            TabularKind::Table => Error::new(Kind::NoSuchTable, format!("Table does not exist: {ident}")),
            TabularKind::View => Error::new(Kind::NoSuchView, format!("View does not exist: {ident}")),
        }
    }

    /// The refusal of a new table or view (`wanted`) whose name belongs to this kind already.
    pub fn taken(self, wanted: TabularKind, ident: &TableIdent) -> Error {
        let message = match self == wanted {
            true => format!("{self} already exists: {ident}"),
            false => format!("{self} with same name already exists: {ident}"),
        };
        Error::new(Kind::AlreadyExists, message)
    }
}

impl fmt::Display for TabularKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TabularKind::Table => "Table",
            TabularKind::View => "View",
        })
    }
}

/// Where the current metadata file of a table or view lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    pub id: TabularId,
    pub kind: TabularKind,
    /// The table UUID (or view UUID) of the metadata document.
    pub uuid: Uuid,
    /// The normal form of the location, see [`crate::location::Location`].
    pub location: String,
    pub metadata_location: String,
    /// Rises with every change of the pointer.
    pub version: i64,
}

impl Pointer {
    /// What lies here, as the answer of a mutation.
    pub fn answer(&self) -> Answer {
        Answer::Document { uuid: self.uuid, metadata_location: self.metadata_location.clone() }
    }
}

#[async_trait]
pub trait TabularStore: Send + Sync + 'static {
    /// The table or view of that name, whichever it is.
    async fn pointer(&self, warehouse: WarehouseId, ident: &TableIdent) -> Result<Option<Pointer>, StoreError>;

    /// The names of one kind, in order; `None` where the namespace does not exist.
    async fn list_tabulars(
        &self,
        warehouse: WarehouseId,
        namespace: &NamespaceIdent,
        kind: TabularKind,
        page: &Page,
    ) -> Result<Option<Vec<String>>, StoreError>;
}

/// One change of one pointer, as planned from the pointer as it was read.
pub struct Plan {
    /// The name of the table or view after the change; before it, where it is dropped.
    pub ident: TableIdent,
    /// `None`: what is asked for is there already.
    pub change: Option<PointerChange>,
    pub answer: Answer,
    pub purges: Vec<PurgeTask>,
    /// A metadata file made for this change alone, to be deleted if it certainly fails.
    pub written: Option<String>,
    /// See [`Swap::adopts`].
    pub adopts: bool,
    /// The name before the change, where that is a rename.
    pub source: Option<TableIdent>,
}

impl Plan {
    pub fn new(ident: &TableIdent, change: PointerChange, answer: Answer) -> Self {
        Self { change: Some(change), ..Self::nothing(ident, answer) }
    }

    /// Answers with what is there, and changes nothing.
    pub fn unchanged(ident: &TableIdent, pointer: &Pointer) -> Self {
        Self::nothing(ident, pointer.answer())
    }

    fn nothing(ident: &TableIdent, answer: Answer) -> Self {
        let ident = ident.clone();
        Self { ident, change: None, answer, purges: Vec::new(), written: None, adopts: false, source: None }
    }

    /// The name that means nothing any more after the change.
    fn gone(&self, change: &PointerChange) -> Option<TableIdent> {
        match change {
            PointerChange::Drop { .. } => Some(self.ident.clone()),
            _ => self.source.clone(),
        }
    }

    /// What the audit log tells of it.
    fn entry(&self, ctx: &RequestContext, warehouse: &Warehouse, change: &PointerChange) -> audit::Entry {
        let writer = match change {
            PointerChange::Move { news, .. } if change.stands() => {
                news.writers.first().map(|row| row.writer.to_string())
            }
            _ => None,
        };
        audit::Entry::new(ctx, audit::action(change, self.adopts))
            .warehouse(&warehouse.name)
            .table(&self.ident)
            .subject(writer.or_else(|| self.source.as_ref().map(TableIdent::to_string)))
    }
}

/// What tables and views do alike.
#[derive(Clone)]
pub struct Tabulars {
    store: Arc<dyn TabularStore>,
    swapper: Swapper,
    documents: Documents,
    mutations: Mutations,
    queues: Queues,
    watch: Watch,
}

impl Tabulars {
    pub fn new(
        store: Arc<dyn Store>,
        documents: Documents,
        mutations: Mutations,
        (queues, watch): (Queues, Watch),
    ) -> Self {
        Self { swapper: Swapper::new(store.clone()), store, documents, mutations, queues, watch }
    }

    pub async fn list(
        &self,
        warehouse: &Warehouse,
        kind: TabularKind,
        namespace: &NamespaceIdent,
        page: &PageRequest,
    ) -> Result<Listing<TableIdent>> {
        let names = self.store.list_tabulars(warehouse.id, namespace, kind, &page.probe()?).await?;
        let names = names.ok_or_else(|| crate::namespaces::missing(namespace))?;
        page.cut(names).try_map(|name| Ok(TableIdent::new(namespace.clone(), name)))
    }

    /// Whatever has that name.
    pub async fn find(&self, warehouse: &Warehouse, ident: &TableIdent) -> Result<Option<Pointer>> {
        Ok(self.store.pointer(warehouse.id, ident).await?)
    }

    /// The pointer of a table or view; the other kind of that name does not count.
    pub async fn pointer(&self, warehouse: &Warehouse, kind: TabularKind, ident: &TableIdent) -> Result<Pointer> {
        let found = self.find(warehouse, ident).await?.filter(|pointer| pointer.kind == kind);
        found.ok_or_else(|| kind.missing(ident))
    }

    /// Changes one pointer: plans from what is there, swaps, and plans again while others are quicker. `wanted` is what
    /// each plan is made of; it outlives the client's connection.
    pub async fn change<W, F>(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        wanted: W,
        plan: F,
    ) -> Result<Answered>
    where
        W: Send + Sync + 'static,
        F: for<'a> Fn(&'a W, &'a RequestContext, &'a Warehouse) -> BoxFuture<'a, Result<Plan>> + Send + Sync + 'static,
    {
        let (this, home, context) = (self.clone(), warehouse.clone(), ctx.clone());
        let mut door = None;
        let run = async move |ticket: Ticket| loop {
            let mut planned = plan(&wanted, &context, &home).await?;
            let answer = planned.answer.clone();
            let Some(change) = planned.change.take() else {
                return Ok(Ran::Unchanged(answer));
            };
            if door.is_none() {
                let opened = this.door(&context, &change).await?;
                let waited = opened.waited;
                door = Some(opened);
                // Commits were under way: what was planned is old.
                if waited {
                    this.written(&home, planned.written).discard().await;
                    continue;
                }
            }
            let swapped = this.swap(&context, &home, (change, planned), &ticket).await;
            // Whatever came of it: what others have read before may be old.
            door.iter().for_each(Doors::changed);
            match swapped? {
                SwapOutcome::Applied => return Ok(Ran::Done(answer)),
                SwapOutcome::KeyTaken => return Ok(Ran::KeyTaken),
                SwapOutcome::Lost | SwapOutcome::SnapshotKnown if context.time_left().is_zero() => {
                    return Err(Error::new(Kind::Unavailable, "others kept changing it; nothing was changed"));
                }
                SwapOutcome::Lost | SwapOutcome::SnapshotKnown => {}
                refused => return Err(refusal(refused)),
            }
        };
        self.mutations.once(ctx, warehouse.id, run).await
    }

    /// The door of the table that is changed: commits that wait there come before or after, and lose nothing.
    async fn door(&self, ctx: &RequestContext, change: &PointerChange) -> Result<Doors> {
        self.queues.doors(ctx, change.from().map(|from| from.id)).await
    }

    fn written(&self, warehouse: &Arc<Warehouse>, file: Option<String>) -> Written {
        let locations = file.into_iter().collect();
        let (documents, warehouse) = (self.documents.clone(), warehouse.clone());
        Written { documents, warehouse, locations, journal: None, changes: Vec::new() }
    }

    async fn swap(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        (change, planned): (PointerChange, Plan),
        ticket: &Ticket,
    ) -> Result<SwapOutcome> {
        let (entry, gone) = (planned.entry(ctx, warehouse, &change), planned.gone(&change));
        let swap = Swap {
            attempt: AttemptId(ctx.new_id()),
            warehouse: warehouse.id,
            events: event(ctx, warehouse.id, &change, &planned).into_iter().collect(),
            changes: vec![change],
            receipts: ticket.receipt(planned.answer).into_iter().collect(),
            log: Vec::new(),
            purges: planned.purges,
            adopts: planned.adopts,
            at_ms: ctx.now_ms(),
        };
        let written = Written { changes: vec![entry], ..self.written(warehouse, planned.written) };
        let outcome = self.swapper.swap(ctx, &swap, written).await;
        if let (Ok(SwapOutcome::Applied), Some(name)) = (&outcome, gone) {
            self.watch.forget(warehouse, &name);
        }
        outcome
    }

    /// Gives a table or view another name; its own name again changes nothing.
    pub async fn rename(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        kind: TabularKind,
        (from, to): (TableIdent, TableIdent),
    ) -> Result<()> {
        crate::namespaces::check_part("the new name", &to.name)?;
        let wanted = (self.clone(), from, to);
        let renamed = self.change(ctx, warehouse, wanted, move |(this, from, to), _, home| {
            this.plan_rename(home, kind, from, to).boxed()
        });
        renamed.await.map(|_| ())
    }

    async fn plan_rename(
        &self,
        warehouse: &Warehouse,
        kind: TabularKind,
        source: &TableIdent,
        to: &TableIdent,
    ) -> Result<Plan> {
        let from = self.pointer(warehouse, kind, source).await?;
        if let Some(taken) = self.find(warehouse, to).await?.filter(|found| found.id != from.id) {
            let message = format!("Cannot rename {source} to {to}. {} already exists", taken.kind);
            return Err(Error::new(Kind::AlreadyExists, message));
        }
        if source == to {
            return Ok(Plan { answer: Answer::Empty, ..Plan::unchanged(to, &from) });
        }
        let renamed = Plan::new(to, PointerChange::Rename { from, to: to.clone() }, Answer::Empty);
        Ok(Plan { source: Some(source.clone()), ..renamed })
    }
}

fn event(ctx: &RequestContext, warehouse: WarehouseId, change: &PointerChange, planned: &Plan) -> Option<Event> {
    if change.stands() {
        return None;
    }
    let (tabular, kind, uuid, metadata_location) = match change {
        PointerChange::Create { id, kind, target, .. } => (*id, *kind, target.uuid, &target.metadata_location),
        PointerChange::Move { from, target, .. } => (from.id, from.kind, target.uuid, &target.metadata_location),
        PointerChange::Rename { from, .. } | PointerChange::Drop { from } => {
            (from.id, from.kind, from.uuid, &from.metadata_location)
        }
    };
    let what = match change {
        PointerChange::Create { .. } | PointerChange::Move { .. } if planned.adopts => What::Registered,
        PointerChange::Create { .. } => What::Created,
        PointerChange::Move { .. } => What::Committed,
        PointerChange::Rename { .. } => What::Renamed,
        PointerChange::Drop { .. } => What::Dropped,
    };
    Some(Event {
        warehouse,
        tabular,
        kind,
        uuid,
        ident: planned.ident.clone(),
        what,
        metadata_location: metadata_location.clone(),
        snapshot_id: None,
        ref_name: None,
        at_ms: ctx.now_ms(),
    })
}
