//! Judges requests one by one against a table and the chain of commits that is to go onto it.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::counter;
use tokio::time::Instant;

use crate::blocking;
use crate::commits::intent::added;
use crate::commits::ledger::{self, Decision, Evidence};
use crate::commits::lineage::{Class, Landed, LedgerRead, Mark, Walk, WriterRow};
use crate::commits::part::{Part, landed};
use crate::commits::rebase::{Candidate, Link, Need, Relinked, Rules, need};
use crate::commits::request::CommitRequest;
use crate::commits::settings::{self, Settings};
use crate::commits::{Change, Commits, in_doubt, sanity};
use crate::context::RequestContext;
use crate::error::Result;
use crate::location::Location;
use crate::metadata::{self, ApplyAt, Snapshot, TableMetadata, TableUpdate};
use crate::warehouses::Warehouse;

/// Snapshots whose timestamp was moved, because their writer's clock was.
pub const TIMESTAMPS_MOVED_TOTAL: &str = "frazil_snapshot_timestamps_moved_total";

/// Writers that began anew under their old name.
pub const INCARNATIONS_TOTAL: &str = "frazil_writer_incarnations_total";

/// How far back the lineage is walked, in snapshots.
pub(super) const WALK_MAX: u32 = 10_000;

/// What a request came to, if it was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its snapshots landed before.
    Known { of: i64 },
    /// Its writer committed the same before, with another snapshot.
    Duplicate { of: i64 },
    /// What it asks for is there.
    Unchanged,
    /// It is part of the chain now.
    Applied(Fit),
}

/// How a request was made to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    AsSent,
    /// Its snapshot got other numbers, for another branch had taken them.
    Restamped,
    /// Its snapshot was put on another head.
    Rebased(Class),
}

impl Fit {
    fn of(relinked: Option<&Relinked>) -> Self {
        match relinked {
            None => Fit::AsSent,
            Some(Relinked { class: None, .. }) => Fit::Restamped,
            Some(Relinked { class: Some(class), .. }) => Fit::Rebased(*class),
        }
    }
}

/// A request as it is judged.
pub(super) struct Asking<'a> {
    pub ctx: &'a RequestContext,
    pub change: &'a Change,
    /// When it came; `None` where it may not be rebased at all.
    pub arrived: Option<Instant>,
    /// Nobody waits for its answer any more.
    pub is_abandoned: bool,
}

/// One table while requests for it are judged.
pub(super) struct Judge<'a> {
    pub commits: &'a Commits,
    pub warehouse: &'a Arc<Warehouse>,
    pub part: Part,
    /// What the ledger said when the pointer was read.
    pub ledger: LedgerRead,
    /// Walks over the lineage, by head and end.
    pub walks: HashMap<(i64, Option<i64>), Arc<Vec<Landed>>>,
    /// Classes of older snapshots that rebases worked out.
    pub classes: Vec<(i64, Class)>,
}

