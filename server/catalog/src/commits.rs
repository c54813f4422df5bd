//! The story of a commit: what landed before is answered, what still fits is applied, written and swapped in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::commits::intent::{Intent, added};
use crate::commits::journal::{Journal, Passage, failed};
use crate::commits::known::{Evidence, Landing, landing};
use crate::commits::lineage::{Asked, LineageStore, Mark};
use crate::commits::log::{LogEntry, Outcome};
use crate::commits::part::Ready;
use crate::commits::queue::{Queue, Queues, Waiter};
use crate::commits::rebase::{Lists, NewFile};
use crate::commits::request::{CommitRequest, TransactionRequest};
use crate::commits::settings::Defaults;
use crate::commits::store::{CommitStore, PointerRead, Swap, SwapOutcome};
use crate::commits::swap::{SETTLE_TIME, Swapper, Written, WrittenFiles};
use crate::commits::watch::Watch;
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::events::EventStore;
use crate::idempotency::{Answer, Answered, Mutations, Ran, Receipt, Ticket};
use crate::ident::{AttemptId, PurgeId, TableIdent};
use crate::purge::{PurgeTarget, PurgeTask};
use crate::store::Store;
use crate::tables::{Loaded, Tables};
use crate::tabulars::{Pointer, TabularKind};
use crate::warehouses::Warehouse;

pub(crate) mod ancestry;
mod carried;
mod duplicate;
mod group;
pub mod identity;
mod intent;
pub mod journal;
mod judge;
pub mod known;
pub mod ledger;
pub mod lineage;
pub mod log;
pub mod overlap;
mod part;
pub mod queue;
pub mod rebase;
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

pub use round::GROUP_SIZE;

/// Tells clients for how long a commit is tried.
pub const DEADLINE_SETTING: &str = "frazil.commit-deadline-ms";

/// Size of the metadata documents that commits write, in bytes.
pub const METADATA_BYTES: &str = "frazil_commit_metadata_bytes";

/// For how long the outcome of an attempt is kept: far longer than a statement can be on its way to a database that
/// may still run it, for connections and servers give up within minutes.
const ATTEMPTS_KEPT_DAYS: u32 = 7;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// How much is forgotten in one transaction, in rows.
const FORGET_MAX: u32 = 10_000;

/// Bounds of a commit, from the configuration.
#[derive(Debug, Clone)]
pub struct CommitOptions {
    /// How long a metadata file that fell out of the log still lies, for replicas that just read the pointer.
    pub metadata_delete_grace_ms: i64,
    pub queue: queue::QueueOptions,
    /// A request that is older than this is not rebased: its client may have given it up.
    pub rebase_max_age: Duration,
    pub defaults: Defaults,
    /// Bound of the manifest lists and manifests kept in memory, in bytes.
    pub manifest_cache_bytes: u64,
    /// How long a position that has no order is remembered.
    pub equality_retention: Duration,
    pub retention: Retention,
}

/// For how long what was written beside the pointers is kept, in days.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// 0: for ever.
    pub lineage_days: u32,
    pub log_days: u32,
    pub event_days: u32,
}

