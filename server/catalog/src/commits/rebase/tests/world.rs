//! A table on local files, and clients that write real manifests and lists for it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::super::manifest::tests::{Written, bytes};
use super::super::manifest::{self, Entry, FileContent, Status};
use super::super::manifest_list::{self, Content, List, ManifestFile};
use super::super::*;
use crate::commits::lineage::Mark;
use crate::context::{Clock, Principal};
use crate::files::{Files, FilesOptions, Place, Storage};
use crate::ident::{WarehouseId, WarehouseName};
use crate::location::Location;
use crate::metadata::{ApplyAt, TableUpdate, apply};

pub(super) struct World {
    folder: TempDir,
    pub lists: Lists,
    pub warehouse: Warehouse,
    pub metadata: TableMetadata,
    pub landed: Vec<Landed>,
}

struct StillClock;

impl Clock for StillClock {
    fn now_ms(&self) -> i64 {
        1_700_000_000_000
    }

    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}

pub(super) fn context() -> RequestContext {
    RequestContext {
        principal: Principal::Anonymous,
        request_id: "r".to_owned(),
        deadline: tokio::time::Instant::now() + Duration::from_secs(60),
        clock: Arc::new(StillClock),
        idempotency: None,
        noted: Default::default(),
    }
}

/// A commit as its client builds it on the head of `main`.
pub(super) struct Commit<'a> {
    pub id: i64,
    pub operation: &'a str,
    pub summary: &'a [(&'a str, &'a str)],
}

