//! A branch of a table as a client has loaded it: its metadata and the manifests of its head.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::avro;
use super::files::{Content, Entry, ManifestFile, Status, local};
use super::objects::{Disk, Objects};

/// A branch at one moment.
#[derive(Debug, Clone)]
pub struct Table {
    pub metadata: Value,
    pub branch: String,
}

/// A file that readers of a snapshot see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFile {
    pub file: super::files::DataFile,
    pub sequence_number: i64,
    pub added_by: i64,
}

impl Table {
    pub fn of(metadata: Value, branch: &str) -> Self {
        Self { metadata, branch: branch.to_owned() }
    }

    pub fn location(&self) -> &str {
        self.metadata["location"].as_str().unwrap()
    }

    /// Where writers put data files.
    pub fn data_folder(&self) -> String {
        format!("{}/data", self.location())
    }

    pub fn format_version(&self) -> i64 {
        self.metadata["format-version"].as_i64().unwrap()
    }

    pub fn last_sequence_number(&self) -> i64 {
        self.metadata["last-sequence-number"].as_i64().unwrap_or(0)
    }

    pub fn head(&self) -> Option<i64> {
        self.metadata["refs"][&self.branch]["snapshot-id"].as_i64()
    }

    pub fn snapshot(&self, id: i64) -> &Value {
        let found = self.snapshots().iter().find(|snapshot| snapshot["snapshot-id"] == id);
        found.unwrap_or_else(|| panic!("snapshot {id} is not in the table"))
    }

    pub fn has(&self, id: i64) -> bool {
        self.snapshots().iter().any(|snapshot| snapshot["snapshot-id"] == id)
    }

    pub fn snapshots(&self) -> &[Value] {
        self.metadata["snapshots"].as_array().map_or(&[], Vec::as_slice)
    }

    /// From the root to the head; a parent that is gone ends it.
    pub fn chain(&self) -> Vec<i64> {
        let by_id: BTreeMap<i64, &Value> =
            self.snapshots().iter().map(|snapshot| (snapshot["snapshot-id"].as_i64().unwrap(), snapshot)).collect();
        let parent = |id: &i64| by_id.get(id)?["parent-snapshot-id"].as_i64().filter(|id| by_id.contains_key(id));
        let mut chain: Vec<i64> = std::iter::successors(self.head(), parent).collect();
        chain.reverse();
        chain
    }

    /// The manifests of the head, in the order of its list.
    pub fn manifests(&self) -> Vec<ManifestFile> {
        self.head().map_or_else(Vec::new, |head| self.manifests_of(head))
    }

    pub fn manifests_of(&self, snapshot: i64) -> Vec<ManifestFile> {
        self.manifests_in(&Disk, snapshot)
    }

    /// The manifests of a snapshot where `files` has its list.
    pub fn manifests_in(&self, files: &dyn Objects, snapshot: i64) -> Vec<ManifestFile> {
        avro::read_manifest_list(&files.read(self.manifest_list(snapshot)))
    }

    /// Where the manifest list of a snapshot is.
    pub fn manifest_list(&self, snapshot: i64) -> &str {
        self.snapshot(snapshot)["manifest-list"].as_str().unwrap()
    }

    /// What readers of the head see. A file that is there twice, or a manifest that is missing, is a failure.
    pub fn live_files(&self) -> Vec<LiveFile> {
        self.head().map_or_else(Vec::new, |head| self.live_files_of(head))
    }

    pub fn live_files_of(&self, snapshot: i64) -> Vec<LiveFile> {
        let mut live = Vec::new();
        for manifest in self.manifests_of(snapshot) {
            let entries = Disk.entries(&manifest).into_iter().filter(Entry::is_live);
            live.extend(entries.map(|entry| LiveFile {
                sequence_number: entry.sequence_number.unwrap(),
                added_by: entry.snapshot_id.unwrap(),
                file: entry.file,
            }));
        }
        let paths: BTreeSet<&str> = live.iter().map(|live| live.file.path.as_str()).collect();
        assert_eq!(paths.len(), live.len(), "snapshot {snapshot} has a file twice: {live:#?}");
        live
    }

