//! The files that a dropped table reaches, and their deletion, which may be broken off and begun again at any time.

use std::collections::BTreeSet;

use tracing::{info, warn};

mod names;

use crate::error::Result;
use crate::files::{FileError, Files, Place};
use crate::location::Location;
use names::Wanted;

/// The largest manifest list or manifest that is read, in bytes; Iceberg's writers aim at 8 MiB.
const MANIFEST_LIMIT_BYTES: u64 = 256 * 1024 * 1024;

/// How many files are handed on at once; S3 deletes as many with one request.
const BATCH_FILES: usize = 1000;

/// What the metadata of a dropped table refers to. Order and doubles do not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reachable {
    pub table_location: String,
    /// The current metadata file.
    pub metadata_location: String,
    /// The metadata files of the log.
    pub metadata_files: Vec<String>,
    pub manifest_lists: Vec<String>,
    /// Statistics files and partition statistics files.
    pub statistics: Vec<String>,
    /// Manifests that snapshots name themselves, as those of format version 1 may.
    pub manifests: Vec<String>,
}

/// What a purge has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Files that were deleted, or were gone already.
    pub deleted: u64,
    pub walked: Walked,
}

/// What a walk met besides the files that it handed on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Walked {
    /// References to files that are not under the table's location, or that a symbolic link leads out of the warehouse;
    /// such files are left alone.
    pub outside: u64,
    /// Manifest lists and manifests that are gone.
    pub missing: u64,
    /// Manifest lists and manifests that are there and cannot be read; they are left alone as well.
    pub unreadable: u64,
}

/// Takes the files of a walk, batch by batch. The next batch comes after the last one is done with.
pub trait Sink: Send {
    fn take(&mut self, batch: Vec<Location>) -> impl Future<Output = Result<()>> + Send;
}

/// Deletes what a dropped table reaches under its location. After an error it can run again, and so it can after success.
///
/// An error means that the store did not answer or denied access, or that the location is no longer in the place.
pub async fn purge_table(files: &Files, place: &Place, table: &Reachable) -> Result<PurgeReport> {
    let mut deletion = Deletion { files, place, deleted: 0, outside: 0 };
    let mut walked = reachable_files(files, place, table, &mut deletion).await?;
    walked.outside += deletion.outside;
    let report = PurgeReport { deleted: deletion.deleted, walked };
    info!(
        location = table.table_location,
        deleted = report.deleted,
        outside = walked.outside,
        missing = walked.missing,
        unreadable = walked.unreadable,
        "table purged"
    );
    Ok(report)
}

/// Hands on every file that is reachable from the table and lies under its location, in the order of deletion: what is
/// referred to comes before what refers to it, and the current metadata file comes last. A file may come twice.
///
/// A manifest list or manifest that is gone, or lies behind a link that leads out, is counted, and the walk goes on. Memory holds the names of all manifests,
/// and the data files of one.
pub async fn reachable_files(files: &Files, place: &Place, table: &Reachable, sink: &mut impl Sink) -> Result<Walked> {
    let location = Location::parse(&table.table_location)?;
    place.check(&location)?;
    let mut walk = Walk { files, place, location, sink, walked: Walked::default() };
    let mut lists = Vec::new();
    let mut manifests = Manifests::default();
    for list in &table.manifest_lists {
        let Some(found) = walk.read(list, Wanted::Manifests).await? else {
            continue;
        };
        lists.push(list.clone());
        walk.data_files(found, &mut manifests).await?;
    }
    walk.data_files(table.manifests.clone(), &mut manifests).await?;
    walk.hand_on(manifests.read).await?;
    walk.hand_on(lists).await?;
    walk.hand_on(table.statistics.clone()).await?;
    walk.hand_on(old_metadata_files(table)).await?;
    walk.hand_on(vec![table.metadata_location.clone()]).await?;
    Ok(walk.walked)
}

/// The log without the current file, which must come last, however it is spelled there.
fn old_metadata_files(table: &Reachable) -> Vec<String> {
    let current = Location::parse(&table.metadata_location).ok();
    let is_old = |file: &&String| Location::parse(file).ok() != current;
    table.metadata_files.iter().filter(is_old).cloned().collect()
}

/// The manifests that were met, so that each is read once, and those of them that may be deleted.
#[derive(Default)]
struct Manifests {
    met: BTreeSet<String>,
    read: Vec<String>,
}

struct Walk<'a, S> {
    files: &'a Files,
    place: &'a Place,
    location: Location,
    sink: &'a mut S,
    walked: Walked,
}

impl<S: Sink> Walk<'_, S> {
    async fn data_files(&mut self, manifests: Vec<String>, all: &mut Manifests) -> Result<()> {
        for manifest in manifests {
            if !all.met.insert(manifest.clone()) {
                continue;
            }
            if let Some(found) = self.read(&manifest, Wanted::DataFiles).await? {
                self.hand_on(found).await?;
                all.read.push(manifest);
            }
        }
        Ok(())
    }

    /// The names in a manifest list or manifest; `None`, and counted, if it is gone or cannot be read.
    async fn read(&mut self, path: &str, wanted: Wanted) -> Result<Option<Vec<String>>> {
        let bytes = match self.files.read(self.place, path, MANIFEST_LIMIT_BYTES).await {
            Ok(bytes) => bytes,
            Err(FileError::Missing { .. }) => {
                self.walked.missing += 1;
                return Ok(None);
            }
            Err(FileError::LeadsOut { .. }) => {
                self.walked.outside += 1;
                return Ok(None);
            }
            Err(error @ (FileError::TooLarge { .. } | FileError::Invalid(_))) => {
                self.unreadable(path, &error);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        // A panic of the decoder is one more way to be unreadable.
        let decoded = tokio::task::spawn_blocking(move || names::names(&bytes, wanted)).await;
        match decoded {
            Ok(Ok(names)) => return Ok(Some(names)),
            Ok(Err(error)) => self.unreadable(path, &error),
            Err(error) => self.unreadable(path, &error),
        }
        Ok(None)
    }

    fn unreadable(&mut self, path: &str, error: &(dyn std::error::Error + 'static)) {
        self.walked.unreadable += 1;
        warn!(location = %self.location, file = path, error, "file cannot be read while purging; it is kept");
    }

    async fn hand_on(&mut self, paths: Vec<String>) -> Result<()> {
        let mut batch = Vec::new();
        for path in paths {
            match Location::parse(&path) {
                Ok(file) if self.location.contains(&file) && self.location != file => batch.push(file),
                _ => self.walked.outside += 1,
            }
            if batch.len() == BATCH_FILES {
                self.sink.take(std::mem::take(&mut batch)).await?;
            }
        }
        if batch.is_empty() { Ok(()) } else { self.sink.take(batch).await }
    }
}

struct Deletion<'a> {
    files: &'a Files,
    place: &'a Place,
    deleted: u64,
    outside: u64,
}

impl Sink for Deletion<'_> {
    async fn take(&mut self, batch: Vec<Location>) -> Result<()> {
        let count = batch.len() as u64;
        let outside = self.files.delete_all(self.place, batch).await? as u64;
        self.deleted += count - outside;
        self.outside += outside;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
