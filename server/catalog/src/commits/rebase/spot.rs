//! The place that a snapshot is put in: what of it can be judged from the document and the lists.

use std::sync::Arc;

use bytes::Bytes;

use super::manifest_list::{self, List, ManifestFile};
use super::merge::{self, Delta, Numbers};
use super::{Link, Unreadable, rules};
use crate::blocking;
use crate::commits::lineage::Landed;
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::metadata::{Seat, Snapshot, metadata_folder};

/// The place that a snapshot is put in.
pub struct Spot<'a> {
    /// The snapshot that it was built on.
    pub base: Option<&'a Snapshot>,
    /// The snapshot that becomes its parent; `None` on an empty branch.
    pub head: Option<&'a Snapshot>,
    /// Whether head is another one than it was built on.
    pub is_moved: bool,
    pub numbers: Numbers,
}

impl<'a> Link<'a> {
    pub(super) fn conflict(&self, why: &str) -> Error {
        Error::conflict(format!(
            "snapshot {} cannot be put on the head of branch {}: {why}; reload the table and build on its head",
            self.snapshot.id(),
            self.candidate.ref_name
        ))
    }

    pub(super) fn unreadable(&self, unreadable: &Unreadable) -> Error {
        self.conflict(&unreadable.to_string())
    }

    /// Where the snapshot goes, as the document is now.
    pub(super) fn spot(&self) -> Result<Spot<'a>> {
        let gone = |id: i64| self.conflict(&format!("snapshot {id} is not in the table any more"));
        let find = |id: i64| self.metadata.snapshot(id).ok_or_else(|| gone(id));
        let (asserted, target) = (self.candidate.asserted, self.target());
        let is_moved = target != asserted;
        // A first write to a branch stays on the parent that it names.
        let head = target.or_else(|| self.snapshot.parent_id()).map(find).transpose()?;
        let base = if is_moved { asserted.map(find).transpose()? } else { head };
        Ok(Spot { base, head, is_moved, numbers: self.numbers() })
    }

    fn target(&self) -> Option<i64> {
        self.metadata.head(&self.candidate.ref_name)
    }

    fn numbers(&self) -> Numbers {
        let format_version = self.metadata.format_version();
        Numbers {
            was: self.snapshot.sequence_number(),
            is: if format_version >= 2 { self.metadata.last_sequence_number().saturating_add(1) } else { 0 },
            next_row_id: (format_version >= 3).then(|| self.metadata.next_row_id().unwrap_or(0)),
        }
    }

    pub(super) fn check_format(&self) -> Result<()> {
        let has_key = self.metadata.property("encryption.key-id").is_some();
        if has_key || self.metadata.encryption_keys().len() > 0 || self.snapshot.is_encrypted() {
            return Err(self.conflict("the table is encrypted"));
        }
        if self.metadata.format_version() >= 3 && self.snapshot.first_row_id().is_none() {
            return Err(self.conflict("it has no first-row-id, which format version 3 asks for"));
        }
        Ok(())
    }

    /// The table may have been upgraded since.
    pub(super) fn check_list(&self, mine: &List) -> Result<()> {
        let (own, now) = (mine.format_version, self.metadata.format_version());
        match own == now {
            true => Ok(()),
            false => Err(self.conflict(&format!("its manifest list is of format version {own}, the table of {now}"))),
        }
    }

    /// Refuses what no place in the table can take: 422 where a client must keep its files, 409 elsewhere.
    pub(super) fn check_delta(&self, delta: &Delta, head: &[ManifestFile]) -> Result<()> {
        let id = self.snapshot.id();
        if let Some(path) = delta.landed(head) {
            return Err(Error::unprocessable(format!(
                "snapshot {id} is not added: manifest {path} is in branch {} already, so its files landed before; \
                 keep them and reload the table",
                self.candidate.ref_name
            )));
        }
        for ManifestFile { path, spec_id, key_metadata, added_snapshot_id, .. } in &delta.new {
            if self.metadata.spec(*spec_id).is_none() {
                return Err(Error::unprocessable(format!(
                    "snapshot {id} is not added: manifest {path} is of partition spec {spec_id}, which the table does \
                     not have; keep the files, reload the table and write them with a spec that it has"
                )));
            }
            if key_metadata.is_some() {
                return Err(self.conflict(&format!("manifest {path} is encrypted")));
            }
            if *added_snapshot_id != id {
                return Err(
                    self.conflict(&format!("its new manifest {path} was added by snapshot {added_snapshot_id}"))
                );
            }
        }
        Ok(())
    }

    /// What lies between head and the snapshot that it was built on.
    pub(super) fn between(&self) -> Result<&'a [Landed]> {
        let (target, asserted) = (self.target(), self.candidate.asserted);
        let leads_there = |between: &&[Landed]| target.is_some_and(|head| rules::is_chain(between, head, asserted));
        let gap = "what lies between the snapshot that it was built on and the head is not known without a gap";
        self.between.filter(leads_there).ok_or_else(|| self.conflict(gap))
    }

    /// Why what the writer has replaced cannot be replaced in head.
    pub(super) fn obstacle(&self, spot: &Spot<'_>, delta: &Delta, head: &[ManifestFile]) -> Option<String> {
        if let Some(path) = delta.missing(head) {
            return Some(format!("it replaces manifest {path}, which is no longer there"));
        }
        // Rows that it carried over may have taken ids from a list in between; they must not get others.
        let takes_ids = spot.numbers.next_row_id.is_some() && !delta.replaced.is_empty();
        let is_old = spot.base.is_some_and(|base| base.first_row_id().is_none());
        (takes_ids && is_old).then(|| "it replaces manifests from before format version 3".to_owned())
    }

    /// The list of the new place, what the snapshot says there, and the list's bytes.
    pub(super) async fn seat(
        &self,
        ctx: &RequestContext,
        spot: &Spot<'_>,
        (delta, head): (Delta, Arc<List>),
    ) -> Result<(List, Seat, Bytes)> {
        let (id, format_version, numbers) = (self.snapshot.id(), self.metadata.format_version(), spot.numbers);
        let parent_id = spot.head.map(Snapshot::id);
        let header = manifest_list::Head {
            format_version,
            snapshot_id: id,
            parent_id,
            sequence_number: numbers.is,
            first_row_id: numbers.next_row_id,
        };
        let written = blocking::run(move || {
            let merged = delta.onto(&head.manifests, numbers);
            let written = manifest_list::write(&header, &merged.manifests, &head);
            let written =
                written.map_err(|error| Error::new(Kind::Internal, "a list is no Avro").with_source(error))?;
            Ok((merged, written))
        });
        let (merged, written) =
            written.await.map_err(|e| self.conflict("its list cannot be written").with_source(e))?;
        let totals =
            spot.head.filter(|_| spot.is_moved).map(|head| merge::totals(&head.summary(), &self.snapshot.summary()));
        let seat = Seat {
            parent_id,
            sequence_number: (format_version >= 2).then_some(numbers.is),
            schema_id: self.metadata.current_schema_id(),
            manifest_list: format!("{}/snap-{id}-1-{}.avro", metadata_folder(self.metadata), ctx.new_id()),
            rows: numbers.next_row_id.zip(merged.next_row_id).map(|(first, next)| (first, next - first)),
            totals: totals.into_iter().flatten().collect(),
        };
        let bytes = written.bytes.clone();
        Ok((List { format_version, manifests: merged.manifests, written: Some(written) }, seat, bytes))
    }
}