    /// How often each key is in the head, deletes applied as a reader applies them.
    pub fn rows(&self) -> BTreeMap<String, usize> {
        let live = self.live_files();
        let mut rows = BTreeMap::new();
        for data in live.iter().filter(|live| live.file.content == Content::Data) {
            for key in data.file.keys().into_iter().filter(|key| !live.iter().any(|live| live.deletes(key, data))) {
                *rows.entry(key.to_owned()).or_default() += 1;
            }
        }
        rows
    }

    /// Fails where the table is not whole: besides what its branch must be, each file of each snapshot is in it once.
    pub fn assert_whole(&self) {
        self.assert_branch_is_whole();
        for snapshot in self.snapshots() {
            self.live_files_of(snapshot["snapshot-id"].as_i64().unwrap());
        }
    }

    /// Fails where no id may be there twice, or a list is missing; or where parents, times and sequence numbers do not
    /// rise along the branch; or where rows of its head share an id.
    pub fn assert_branch_is_whole(&self) {
        let mut seen = BTreeSet::new();
        for snapshot in self.snapshots() {
            assert!(seen.insert(snapshot["snapshot-id"].as_i64()), "a snapshot is there twice: {snapshot}");
            let list = snapshot["manifest-list"].as_str().unwrap();
            assert!(std::fs::exists(local(list)).unwrap(), "{list} is missing");
        }
        for pair in self.chain().windows(2) {
            let [parent, child] = [self.snapshot(pair[0]), self.snapshot(pair[1])];
            for rising in ["sequence-number", "timestamp-ms"] {
                let number = |snapshot: &Value| snapshot[rising].as_i64();
                assert!(number(parent) < number(child), "{rising} does not rise from {} to {}", pair[0], pair[1]);
            }
        }
        self.assert_log_is_sorted();
        self.assert_row_ids_are_unique();
    }

    fn assert_log_is_sorted(&self) {
        let log = self.metadata["snapshot-log"].as_array().cloned().unwrap_or_default();
        assert!(log.is_sorted_by_key(|entry| entry["timestamp-ms"].as_i64()), "{log:?}");
    }

    /// No two live data manifests of the head number their rows alike.
    fn assert_row_ids_are_unique(&self) {
        if self.format_version() < 3 {
            return;
        }
        let data = self.manifests().into_iter().filter(|manifest| manifest.content == Content::Data);
        let mut numbered: Vec<(i64, i64)> = data
            .filter(|manifest| manifest.live_files() > 0)
            .map(|manifest| {
                let first = manifest.first_row_id.unwrap_or_else(|| panic!("{} has no first row id", manifest.path));
                let rows = manifest.rows[Status::Added as usize] + manifest.rows[Status::Existing as usize];
                (first, first + rows)
            })
            .collect();
        numbered.sort_unstable();
        assert!(numbered.windows(2).all(|pair| pair[0].1 <= pair[1].0), "row ids overlap: {numbered:?}");
        let next = self.metadata["next-row-id"].as_i64().unwrap();
        assert!(numbered.iter().all(|(_, end)| *end <= next), "row ids beyond {next}: {numbered:?}");
    }
}

impl LiveFile {
    /// Does this delete file take the key out of that data file?
    fn deletes(&self, key: &str, data: &LiveFile) -> bool {
        let applies = match self.file.content {
            Content::Data => false,
            Content::EqualityDeletes => self.sequence_number > data.sequence_number,
            Content::PositionDeletes => {
                let named = self.file.references.as_deref() == Some(&data.file.path);
                named && self.sequence_number >= data.sequence_number
            }
        };
        applies && self.file.keys().contains(&key)
    }
}

/// The entries of a manifest on this machine's disk.
pub fn read_manifest(manifest: &ManifestFile) -> Vec<Entry> {
    Disk.entries(manifest)
}
