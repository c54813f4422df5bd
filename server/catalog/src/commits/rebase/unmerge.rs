//! Takes a manifest apart that a writer has merged, for the manifests that went into it may be gone from head.

use super::manifest::{Entry, Layout, Status};
use super::manifest_list::ManifestFile;
use crate::avro::{File, Unreadable};

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
    Unreadable(Unreadable),
    /// The snapshot deletes a file in it, or a file in it was added by another one.
    #[error("{0}")]
    Mixed(String),
}

/// Keeps the entries that the snapshot added. Those of other snapshots stand in the manifests of head.
pub fn own_entries(bytes: &[u8], snapshot_id: i64) -> Result<Own, Fault> {
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
    pub fn describe(&self, merged: &ManifestFile, path: String, sequence_number: i64) -> ManifestFile {
        ManifestFile {
            path,
            length_bytes: i64::try_from(self.bytes.len()).unwrap_or(i64::MAX),
            min_sequence_number: sequence_number,
            added_files: i32::try_from(self.entries.len()).unwrap_or(i32::MAX),
            existing_files: 0,
            deleted_files: 0,
            added_rows: self.entries.iter().map(|entry| entry.record_count).sum(),
            existing_rows: 0,
            deleted_rows: 0,
            first_row_id: None,
            ..merged.clone()
        }
    }
}

#[cfg(test)]
mod tests;
