//! What a writer makes of a change: manifests of its own, and for each attempt a manifest list and a request. Drafts are
//! values; to write their files is a step of its own.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use uuid::Uuid;

use super::avro;
use super::files::{Content, DataFile, Entry, ManifestFile, Status};
use super::identity::Keys;
use super::objects::{Disk, Object, Objects};
use super::summary::{self, Counts};
use super::table::Table;

/// What is to be done to a branch.
#[derive(Debug, Clone)]
pub enum Change {
    FastAppend(Vec<DataFile>),
    /// Puts all data manifests into one as soon as there are `min_count` of them.
    MergingAppend {
        files: Vec<DataFile>,
        min_count: usize,
    },
    /// Adds rows and deletes, and removes nothing: a streaming upsert.
    RowDelta {
        data: Vec<DataFile>,
        deletes: Vec<DataFile>,
    },
    /// Compaction: files take the place of others with the same rows, as old as `sequence_number` says.
    Rewrite {
        removed: Vec<String>,
        added: Vec<DataFile>,
        sequence_number: Option<i64>,
    },
    /// All data manifests become one.
    RewriteManifests,
    /// Copy-on-write of rows that were read.
    Overwrite {
        removed: Vec<String>,
        added: Vec<DataFile>,
    },
    /// INSERT OVERWRITE of partitions that hold nothing.
    ReplacePartitions(Vec<DataFile>),
}

impl Change {
    fn operation(&self) -> &'static str {
        match self {
            Change::FastAppend(_) | Change::MergingAppend { .. } => "append",
            Change::RowDelta { deletes, .. } if deletes.is_empty() => "append",
            Change::RowDelta { data, .. } if data.is_empty() => "delete",
            Change::Rewrite { .. } | Change::RewriteManifests => "replace",
            Change::RowDelta { .. } | Change::Overwrite { .. } | Change::ReplacePartitions(_) => "overwrite",
        }
    }

    fn added(&self) -> Vec<&DataFile> {
        match self {
            Change::FastAppend(files) | Change::MergingAppend { files, .. } | Change::ReplacePartitions(files) => {
                files.iter().collect()
            }
            Change::RowDelta { data, deletes } => data.iter().chain(deletes).collect(),
            Change::Rewrite { added, .. } | Change::Overwrite { added, .. } => added.iter().collect(),
            Change::RewriteManifests => Vec::new(),
        }
    }

    fn removed(&self) -> BTreeSet<&str> {
        match self {
            Change::Rewrite { removed, .. } | Change::Overwrite { removed, .. } => {
                removed.iter().map(String::as_str).collect()
            }
            _ => BTreeSet::new(),
        }
    }
}

/// A change under one snapshot id through all its attempts.
#[derive(Debug)]
pub struct Draft {
    pub snapshot_id: i64,
    change: Change,
    keys: Keys,
    /// The manifests of what is added: written once, whatever they are put on.
    own: Vec<ManifestFile>,
    objects: Vec<Object>,
    timestamp_ms: Option<i64>,
    attempts: AtomicU32,
    unique: Uuid,
}

/// One attempt.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub snapshot_id: i64,
    /// The body of the request.
    pub body: Value,
    /// The head that it is put on.
    pub parent: Option<i64>,
    pub list: String,
    /// Manifests that this writer wrote.
    pub manifests: Vec<String>,
}

/// What one attempt is made of: the table it is put on, the files there are, and the files it adds to them.
struct Work<'a> {
    table: &'a Table,
    files: &'a dyn Objects,
    attempt: u32,
    objects: Vec<Object>,
}

impl Draft {
    /// Writes what is added to this machine's disk.
    pub fn new(table: &Table, change: Change, snapshot_id: i64, keys: Keys) -> Self {
        let draft = Self::of(table, change, snapshot_id, keys);
        draft.objects.iter().for_each(Object::write);
        draft
    }

    /// What is added lies in [`Draft::objects`], still to be written.
    pub fn of(table: &Table, change: Change, snapshot_id: i64, keys: Keys) -> Self {
        let unique = Uuid::now_v7();
        let mut draft = Self {
            snapshot_id,
            change,
            keys,
            own: Vec::new(),
            objects: Vec::new(),
            timestamp_ms: None,
            attempts: AtomicU32::new(0),
            unique,
        };
        let data = draft.entries_of(|content| content == Content::Data);
        let deletes = draft.entries_of(|content| content != Content::Data);
        for (name, content, entries) in [("data", Content::Data, data), ("deletes", Content::EqualityDeletes, deletes)]
        {
            if !entries.is_empty() {
                let path = format!("{}/metadata/{unique}-{name}.avro", table.location());
                let (manifest, object) = draft.manifest(table, path, content, &entries);
                draft.own.push(manifest);
                draft.objects.push(object);
            }
        }
        draft
    }

