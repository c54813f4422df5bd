//! Commits to several tables at once, and the first commit of a new one: no queue, but the same doors and the same judge.

use std::sync::Arc;

use crate::audit;
use crate::blocking;
use crate::commits::journal::{Ending, Passage, Subject, entry, failed};
use crate::commits::judge::{Asking, Fit, Verdict};
use crate::commits::known::current;
use crate::commits::log::{LogEntry, Outcome};
use crate::commits::part::{Part, Ready};
use crate::commits::round::TOO_SLOW;
use crate::commits::store::SwapOutcome;
use crate::commits::swap::refusal;
use crate::commits::write::Attempted;
use crate::commits::{Change, Commits};
use crate::context::RequestContext;
use crate::error::{Error, Result};
use crate::idempotency::{Answer, Ran, Ticket};
use crate::ident::AttemptId;
use crate::location::Location;
use crate::metadata;
use crate::namespaces::check_part;
use crate::tabulars::TabularKind;
use crate::warehouses::Warehouse;

/// What a request would make of its tables.
pub(super) struct Drafted {
    parts: Vec<Part>,
    verdicts: Vec<Verdict>,
}

impl Drafted {
    pub fn changes_nothing(&self) -> bool {
        self.parts.iter().all(|part| !part.is_changed())
    }

    /// A duplicate among commits that are not speaks of two writers, or of a writer that has lost its way.
    fn duplicates(&self) -> Result<bool> {
        let landed = |verdict: &&Verdict| matches!(verdict, Verdict::Duplicate { .. } | Verdict::Known { .. });
        match self.verdicts.iter().filter(landed).count() {
            0 => Ok(false),
            count if count == self.verdicts.len() => Ok(true),
            _ => Err(Error::unprocessable(
                "some commits of this transaction landed before at the positions that their writers name, and others did \
                 not: nothing was changed; commit them one by one",
            )),
        }
    }
}

impl Commits {
    /// Judges, writes and swaps, again and again while others are quicker and the request still fits.
    pub(super) async fn together(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        mut changes: Vec<Change>,
        ticket: Ticket,
    ) -> Result<Ran> {
        let ended = self.try_together(ctx, warehouse, &mut changes, ticket).await;
        if let Err(error) = &ended {
            for change in &changes {
                self.write_down(ctx, warehouse, change, Passage::default(), failed(error, None));
            }
        }
        ended
    }

    async fn try_together(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        changes: &mut [Change],
        ticket: Ticket,
    ) -> Result<Ran> {
        let tables = changes.iter().filter_map(|change| change.read.pointer.as_ref()).map(|pointer| pointer.id);
        let doors = self.queues.doors(ctx, tables).await?;
        let mut is_old = doors.waited;
        for attempts in 1.. {
            // Also where its time is over: a request that landed meanwhile must not hear that it was too slow.
            if is_old {
                self.read_all_again(warehouse, changes).await?;
                if self.landed_before(ctx, warehouse, changes).await? {
                    changes.iter().for_each(|change| self.write_down_known(ctx, warehouse, change));
                    return Ok(Ran::Unchanged(current(changes)));
                }
            }
            if attempts > 1 && ctx.time_left().is_zero() {
                break;
            }
            let drafted = self.draft(ctx, warehouse, &changes.iter().collect::<Vec<_>>()).await?;
            if drafted.changes_nothing() {
                self.write_down_unchanged(ctx, warehouse, changes, drafted.duplicates()?);
                return Ok(Ran::Unchanged(current(changes)));
            }
            // All are duplicates, or none is: what is left to write of the former is a higher epoch.
            drafted.duplicates()?;
            let attempt = AttemptId(ctx.new_id());
            let log = drafted_log(ctx, warehouse, changes, &drafted, (attempt, attempts));
            let told = told(ctx, warehouse, changes, &drafted);
            let parts = ready(ctx, drafted.parts).await?;
            let answer = answer(&parts);
            let receipts = ticket.receipt(answer.clone()).into_iter().collect();
            let outcomes: Vec<Outcome> = log.iter().map(|entry| entry.outcome).collect();
            let attempted = Attempted { attempt, receipts, log, changes: told };
            let swapped = self.write_and_swap(ctx, warehouse, parts, attempted).await;
            // Whatever came of it: what others have read before may be old.
            doors.changed();
            match swapped? {
                SwapOutcome::Applied => {
                    for (change, outcome) in changes.iter().zip(outcomes) {
                        self.watch.answered(ctx, warehouse, change, (outcome, Passage::default()));
                    }
                    return Ok(Ran::Done(answer));
                }
                SwapOutcome::KeyTaken => return Ok(Ran::KeyTaken),
                SwapOutcome::Lost | SwapOutcome::SnapshotKnown => is_old = true,
                refused => return Err(refusal(refused)),
            }
        }
        Err(Error::conflict(TOO_SLOW))
    }

