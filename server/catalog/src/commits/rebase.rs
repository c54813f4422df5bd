//! Rebase: a snapshot that was built on one head of a branch, put on another as its writer's own retry would put it.

use std::sync::Arc;

use bytes::Bytes;

use crate::commits::identity::Identity;
use crate::commits::lineage::{Class, Landed};
use crate::context::RequestContext;
use crate::error::{Error, Result};
use crate::metadata::{Seat, Snapshot, TableMetadata, metadata_folder};
use crate::warehouses::Warehouse;

mod class;
mod lists;
mod manifest;
mod manifest_list;
mod merge;
mod need;
mod rules;
mod unmerge;

pub use lists::{Lists, Unreadable};
pub use need::need;

use manifest_list::{List, ManifestFile};
use merge::{Delta, Merged, Numbers};
use rules::Sequence;

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

/// The place that a snapshot is put in.
struct Spot<'a> {
    /// The snapshot that it was built on.
    base: Option<&'a Snapshot>,
    /// The snapshot that becomes its parent; `None` on an empty branch.
    head: Option<&'a Snapshot>,
    /// Whether head is another one than it was built on.
    is_moved: bool,
    numbers: Numbers,
}

/// What a snapshot is, as far as its new place asks.
#[derive(Default)]
struct Judged {
    class: Option<Class>,
    /// Classes of snapshots in between that were worked out.
    classes: Vec<(i64, Class)>,
}

/// Manifests that were taken apart.
#[derive(Default)]
struct Parts {
    files: Vec<NewFile>,
    is_unmerged: bool,
}

impl Lists {
    /// Puts a snapshot in its place.
    ///
    /// Refusals are 422 where the commit landed before or names a partition spec that is not there, else 409.
    pub async fn relink(&self, ctx: &RequestContext, link: &Link<'_>) -> Result<Relinked> {
        let spot = link.spot()?;
        link.check_format()?;
        let (base, mine, head) = self.read_lists(link, &spot).await?;
        let mut delta = Delta::of(&base, &mine.manifests);
        rules::check_delta(link, &delta, &head)?;
        link.check_list(&mine)?;
        let judged = match spot.is_moved {
            true => self.judge(link, &delta, spot.numbers).await?,
            false => Judged::default(),
        };
        let parts = match link.obstacle(&spot, &delta, &head) {
            Some(obstacle) => self.take_apart(ctx, link, &mut delta, (judged.class, &obstacle)).await?,
            None => Parts::default(),
        };
        let merged = delta.onto(&head, spot.numbers);
        let (snapshot, list) = link.seat(ctx, &spot, &merged)?;
        self.remember_list(
            link.warehouse,
            &list.location,
            List { format_version: link.metadata.format_version(), manifests: merged.manifests },
        )
        .await;
        let mut files = parts.files;
        files.push(list);
        let Judged { class, classes } = judged;
        Ok(Relinked { snapshot, class, files, classes, unmerged: parts.is_unmerged })
    }

    /// The manifests of the base, the list of the snapshot itself, and the manifests of head.
    async fn read_lists(
        &self,
        link: &Link<'_>,
        spot: &Spot<'_>,
    ) -> Result<(Vec<ManifestFile>, Arc<List>, Vec<ManifestFile>)> {
        let of = async |snapshot: Option<&Snapshot>| match snapshot {
            Some(snapshot) => Ok(self.list(link.warehouse, snapshot).await?.manifests.clone()),
            None => Ok(Vec::new()),
        };
        let read = futures::try_join!(of(spot.base), self.list(link.warehouse, link.snapshot), of(spot.head));
        read.map_err(|unreadable: Unreadable| link.conflict(&unreadable.to_string()))
    }

    /// Whether the snapshot may be put over what lies between, by the fences and by the table of pairs.
    async fn judge(&self, link: &Link<'_>, delta: &Delta, numbers: Numbers) -> Result<Judged> {
        let between = link.between()?;
        let refused = |why: String| link.conflict(&why);
        rules::check_fences(link.identity, &link.candidate.ref_name, between).map_err(refused)?;
        let class = self.class_of(link.warehouse, link.snapshot, delta).await;
        let class = class.map_err(|unreadable| link.conflict(&unreadable.to_string()))?;
        let asks = class != Class::Append || link.candidate.asserted.is_none();
        let (told, classes) = if asks { self.classes(link, between).await } else { Default::default() };
        if link.candidate.asserted.is_none() {
            rules::all_append(&told).map_err(refused)?;
        }
        let wanted = rules::may_follow(class, &told, link.rules).map_err(refused)?;
        self.check_sequence(link, delta, (wanted, numbers)).await?;
        Ok(Judged { class: Some(class), classes })
    }

