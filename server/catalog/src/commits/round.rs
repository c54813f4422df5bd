//! One round of a group: its members are judged one by one, then one document is written and one pointer moved for all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use metrics::{counter, histogram};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::audit;
use crate::commits::journal::{Ending, Passage, Subject, entry, failed};
use crate::commits::judge::{Asking, Fit, Judge, Verdict};
use crate::commits::known::{Landing, in_doubt, landing};
use crate::commits::lineage::{Class, LedgerRead};
use crate::commits::log::{LogEntry, Outcome};
use crate::commits::part::Part;
use crate::commits::queue::{Member, Queue};
use crate::commits::rebase::Rules;
use crate::commits::store::{PointerRead, SwapOutcome};
use crate::commits::swap::refusal;
use crate::commits::write::Attempted;
use crate::commits::{Change, Commits, asked};
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::idempotency::{Answer, Ran, Receipt};
use crate::ident::{AttemptId, TableIdent, WarehouseId};
use crate::tabulars::{Pointer, TabularKind};
use crate::warehouses::Warehouse;

/// Requests that went with one swap.
pub const GROUP_SIZE: &str = "frazil_commit_group_size";

/// Requests that were put on another head than they were built on.
pub const REBASES_TOTAL: &str = "frazil_commit_rebases_total";

/// Rebases that took merged manifests apart again.
pub const UNMERGES_TOTAL: &str = "frazil_commit_unmerges_total";

/// Bound of the files that rebased members of one group hold in memory until the swap, in bytes; the others go next.
const FILES_MAX_BYTES: usize = 64 << 20;

/// Swaps that lost to another process.
pub const SWAPS_LOST_TOTAL: &str = "frazil_commit_swaps_lost_total";

/// How far back a loser's base is looked for, in snapshots.
const TURN_LOOKS_BACK: usize = 1_024;

pub(super) const TOO_SLOW: &str = "the table moved on faster than this commit could follow; nothing was changed";

/// The refusal of a request that was judged so many times. One that nobody got to meets no conflict: what held it up may
/// be a store that hangs.
fn overdue_after(judged: u32) -> Error {
    match judged {
        0 => {
            Error::new(Kind::Unavailable, "the commit waited for its turn until its time was over; nothing was changed")
        }
        _ => Error::conflict(TOO_SLOW),
    }
}

/// A member whose answer depends on the swap.
struct Joined {
    member: Member,
    outcome: Outcome,
    duplicate_of: Option<i64>,
    /// How its own change was made to fit.
    fit: Fit,
}

impl Commits {
    /// Serves a group to its end: every member is answered, or waits in the queue again.
    pub(super) async fn serve(
        self,
        queue: Arc<Queue>,
        warehouse: Arc<Warehouse>,
        mut group: Vec<Member>,
        _door: OwnedMutexGuard<()>,
    ) {
        let mut lost = 0;
        while !group.is_empty() {
            crate::failpoint::reach("commit-taken").await;
            histogram!(GROUP_SIZE).record(group.len() as f64);
            let span = group_span(&group, lost);
            group = self.round(&queue, &warehouse, group).instrument(span).await;
            lost += 1;
            let (overdue, rest): (Vec<_>, Vec<_>) = group.into_iter().partition(Member::is_overdue);
            self.refuse_overdue(&warehouse, overdue).await;
            group = rest;
            // Smaller groups are quicker, and lose less.
            if lost % 2 == 0 && group.len() > 1 {
                queue.put_back(group.split_off(group.len().div_ceil(2)));
            }
        }
        queue.served();
    }

    /// Their time is over, and nothing came of them. One whose snapshot another request brought meanwhile must not hear
    /// of that.
    pub(super) async fn refuse_overdue(&self, warehouse: &Arc<Warehouse>, mut overdue: Vec<Member>) {
        if overdue.is_empty() {
            return;
        }
        if let Err(error) = self.read_again(warehouse, &mut overdue).await {
            return self.refuse_all(warehouse, overdue, 1, &error, None);
        }
        for member in self.not_landed(warehouse, overdue).await {
            let error = overdue_after(member.judged);
            self.refuse(warehouse, member, 1, error);
        }
    }