    fn write_down_unchanged(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        changes: &[Change],
        are_duplicates: bool,
    ) {
        let outcome = if are_duplicates { Outcome::Duplicate } else { Outcome::Unchanged };
        for change in changes {
            self.write_down(ctx, warehouse, change, Passage::default(), Ending::of(outcome));
        }
    }

    async fn read_all_again(&self, warehouse: &Warehouse, changes: &mut [Change]) -> Result<()> {
        for change in changes {
            change.read_again(self.store.as_ref(), warehouse).await?;
        }
        Ok(())
    }

    /// Judges every table of the request against what was read; the first refusal is the request's.
    pub(super) async fn draft(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        changes: &[&Change],
    ) -> Result<Drafted> {
        let mut drafted = Drafted { parts: Vec::with_capacity(changes.len()), verdicts: Vec::new() };
        for change in changes {
            let (part, verdict) = match &change.read.pointer {
                Some(pointer) if pointer.kind == TabularKind::Table => {
                    let (pointer, ident) = (pointer.clone(), change.ident.clone());
                    let ledger = change.read.ledger.clone();
                    let mut judge = self.judge_for(warehouse, pointer, ident, ledger).await?;
                    let verdict = judge.judge(&Asking { ctx, change, arrived: None, is_abandoned: false }).await?;
                    (judge.part, verdict)
                }
                Some(view) if change.request.asserts_create() => {
                    return Err(view.kind.taken(TabularKind::Table, &change.ident));
                }
                None if change.request.asserts_create() => {
                    (self.draft_create(ctx, warehouse, change).await?, Verdict::Applied(Fit::AsSent))
                }
                _ => return Err(TabularKind::Table.missing(&change.ident)),
            };
            drafted.parts.push(part);
            drafted.verdicts.push(verdict);
        }
        Ok(drafted)
    }

    async fn draft_create(&self, ctx: &RequestContext, warehouse: &Arc<Warehouse>, change: &Change) -> Result<Part> {
        check_part("name", &change.ident.name)?;
        if change.request.requirements.len() > 1 {
            return Err(Error::invalid("requirements: assert-create must be the only one"));
        }
        let (request, now_ms) = (change.request.clone(), ctx.now_ms());
        let metadata = blocking::run(move || metadata::assemble(&request.updates, now_ms)).await?;
        crate::commits::settings::check(metadata.properties())?;
        let location = Location::parse(metadata.location())?;
        self.tables.check_location(warehouse, &location, None).await?;
        self.tables.files.prepare_table(&warehouse.place, &location).await?;
        Ok(Part::create(ctx, warehouse.id, change.ident.clone(), (metadata, &change.request.updates)))
    }
}

async fn ready(ctx: &RequestContext, parts: Vec<Part>) -> Result<Vec<Ready>> {
    let mut written = Vec::with_capacity(parts.len());
    for part in parts {
        // One that changes nothing goes along: its requirements must still hold when the others' pointers move.
        written.push(part.ready(ctx).await?);
    }
    Ok(written)
}

/// The new metadata of a single table: a transaction answers with nothing.
fn answer(parts: &[Ready]) -> Answer {
    match parts {
        [only] => only.target.answer(),
        _ => Answer::Empty,
    }
}

fn drafted_log(
    ctx: &RequestContext,
    warehouse: &Warehouse,
    changes: &[Change],
    drafted: &Drafted,
    (attempt, attempts): (AttemptId, u32),
) -> Vec<LogEntry> {
    let passage = Passage { waited_ms: 0, group_size: 1, attempts };
    let of = |(change, (part, verdict)): (&Change, (&Part, &Verdict))| {
        let outcome = match verdict {
            Verdict::Applied(_) => Outcome::Committed,
            Verdict::Unchanged | Verdict::Waits => Outcome::Unchanged,
            Verdict::Known { .. } | Verdict::Duplicate { .. } => Outcome::Duplicate,
        };
        let ending = Ending { attempt: Some(attempt), ..Ending::of(outcome) };
        let subject = Subject { warehouse: warehouse.id, table_uuid: part.metadata().uuid(), ident: &change.ident };
        entry(ctx, subject, &change.intent, passage, ending)
    };
    changes.iter().zip(drafted.parts.iter().zip(&drafted.verdicts)).map(of).collect()
}

/// What the audit log tells: each table that is changed.
fn told(ctx: &RequestContext, warehouse: &Warehouse, changes: &[Change], drafted: &Drafted) -> Vec<audit::Entry> {
    let drafts = drafted.parts.iter().zip(&drafted.verdicts);
    let applied = changes.iter().zip(drafts).filter(|(_, (_, verdict))| matches!(verdict, Verdict::Applied(_)));
    let entry = |(change, (part, _)): (&Change, (&Part, &Verdict))| {
        let action = if part.pointer().is_some() { "table.commit" } else { "table.create" };
        let snapshot_id = change.intent.snapshot.as_ref().map(|snapshot| snapshot.id());
        audit::Entry::new(ctx, action)
            .warehouse(&warehouse.name)
            .table(&change.ident)
            .commit(Outcome::Committed.as_str(), snapshot_id)
    };
    applied.map(entry).collect()
}