    /// The manifests of what is added.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// As a writer whose clock says this.
    pub fn at_ms(self, timestamp_ms: i64) -> Self {
        Self { timestamp_ms: Some(timestamp_ms), ..self }
    }

    fn entries_of(&self, wanted: impl Fn(Content) -> bool) -> Vec<Entry> {
        let explicit = match &self.change {
            Change::Rewrite { sequence_number, .. } => *sequence_number,
            _ => None,
        };
        let added = self.change.added().into_iter().filter(|file| wanted(file.content));
        let entry = |file: &DataFile| Entry {
            status: Status::Added,
            snapshot_id: Some(self.snapshot_id),
            sequence_number: explicit,
            file_sequence_number: None,
            file: file.clone(),
        };
        added.map(entry).collect()
    }

    /// Puts the change on the table's branch as it is there, as an attempt of its own; its files are on disk.
    pub fn on(&self, table: &Table) -> Prepared {
        let (prepared, objects) = self.attempt(table, &Disk);
        objects.iter().for_each(Object::write);
        prepared
    }

    /// An attempt, and the files that are to be written before it is sent. `files` has those that the head is made of.
    pub fn attempt(&self, table: &Table, files: &dyn Objects) -> (Prepared, Vec<Object>) {
        let sequence_number = table.last_sequence_number() + 1;
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed);
        let mut work = Work { table, files, attempt, objects: Vec::new() };
        let (mut manifests, rewritten) = self.manifests(&mut work);
        for manifest in manifests.iter_mut().filter(|manifest| manifest.added_snapshot_id == self.snapshot_id) {
            let inherits =
                manifest.sequence_number == manifest.min_sequence_number || manifest.min_sequence_number == 0;
            manifest.min_sequence_number = if inherits { sequence_number } else { manifest.min_sequence_number };
            manifest.sequence_number = sequence_number;
        }
        let parent = table.head();
        let list = format!("{}/metadata/snap-{}-{attempt}-{}.avro", table.location(), self.snapshot_id, self.unique);
        let mut snapshot = json!({
            "snapshot-id": self.snapshot_id,
            "sequence-number": sequence_number,
            "timestamp-ms": self.timestamp_ms.unwrap_or_else(|| table.metadata["last-updated-ms"].as_i64().unwrap() + 1),
            "manifest-list": list,
            "summary": self.summary(table, &rewritten),
            "schema-id": table.metadata["current-schema-id"],
        });
        if let Some(parent) = parent {
            snapshot["parent-snapshot-id"] = parent.into();
        }
        let header = self.number_rows(table, &mut manifests, &mut snapshot);
        let bytes = avro::manifest_list(table.format_version(), &header, &manifests);
        work.objects.push(Object { location: list.clone(), bytes });
        let ours = manifests.iter().chain(&self.own).filter(|manifest| manifest.added_snapshot_id == self.snapshot_id);
        let manifests = ours.map(|manifest| manifest.path.clone()).collect();
        let body = request(table, snapshot);
        (Prepared { snapshot_id: self.snapshot_id, body, parent, list, manifests }, work.objects)
    }

    /// The manifests of the new list, and the entries that were removed from base.
    fn manifests(&self, work: &mut Work<'_>) -> (Vec<ManifestFile>, Vec<Entry>) {
        let mut base = work.table.head().map_or_else(Vec::new, |head| work.table.manifests_in(work.files, head));
        base.retain(|manifest| manifest.live_files() > 0);
        match &self.change {
            Change::MergingAppend { min_count, .. } => (self.merged(work, base, *min_count), Vec::new()),
            Change::RewriteManifests => (self.merged(work, base, 1), Vec::new()),
            Change::Rewrite { .. } | Change::Overwrite { .. } => self.without_removed(work, base),
            _ => (self.own.iter().cloned().chain(base).collect(), Vec::new()),
        }
    }

    /// All data manifests in one, ours first, where there are enough of them.
    fn merged(&self, work: &mut Work<'_>, base: Vec<ManifestFile>, min_count: usize) -> Vec<ManifestFile> {
        let (data, deletes): (Vec<_>, Vec<_>) =
            base.into_iter().partition(|manifest| manifest.content == Content::Data);
        if data.len() + self.own.len() < min_count.max(2) && min_count != 1 {
            return self.own.iter().cloned().chain(data).chain(deletes).collect();
        }
        let mut entries = self.entries_of(|content| content == Content::Data);
        let kept = data.iter().flat_map(|manifest| work.files.entries(manifest)).filter(Entry::is_live);
        entries.extend(kept.map(|entry| Entry { status: Status::Existing, ..entry }));
        let name = format!("merged-{}", work.attempt);
        let merged = self.add(work, &name, Content::Data, &entries);
        [merged].into_iter().chain(deletes).collect()
    }

    /// Base with each manifest that holds a removed file written anew.
    fn without_removed(&self, work: &mut Work<'_>, base: Vec<ManifestFile>) -> (Vec<ManifestFile>, Vec<Entry>) {
        let (removed, mut gone, mut manifests) = (self.change.removed(), Vec::new(), self.own.clone());
        for (position, manifest) in base.into_iter().enumerate() {
            let entries = work.files.entries(&manifest);
            let is_removed = |entry: &Entry| entry.is_live() && removed.contains(entry.file.path.as_str());
            if !entries.iter().any(is_removed) {
                manifests.push(manifest);
                continue;
            }
            let rewritten = entries.into_iter().filter(Entry::is_live).map(|entry| match is_removed(&entry) {
                true => Entry { status: Status::Deleted, snapshot_id: Some(self.snapshot_id), ..entry },
                false => Entry { status: Status::Existing, ..entry },
            });
            let rewritten: Vec<Entry> = rewritten.collect();
            gone.extend(rewritten.iter().filter(|entry| !entry.is_live()).cloned());
            let name = format!("filtered-{}-{position}", work.attempt);
            manifests.push(self.add(work, &name, manifest.content, &rewritten));
        }
        assert_eq!(gone.len(), removed.len(), "missing required files to delete");
        (manifests, gone)
    }

    /// A manifest of this attempt.
    fn add(&self, work: &mut Work<'_>, name: &str, content: Content, entries: &[Entry]) -> ManifestFile {
        let path = format!("{}/metadata/{}-{name}.avro", work.table.location(), self.unique);
        let (manifest, object) = self.manifest(work.table, path, content, entries);
        work.objects.push(object);
        manifest
    }

    fn manifest(&self, table: &Table, path: String, content: Content, entries: &[Entry]) -> (ManifestFile, Object) {
        let bytes = avro::manifest(table.format_version(), content, entries);
        let count = |of: &dyn Fn(&Entry) -> i64| {
            [Status::Existing, Status::Added, Status::Deleted]
                .map(|status| entries.iter().filter(|entry| entry.status == status).map(of).sum())
        };
        // 0 stands for what a list is yet to give.
        let oldest = entries.iter().filter(|entry| entry.is_live()).map(|entry| entry.sequence_number.unwrap_or(0));
        let manifest = ManifestFile {
            path: path.clone(),
            length: bytes.len() as i64,
            spec_id: 0,
            content,
            sequence_number: 0,
            min_sequence_number: oldest.filter(|number| *number > 0).min().unwrap_or(0),
            added_snapshot_id: self.snapshot_id,
            files: count(&|_| 1),
            rows: count(&|entry| entry.file.records),
            first_row_id: None,
        };
        (manifest, Object { location: path, bytes })
    }

    fn summary(&self, table: &Table, removed: &[Entry]) -> Value {
        let before = table.head().map(|head| table.snapshot(head)["summary"].clone());
        let counts = Counts { added: self.change.added(), removed: removed.iter().map(|entry| &entry.file).collect() };
        let mut summary = summary::of(self.change.operation(), &counts, before.as_ref());
        if matches!(self.change, Change::ReplacePartitions(_)) {
            summary["replace-partitions"] = "true".into();
        }
        for (key, value) in &self.keys {
            summary[key] = value.as_str().into();
        }
        summary
    }

    /// Gives row ids to the data manifests that have none, from version 3 on; the header of the list.
    fn number_rows(
        &self,
        table: &Table,
        manifests: &mut [ManifestFile],
        snapshot: &mut Value,
    ) -> Vec<(&'static str, String)> {
        let text = |value: &Value| value.as_i64().map_or("null".to_owned(), |number| number.to_string());
        let mut header = vec![
            ("snapshot-id", text(&snapshot["snapshot-id"])),
            ("parent-snapshot-id", text(&snapshot["parent-snapshot-id"])),
            ("sequence-number", text(&snapshot["sequence-number"])),
            ("format-version", table.format_version().to_string()),
        ];
        if table.format_version() < 3 {
            return header;
        }
        let first = table.metadata["next-row-id"].as_i64().unwrap_or(0);
        let mut next = first;
        for manifest in manifests.iter_mut() {
            if manifest.content == Content::Data && manifest.first_row_id.is_none() {
                manifest.first_row_id = Some(next);
                next += manifest.rows[Status::Existing as usize] + manifest.rows[Status::Added as usize];
            }
        }
        (snapshot["first-row-id"], snapshot["added-rows"]) = (first.into(), (next - first).into());
        header.push(("first-row-id", first.to_string()));
        header
    }
}

fn request(table: &Table, snapshot: Value) -> Value {
    let id = snapshot["snapshot-id"].clone();
    json!({
        "requirements": [
            {"type": "assert-table-uuid", "uuid": table.metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": table.branch, "snapshot-id": table.head()},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": table.branch, "type": "branch", "snapshot-id": id},
        ],
    })
}