    /// Returns the members that are to be judged again.
    async fn round(&self, queue: &Queue, warehouse: &Arc<Warehouse>, group: Vec<Member>) -> Vec<Member> {
        let size = group.len();
        let reading = tracing::info_span!("commit read");
        let (mut judge, group) = match self.begin(queue, warehouse, group).instrument(reading).await {
            Ok(begun) => begun,
            Err((group, error)) => {
                self.refuse_all(warehouse, group, size, &error, None);
                return Vec::new();
            }
        };
        let (mut joined, mut later) = (Vec::with_capacity(size), Vec::new());
        for mut member in group {
            if judge.part.files_bytes() > FILES_MAX_BYTES {
                later.push(member);
                continue;
            }
            member.judged += 1;
            let asking = Asking {
                ctx: &member.ctx,
                change: &member.change,
                arrived: Some(member.arrived),
                is_abandoned: member.ticket.is_abandoned(),
            };
            let judging = tracing::info_span!("commit judge", snapshot_id = member.change.intent.moved_to);
            match judge.judge(&asking).instrument(judging).await {
                Ok(Verdict::Waits) => later.push(member),
                Ok(verdict) => {
                    queue.end_turn(&member);
                    joined.extend(self.settle(&judge, size, member, verdict));
                }
                Err(error) if error.kind() == Kind::CommitFailed => {
                    self.give_turn(queue, &judge, &member);
                    self.refuse_after(queue.pause(), warehouse, member, size, error);
                }
                Err(error) => {
                    queue.end_turn(&member);
                    self.refuse(warehouse, member, size, error);
                }
            }
        }
        let mut again = match judge.part.is_changed() {
            true => self.write(queue, judge, joined).await,
            false => Vec::new(),
        };
        again.extend(later);
        again
    }

