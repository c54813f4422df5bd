//! Rebase: a snapshot that was built on one head of a branch, put on another as its writer's own retry would put it.

use std::sync::Arc;

use bytes::Bytes;

use crate::commits::identity::Identity;
use crate::commits::lineage::{Class, Landed};
use crate::context::RequestContext;
use crate::error::Result;
use crate::metadata::{Snapshot, TableMetadata};
use crate::warehouses::Warehouse;

mod class;
mod lists;
pub(crate) mod manifest;
pub(crate) mod manifest_list;
pub(crate) mod merge;
mod need;
mod rules;
mod spot;
pub(crate) mod unmerge;

pub use lists::{Lists, Unreadable};
pub use need::need;

use manifest_list::List;
use merge::{Delta, Numbers};
use rules::Sequence;
use spot::Spot;
use unmerge::Parts;

/// What a request needs to fit its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// It is judged as it came.
    Nothing,
    /// Its ref is where it says, but another branch has taken its sequence number or its row ids.
    Restamp(Candidate),
    /// Its ref has moved on, and all else that it requires holds.
    Rebase(Candidate),
}

/// A request of the only shape that is rebased: one snapshot, put on a branch that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub snapshot_id: i64,
    pub ref_name: String,
    /// The head that it was built on.
    pub asserted: Option<i64>,
}

/// How far rebase goes for a table and a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rules {
    Restamp,
    Append,
    Streaming,
}

/// A snapshot and the place that it is to be put in.
pub struct Link<'a> {
    pub warehouse: &'a Warehouse,
    /// The document so far, with the earlier members of the group in it.
    pub metadata: &'a TableMetadata,
    pub candidate: &'a Candidate,
    pub snapshot: &'a Snapshot,
    pub identity: Option<&'a Identity>,
    /// What lies between the asserted snapshot and head, head first, earlier members of the group included; empty for a
    /// restamp. `None` where the lineage has a gap.
    pub between: Option<&'a [Landed]>,
    pub rules: Rules,
}

/// A snapshot in its new place.
#[derive(Debug)]
pub struct Relinked {
    pub snapshot: Snapshot,
    /// `None` for a restamp, which does not ask.
    pub class: Option<Class>,
    /// Files to be written before a pointer refers to them.
    pub files: Vec<NewFile>,
    /// Classes of snapshots in between that had none, to be remembered.
    pub classes: Vec<(i64, Class)>,
    /// Whether manifests that its writer had merged were taken apart again.
    pub unmerged: bool,
}

#[derive(Debug)]
pub struct NewFile {
    pub location: String,
    pub bytes: Bytes,
}

/// What a snapshot is, as far as its new place asks.
#[derive(Default)]
struct Judged {
    class: Option<Class>,
    /// Classes of snapshots in between that were worked out.
    classes: Vec<(i64, Class)>,
}

/// The totals in a snapshot's summary that are not those of its parent changed by what it says it added and removed.
/// Readers plan by them, and nobody else looks.
pub fn wrong_totals(parent: &Snapshot, snapshot: &Snapshot) -> Vec<&'static str> {
    let summary = snapshot.summary();
    let expected = merge::totals(&parent.summary(), &summary);
    let told = |key: &str| summary.get(key)?.parse::<i64>().ok();
    let is_wrong =
        |(key, total): &(&'static str, Option<i64>)| told(key).zip(*total).is_some_and(|(told, total)| told != total);
    expected.into_iter().filter(is_wrong).map(|(key, _)| key).collect()
}

impl Lists {
    /// Puts a snapshot in its place. Nothing is written yet, and yet another snapshot can be put on top of it.
    ///
    /// Refusals are 422 where the commit landed before or names a partition spec that is not there, else 409.
    pub async fn relink(&self, ctx: &RequestContext, link: &Link<'_>) -> Result<Relinked> {
        let spot = link.spot()?;
        link.check_format()?;
        let (base, mine, head) = self.read_lists(link, &spot).await?;
        let delta = Delta::of(&base.manifests, &mine.manifests);
        link.check_delta(&delta, &head.manifests)?;
        link.check_list(&mine)?;
        let judged = match spot.is_moved {
            true => self.judge(link, &delta, spot.numbers).await?,
            false => Judged::default(),
        };
        let parts = match link.obstacle(&spot, &delta, &head.manifests) {
            None => Parts::whole(delta),
            Some(_) if judged.may_be_unmerged() => self.take_apart(ctx, link, delta).await?,
            Some(obstacle) => return Err(link.conflict(&obstacle)),
        };
        let (list, seat, bytes) = link.seat(ctx, &spot, (parts.delta, head)).await?;
        let file = NewFile { location: seat.manifest_list.clone(), bytes };
        self.remember_list(link.warehouse, &file.location, list).await;
        Ok(Relinked {
            snapshot: link.snapshot.seated(&seat),
            class: judged.class,
            files: parts.files.into_iter().chain([file]).collect(),
            classes: judged.classes,
            unmerged: parts.is_unmerged,
        })
    }

