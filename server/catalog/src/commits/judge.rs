//! Judges requests one by one against a table and the chain of commits that is to go onto it.

use std::collections::HashMap;
use std::sync::Arc;

use metrics::counter;
use tokio::time::Instant;

use crate::blocking;
use crate::commits::intent::{Intent, added};
use crate::commits::known::in_doubt;
use crate::commits::lineage::{Class, Landed, LedgerRead};
use crate::commits::part::Part;
use crate::commits::rebase::{Link, Need, Relinked, Rules, need};
use crate::commits::request::CommitRequest;
use crate::commits::settings::{self, Settings};
use crate::commits::watch::check_totals;
use crate::commits::{Change, Commits, sanity};
use crate::context::RequestContext;
use crate::error::Result;
use crate::location::Location;
use crate::metadata::{self, ApplyAt, TableMetadata, TableUpdate};
use crate::warehouses::Warehouse;

/// Snapshots whose timestamp was moved, because their writer's clock was.
pub const TIMESTAMPS_MOVED_TOTAL: &str = "frazil_snapshot_timestamps_moved_total";

/// What a request came to, if it was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its snapshots landed before.
    Known { of: i64 },
    /// Its writer committed the same before, with another snapshot.
    Duplicate { of: i64 },
    /// It clashes with a member whose swap is still to come: it is judged again afterwards.
    Waits,
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
    Rebased {
        class: Class,
        /// Manifests that its writer had merged were taken apart again.
        unmerged: bool,
    },
}

impl Fit {
    fn of(relinked: Option<&Relinked>) -> Self {
        match relinked {
            None => Fit::AsSent,
            Some(Relinked { class: None, .. }) => Fit::Restamped,
            Some(Relinked { class: Some(class), unmerged, .. }) => Fit::Rebased { class: *class, unmerged: *unmerged },
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
    /// The table before the first of them.
    pub before: TableMetadata,
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
        let settings = self.settings();
        if settings.dedup
            && let Some(verdict) = self.duplicate(asking, settings).await?
        {
            return Ok(verdict);
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

    /// What the table asks for, as the chain leaves it.
    pub(super) fn settings(&self) -> Settings {
        Settings::of(self.part.metadata(), self.warehouse, self.commits.options.defaults)
    }

    pub(super) fn head(&self, ref_name: &str) -> Option<i64> {
        self.part.metadata().head(ref_name)
    }

    /// Whether a duplicate of a snapshot is one only if the swap goes through: that snapshot is in the chain itself, the
    /// chain has put it back on the branch, or a row of its writer is to be written.
    pub(super) fn hangs_on_swap(&self, intent: &Intent, of: i64) -> bool {
        let (Some(identity), Some(ref_name)) = (intent.identity(), &intent.ref_name) else {
            return self.part.is_changed();
        };
        let has_row = self.part.row(|row| row.is_of(ref_name, &identity.writer)).is_some();
        self.part.has_landed(of) || has_row || !self.has_only_grown(ref_name)
    }

    /// Whether the branch is what it was, with nothing but snapshots of the chain on top.
    fn has_only_grown(&self, ref_name: &str) -> bool {
        let parent = |id: &i64| self.part.metadata().snapshot(*id).and_then(|snapshot| snapshot.parent_id());
        let below = std::iter::successors(self.head(ref_name), parent)
            .take(self.part.lineage().len() + 1)
            .find(|id| !self.part.has_landed(*id));
        below == self.before.head(ref_name)
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
        let rules = settings.rules(intent.identity(), intent.operation().as_deref() == Some("replace"));
        let too_old = |arrived: Instant| arrived.elapsed() > self.commits.options.rebase_max_age;
        if rules == Rules::Restamp || asking.is_abandoned || asking.arrived.is_none_or(too_old) {
            let metadata = self.part.metadata();
            asking.change.request.requirements.iter().try_for_each(|requirement| requirement.check(Some(metadata)))?;
        }
        Ok(rules)
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
        if let (None, Some(snapshot)) = (&relinked, &change.intent.snapshot) {
            check_totals(self.part.metadata(), &self.part.ident, snapshot);
        }
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