impl Judge<'_> {
    /// The first rule that applies decides; a refusal leaves the chain as it is.
    pub async fn judge(&mut self, asking: &Asking<'_>) -> Result<Verdict> {
        if let Some(of) = self.known(asking.change).await? {
            return Ok(Verdict::Known { of });
        }
        let settings = Settings::of(self.part.metadata(), self.warehouse, self.commits.options.defaults);
        if settings.dedup
            && let Some(of) = self.duplicate(asking, settings).await?
        {
            return Ok(Verdict::Duplicate { of });
        }
        let request = &asking.change.request;
        let relinked = self.fit(asking, settings).await?;
        let updates = match &relinked {
            Some(relinked) => Updates::Relinked(relinked_updates(&request.updates, relinked)),
            None => Updates::AsSent(request.clone()),
        };
        self.apply(asking, updates, relinked).await
    }

    /// The last of the request's snapshots, where all of them landed before; in doubt where only some did.
    async fn known(&self, change: &Change) -> Result<Option<i64>> {
        let ids = change.request.snapshot_ids();
        let Some(last) = ids.last() else { return Ok(None) };
        let metadata = self.part.metadata();
        if change.request.asserted_uuid().is_some_and(|uuid| uuid != metadata.uuid()) {
            let elsewhere = self.commits.store.landed(self.warehouse.id, change.request.asserted_uuid(), ids).await?;
            return if elsewhere.is_empty() { Ok(None) } else { Err(in_doubt()) };
        }
        let is_known = |id: &&i64| {
            change.read.landed.contains(id) || self.part.has_landed(**id) || metadata.snapshot(**id).is_some()
        };
        match ids.iter().filter(is_known).count() {
            0 => Ok(None),
            count if count == ids.len() => Ok(Some(*last)),
            _ => Err(in_doubt()),
        }
    }

    /// The snapshot that has already what the request brings, by the ledger.
    async fn duplicate(&mut self, asking: &Asking<'_>, settings: Settings) -> Result<Option<i64>> {
        let intent = &asking.change.intent;
        let (Some(mark), Some(ref_name), Some(snapshot)) = (&intent.mark, &intent.ref_name, &intent.snapshot) else {
            return Ok(None);
        };
        let identity = &mark.identity;
        let row = self.row(ref_name, mark).cloned();
        let (Some(_), Some(row)) = (&identity.position, &row) else { return Ok(None) };
        let mut evidence = Evidence {
            identity,
            row: Some(row),
            same: self.same(ref_name, mark, snapshot).await?,
            is_void: false,
            builds_on_row: false,
            stale: settings.stale,
        };
        if ledger::asks_for_ancestry(&evidence) {
            let head = self.head(ref_name);
            evidence.is_void = self.is_gone(head, row.snapshot_id, row.sequence_number).await?;
            evidence.builds_on_row = intent.asserted.is_some()
                && self.is_ancestor(intent.asserted, row.snapshot_id, row.sequence_number).await?;
        }
        match ledger::decide(&evidence) {
            Decision::GoesOn => Ok(None),
            Decision::NewIncarnation => {
                counter!(INCARNATIONS_TOTAL, "kind" => identity.writer.kind.as_str()).increment(1);
                tracing::warn!(table = %self.part.ident, writer = %identity.writer, position = %identity.told_position(),
                    before = ?row.position, "a writer began anew under its old name");
                Ok(None)
            }
            Decision::Duplicate { of } => {
                if identity.epoch > row.epoch {
                    self.part.put_row(WriterRow { epoch: identity.epoch, ..row.clone() });
                }
                Ok(Some(of.unwrap_or(snapshot.id())))
            }
            refused => Err(ledger::refusal(&refused, identity, snapshot.id(), &self.part.ident)),
        }
    }

    fn row(&self, ref_name: &str, mark: &Mark) -> Option<&WriterRow> {
        let is_its = |row: &WriterRow| row.ref_name == ref_name && row.writer == mark.identity.writer;
        self.part.row(is_its).or_else(|| self.ledger.rows.iter().find(|row| is_its(row)))
    }

    /// A landed snapshot of this writer at this position with the same content.
    async fn same(&mut self, ref_name: &str, mark: &Mark, snapshot: &Snapshot) -> Result<Option<i64>> {
        let is_its = |landed: &&Landed| {
            landed.ref_name.as_deref() == Some(ref_name)
                && landed.writer.as_ref().is_some_and(|other| {
                    other.identity.writer == mark.identity.writer && other.identity.position == mark.identity.position
                })
        };
        let in_chain = self.part.lineage().iter().filter(is_its);
        let before = self.ledger.same.iter().filter(|(name, landed)| {
            name == ref_name
                && landed.writer.as_ref().is_some_and(|other| {
                    other.identity.writer == mark.identity.writer && other.identity.position == mark.identity.position
                })
        });
        let candidates: Vec<Landed> = in_chain.chain(before.map(|(_, landed)| landed)).cloned().collect();
        for candidate in candidates {
            let head = self.head(ref_name);
            if self.is_ancestor(head, Some(candidate.snapshot_id), candidate.sequence_number).await?
                && self.has_same_content(mark, snapshot, &candidate).await
            {
                return Ok(Some(candidate.snapshot_id));
            }
        }
        Ok(None)
    }

    /// Whether two snapshots at one position bring the same. Where files are sent again their paths tell it; the counts
    /// do where a list cannot be read. Spark and Arroyo go by the position alone: they write a batch again.
    async fn has_same_content(&self, mark: &Mark, snapshot: &Snapshot, before: &Landed) -> bool {
        if mark.identity.writer.kind.goes_by_position() {
            return true;
        }
        if let Some(before) = self.part.metadata().snapshot(before.snapshot_id) {
            let (lists, home) = (&self.commits.lists, self.warehouse.as_ref());
            let mine = lists.added_paths(home, snapshot).await;
            let theirs = lists.added_paths(home, before).await;
            if let (Ok(mine), Ok(theirs)) = (mine, theirs) {
                return mine == theirs;
            }
        }
        before.writer.as_ref().is_some_and(|other| other.counts == mark.counts)
    }

    fn head(&self, ref_name: &str) -> Option<i64> {
        self.part.metadata().refs().get(ref_name).map(|reference| reference.snapshot_id)
    }

    async fn is_ancestor(&self, from: Option<i64>, wanted: Option<i64>, sequence_number: i64) -> Result<bool> {
        Ok(self.ancestry(from, wanted, sequence_number).await? == Ancestry::Found)
    }

    /// Whether the history of `from` is known to be without the snapshot. A gap does not tell.
    async fn is_gone(&self, from: Option<i64>, wanted: Option<i64>, sequence_number: i64) -> Result<bool> {
        Ok(self.ancestry(from, wanted, sequence_number).await? == Ancestry::Missing)
    }

    async fn ancestry(&self, from: Option<i64>, wanted: Option<i64>, sequence_number: i64) -> Result<Ancestry> {
        let Some(wanted) = wanted else { return Ok(Ancestry::Gap) };
        let next = match walk_document(self.part.metadata(), from, wanted, sequence_number) {
            Walked::Ended(ancestry) => return Ok(ancestry),
            Walked::Expired(next) => next,
        };
        let walk = Walk { from: next, until: Some(wanted), sequence_number_min: sequence_number, limit: WALK_MAX };
        let uuid = self.part.metadata().uuid();
        let rows = self.commits.lineage.walk(self.warehouse.id, uuid, walk).await?;
        Ok(ancestry_of(&rows, wanted))
    }

    /// Puts the snapshot where it fits, if it does not fit where its writer put it. `None`: it stays as it came.
    async fn fit(&mut self, asking: &Asking<'_>, settings: Settings) -> Result<Option<Relinked>> {
        let request = &asking.change.request;
        let (candidate, rules) = match need(request, self.part.metadata())? {
            Need::Nothing => return Ok(None),
            Need::Restamp(candidate) => (candidate, Rules::Restamp),
            Need::Rebase(candidate) => {
                let rules = self.rebase_rules(asking, settings)?;
                (candidate, rules)
            }
        };
        let Some(snapshot) = added(&request.updates).find(|snapshot| snapshot.id() == candidate.snapshot_id) else {
            return Ok(None);
        };
        let between = match rules {
            Rules::Restamp => Some(Vec::new()),
            Rules::Append | Rules::Streaming => self.between(&candidate).await?,
        };
        let link = Link {
            warehouse: self.warehouse,
            metadata: self.part.metadata(),
            candidate: &candidate,
            snapshot,
            identity: asking.change.intent.identity(),
            between: between.as_deref(),
            rules,
        };
        let relinked = self.commits.lists.relink(asking.ctx, &link).await?;
        self.classes.extend(relinked.classes.iter().copied());
        Ok(Some(relinked))
    }

    /// How far the request may be rebased; where it may not be, the requirement that fails speaks.
    fn rebase_rules(&self, asking: &Asking<'_>, settings: Settings) -> Result<Rules> {
        let intent = &asking.change.intent;
        let is_replace =
            intent.snapshot.as_ref().and_then(|snapshot| snapshot.operation()).as_deref() == Some("replace");
        let rules = settings.rules(intent.identity(), is_replace);
        let too_old = |arrived: Instant| arrived.elapsed() > self.commits.options.rebase_max_age;
        if rules == Rules::Restamp || asking.is_abandoned || asking.arrived.is_none_or(too_old) {
            let metadata = self.part.metadata();
            asking.change.request.requirements.iter().try_for_each(|requirement| requirement.check(Some(metadata)))?;
        }
        Ok(rules)
    }

    /// What lies between the head that the request was built on and the present one, head first; `None` at a gap.
    async fn between(&mut self, candidate: &Candidate) -> Result<Option<Vec<Landed>>> {
        let mut between = Vec::new();
        let mut next = self.head(&candidate.ref_name);
        while let Some(id) = next.filter(|id| Some(*id) != candidate.asserted) {
            let Some(landed) = self.part.lineage().iter().find(|landed| landed.snapshot_id == id) else { break };
            between.push(landed.clone());
            next = landed.parent_id;
        }
        if next == candidate.asserted {
            return Ok(Some(between));
        }
        let Some(from) = next else { return Ok(None) };
        let rows = self.walk(from, candidate.asserted).await?;
        Ok(rows_after(&rows, candidate.asserted).map(|rows| {
            between.extend(rows.iter().cloned());
            between
        }))
    }

    async fn walk(&mut self, from: i64, until: Option<i64>) -> Result<Arc<Vec<Landed>>> {
        if let Some(rows) = self.walks.get(&(from, until)) {
            return Ok(rows.clone());
        }
        let metadata = self.part.metadata();
        let asserted = until.and_then(|id| metadata.snapshot(id));
        let sequence_number_min = asserted.map_or(i64::MIN, Snapshot::sequence_number);
        let walk = Walk { from, until, sequence_number_min, limit: WALK_MAX };
        let rows = Arc::new(self.commits.lineage.walk(self.warehouse.id, metadata.uuid(), walk).await?);
        self.walks.insert((from, until), rows.clone());
        Ok(rows)
    }

    async fn apply(&mut self, asking: &Asking<'_>, updates: Updates, relinked: Option<Relinked>) -> Result<Verdict> {
        let (change, at_ms) = (asking.change, asking.ctx.now_ms());
        settings::check(set_properties(&change.request.updates))?;
        sanity::check(self.part.metadata(), &change.request.requirements, updates.get())?;
        let base = self.part.metadata().clone();
        let previous = self.part.previous_location().map(str::to_owned);
        let updates = Arc::new(updates);
        let applied = {
            let updates = updates.clone();
            let at = move || {
                metadata::apply(
                    &base,
                    updates.get(),
                    &ApplyAt { now_ms: at_ms, previous_location: previous.as_deref() },
                )
            };
            blocking::run(at).await?
        };
        if !applied.changed {
            return Ok(Verdict::Unchanged);
        }
        self.check_place(&applied.metadata).await?;
        let kind = change.intent.identity().map_or("anonymous", |identity| identity.writer.kind.as_str());
        counter!(TIMESTAMPS_MOVED_TOTAL, "writer" => kind).increment(applied.moved_timestamps as u64);
        let (carried, rows) = self.carried(updates.get(), at_ms).await?;
        let landed = self.landed(updates.get(), &applied.metadata, relinked.as_ref(), at_ms).await?;
        let fit = Fit::of(relinked.as_ref());
        self.take_rows(&landed);
        self.part.add(applied, landed, relinked, at_ms);
        self.part.carry(carried);
        rows.into_iter().for_each(|row| self.part.put_row(row));
        Ok(Verdict::Applied(fit))
    }

    /// A location that is new to the table must be one that it may have.
    async fn check_place(&self, metadata: &TableMetadata) -> Result<()> {
        if metadata.location() == self.part.metadata().location() {
            return Ok(());
        }
        let location = Location::parse(metadata.location())?;
        let own = self.part.pointer();
        if own.is_some_and(|pointer| pointer.location == location.canonical()) {
            return Ok(());
        }
        self.commits.tables.check_location(self.warehouse, &location, own.map(|pointer| pointer.id)).await
    }

    /// The snapshots of the request as the lineage will have them.
    async fn landed(
        &self,
        updates: &[TableUpdate],
        after: &TableMetadata,
        relinked: Option<&Relinked>,
        at_ms: i64,
    ) -> Result<Vec<Landed>> {
        let mut picked: HashMap<i64, Mark> = HashMap::new();
        for snapshot in added(updates) {
            if let Some(source) = source_of(snapshot) {
                let walk = Walk { from: source, until: None, sequence_number_min: i64::MIN, limit: 1 };
                let rows = self.commits.lineage.walk(self.warehouse.id, after.uuid(), walk).await?;
                picked.extend(rows.into_iter().next().and_then(|row| row.writer).map(|mark| (snapshot.id(), mark)));
            }
        }
        let mut landed = landed(updates, after, at_ms, |id, _| picked.get(&id).cloned());
        for one in &mut landed {
            let row = match (&one.ref_name, &one.writer) {
                (Some(ref_name), Some(mark)) => self.row(ref_name, mark),
                _ => continue,
            };
            one.is_first = row.is_none_or(|row| row.first_snapshot_id.is_none());
        }
        if let (Some(relinked), Some(one)) = (relinked, landed.last_mut()) {
            one.class = relinked.class;
            one.rebased = relinked.class.is_some();
        }
        Ok(landed)
    }

    /// Rows of the ledger go over into the chain before they are moved, so that what they hold is kept.
    fn take_rows(&mut self, landed: &[Landed]) {
        for one in landed {
            if let (Some(ref_name), Some(mark)) = (&one.ref_name, &one.writer)
                && let Some(row) = self.row(ref_name, mark).cloned()
            {
                self.part.put_row(row);
            }
        }
    }

    /// What comes to a branch by fast-forward: its snapshots, and the writers of those.
    async fn carried(&self, updates: &[TableUpdate], at_ms: i64) -> Result<(Vec<(String, i64)>, Vec<WriterRow>)> {
        let (metadata, mut carried, mut rows) = (self.part.metadata(), Vec::new(), Vec::<WriterRow>::new());
        for update in updates {
            let TableUpdate::SetSnapshotRef { ref_name, target } = update else { continue };
            let Some(head) = self.head(ref_name).filter(|head| *head != target.snapshot_id) else { continue };
            if !target.is_branch() || added(updates).any(|snapshot| snapshot.id() == target.snapshot_id) {
                continue;
            }
            let sequence_number_min = metadata.snapshot(head).map_or(i64::MIN, Snapshot::sequence_number);
            let walk = Walk { from: target.snapshot_id, until: Some(head), sequence_number_min, limit: WALK_MAX };
            let walked = self.commits.lineage.walk(self.warehouse.id, metadata.uuid(), walk).await?;
            for landed in rows_after(&walked, Some(head)).unwrap_or_default() {
                let Some(mark) = &landed.writer else { continue };
                carried.push((ref_name.clone(), landed.snapshot_id));
                let is_its = |row: &WriterRow| row.ref_name == *ref_name && row.writer == mark.identity.writer;
                // Newest first: what comes after is older.
                match rows.iter_mut().find(|row| is_its(row)) {
                    Some(row) => row.first_snapshot_id = Some(landed.snapshot_id),
                    None => rows.push(carried_row(ref_name, landed, mark, at_ms)),
                }
            }
        }
        Ok((carried, rows))
    }
}