    /// The lists of the base, of the snapshot itself and of head.
    async fn read_lists(&self, link: &Link<'_>, spot: &Spot<'_>) -> Result<(Arc<List>, Arc<List>, Arc<List>)> {
        let read = futures::try_join!(
            self.list_or_empty(link.warehouse, spot.base),
            self.list(link.warehouse, link.snapshot),
            self.list_or_empty(link.warehouse, spot.head),
        );
        read.map_err(|unreadable| link.unreadable(&unreadable))
    }

    async fn list_or_empty(&self, warehouse: &Warehouse, snapshot: Option<&Snapshot>) -> Result<Arc<List>, Unreadable> {
        match snapshot {
            Some(snapshot) => self.list(warehouse, snapshot).await,
            None => Ok(Arc::new(List::default())),
        }
    }

    /// Whether the snapshot may be put over what lies between, by the fences and by the table of pairs.
    async fn judge(&self, link: &Link<'_>, delta: &Delta, numbers: Numbers) -> Result<Judged> {
        let between = link.between()?;
        let refused = |why: String| link.conflict(&why);
        rules::check_fences(link.identity, &link.candidate.ref_name, between).map_err(refused)?;
        let class = self.class_of(link.warehouse, link.snapshot, delta).await;
        let class = class.map_err(|unreadable| link.unreadable(&unreadable))?;
        let is_first = link.candidate.asserted.is_none();
        let mut classes = Vec::new();
        // An append goes over anything.
        if class != Class::Append || is_first {
            classes = self.classes(link, between).await;
        }
        let told: Vec<(i64, Class)> = classes.iter().map(|(id, class, _)| (*id, *class)).collect();
        if is_first {
            rules::all_append(&told).map_err(refused)?;
        }
        let wanted = rules::may_follow(class, &told, link.rules).map_err(refused)?;
        self.check_sequence(link, delta, (wanted, numbers)).await?;
        let new = classes.into_iter().filter(|(_, _, is_new)| *is_new).map(|(id, class, _)| (id, class));
        Ok(Judged { class: Some(class), classes: new.collect() })
    }

    /// What the snapshots in between did, and whether that had to be worked out. Where it cannot be, it is anything.
    async fn classes(&self, link: &Link<'_>, between: &[Landed]) -> Vec<(i64, Class, bool)> {
        let mut classes = Vec::with_capacity(between.len());
        for landed in between {
            let id = landed.snapshot_id;
            classes.push(match landed.class {
                Some(class) => (id, class, false),
                None => match self.class_of_landed(link.warehouse, link.metadata, id).await {
                    Ok(class) => (id, class, true),
                    Err(_) => (id, Class::Other, false),
                },
            });
        }
        classes
    }

    /// Holds the snapshot's new files against what is asked of their sequence numbers. Manifests are read only where
    /// their list does not tell, or where nobody knows how their writer puts them together.
    async fn check_sequence(
        &self,
        link: &Link<'_>,
        delta: &Delta,
        (wanted, numbers): (Sequence, Numbers),
    ) -> Result<()> {
        let refused = |why: String| link.conflict(&why);
        if wanted == Sequence::Inherited {
            rules::check_inherits(delta, numbers).map_err(refused)?;
        }
        let is_known = link.identity.is_some_and(|identity| rules::is_stock(identity.writer.kind));
        if wanted == Sequence::Any || (wanted == Sequence::Inherited && is_known) {
            return Ok(());
        }
        let read = self.entries(link.warehouse, delta.new.iter()).await;
        let manifests = read.map_err(|unreadable| link.unreadable(&unreadable))?;
        for (manifest, entries) in &manifests {
            rules::check_entries(&manifest.path, entries, wanted).map_err(refused)?;
        }
        Ok(())
    }
}

impl Judged {
    /// What only adds can be told from what it carried over.
    fn may_be_unmerged(&self) -> bool {
        matches!(self.class, Some(Class::Append | Class::EqualityDelta | Class::EqualityDeltaWithPositions))
    }
}

#[cfg(test)]
mod tests;