    /// Reads what a group is judged with: the pointer, and what the ledger says of all its writers.
    async fn begin<'a>(
        &'a self,
        queue: &Queue,
        warehouse: &'a Arc<Warehouse>,
        mut group: Vec<Member>,
    ) -> Result<(Judge<'a>, Vec<Member>), (Vec<Member>, Error)> {
        // The request that waited for nobody was read just now.
        let is_fresh = matches!(&group[..], [only] if only.judged == 0 && queue.is_newer(only.change.read_at));
        if !is_fresh && let Err(error) = self.read_again(warehouse, &mut group).await {
            return Err((group, error));
        }
        let read = group[0].change.read.clone();
        let judge = async {
            let pointer = match read.pointer {
                Some(pointer) if pointer.kind == TabularKind::Table => pointer,
                _ => return Err(TabularKind::Table.missing(&group[0].change.ident)),
            };
            self.judge_for(warehouse, pointer, group[0].change.ident.clone(), read.ledger).await
        };
        match judge.await {
            Ok(judge) => Ok((judge, group)),
            Err(error) => Err((self.not_landed(warehouse, group).await, error)),
        }
    }

    /// A judge for one table, with what the ledger says of the writers that want to change it.
    pub(super) async fn judge_for<'a>(
        &'a self,
        warehouse: &'a Arc<Warehouse>,
        pointer: Pointer,
        ident: TableIdent,
        ledger: LedgerRead,
    ) -> Result<Judge<'a>> {
        let document = self.tables.documents.table(warehouse, &pointer.metadata_location).await?;
        let before = document.metadata.clone();
        let part = Part::new(warehouse.id, ident, pointer, before.clone());
        Ok(Judge { commits: self, warehouse, before, part, ledger, walks: HashMap::new(), classes: Vec::new() })
    }

    /// One question for all members: what the name means now, which of their snapshots it has, and what its ledger says of
    /// their writers, which is kept with the first of them.
    async fn read_again(&self, warehouse: &Warehouse, group: &mut [Member]) -> Result<()> {
        let ids: Vec<i64> = group.iter().flat_map(|member| member.change.request.snapshot_ids()).copied().collect();
        let asked: Vec<_> = group.iter().flat_map(|member| asked(&member.change.request)).collect();
        let read = self.store.read_pointer(warehouse.id, &group[0].change.ident, &ids, &asked).await?;
        let PointerRead { pointer, landed, mut ledger } = read;
        for member in group {
            let mine = |id: &&i64| member.change.request.snapshot_ids().contains(id);
            let landed = landed.iter().filter(mine).copied().collect();
            member.change.read = PointerRead { pointer: pointer.clone(), landed, ledger: std::mem::take(&mut ledger) };
        }
        Ok(())
    }

    /// A refusal is to follow: members whose snapshots landed before must not hear of it, and are told so much.
    async fn not_landed(&self, warehouse: &Arc<Warehouse>, group: Vec<Member>) -> Vec<Member> {
        let mut rest = Vec::with_capacity(group.len());
        for mut member in group {
            match self.seen(warehouse, &mut member.change).await.map(|seen| landing(&[seen])) {
                Ok(Landing::New) => rest.push(member),
                Ok(Landing::Before | Landing::InDoubt) => self.refuse(warehouse, member, 1, in_doubt()),
                Err(error) => self.refuse(warehouse, member, 1, error),
            }
        }
        rest
    }

    /// Answers what does not depend on the swap; returns what does.
    fn settle(&self, judge: &Judge<'_>, size: usize, member: Member, verdict: Verdict) -> Option<Joined> {
        let duplicate_of = |of| Ending { duplicate_of: Some(of), ..Ending::of(Outcome::Duplicate) };
        let (part, now) = (&judge.part, judge.part.before());
        let joined = |member, outcome, duplicate_of| Some(Joined { member, outcome, duplicate_of, fit: Fit::AsSent });
        match verdict {
            Verdict::Applied(fit) => Some(Joined { member, outcome: fit.outcome(), duplicate_of: None, fit }),
            // It shares the fate of the member that brings the snapshot.
            Verdict::Known { of } if part.has_landed(of) => joined(member, Outcome::Duplicate, Some(of)),
            Verdict::Duplicate { of } if judge.hangs_on_swap(&member.change.intent, of) => {
                joined(member, Outcome::Duplicate, Some(of))
            }
            Verdict::Unchanged if part.is_changed() => joined(member, Outcome::Unchanged, None),
            Verdict::Known { of } => {
                self.conclude(judge.warehouse, member, size, duplicate_of(of), Ran::Unchanged(now));
                None
            }
            Verdict::Duplicate { of } => {
                let ran = duplicate(&member, now, of);
                self.conclude(judge.warehouse, member, size, duplicate_of(of), ran);
                None
            }
            Verdict::Unchanged | Verdict::Waits => {
                self.conclude(judge.warehouse, member, size, Ending::of(Outcome::Unchanged), Ran::Unchanged(now));
                None
            }
        }
    }

    /// Writes and swaps for those who joined, and answers them; returns those who are to be judged again.
    async fn write(&self, queue: &Queue, judge: Judge<'_>, joined: Vec<Joined>) -> Vec<Member> {
        let Some(latest) = joined.iter().max_by_key(|one| one.member.ctx.deadline) else { return Vec::new() };
        let (ctx, size, began) = (latest.member.ctx.clone(), joined.len(), Instant::now());
        let attempt = AttemptId(ctx.new_id());
        let uuid = judge.part.metadata().uuid();
        let rebased: Vec<i64> =
            judge.part.lineage().iter().filter(|one| one.rebased).map(|one| one.snapshot_id).collect();
        let (warehouse, classes) = (judge.warehouse, judge.classes);
        let written = match judge.part.ready(&ctx).await {
            Ok(written) => written,
            Err(error) => {
                self.refuse_all(warehouse, members(joined), size, &error, None);
                return Vec::new();
            }
        };
        let answer = written.target.answer();
        let log = joined.iter().map(|one| one.logged(warehouse.id, uuid, attempt, size)).collect();
        let receipts = joined.iter().filter(|one| one.is_applied());
        let receipts: Vec<Receipt> = receipts.filter_map(|one| one.member.ticket.receipt(answer.clone())).collect();
        let changes = joined.iter().filter(|one| one.is_applied()).map(|one| one.told(warehouse)).collect();
        let attempted = Attempted { attempt, receipts, log, changes };
        match self.write_and_swap(&ctx, warehouse, vec![written], attempted).await {
            Ok(SwapOutcome::Applied) => {
                queue.changed(rebased);
                queue.wrote(began.elapsed());
                joined.iter().for_each(|one| self.watch(warehouse, one, size));
                self.remember_classes(warehouse, uuid, classes);
                for one in joined {
                    one.answer(&answer);
                    crate::failpoint::reach("answered").await;
                }
                Vec::new()
            }
            Ok(SwapOutcome::Lost | SwapOutcome::SnapshotKnown) => {
                queue.changed([]);
                counter!(SWAPS_LOST_TOTAL).increment(1);
                members(joined).collect()
            }
            Ok(SwapOutcome::KeyTaken) => self.without_taken_keys(warehouse, joined).await,
            Ok(refused) => {
                self.refuse_all(warehouse, members(joined), size, &refusal(refused), None);
                Vec::new()
            }
            Err(error) => {
                // It may have been applied all the same.
                queue.changed([]);
                self.refuse_all(warehouse, members(joined), size, &error, Some(attempt));
                Vec::new()
            }
        }
    }

    /// One of the keys was used meanwhile by a request that another process served.
    async fn without_taken_keys(&self, warehouse: &Warehouse, joined: Vec<Joined>) -> Vec<Member> {
        let mut rest = Vec::with_capacity(joined.len());
        for one in joined {
            let is_kept = match one.member.ticket.key() {
                Some(key) => self.mutations.is_kept(warehouse.id, key).await,
                None => Ok(false),
            };
            match is_kept {
                Ok(true) => one.member.answer(Ok(Ran::KeyTaken)),
                Ok(false) => rest.push(one.member),
                Err(error) => self.refuse(warehouse, one.member, 1, error),
            }
        }
        rest
    }

    /// What lost its head to rebased commits, which never lose theirs, gets a turn. An append that is rebased itself and
    /// met a fence only has to come again: its turn would keep those waiting that win in no other way.
    fn give_turn(&self, queue: &Queue, judge: &Judge<'_>, member: &Member) {
        let (intent, part) = (&member.change.intent, &judge.part);
        let is_append = intent.operation().as_deref() == Some("append");
        if is_append && judge.settings().rules(intent.identity(), false) != Rules::Restamp {
            return;
        }
        let (Some(ref_name), Some(moved_to), Some(asserted)) = (&intent.ref_name, intent.moved_to, intent.asserted)
        else {
            return;
        };
        let metadata = part.metadata();
        let head = metadata.head(ref_name);
        let parent = |id: &i64| metadata.snapshot(*id).and_then(|snapshot| snapshot.parent_id());
        let passed: Vec<i64> =
            std::iter::successors(head, parent).take(TURN_LOOKS_BACK).take_while(|id| *id != asserted).collect();
        let was_rebased =
            |id: &i64| queue.was_rebased(*id) || part.lineage().iter().any(|one| one.snapshot_id == *id && one.rebased);
        if passed.iter().any(was_rebased) {
            queue.reserve_turn(ref_name, moved_to, self.queues.options.turn);
        }
    }

    fn watch(&self, warehouse: &Warehouse, one: &Joined, size: usize) {
        let (ctx, change) = (&one.member.ctx, &one.member.change);
        self.watch.answered(ctx, warehouse, change, (one.outcome, one.member.passage(size)));
        one.fit.count();
        if let Some(identity) = change.intent.identity().filter(|_| one.is_applied()) {
            self.watch.committed(warehouse, &change.ident, &identity.writer, ctx.now_ms());
        }
    }

    /// Best effort: a class that is not remembered is worked out again.
    fn remember_classes(&self, warehouse: &Warehouse, uuid: Uuid, classes: Vec<(i64, Class)>) {
        if classes.is_empty() {
            return;
        }
        let (lineage, warehouse) = (self.lineage.clone(), warehouse.id);
        self.running.spawn(async move {
            if let Err(error) = lineage.classify(warehouse, uuid, &classes).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "classes of snapshots were not remembered");
            }
        });
    }

    /// Answers all of them with one error, and tells its cause once.
    fn refuse_all(
        &self,
        warehouse: &Warehouse,
        members: impl IntoIterator<Item = Member>,
        size: usize,
        error: &Error,
        attempt: Option<AttemptId>,
    ) {
        tell_cause(error);
        for member in members {
            let ending = failed(error, attempt);
            self.write_down(&member.ctx, warehouse, &member.change, member.passage(size), ending);
            member.answer(Err(again(error)));
        }
    }

    /// Answers a member with an error, and writes that down.
    fn refuse(&self, warehouse: &Warehouse, member: Member, size: usize, error: Error) {
        self.refuse_after(Duration::ZERO, warehouse, member, size, error);
    }

    /// The same, but its writer hears of it a little later.
    fn refuse_after(&self, pause: Duration, warehouse: &Warehouse, member: Member, size: usize, error: Error) {
        self.write_down(&member.ctx, warehouse, &member.change, member.passage(size), failed(&error, None));
        member.answer_after(pause, Err(error));
    }

    fn conclude(&self, warehouse: &Warehouse, member: Member, size: usize, ending: Ending, ran: Ran) {
        self.write_down(&member.ctx, warehouse, &member.change, member.passage(size), ending);
        member.answer(Ok(ran));
    }

    /// Writes down what became of a request that changed nothing, if its table is known.
    pub(super) fn write_down(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        change: &Change,
        passage: Passage,
        ending: Ending,
    ) {
        self.watch.answered(ctx, warehouse, change, (ending.outcome, passage));
        if let Some(pointer) = &change.read.pointer {
            let subject = Subject { warehouse: warehouse.id, table_uuid: pointer.uuid, ident: &change.ident };
            self.journal.write([entry(ctx, subject, &change.intent, passage, ending)]);
        }
    }
}

