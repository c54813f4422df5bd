//! What the catalog tells of the writers of a table and of what became of their commits, and how a writer takes over.

use std::sync::Arc;

use futures::FutureExt;

use crate::commits::ancestry::{History, Met, Sought};
use crate::commits::lineage::{Landed, LineageStore, Walk, WriterRow};
use crate::commits::log::{LogEntry, LogStore, Wanted};
use crate::commits::store::{CommitStore, News, PointerChange, Resolution, Target};
use crate::context::RequestContext;
use crate::documents::{Documents, TableDocument};
use crate::error::Result;
use crate::idempotency::Answer;
use crate::ident::TableIdent;
use crate::listing::{Listing, PageRequest};
use crate::store::Store;
use crate::tabulars::{Plan, Pointer, TabularKind, Tabulars};
use crate::warehouses::Warehouse;

mod attempt;
mod landing;
mod pages;
mod writers;

use pages::Pages;

pub use crate::commits::lineage::Which;
pub use attempt::{Attempt, Status};
pub use landing::{Landing, Progress};
pub use writers::{Change, Moment, Register};

/// How many entries of one request are told, the newest ones.
const ENTRIES_MAX: u32 = 100;

/// How many rows of one writer are told, by ref and part; the listing has all of them.
const ROWS_MAX: u32 = 1_000;

/// Reads the ledger, the lineage and the commit log of a table, and changes rows of its ledger.
#[derive(Clone)]
pub struct Coordination {
    lineage: Arc<dyn LineageStore>,
    log: Arc<dyn LogStore>,
    commits: Arc<dyn CommitStore>,
    tabulars: Tabulars,
    documents: Documents,
}

/// A change of the ledger, as it is asked for.
struct Asked {
    coordination: Coordination,
    ident: TableIdent,
    which: Which,
    change: Change,
}

impl Coordination {
    pub fn new(store: Arc<dyn Store>, tabulars: Tabulars, documents: Documents) -> Self {
        Self { lineage: store.clone(), log: store.clone(), commits: store, tabulars, documents }
    }

    /// A page of the ledger, by ref and writer.
    pub async fn writers(
        &self,
        _ctx: &RequestContext,
        warehouse: &Warehouse,
        ident: &TableIdent,
        page: &PageRequest,
    ) -> Result<Listing<WriterRow>> {
        let table = self.table(warehouse, ident).await?;
        let pages = Pages::of(page);
        let after = pages.writer()?;
        let rows = self.lineage.writers(warehouse.id, table.uuid, after.as_ref(), pages.probe()?).await?;
        Ok(pages.cut(rows, pages::writer_token))
    }

    /// Makes a writer known before its first commit, or lets a new incarnation of it take over. Answers with its row.
    pub async fn register(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: TableIdent,
        register: Register,
    ) -> Result<WriterRow> {
        let (which, change) = register.checked()?;
        self.change(ctx, warehouse, (ident, which, change)).await?.read()
    }

    /// Says that a writer is where it says it is, or nowhere. Answers with its row.
    pub async fn reset(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: TableIdent,
        (which, change): (Which, Change),
    ) -> Result<WriterRow> {
        self.change(ctx, warehouse, (ident, which, change)).await?.read()
    }

    /// Nobody waits for this writer any more.
    pub async fn retire(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: TableIdent,
        which: Which,
    ) -> Result<()> {
        self.change(ctx, warehouse, (ident, which, Change::Retire)).await.map(|_| ())
    }

    /// How far a writer is; with a position (an integer, or a JSON object of offsets), also whether that has landed.
    pub async fn progress(
        &self,
        _ctx: &RequestContext,
        warehouse: &Warehouse,
        ident: &TableIdent,
        which: &Which,
        position: Option<&str>,
    ) -> Result<Progress> {
        let table = self.table(warehouse, ident).await?;
        // On another ref the writer is known under the same name.
        let anywhere = Which { ref_name: None, ..which.clone() };
        let rows = self.lineage.writer(warehouse.id, table.uuid, &anywhere, ROWS_MAX).await?;
        let landing = match position {
            None => None,
            Some(position) => {
                let (ref_name, writer) = which.asked(&rows)?;
                let position = landing::parse(writer.kind, position)?;
                Some(self.landing(warehouse, &table, landing::Question { ref_name, writer, position }).await?)
            }
        };
        let rows = rows.into_iter().filter(|row| which.fits(row)).collect();
        Ok(Progress { rows, landing })
    }

    /// A page of the commit log, newest first.
    pub async fn log(
        &self,
        _ctx: &RequestContext,
        warehouse: &Warehouse,
        ident: &TableIdent,
        page: &PageRequest,
    ) -> Result<Listing<LogEntry>> {
        let table = self.table(warehouse, ident).await?;
        let pages = Pages::of(page);
        let before = pages.entry()?;
        let entries = self.log.read_log(warehouse.id, table.uuid, before, pages.probe()?).await?;
        Ok(pages.cut(entries, pages::entry_token))
    }

