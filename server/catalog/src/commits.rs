//! The story of a commit: what landed before is answered, what still fits is applied, written and swapped in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::commits::draft::Drafts;
use crate::commits::known::{Evidence, Landing, landing};
use crate::commits::request::{CommitRequest, TransactionRequest};
use crate::commits::store::{CommitStore, PointerRead, Swap, SwapOutcome};
use crate::commits::swap::{Swapper, certainly_lost, refusal};
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::idempotency::{Answer, Answered, Mutations, Ran, Receipt, Ticket};
use crate::ident::{AttemptId, TableIdent};
use crate::store::Store;
use crate::tables::{Loaded, Tables};
use crate::tabulars::{Pointer, TabularKind};
use crate::warehouses::Warehouse;

mod draft;
pub mod identity;
pub mod known;
pub mod ledger;
pub mod lineage;
pub mod log;
pub mod overlap;
pub mod rebase;
pub mod request;
pub mod requirements;
mod sanity;
pub mod store;
pub mod swap;

/// Tells clients for how long a commit is tried.
pub const DEADLINE_SETTING: &str = "frazil.commit-deadline-ms";

/// For how long the outcome of an attempt is kept: far longer than a statement can be on its way to a database that
/// may still run it, for connections and servers give up within minutes.
const ATTEMPTS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How many attempts are forgotten in one transaction, in rows.
const FORGET_MAX: u32 = 10_000;

/// Bounds of a commit, from the configuration.
#[derive(Debug, Clone)]
pub struct CommitOptions {
    /// How long a metadata file that fell out of the log still lies, for replicas that just read the pointer.
    pub metadata_delete_grace_ms: i64,
}

/// Commits to tables, one or several at once.
#[derive(Clone)]
pub struct Commits {
    store: Arc<dyn CommitStore>,
    swapper: Swapper,
    tables: Tables,
    mutations: Mutations,
    options: CommitOptions,
}

/// A request for one table, with the pointer as it was last read.
struct Change {
    ident: TableIdent,
    request: Arc<CommitRequest>,
    read: PointerRead,
}

impl Commits {
    pub fn new(store: Arc<dyn Store>, tables: Tables, mutations: Mutations, options: CommitOptions) -> Self {
        Self { swapper: Swapper::new(store.clone()), store, tables, mutations, options }
    }

    /// Commits to one table, or makes it with its first commit, and answers with the metadata as it then is.
    pub async fn commit(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: TableIdent,
        request: CommitRequest,
    ) -> Result<Loaded> {
        let request = TransactionRequest { changes: vec![(ident.clone(), request)], fault: None };
        let answered = self.land(ctx, warehouse, request).await?;
        self.tables.answered(warehouse, &ident, answered).await
    }

    /// Commits to several tables: all of them or none.
    pub async fn transact(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        request: TransactionRequest,
    ) -> Result<()> {
        self.land(ctx, warehouse, request).await.map(|_| ())
    }

    /// Forgets the outcomes that nobody asks for any more.
    pub async fn forget_attempts(&self, now_ms: i64) -> Result<()> {
        let kept_ms = i64::try_from(ATTEMPTS_KEPT.as_millis()).expect("days fit into i64");
        while self.store.forget_attempts(now_ms - kept_ms, FORGET_MAX).await? == u64::from(FORGET_MAX) {}
        Ok(())
    }

    async fn land(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        request: TransactionRequest,
    ) -> Result<Answered> {
        let (mut changes, faults) = self.read(warehouse, request.changes).await?;
        // Before any refusal: a 4xx for what landed would make clients delete live files.
        if self.landed_before(ctx, warehouse, &mut changes).await? {
            // An entry that cannot be read cannot have landed with the others.
            return match request.fault {
                None => Ok(Answered { answer: current(&changes), replayed: true }),
                Some(fault) => Err(in_doubt().with_source(fault)),
            };
        }
        if let Some(fault) = request.fault.into_iter().chain(faults).next() {
            return Err(fault);
        }
        let (this, warehouse, context) = (self.clone(), warehouse.clone(), ctx.clone());
        let warehouse_id = warehouse.id;
        let run = async move |ticket| this.run(&context, &warehouse, changes, ticket).await;
        self.mutations.once(ctx, warehouse_id, run).await
    }

    /// Looks up the tables of a request, and collects what is wrong with it.
    async fn read(
        &self,
        warehouse: &Warehouse,
        requests: Vec<(TableIdent, CommitRequest)>,
    ) -> Result<(Vec<Change>, Vec<Error>)> {
        let (mut changes, mut faults) = (Vec::with_capacity(requests.len()), Vec::new());
        for (ident, mut request) in requests {
            faults.extend(request.take_fault());
            let read = self.store.read_pointer(warehouse.id, &ident, request.snapshot_ids()).await?;
            changes.push(Change { ident, request: Arc::new(request), read });
        }
        Ok((changes, faults))
    }

    /// Judges, writes and swaps, again and again while others are quicker and the request still fits.
    async fn run(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        mut changes: Vec<Change>,
        ticket: Ticket,
    ) -> Result<Ran> {
        loop {
            let drafts = self.draft(ctx, warehouse, &changes.iter().collect::<Vec<_>>()).await?;
            if drafts.change_nothing() {
                return Ok(Ran::Unchanged(current(&changes)));
            }
            let answer = drafts.answer();
            match self.write_and_swap(ctx, warehouse, drafts, ticket.receipt(answer.clone())).await? {
                SwapOutcome::Applied => return Ok(Ran::Done(answer)),
                SwapOutcome::KeyTaken => return Ok(Ran::KeyTaken),
                SwapOutcome::Lost | SwapOutcome::SnapshotKnown => {}
                refused => return Err(refusal(refused)),
            }
            if ctx.time_left().is_zero() {
                return Err(Error::conflict(
                    "the table moved on faster than this commit could follow; nothing was changed",
                ));
            }
            self.read_again(warehouse, &mut changes).await?;
            if self.landed_before(ctx, warehouse, &mut changes).await? {
                return Ok(Ran::Unchanged(current(&changes)));
            }
        }
    }