impl Fit {
    fn outcome(self) -> Outcome {
        match self {
            Fit::AsSent | Fit::Restamped => Outcome::Committed,
            Fit::Rebased { .. } => Outcome::Rebased,
        }
    }

    fn count(self) {
        let class = match self {
            Fit::AsSent => return,
            Fit::Restamped => "restamp",
            Fit::Rebased { class, .. } => class.as_str(),
        };
        counter!(REBASES_TOTAL, "class" => class).increment(1);
        if matches!(self, Fit::Rebased { unmerged: true, .. }) {
            counter!(UNMERGES_TOTAL).increment(1);
        }
    }
}

/// Goes on with the trace of the first member, and is linked with those of the others, so that each leads to it.
fn group_span(group: &[Member], lost: u32) -> Span {
    let (first, others) = group.split_first().expect("a group that is served has a member");
    let span = tracing::info_span!(parent: &first.span, "commit group", size = group.len(), lost);
    for other in others {
        span.follows_from(&other.span);
        other.span.follows_from(&span);
    }
    span
}

fn members(joined: Vec<Joined>) -> impl Iterator<Item = Member> {
    joined.into_iter().map(|one| one.member)
}

impl Joined {
    fn answer(self, answer: &Answer) {
        let answer = answer.clone();
        let ran = match self.duplicate_of {
            _ if self.is_applied() => Ran::Done(answer),
            Some(of) => duplicate(&self.member, answer, of),
            None => Ran::Unchanged(answer),
        };
        self.member.answer(Ok(ran));
    }