/// What is applied.
enum Updates {
    AsSent(Arc<CommitRequest>),
    Relinked(Vec<TableUpdate>),
}

impl Updates {
    fn get(&self) -> &[TableUpdate] {
        match self {
            Updates::AsSent(request) => &request.updates,
            Updates::Relinked(updates) => updates,
        }
    }
}

fn relinked_updates(updates: &[TableUpdate], relinked: &Relinked) -> Vec<TableUpdate> {
    let replaced = |update: &TableUpdate| match update {
        TableUpdate::AddSnapshot { snapshot } if snapshot.id() == relinked.snapshot.id() => {
            TableUpdate::AddSnapshot { snapshot: Arc::new(relinked.snapshot.clone()) }
        }
        other => other.clone(),
    };
    updates.iter().map(replaced).collect()
}

fn set_properties(updates: &[TableUpdate]) -> impl Iterator<Item = (&String, &String)> {
    updates.iter().flat_map(|update| match update {
        TableUpdate::SetProperties { updates } => updates.iter().collect::<Vec<_>>(),
        _ => Vec::new(),
    })
}

/// The snapshot that a cherry-pick took over.
fn source_of(snapshot: &Snapshot) -> Option<i64> {
    snapshot.summary().get("source-snapshot-id")?.parse().ok()
}