    /// What the snapshots in between did, and which of it had to be worked out.
    async fn classes(&self, link: &Link<'_>, between: &[Landed]) -> (Vec<(i64, Class)>, Vec<(i64, Class)>) {
        let (mut all, mut worked_out) = (Vec::with_capacity(between.len()), Vec::new());
        for landed in between {
            let id = landed.snapshot_id;
            let class = match landed.class {
                Some(class) => class,
                None => match self.class_of_landed(link.warehouse, link.metadata, id).await {
                    Ok(class) => {
                        worked_out.push((id, class));
                        class
                    }
                    Err(_) => Class::Other,
                },
            };
            all.push((id, class));
        }
        (all, worked_out)
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
        let manifests = read.map_err(|unreadable| link.conflict(&unreadable.to_string()))?;
        let mut checks =
            manifests.iter().map(|(manifest, entries)| rules::check_entries(&manifest.path, entries, wanted));
        checks.try_for_each(|check| check.map_err(refused))
    }

    /// Takes apart what the writer has merged, so that nothing has to be replaced any more.
    async fn take_apart(
        &self,
        ctx: &RequestContext,
        link: &Link<'_>,
        delta: &mut Delta,
        (class, obstacle): (Option<Class>, &str),
    ) -> Result<Parts> {
        if !matches!(class, Some(Class::Append | Class::EqualityDelta | Class::EqualityDeltaWithPositions)) {
            return Err(link.conflict(obstacle));
        }
        let folder = metadata_folder(link.metadata);
        let (file_id, mut files, mut own) = (ctx.new_id(), Vec::new(), Vec::with_capacity(delta.new.len()));
        for manifest in std::mem::take(&mut delta.new) {
            if manifest.existing_files == 0 {
                own.push(manifest);
                continue;
            }
            let location = format!("{folder}/{file_id}-m{}.avro", files.len());
            if let Some((described, file)) = self.unmerge(link, &manifest, location).await? {
                own.push(described);
                files.push(file);
            }
        }
        *delta = Delta { new: own, replaced: Vec::new() };
        Ok(Parts { files, is_unmerged: true })
    }

    /// A manifest with only what the snapshot itself put into it; `None` where that is nothing.
    async fn unmerge(
        &self,
        link: &Link<'_>,
        merged: &ManifestFile,
        location: String,
    ) -> Result<Option<(ManifestFile, NewFile)>> {
        let unreadable = |error: Unreadable| link.conflict(&error.to_string());
        let id = link.snapshot.id();
        let own = {
            let _turn = self.turn().await;
            let bytes = self.whole(link.warehouse, &merged.path).await.map_err(unreadable)?;
            let work = move |bytes: &[u8]| unmerge::own_entries(bytes, id);
            self.decode(&merged.path, bytes, work).await.map_err(unreadable)?
        };
        let own = own.map_err(|fault| link.conflict(&format!("manifest {}: {fault}", merged.path)))?;
        rules::check_entries(&merged.path, &own.entries, Sequence::Inherited).map_err(|why| link.conflict(&why))?;
        if own.entries.is_empty() {
            return Ok(None);
        }
        let described = own.describe(merged, location.clone(), link.snapshot.sequence_number());
        self.remember_manifest(link.warehouse, &location, own.entries).await;
        Ok(Some((described, NewFile { location, bytes: own.bytes.into() })))
    }
}

impl<'a> Link<'a> {
    fn conflict(&self, why: &str) -> Error {
        Error::conflict(format!(
            "snapshot {} cannot be put on the head of branch {}: {why}; reload the table, build on its head and commit again",
            self.snapshot.id(),
            self.candidate.ref_name
        ))
    }