    /// Writes the new metadata files, then moves all pointers in one transaction.
    async fn write_and_swap(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        drafts: Drafts,
        receipt: Option<Receipt>,
    ) -> Result<SwapOutcome> {
        let mut written = Vec::with_capacity(drafts.len());
        for draft in drafts.iter() {
            if let Some((location, document)) = draft.file() {
                if let Err(error) = self.tables.documents.write_new(warehouse, location, document).await {
                    self.discard(warehouse, &written).await;
                    return Err(error.into());
                }
                written.push(location.to_owned());
            }
        }
        let swap = Swap {
            attempt: AttemptId(ctx.new_id()),
            warehouse: warehouse.id,
            changes: drafts.pointer_changes(),
            receipts: receipt.into_iter().collect(),
            log: Vec::new(),
            events: Vec::new(),
            purges: drafts.purges(ctx, warehouse, self.options.metadata_delete_grace_ms),
            adopts: false,
            at_ms: ctx.now_ms(),
        };
        let outcome = self.swapper.swap(ctx, &swap).await;
        if certainly_lost(&outcome) {
            self.discard(warehouse, &written).await;
        } else if outcome.is_ok() {
            drafts.publish(&self.tables.documents, warehouse).await;
        }
        outcome
    }

    async fn discard(&self, warehouse: &Warehouse, written: &[String]) {
        for location in written {
            self.tables.documents.discard(warehouse, location).await;
        }
    }

    async fn read_again(&self, warehouse: &Warehouse, changes: &mut [Change]) -> Result<()> {
        for change in changes {
            change.read = self.store.read_pointer(warehouse.id, &change.ident, change.request.snapshot_ids()).await?;
        }
        Ok(())
    }

    /// Whether the whole request landed before. In doubt, nothing may be applied and nothing refused.
    async fn landed_before(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        changes: &mut [Change],
    ) -> Result<bool> {
        let mut parts = Vec::with_capacity(changes.len());
        for change in changes.iter_mut() {
            parts.push(self.evidence(warehouse, change).await?);
        }
        match landing(&parts) {
            Landing::New => Ok(false),
            Landing::Before if self.rest_is_there(ctx, warehouse, changes).await => Ok(true),
            Landing::Before | Landing::InDoubt => Err(in_doubt()),
        }
    }

    /// What brings no snapshot has no id to be known by: it landed if asking for it again changes nothing.
    async fn rest_is_there(&self, ctx: &RequestContext, warehouse: &Arc<Warehouse>, changes: &[Change]) -> bool {
        let rest: Vec<&Change> = changes.iter().filter(|change| change.request.snapshot_ids().is_empty()).collect();
        rest.is_empty() || matches!(self.draft(ctx, warehouse, &rest).await, Ok(drafts) if drafts.change_nothing())
    }

    async fn evidence(&self, warehouse: &Warehouse, change: &mut Change) -> Result<Evidence> {
        let ids = change.request.snapshot_ids();
        let evidence = |landed_here, landed_elsewhere| Evidence { added: ids.len(), landed_here, landed_elsewhere };
        if ids.is_empty() {
            return Ok(evidence(0, 0));
        }
        let asserted = change.request.asserted_uuid();
        let known = change.known_here();
        if known.is_some_and(|known| known > 0 || asserted.is_some()) {
            return Ok(evidence(known.unwrap_or(0), 0));
        }
        // The name may mean another table by now, or none: what the client committed to is found by UUID, else by id.
        let anywhere = self.store.landed(warehouse.id, asserted, ids).await?.len();
        if anywhere == 0 {
            return Ok(evidence(0, 0));
        }
        // Or the same request came twice, and its twin landed since the pointer was read.
        change.read = self.store.read_pointer(warehouse.id, &change.ident, ids).await?;
        let known = change.known_here().unwrap_or(0);
        Ok(evidence(known, anywhere - known.min(anywhere)))
    }
}

impl Change {
    /// How many of its snapshots the table of that name has taken; `None` where the client means another table.
    fn known_here(&self) -> Option<usize> {
        let pointer = self.read.pointer.as_ref().filter(|pointer| pointer.kind == TabularKind::Table)?;
        let meant = self.request.asserted_uuid().is_none_or(|uuid| uuid == pointer.uuid);
        let ids = self.request.snapshot_ids();
        meant.then(|| ids.iter().filter(|id| self.read.landed.contains(id)).count())
    }
}

fn in_doubt() -> Error {
    Error::new(
        Kind::StateUnknown,
        "some of these snapshots landed before, or in a table that is gone: nothing was applied now; keep the files and load the table",
    )
}

/// The metadata as it is now: a transaction answers with nothing.
fn current(changes: &[Change]) -> Answer {
    let [change] = changes else { return Answer::Empty };
    change.read.pointer.as_ref().map_or(Answer::Empty, Pointer::answer)
}

/// What `GET /v1/config` tells about commits.
pub fn config_defaults(deadline_ms: u64) -> BTreeMap<String, String> {
    BTreeMap::from([(DEADLINE_SETTING.to_owned(), deadline_ms.to_string())])
}
