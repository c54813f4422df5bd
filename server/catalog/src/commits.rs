//! The story of a commit: what landed before is answered, what still fits is applied, written and swapped in.

use std::sync::Arc;

use tokio::sync::oneshot::error::{RecvError, TryRecvError};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::commits::intent::{Intent, added};
use crate::commits::journal::{Journal, Passage, failed};
use crate::commits::known::{current, in_doubt};
use crate::commits::lineage::{Asked, LineageStore, Mark};
use crate::commits::queue::{Queue, Queues, Said, TurnedAway, Waiter};
use crate::commits::rebase::Lists;
use crate::commits::request::{CommitRequest, TransactionRequest};
use crate::commits::store::{CommitStore, PointerRead};
use crate::commits::swap::{SETTLE_TIME, Swapper};
use crate::commits::watch::Watch;
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::events::EventStore;
use crate::idempotency::{Answered, Mutations, Ran, Ticket};
use crate::ident::TableIdent;
use crate::store::Store;
use crate::tables::{Loaded, Tables};
use crate::tabulars::TabularKind;
use crate::warehouses::Warehouse;

pub(crate) mod ancestry;
pub mod board;
mod carried;
mod duplicate;
mod forget;
mod group;
pub mod identity;
mod intent;
mod journal;
mod judge;
mod known;
pub mod ledger;
pub mod lineage;
pub mod log;
mod options;
pub mod overlap;
mod part;
pub mod queue;
pub(crate) mod rebase;
pub mod request;
pub mod requirements;
mod round;
mod sanity;
pub(crate) mod seed;
pub mod settings;
pub mod store;
pub mod swap;
mod together;
pub mod watch;
mod write;

pub use options::{CommitOptions, DEADLINE_SETTING, Retention};
pub use round::GROUP_SIZE;

/// Commits to tables, one or several at once.
#[derive(Clone)]
pub struct Commits {
    store: Arc<dyn CommitStore>,
    lineage: Arc<dyn LineageStore>,
    events: Arc<dyn EventStore>,
    swapper: Swapper,
    tables: Tables,
    mutations: Mutations,
    queues: Queues,
    lists: Lists,
    journal: Journal,
    watch: Watch,
    /// Groups under way: a process that stops waits for them.
    running: TaskTracker,
    options: CommitOptions,
}

/// A request for one table, with the pointer as it was last read.
struct Change {
    ident: TableIdent,
    request: Arc<CommitRequest>,
    intent: Intent,
    read: PointerRead,
    /// Before the pointer was read.
    read_at: Instant,
}

/// A table after a commit.
#[derive(Debug, Clone)]
pub struct Committed {
    pub table: Loaded,
    /// The snapshot that has what the request brought, where its writer had committed it before.
    pub duplicate_of: Option<i64>,
}

impl Commits {
    pub fn new(
        store: Arc<dyn Store>,
        (tables, mutations, queues, watch): (Tables, Mutations, Queues, Watch),
        options: CommitOptions,
        running: TaskTracker,
    ) -> Self {
        Self {
            swapper: Swapper::new(store.clone()),
            lineage: store.clone(),
            events: store.clone(),
            journal: Journal::new(store.clone(), running.clone()),
            lists: Lists::new(tables.files.clone(), options.manifest_cache_bytes),
            watch,
            running,
            store,
            tables,
            mutations,
            queues,
            options,
        }
    }

    /// Commits to one table, or makes it with its first commit, and answers with the metadata as it then is.
    pub async fn commit(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: TableIdent,
        request: CommitRequest,
    ) -> Result<Committed> {
        let request = TransactionRequest { changes: vec![(ident.clone(), request)], fault: None };
        let answered = self.land(ctx, warehouse, request).await?;
        let duplicate_of = answered.duplicate_of;
        let table = self.tables.answered(warehouse, &ident, answered).await?;
        Ok(Committed { table, duplicate_of })
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

    async fn land(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        request: TransactionRequest,
    ) -> Result<Answered> {
        let (mut changes, faults) = self.read(warehouse, request.changes).await?;
        // Before any refusal: a 4xx for what landed would make clients delete live files.
        if self.landed_before(ctx, warehouse, &mut changes).await? {
            // An entry that cannot be read cannot have landed with the others, and who is known no more is told nothing else.
            return match request.fault.or_else(|| ctx.principal.lapse()) {
                None => {
                    changes.iter().for_each(|change| self.write_down_known(ctx, warehouse, change));
                    Ok(Answered { answer: current(&changes), replayed: true, duplicate_of: None })
                }
                Some(fault) => Err(in_doubt().with_source(fault)),
            };
        }
        // Not written down: who is known no more leaves nothing behind.
        if let Some(lapse) = ctx.principal.lapse() {
            return Err(lapse);
        }
        if let Some(fault) = request.fault.into_iter().chain(faults).next() {
            for change in &changes {
                self.write_down(ctx, warehouse, change, Passage::default(), failed(&fault, None));
            }
            return Err(fault);
        }
        let (this, warehouse, context) = (self.clone(), warehouse.clone(), ctx.clone());
        let warehouse_id = warehouse.id;
        let run = async move |ticket| match one_table(&changes) {
            true => {
                let change = changes.remove(0);
                let commit = tracing::info_span!("commit", snapshot_id = change.intent.moved_to);
                this.queue_up(&context, &warehouse, change, ticket).instrument(commit).await
            }
            false => {
                let commit = tracing::info_span!("commit", tables = changes.len());
                this.together(&context, &warehouse, changes, ticket).instrument(commit).await
            }
        };
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
            let (read_at, asked) = (Instant::now(), asked(&request));
            let read = self.store.read_pointer(warehouse.id, &ident, request.snapshot_ids(), &asked).await?;
            let intent = Intent::of(&request);
            changes.push(Change { ident, request: Arc::new(request), intent, read, read_at });
        }
        Ok((changes, faults))
    }