impl World {
    /// With an empty table.
    pub fn new(format_version: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = format!("file:{}", folder.path().display());
        std::fs::create_dir_all(folder.path().join("t/metadata")).unwrap();
        let place = Place { root: Location::parse(&root).unwrap(), allowed: Vec::new(), storage: Storage::default() };
        let name = WarehouseName::parse("w").unwrap();
        let metadata = json!({"format-version": format_version, "table-uuid": Uuid::nil(), "location": format!("{root}/t"),
            "last-sequence-number": 0, "last-updated-ms": 1, "last-column-id": 1, "current-schema-id": 0, "schemas": [
                {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": false, "type": "long"}]}],
            "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
            "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "next-row-id": 0,
            "schema": {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": false, "type": "long"}]},
            "partition-spec": []});
        Self {
            folder,
            lists: Lists::new(Arc::new(Files::new(FilesOptions::default(), None)), 1 << 24),
            warehouse: Warehouse::new(WarehouseId(Uuid::nil()), name, place),
            metadata: TableMetadata::parse(metadata.to_string().as_bytes()).unwrap(),
            landed: Vec::new(),
        }
    }

    fn location(&self, name: &str) -> String {
        format!("{}/metadata/{name}", self.metadata.location())
    }

    pub fn write(&self, location: &str, bytes: &[u8]) {
        std::fs::write(location.strip_prefix("file:").unwrap(), bytes).unwrap();
    }

    pub fn read(&self, location: &str) -> Vec<u8> {
        std::fs::read(location.strip_prefix("file:").unwrap()).unwrap()
    }

    pub fn remove(&self, location: &str) {
        std::fs::remove_file(location.strip_prefix("file:").unwrap()).unwrap();
    }

    pub fn files(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("t/metadata")).unwrap().count()
    }

    /// Where the next commit to `main` stands in the order.
    pub fn next_number(&self) -> i64 {
        if self.metadata.format_version() >= 2 { self.metadata.last_sequence_number() + 1 } else { 0 }
    }

    /// Writes a manifest of the commit that comes next.
    pub fn manifest(&self, name: &str, snapshot_id: i64, entries: &[Written]) -> ManifestFile {
        let entries: Vec<Entry> = self.write_manifest(name, entries);
        let (files, rows) =
            (|status| of(&entries, status).count() as i32, |status| of(&entries, status).map(|e| e.record_count).sum());
        let own = self.next_number();
        let live = entries.iter().filter(|entry| entry.status != Status::Deleted);
        ManifestFile {
            path: self.location(name),
            length_bytes: 1,
            content: match entries.first().map(|entry| entry.content) {
                None | Some(FileContent::Data) => Content::Data,
                Some(_) => Content::Deletes,
            },
            sequence_number: own,
            min_sequence_number: live.map(|entry| entry.sequence_number.unwrap_or(own)).min().unwrap_or(own),
            added_snapshot_id: snapshot_id,
            added_files: files(Status::Added),
            existing_files: files(Status::Existing),
            deleted_files: files(Status::Deleted),
            added_rows: rows(Status::Added),
            existing_rows: rows(Status::Existing),
            deleted_rows: rows(Status::Deleted),
            partitions: Some(Vec::new()),
            ..ManifestFile::default()
        }
    }

    fn write_manifest(&self, name: &str, entries: &[Written]) -> Vec<Entry> {
        self.write(&self.location(name), &bytes(entries));
        entries.iter().map(|written| written.entry.clone()).collect()
    }

    pub fn head(&self) -> Option<&Snapshot> {
        self.metadata.current_snapshot_id().and_then(|id| self.metadata.snapshot(id))
    }

    pub fn list_of(&self, snapshot: &Snapshot) -> Vec<ManifestFile> {
        manifest_list::read(&self.read(snapshot.manifest_list().unwrap())).unwrap().manifests
    }

    pub fn head_list(&self) -> Vec<ManifestFile> {
        self.head().map(|head| self.list_of(head)).unwrap_or_default()
    }

    /// Writes the client's list, and gives the snapshot that it would send.
    pub fn build(&self, commit: &Commit<'_>, manifests: Vec<ManifestFile>) -> Snapshot {
        let format_version = self.metadata.format_version();
        let head = self.head();
        let (first_row_id, mut next) = (self.metadata.next_row_id(), self.metadata.next_row_id());
        let mut manifests = manifests;
        for manifest in manifests.iter_mut().filter(|manifest| manifest.content == Content::Data) {
            if let (None, Some(first)) = (manifest.first_row_id, next) {
                manifest.first_row_id = Some(first);
                next = Some(first + manifest.added_rows + manifest.existing_rows);
            }
        }
        let header = manifest_list::Head {
            format_version,
            snapshot_id: commit.id,
            parent_id: head.map(Snapshot::id),
            sequence_number: self.next_number(),
            first_row_id,
        };
        let location = self.location(&format!("client-{}-{}.avro", commit.id, Uuid::now_v7()));
        self.write(&location, &manifest_list::write(&header, &manifests, &List::default()).unwrap().bytes);
        let mut summary: BTreeMap<&str, &str> = commit.summary.iter().copied().collect();
        summary.insert("operation", commit.operation);
        let mut snapshot = json!({"snapshot-id": commit.id, "timestamp-ms": 1_700_000_000_000_i64, "schema-id": 0,
            "manifest-list": location, "summary": summary});
        if let Some(head) = head {
            snapshot["parent-snapshot-id"] = head.id().into();
        }
        if format_version >= 2 {
            snapshot["sequence-number"] = self.next_number().into();
        }
        if let (Some(first), Some(next)) = (first_row_id, next) {
            snapshot["first-row-id"] = first.into();
            snapshot["added-rows"] = (next - first).into();
        }
        parse(&snapshot)
    }

    /// Puts a snapshot on `main`.
    pub fn land(&mut self, snapshot: &Snapshot, identity: Option<&Identity>) {
        self.land_on("main", snapshot, identity);
    }

    pub fn land_on(&mut self, branch: &str, snapshot: &Snapshot, identity: Option<&Identity>) {
        let put =
            json!({"action": "set-snapshot-ref", "ref-name": branch, "type": "branch", "snapshot-id": snapshot.id()});
        self.update(&[
            TableUpdate::AddSnapshot { snapshot: Arc::new(snapshot.clone()) },
            serde_json::from_str(&put.to_string()).unwrap(),
        ]);
        self.landed.push(Landed {
            ref_name: Some(branch.to_owned()),
            writer: identity.map(|identity| Mark { identity: identity.clone(), counts: Default::default() }),
            ..Landed::of(snapshot, 0)
        });
    }

    pub fn update(&mut self, updates: &[TableUpdate]) {
        let at = ApplyAt { now_ms: 1_700_000_000_000, previous_location: None };
        self.metadata = apply(&self.metadata, updates, &at).unwrap().metadata;
    }

    pub fn update_with(&mut self, update: Json) {
        self.update(&[serde_json::from_str(&update.to_string()).unwrap()]);
    }

    /// Writes what was relinked, and puts it on `main`.
    pub fn put(&mut self, relinked: &Relinked, identity: Option<&Identity>) {
        for file in &relinked.files {
            self.write(&file.location, &file.bytes);
        }
        self.land(&relinked.snapshot, identity);
        self.landed.last_mut().unwrap().class = relinked.class;
    }

    /// What lies between the head of `main` and a snapshot.
    pub fn between(&self, asserted: Option<i64>) -> Vec<Landed> {
        let mut chain = Vec::new();
        let mut next = self.metadata.current_snapshot_id();
        while let Some(id) = next.filter(|id| Some(*id) != asserted) {
            let landed = self.landed.iter().find(|landed| landed.snapshot_id == id).unwrap();
            chain.push(landed.clone());
            next = landed.parent_id;
        }
        chain
    }

    pub async fn relink(&self, snapshot: &Snapshot, identity: Option<&Identity>, rules: Rules) -> Result<Relinked> {
        let between = self.between(snapshot.parent_id());
        self.relink_over(snapshot, (identity, rules), Some(&between)).await
    }

    pub async fn relink_over(
        &self,
        snapshot: &Snapshot,
        (identity, rules): (Option<&Identity>, Rules),
        between: Option<&[Landed]>,
    ) -> Result<Relinked> {
        let candidate =
            Candidate { snapshot_id: snapshot.id(), ref_name: "main".to_owned(), asserted: snapshot.parent_id() };
        let (warehouse, metadata) = (&self.warehouse, &self.metadata);
        let link = Link { warehouse, metadata, candidate: &candidate, snapshot, identity, between, rules };
        self.lists.relink(&context(), &link).await
    }

    /// Every live file of a snapshot with its data sequence number; none comes twice.
    pub fn live(&self, snapshot: &Snapshot) -> BTreeMap<String, i64> {
        let mut live = BTreeMap::new();
        for manifest in self.list_of(snapshot) {
            for entry in manifest::read(&self.read(&manifest.path)).unwrap() {
                if entry.status != Status::Deleted {
                    let number = entry.sequence_number.unwrap_or(manifest.sequence_number);
                    assert!(number >= manifest.min_sequence_number, "{} in {}", entry.path, manifest.path);
                    assert_eq!(live.insert(entry.path.clone(), number), None, "{} comes twice", entry.path);
                }
            }
        }
        live
    }
}

fn of(entries: &[Entry], status: Status) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(move |entry| entry.status == status)
}

pub(super) fn parse(snapshot: &Json) -> Snapshot {
    let update = json!({"action": "add-snapshot", "snapshot": snapshot}).to_string();
    match serde_json::from_str(&update).unwrap() {
        TableUpdate::AddSnapshot { snapshot } => (*snapshot).clone(),
        _ => panic!("a snapshot was added"),
    }
}