    /// Where the snapshot goes, as the document is now.
    fn spot(&self) -> Result<Spot<'a>> {
        let find = |id: i64| {
            self.metadata
                .snapshot(id)
                .ok_or_else(|| self.conflict(&format!("snapshot {id} is not in the table any more")))
        };
        let asserted = self.candidate.asserted;
        let target = self.metadata.refs().get(&self.candidate.ref_name).map(|target| target.snapshot_id);
        let is_moved = target != asserted;
        // A first write to a branch stays on the parent that it names.
        let head = target.or_else(|| self.snapshot.parent_id()).map(find).transpose()?;
        let base = if is_moved { asserted.map(find).transpose()? } else { head };
        let is_numbered = self.metadata.format_version() >= 2;
        let numbers = Numbers {
            was: self.snapshot.sequence_number(),
            is: if is_numbered { self.metadata.last_sequence_number() + 1 } else { 0 },
            next_row_id: self.metadata.next_row_id(),
        };
        Ok(Spot { base, head, is_moved, numbers })
    }

    fn check_format(&self) -> Result<()> {
        let has_key = self.metadata.property("encryption.key-id").is_some();
        if has_key || self.metadata.encryption_keys().len() > 0 || self.snapshot.is_encrypted() {
            return Err(self.conflict("the table is encrypted"));
        }
        if self.metadata.next_row_id().is_some() && self.snapshot.first_row_id().is_none() {
            return Err(self.conflict("it has no first-row-id, which format version 3 asks for"));
        }
        Ok(())
    }

    fn check_list(&self, mine: &List) -> Result<()> {
        let (own, now) = (mine.format_version, self.metadata.format_version());
        match own == now {
            true => Ok(()),
            false => Err(self.conflict(&format!("its list has format version {own}, and the table {now}"))),
        }
    }

    /// What lies between head and the snapshot that it was built on.
    fn between(&self) -> Result<&'a [Landed]> {
        let head = self.metadata.refs().get(&self.candidate.ref_name).map(|target| target.snapshot_id);
        let is_chain =
            |between: &&[Landed]| head.is_some_and(|head| rules::is_chain(between, head, self.candidate.asserted));
        self.between
            .filter(is_chain)
            .ok_or_else(|| self.conflict("what lies between its parent and the head is not known without a gap"))
    }

    /// Why what the writer has replaced cannot be replaced in head.
    fn obstacle(&self, spot: &Spot<'_>, delta: &Delta, head: &[ManifestFile]) -> Option<String> {
        if let Some(path) = delta.missing(head) {
            return Some(format!("it replaces manifest {path}, which is no longer in the table"));
        }
        let numbers_rows = spot.numbers.next_row_id.is_some() && !delta.replaced.is_empty();
        let is_old = |base: &Snapshot| base.first_row_id().is_none();
        // Rows that it merged have taken their ids from a list in between; they must not get others.
        (numbers_rows && spot.base.is_some_and(is_old))
            .then(|| "it merged manifests from before format version 3, whose rows have ids by now".to_owned())
    }

    /// The snapshot in its place, and its list.
    fn seat(&self, ctx: &RequestContext, spot: &Spot<'_>, merged: &Merged) -> Result<(Snapshot, NewFile)> {
        let (id, format_version) = (self.snapshot.id(), self.metadata.format_version());
        let location = format!("{}/snap-{id}-1-{}.avro", metadata_folder(self.metadata), ctx.new_id());
        let first_row_id = spot.numbers.next_row_id;
        let parent_id = spot.head.map(Snapshot::id);
        let sequence_number = spot.numbers.is;
        let header = manifest_list::Head { format_version, snapshot_id: id, parent_id, sequence_number, first_row_id };
        let bytes = manifest_list::write(&header, &merged.manifests);
        let bytes = bytes.map_err(|error| self.conflict("its list cannot be written").with_source(error))?;
        let totals = match spot.head.filter(|_| spot.is_moved) {
            Some(head) => merge::totals(&head.summary(), &self.snapshot.summary()).to_vec(),
            None => Vec::new(),
        };
        let snapshot = self.snapshot.seated(&Seat {
            parent_id,
            sequence_number: (format_version >= 2).then_some(sequence_number),
            schema_id: self.metadata.current_schema_id(),
            manifest_list: location.clone(),
            rows: first_row_id.zip(merged.next_row_id).map(|(first, next)| (first, next - first)),
            totals,
        });
        Ok((snapshot, NewFile { location, bytes: bytes.into() }))
    }
}

#[cfg(test)]
mod tests;