fn carried_row(ref_name: &str, landed: &Landed, mark: &Mark, at_ms: i64) -> WriterRow {
    WriterRow {
        ref_name: ref_name.to_owned(),
        writer: mark.identity.writer.clone(),
        position: mark.identity.position.clone(),
        snapshot_id: Some(landed.snapshot_id),
        sequence_number: landed.sequence_number,
        first_snapshot_id: Some(landed.snapshot_id),
        epoch: mark.identity.epoch,
        retired: false,
        at_ms,
    }
}

/// The rows of a walk before its end; `None` where it did not get there.
fn rows_after(rows: &[Landed], until: Option<i64>) -> Option<&[Landed]> {
    match (rows.split_last(), until) {
        (Some((last, rest)), Some(until)) if last.snapshot_id == until => Some(rest),
        (Some((last, _)), None) if last.parent_id.is_none() => Some(rows),
        _ => None,
    }
}

/// What a walk back over a history found out about a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ancestry {
    Found,
    /// The walk met the root, or a lower sequence number, first.
    Missing,
    /// The history has a gap, so that nobody can tell.
    Gap,
}

enum Walked {
    Ended(Ancestry),
    /// The document does not have this ancestor any more.
    Expired(i64),
}

fn walk_document(metadata: &TableMetadata, from: Option<i64>, wanted: i64, sequence_number: i64) -> Walked {
    let mut next = from;
    // No history is longer than the list of snapshots.
    for _ in 0..=metadata.snapshots().len() {
        let Some(id) = next else { return Walked::Ended(Ancestry::Missing) };
        if id == wanted {
            return Walked::Ended(Ancestry::Found);
        }
        let Some(snapshot) = metadata.snapshot(id) else { return Walked::Expired(id) };
        if snapshot.sequence_number() < sequence_number {
            return Walked::Ended(Ancestry::Missing);
        }
        next = snapshot.parent_id();
    }
    Walked::Ended(Ancestry::Gap)
}

fn ancestry_of(rows: &[Landed], wanted: i64) -> Ancestry {
    match rows.last() {
        Some(last) if last.snapshot_id == wanted => Ancestry::Found,
        Some(last) if last.parent_id.is_none() => Ancestry::Missing,
        _ => Ancestry::Gap,
    }
}