    /// What became of a request.
    pub async fn attempt(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        ident: &TableIdent,
        wanted: Wanted,
    ) -> Result<Attempt> {
        let table = self.table(warehouse, ident).await?;
        // The log first: what lands in between is in the lineage by then.
        let entries = self.log.find_log(warehouse.id, table.uuid, wanted, ENTRIES_MAX).await?;
        let snapshot_id = attempt::snapshot_id(wanted, &entries);
        let landed = match snapshot_id {
            None => None,
            Some(id) => self.lineage.walk(warehouse.id, table.uuid, Walk::step(id)).await?.pop(),
        };
        let mut attempt = Attempt::told(landed.as_ref(), entries);
        if attempt.status == Status::InDoubt && self.is_lost(ctx, &attempt).await? {
            attempt.status = Status::Failed;
        }
        if let Some((landed, ref_name)) = landed.as_ref().and_then(|landed| Some((landed, landed.ref_name.as_deref()?)))
        {
            // What became of it is known; whether it still counts is told where the metadata can be read.
            attempt.on_ref = match self.document(warehouse, &table).await {
                Ok(document) => {
                    let met = self.meets(warehouse, &document, ref_name, std::slice::from_ref(landed)).await?;
                    met.first().and_then(|met| met.is_certain())
                }
                Err(_) => None,
            };
        }
        Ok(attempt)
    }

    /// Whether a swap in doubt did not happen, and no longer can. The process that sent it may have died before it knew.
    async fn is_lost(&self, ctx: &RequestContext, attempt: &Attempt) -> Result<bool> {
        match attempt.entries.first().and_then(|entry| entry.attempt) {
            Some(id) => Ok(self.commits.resolve(id, ctx.now_ms()).await? == Resolution::Aborted),
            None => Ok(false),
        }
    }

    async fn landing(&self, warehouse: &Warehouse, table: &Pointer, question: landing::Question) -> Result<Landing> {
        let read = self.lineage.ledger(warehouse.id, table.uuid, &[question.asked()]).await?;
        let mut there: Vec<_> = read.same.into_iter().map(|(_, landed)| landed).collect();
        if there.is_empty() {
            return Ok(Landing::Missing);
        }
        there.sort_by_key(|landed| std::cmp::Reverse((landed.sequence_number, landed.at_ms)));
        let document = self.document(warehouse, table).await?;
        let met = self.meets(warehouse, &document, &question.ref_name, &there).await?;
        Ok(landing::judge(there.into_iter().zip(met).collect()))
    }

    /// What is met of the snapshots on the way back from the head of the ref, in their order.
    async fn meets(
        &self,
        warehouse: &Warehouse,
        document: &TableDocument,
        ref_name: &str,
        wanted: &[Landed],
    ) -> Result<Vec<Met>> {
        let metadata = &document.metadata;
        let head = metadata.head(ref_name);
        let wanted: Vec<_> = wanted.iter().map(Sought::from).collect();
        History { lineage: &*self.lineage, warehouse: warehouse.id, metadata }.meets(head, &wanted).await
    }

    /// The table as it is now.
    async fn document(&self, warehouse: &Warehouse, table: &Pointer) -> Result<Arc<TableDocument>> {
        Ok(self.documents.table(warehouse, &table.metadata_location).await?)
    }

    async fn table(&self, warehouse: &Warehouse, ident: &TableIdent) -> Result<Pointer> {
        self.tabulars.pointer(warehouse, TabularKind::Table, ident).await
    }

    /// Changes one row of the ledger, as a swap of a pointer that stays where it is: whoever judged a commit by the row
    /// that was there loses, and judges again.
    async fn change(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        (ident, which, change): (TableIdent, Which, Change),
    ) -> Result<Answer> {
        let asked = Asked { coordination: self.clone(), ident, which, change };
        let changed =
            self.tabulars.change(ctx, warehouse, asked, |asked, ctx, home| asked.plan(ctx.now_ms(), home).boxed());
        Ok(changed.await?.answer)
    }
}

impl Asked {
    async fn plan(&self, now_ms: i64, warehouse: &Warehouse) -> Result<Plan> {
        let Self { coordination, ident, which, change } = self;
        let from = coordination.table(warehouse, ident).await?;
        let rows = coordination.lineage.writer(warehouse.id, from.uuid, which, ROWS_MAX).await?;
        let sequence_number = match change {
            Change::Reset { .. } => {
                Some(coordination.document(warehouse, &from).await?.metadata.last_sequence_number())
            }
            Change::Register { .. } | Change::Retire => None,
        };
        // Tables of format 1 count none.
        let at = Moment { now_ms, sequence_number: sequence_number.filter(|number| *number > 0) };
        let (before, after) = change.of(which, rows, at)?;
        let answer = match change {
            Change::Retire => Answer::Empty,
            Change::Register { .. } | Change::Reset { .. } => Answer::of(&after),
        };
        if before.as_ref() == Some(&after) {
            return Ok(Plan { answer, ..Plan::unchanged(ident, &from) });
        }
        let (target, news) = (Target::standing(&from), News { writers: vec![after], ..News::default() });
        Ok(Plan::new(ident, PointerChange::Move { from, target, news }, answer))
    }
}

impl Met {
    /// Whether it is an ancestor, where the lineage has no gap.
    fn is_certain(self) -> Option<bool> {
        match self {
            Met::Ancestor => Some(true),
            Met::Missing => Some(false),
            Met::Gap => None,
        }
    }
}