    /// Waits in the table's queue for its answer; whoever finds nobody at the door serves those who wait, itself included.
    async fn queue_up(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        change: Change,
        ticket: Ticket,
    ) -> Result<Ran> {
        let Some(pointer) = &change.read.pointer else { return Err(TabularKind::Table.missing(&change.ident)) };
        let (queue, bounds) = (self.queues.of(pointer.id).await, self.queues.options);
        let mut waiter = match queue.enter(ctx, ticket, change, bounds.queue_max) {
            Ok(waiter) => waiter,
            Err(turned_away) => {
                let TurnedAway { change, error } = *turned_away;
                self.write_down(ctx, warehouse, &change, Passage::default(), failed(&error, None));
                return Err(error);
            }
        };
        loop {
            let door = tokio::select! {
                biased;
                said = &mut waiter.answer => return heard(said).await,
                () = sleep_until(ctx.deadline) => return self.give_up(ctx, warehouse, &queue, waiter).await,
                door = queue.door() => door,
            };
            match waiter.answer.try_recv() {
                Ok(said) => return said.heard().await,
                Err(TryRecvError::Closed) => return Err(unanswered()),
                Err(TryRecvError::Empty) => {}
            }
            let group = queue.next_group(bounds.group_max, ctx.deadline).await;
            // On its own, so that whoever serves hears of its own request as soon as all others do.
            self.running.spawn(self.clone().serve(queue.clone(), warehouse.clone(), group, door));
        }
    }

    /// The time is over. What is not being judged yet is certainly not applied; the rest is waited for a little longer.
    async fn give_up(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        queue: &Queue,
        mut waiter: Waiter,
    ) -> Result<Ran> {
        loop {
            if let Some(member) = queue.leave(&waiter) {
                self.refuse_overdue(warehouse, vec![member]).await;
            }
            tokio::select! {
                biased;
                said = &mut waiter.answer => return heard(said).await,
                () = sleep_until(ctx.deadline + 2 * SETTLE_TIME) => return Err(unanswered()),
                // Whose fate it shared may be back in the queue: then it may leave after all.
                _served = queue.door() => {}
            }
        }
    }
}

/// Whether the request is for a single table that is there, as nearly all are.
fn one_table(changes: &[Change]) -> bool {
    matches!(changes, [only] if only.read.pointer.as_ref().is_some_and(|pointer| pointer.kind == TabularKind::Table))
}

async fn heard(said: Result<Said, RecvError>) -> Result<Ran> {
    match said {
        Ok(said) => said.heard().await,
        Err(_) => Err(unanswered()),
    }
}

fn unanswered() -> Error {
    Error::new(
        Kind::StateUnknown,
        "the change may or may not have been applied: it was still under way when its time was over",
    )
}

/// What the ledger is asked for: each writer of a new snapshot that is put on a branch.
fn asked(request: &CommitRequest) -> Vec<Asked> {
    let marks = added(&request.updates).filter_map(|snapshot| {
        let ref_name = part::ref_of(&request.updates, snapshot.id())?;
        Mark::of(snapshot).map(|mark| Asked { ref_name, identity: mark.identity })
    });
    marks.collect()
}

impl Change {
    /// Reads again what its name means.
    async fn read_again(&mut self, store: &dyn CommitStore, warehouse: &Warehouse) -> Result<()> {
        let asked = asked(&self.request);
        self.read = store.read_pointer(warehouse.id, &self.ident, self.request.snapshot_ids(), &asked).await?;
        Ok(())
    }
}