impl Default for CommitOptions {
    fn default() -> Self {
        Self {
            metadata_delete_grace_ms: 300_000,
            queue: queue::QueueOptions { queue_max: 1_024, group_max: 64, turn: Duration::from_secs(1) },
            rebase_max_age: Duration::from_secs(10),
            defaults: Defaults::default(),
            manifest_cache_bytes: 64 << 20,
            equality_retention: Duration::from_secs(7 * 24 * 60 * 60),
            retention: Retention { lineage_days: 0, log_days: 30, event_days: 7 },
        }
    }
}

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
        (tables, mutations, queues): (Tables, Mutations, Queues),
        options: CommitOptions,
        running: TaskTracker,
    ) -> Self {
        Self {
            swapper: Swapper::new(store.clone()),
            lineage: store.clone(),
            events: store.clone(),
            journal: Journal::new(store.clone(), running.clone()),
            lists: Lists::new(tables.files.clone(), options.manifest_cache_bytes),
            watch: Watch::default(),
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

    /// Forgets what nobody may ask for any more: outcomes of attempts, and what is older than its retention.
    pub async fn forget(&self, now_ms: i64) -> Result<()> {
        let before = |days: u32| now_ms - i64::from(days) * DAY_MS;
        let Retention { lineage_days, log_days, event_days } = self.options.retention;
        while self.store.forget_attempts(before(ATTEMPTS_KEPT_DAYS), FORGET_MAX).await? == u64::from(FORGET_MAX) {}
        if lineage_days > 0 {
            while self.lineage.forget_lineage(before(lineage_days), FORGET_MAX).await? == u64::from(FORGET_MAX) {}
        }
        while self.journal.forget(before(log_days), FORGET_MAX).await? == u64::from(FORGET_MAX) {}
        while self.events.forget_events(before(event_days), FORGET_MAX).await? == u64::from(FORGET_MAX) {}
        Ok(())
    }

    /// What `GET /v1/config` tells about commits.
    pub fn config_defaults(&self, warehouse: &Warehouse, deadline_ms: u64) -> BTreeMap<String, String> {
        let mut told = settings::told(warehouse, self.options.defaults);
        told.insert(DEADLINE_SETTING.to_owned(), deadline_ms.to_string());
        told
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
                None => {
                    changes.iter().for_each(|change| self.write_down_known(ctx, warehouse, change));
                    Ok(Answered { answer: current(&changes), replayed: true, duplicate_of: None })
                }
                Some(fault) => Err(in_doubt().with_source(fault)),
            };
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
                let queued = tracing::info_span!("commit queue");
                this.queue_up(&context, &warehouse, changes.remove(0), ticket).instrument(queued).await
            }
            false => this.together(&context, &warehouse, changes, ticket).await,
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
            let read_at = Instant::now();
            let read = self.store.read_pointer(warehouse.id, &ident, request.snapshot_ids()).await?;
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
        let refused = (change.ident.clone(), pointer.uuid, change.intent.clone());
        let mut waiter = match queue.enter(ctx, ticket, change, bounds.queue_max) {
            Ok(waiter) => waiter,
            Err(error) => {
                self.write_down_unserved(ctx, warehouse, &refused, &error);
                return Err(error);
            }
        };
        loop {
            let door = tokio::select! {
                biased;
                said = &mut waiter.answer => return said.unwrap_or_else(|_| Err(unanswered())),
                () = sleep_until(ctx.deadline) => return self.give_up(ctx, warehouse, &queue, waiter).await,
                door = queue.door() => door,
            };
            match waiter.answer.try_recv() {
                Ok(said) => return said,
                Err(TryRecvError::Closed) => return Err(unanswered()),
                Err(TryRecvError::Empty) => {}
            }
            let group = queue.next_group(bounds.group_max, ctx.deadline).await;
            // On its own, so that whoever serves hears of its own request as soon as all others do.
            self.running.spawn(self.clone().serve(queue.clone(), warehouse.clone(), group, door).in_current_span());
        }
    }

    /// The time is over. What is not being judged yet is certainly not applied; the rest is waited for a little longer.
    async fn give_up(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        queue: &Queue,
        waiter: Waiter,
    ) -> Result<Ran> {
        if let Some(member) = queue.leave(&waiter) {
            self.refuse_overdue(warehouse, vec![member]).await;
        }
        tokio::select! {
            said = waiter.answer => said.unwrap_or_else(|_| Err(unanswered())),
            () = sleep_until(ctx.deadline + 2 * SETTLE_TIME) => Err(unanswered()),
        }
    }

    /// Writes the new files, then moves all pointers in one transaction.
    async fn write_and_swap(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        parts: Vec<Ready>,
        (attempt, receipts, log): (AttemptId, Vec<Receipt>, Vec<LogEntry>),
    ) -> Result<SwapOutcome> {
        let files = WrittenFiles {
            documents: self.tables.documents.clone(),
            warehouse: warehouse.clone(),
            locations: parts.iter().flat_map(Ready::locations).map(str::to_owned).collect(),
        };
        let writing = tracing::info_span!("commit files", files = files.locations.len());
        let lost_after_all = self.journal.corrects(log.clone(), ctx.clock.clone());
        let written = Written { files: Some(files), lost_after_all: Some(lost_after_all) };
        if let Err(error) = self.write_files(warehouse, &parts).instrument(writing).await {
            // A write that fails may still have made its file.
            written.discard().await;
            return Err(error);
        }
        let swap = Swap {
            attempt,
            warehouse: warehouse.id,
            changes: parts.iter().map(|part| part.change.clone()).collect(),
            receipts,
            purges: self.purges(ctx, warehouse, &parts),
            adopts: false,
            log,
            events: parts.iter().flat_map(|part| part.events.iter().cloned()).collect(),
            at_ms: ctx.now_ms(),
        };
        let swapping = tracing::info_span!("commit swap", %attempt);
        let outcome = self.swapper.swap(ctx, &swap, written).instrument(swapping).await;
        if matches!(outcome, Ok(SwapOutcome::Applied)) {
            crate::failpoint::reach("swap-applied").await;
            self.publish(warehouse, parts).await;
        }
        outcome
    }

    /// First what a document refers to, all at once, then the documents.
    async fn write_files(&self, warehouse: &Arc<Warehouse>, parts: &[Ready]) -> Result<()> {
        let mut writes = Vec::new();
        for file in parts.iter().flat_map(|part| &part.files) {
            writes.push(self.write_file(warehouse, file).boxed());
        }
        // A write that is broken off may still make its file, and after its deletion: all of them end first.
        join_all(writes).await.into_iter().collect::<Result<()>>()?;
        crate::failpoint::reach_or_fail("lists-written").await?;
        for part in parts {
            if let Some(document) = &part.document {
                let location = &part.target.metadata_location;
                metrics::histogram!(METADATA_BYTES).record(document.bytes.len() as f64);
                self.tables.documents.write_new(warehouse, location, document).await?;
            }
        }
        crate::failpoint::reach_or_fail("metadata-written").await?;
        Ok(())
    }

    async fn write_file(&self, warehouse: &Warehouse, file: &NewFile) -> Result<()> {
        Ok(self.tables.files.write_new(&warehouse.place, &file.location, file.bytes.clone()).await?)
    }

    fn purges(&self, ctx: &RequestContext, warehouse: &Warehouse, parts: &[Ready]) -> Vec<PurgeTask> {
        let task = |location: &String| PurgeTask {
            id: PurgeId(ctx.new_id()),
            warehouse: warehouse.id,
            target: PurgeTarget::File { location: location.clone() },
            not_before_ms: ctx.now_ms() + self.options.metadata_delete_grace_ms,
        };
        parts.iter().flat_map(|part| &part.dropped_files).map(task).collect()
    }

    async fn publish(&self, warehouse: &Warehouse, parts: Vec<Ready>) {
        for part in parts {
            if let Some(document) = part.document {
                self.tables.documents.remember_table(warehouse, part.target.metadata_location, document).await;
            }
        }
        crate::failpoint::reach("published").await;
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
        rest.is_empty() || matches!(self.draft(ctx, warehouse, &rest).await, Ok(drafted) if drafted.changes_nothing())
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

type Refused = (TableIdent, uuid::Uuid, Intent);

impl Commits {
    fn write_down_known(&self, ctx: &RequestContext, warehouse: &Warehouse, change: &Change) {
        let duplicate_of = change.request.snapshot_ids().last().copied();
        let ending = journal::Ending { duplicate_of, ..journal::Ending::default() };
        self.write_down(ctx, warehouse, change, Passage::default(), (Outcome::Duplicate, ending));
    }

    fn write_down_unserved(&self, ctx: &RequestContext, warehouse: &Warehouse, refused: &Refused, error: &Error) {
        let (ident, uuid, intent) = refused;
        let ending = failed(error, None);
        journal::count(ending.0, Passage::default());
        self.journal.write([journal::entry(ctx, (warehouse.id, *uuid, ident), intent, Passage::default(), ending)]);
    }
}

/// Whether the request is for a single table that is there, as nearly all are.
fn one_table(changes: &[Change]) -> bool {
    matches!(changes, [only] if only.read.pointer.as_ref().is_some_and(|pointer| pointer.kind == TabularKind::Table))
}

fn unanswered() -> Error {
    Error::new(
        Kind::StateUnknown,
        "the change may or may not have been applied: it was still under way when its time was over",
    )
}

impl Change {
    /// What the ledger is asked for: each writer of a new snapshot that is put on a branch.
    fn asked(&self) -> Vec<Asked> {
        let marks = added(&self.request.updates).filter_map(|snapshot| {
            let ref_name = part::ref_of(&self.request.updates, snapshot.id())?;
            Mark::of(snapshot).map(|mark| Asked { ref_name, identity: mark.identity })
        });
        marks.collect()
    }

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
