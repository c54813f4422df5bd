//! Takes a manifest apart that a writer has merged, for the manifests that went into it may be gone from head.

use super::manifest::{Entry, Layout, Status};
use super::manifest_list::ManifestFile;
use super::merge::Delta;
use super::rules::{self, Sequence};
use super::{Link, Lists, NewFile};
use crate::avro::{self, File};
use crate::context::RequestContext;
use crate::error::Result;
use crate::metadata::metadata_folder;

/// What is to be merged into head.
pub struct Parts {
    pub delta: Delta,
    pub files: Vec<NewFile>,
    pub is_unmerged: bool,
}

impl Parts {
    /// As the writer has put it together.
    pub fn whole(delta: Delta) -> Self {
        Self { delta, files: Vec::new(), is_unmerged: false }
    }
}

impl Lists {
    /// Takes apart what the writer has merged, so that nothing has to be replaced any more.
    pub(super) async fn take_apart(&self, ctx: &RequestContext, link: &Link<'_>, delta: Delta) -> Result<Parts> {
        let (folder, file_id) = (metadata_folder(link.metadata), ctx.new_id());
        let (mut new, mut files) = (Vec::with_capacity(delta.new.len()), Vec::new());
        for manifest in delta.new {
            if manifest.existing_files == 0 {
                new.push(manifest);
                continue;
            }
            let own = self.own_entries(link, &manifest).await?;
            if own.entries.is_empty() {
                continue;
            }
            let location = format!("{folder}/{file_id}-m{}.avro", files.len());
            new.push(own.describe(&manifest, &location, link.snapshot.sequence_number()));
            self.remember_manifest(link.warehouse, &location, own.entries).await;
            files.push(NewFile { location, bytes: own.bytes.into() });
        }
        Ok(Parts { delta: Delta { new, replaced: Vec::new() }, files, is_unmerged: true })
    }

    async fn own_entries(&self, link: &Link<'_>, merged: &ManifestFile) -> Result<Own> {
        let id = link.snapshot.id();
        let own = self.with_file(link.warehouse, &merged.path, move |bytes| own_entries(bytes, id)).await;
        let own = own.map_err(|unreadable| link.unreadable(&unreadable))?;
        let own = own.map_err(|fault| link.conflict(&format!("manifest {}: {fault}", merged.path)))?;
        if i32::try_from(own.entries.len()) != Ok(merged.added_files) {
            return Err(link.conflict(&format!("manifest {} is not what its list says", merged.path)));
        }
        let inherits = rules::check_entries(&merged.path, &own.entries, Sequence::Inherited);
        inherits.map_err(|why| link.conflict(&why))?;
        Ok(own)
    }
}

/// What a snapshot itself put into a manifest.
#[derive(Debug)]
pub struct Own {
    /// The manifest with these entries alone.
    pub bytes: Vec<u8>,
    pub entries: Vec<Entry>,
}

/// Why a manifest was not taken apart.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Unreadable(avro::Unreadable),
    /// The snapshot deletes a file in it, or a file in it was added by another one.
    #[error("{0}")]
    Mixed(String),
}

/// Keeps the entries that the snapshot added. Those of other snapshots stand in the manifests of head.
pub fn own_entries(bytes: &[u8], snapshot_id: i64) -> std::result::Result<Own, Fault> {
    let file = File::open(bytes).map_err(Fault::Unreadable)?;
    let layout = Layout::of(&file);
    let (mut entries, mut mixed) = (Vec::new(), None);
    let kept = file.filtered(|record| {
        let entry = layout.read(record)?;
        let is_own = entry.is_of(snapshot_id);
        match entry.status {
            Status::Added if is_own => {
                entries.push(entry);
                return Ok(true);
            }
            Status::Added => mixed = Some(format!("{} was added by another snapshot", entry.path)),
            Status::Deleted if is_own => mixed = Some(format!("it deletes {}", entry.path)),
            Status::Existing | Status::Deleted => {}
        }
        Ok(false)
    });
    match (kept, mixed) {
        (Err(error), _) => Err(Fault::Unreadable(error)),
        (Ok(_), Some(what)) => Err(Fault::Mixed(what)),
        (Ok(bytes), None) => Ok(Own { bytes, entries }),
    }
}

impl Own {
    /// As its list is to describe it. The bounds of its partitions may be wider than it is.
    pub fn describe(&self, merged: &ManifestFile, path: &str, sequence_number: i64) -> ManifestFile {
        ManifestFile {
            path: path.to_owned(),
            length_bytes: i64::try_from(self.bytes.len()).unwrap_or(i64::MAX),
            min_sequence_number: sequence_number,
            added_files: i32::try_from(self.entries.len()).unwrap_or(i32::MAX),
            existing_files: 0,
            deleted_files: 0,
            added_rows: self.entries.iter().fold(0, |rows, entry| rows.saturating_add(entry.record_count)),
            existing_rows: 0,
            deleted_rows: 0,
            first_row_id: None,
            ..merged.clone()
        }
    }
}

#[cfg(test)]
mod tests;