    /// The entry that goes with the swap.
    fn logged(&self, warehouse: WarehouseId, table_uuid: Uuid, attempt: AttemptId, group_size: usize) -> LogEntry {
        let change = &self.member.change;
        let subject = Subject { warehouse, table_uuid, ident: &change.ident };
        let ending = Ending { duplicate_of: self.duplicate_of, attempt: Some(attempt), ..Ending::of(self.outcome) };
        entry(&self.member.ctx, subject, &change.intent, self.member.passage(group_size), ending)
    }

    /// What the audit log tells of it.
    fn told(&self, warehouse: &Warehouse) -> audit::Entry {
        let Member { ctx, change, span, .. } = &self.member;
        let snapshot_id = change.intent.snapshot.as_ref().map(|snapshot| snapshot.id());
        audit::Entry::new(ctx, "table.commit")
            .warehouse(&warehouse.name)
            .table(&change.ident)
            .commit(self.outcome.as_str(), snapshot_id)
            .within(span)
    }

    /// Whether the swap is for its own change, so that its answer is kept with its key in the swap itself.
    fn is_applied(&self) -> bool {
        matches!(self.outcome, Outcome::Committed | Outcome::Rebased)
    }
}

/// The answer that names the snapshot which has what the request brought, unless that is its own.
fn duplicate(member: &Member, answer: Answer, of: i64) -> Ran {
    match member.change.request.snapshot_ids().contains(&of) {
        true => Ran::Unchanged(answer),
        false => Ran::Duplicate { answer, of },
    }
}

/// Logs what befalls a whole group, if there is a cause to tell: its members hear of it without.
fn tell_cause(error: &Error) {
    if std::error::Error::source(error).is_some() {
        tracing::warn!(error = error as &dyn std::error::Error, "a group of commits failed");
    }
}

/// The same error for another request; its cause is told once, by [`tell_cause`].
fn again(error: &Error) -> Error {
    Error::new(error.kind(), error.message().to_owned())
}
