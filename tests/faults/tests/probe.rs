//! A table and a commit to it that meets a fault, and what must hold afterwards whatever the fault was.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use faults::catalog::{Catalog, Told};
use faults::wait::until;
use faults::writer::files::local;
use faults::writer::identity::{Keys, spark_batch};
use faults::writer::{Change, DataFile, Draft, Prepared, Table, Writer};
use serde_json::{Value, json};

pub const TABLE: &str = "/namespaces/n/tables/t";

/// One table with one snapshot, and a writer of it.
pub struct Probe {
    pub writer: Writer,
    told_unknown: bool,
    /// What the writer wrote: it may delete that, the catalog may not.
    written: BTreeSet<String>,
}

/// Seeds the writers of a test run.
static WRITERS: AtomicU64 = AtomicU64::new(0);

impl Probe {
    pub async fn new(catalog: &Catalog) -> Self {
        Self::with(catalog, &json!({})).await
    }

    /// With properties of the table.
    pub async fn with(catalog: &Catalog, properties: &Value) -> Self {
        catalog.create_namespace("n").await;
        catalog.create_table("n", "t", properties).await;
        let mut probe = Self::of(catalog, TABLE);
        let first = probe.append("first", spark_batch()).await;
        probe.send(&first).await.unwrap().expect(200);
        probe
    }

    /// Of a table that is there already.
    pub fn of(catalog: &Catalog, table: &str) -> Self {
        let seed = WRITERS.fetch_add(1, Ordering::Relaxed);
        Self { writer: Writer::of(catalog, table, seed), told_unknown: false, written: BTreeSet::new() }
    }

    /// A row of this key, to be appended to the table as it is now.
    pub async fn append(&mut self, key: &str, keys: Keys) -> Prepared {
        let table = self.writer.load().await;
        self.append_on(&table, key, keys)
    }

    pub fn append_on(&mut self, table: &Table, key: &str, keys: Keys) -> Prepared {
        self.change_on(table, Change::FastAppend(vec![data(table, &[key])]), keys)
    }

    /// A change that lands, on the table as it is now.
    pub async fn land(&mut self, change: impl FnOnce(&Table) -> Change, keys: Keys) -> Prepared {
        let table = self.writer.load().await;
        let prepared = self.change_on(&table, change(&table), keys);
        self.send(&prepared).await.unwrap().expect(200);
        prepared
    }

    /// A row of this key that lands.
    pub async fn land_row(&mut self, key: &str, keys: Keys) -> Prepared {
        self.land(|table| Change::FastAppend(vec![data(table, &[key])]), keys).await
    }

    pub fn change_on(&mut self, table: &Table, change: Change, keys: Keys) -> Prepared {
        let draft = self.writer.draft(table, change, keys);
        self.attempt(&draft, table)
    }

    /// One attempt of a draft, on the table as it was at some time.
    pub fn attempt(&mut self, draft: &Draft, table: &Table) -> Prepared {
        let prepared = draft.on(table);
        self.written.extend(prepared.manifests.iter().cloned());
        self.written.insert(prepared.list.clone());
        prepared
    }

    pub async fn send(&self, prepared: &Prepared) -> Told {
        self.writer.send(prepared).await
    }

    /// The table, as soon as it can be loaded.
    pub async fn table(&self) -> Table {
        Table::of(self.loaded().await["metadata"].take(), &self.writer.branch)
    }

    async fn loaded(&self) -> Value {
        until("the table loads", async || {
            let answer = self.writer.catalog.get(&self.writer.table).await.ok()?;
            assert!(answer.status == 200 || answer.status >= 500, "the table does not load: {}", answer.text);
            (answer.status == 200).then(|| answer.json())
        })
        .await
    }

    /// A process was killed: what it had written and not yet swapped may lie around.
    pub fn excuse_leftovers(&mut self) {
        self.told_unknown = true;
    }

    /// Holds a commit's answer against the table, sends the commit again, and looks for what should not be there. Tells
    /// whether it had landed.
    pub async fn settle(&mut self, prepared: &Prepared, told: Told) -> bool {
        self.told_unknown |= told.as_ref().map_or(true, |answer| answer.is_unknown());
        let landed = self.landed(prepared).await;
        if let Ok(answer) = &told {
            let honest = match answer.status {
                200 => landed,
                500 => answer.is_unknown(),
                409 | 429 | 503 => !landed,
                _ => false,
            };
            assert!(honest, "landed: {landed}, told: {} {}", answer.status, answer.text);
        }
        self.send_again(prepared).await;
        self.assert_clean().await;
        landed
    }

    /// Whether it landed. The catalog is asked until it is certain, and must be right then.
    async fn landed(&self, prepared: &Prepared) -> bool {
        let certain = self.certainty(prepared.snapshot_id).await;
        let table = self.table().await;
        table.assert_whole();
        let landed = table.has(prepared.snapshot_id);
        assert_eq!(certain == "landed", landed, "the catalog says that the commit is {certain}");
        landed
    }

    /// What became of the attempt, as soon as that is certain.
    pub async fn certainty(&self, snapshot_id: i64) -> String {
        let path = format!("/coordination/v1/default{}/attempts/{snapshot_id}", self.writer.table);
        until("the outcome is certain", async || {
            let answer = self.writer.catalog.get(&path).await.ok()?;
            assert!(answer.status == 200 || answer.status >= 500, "{}", answer.text);
            let status = answer.json()["status"].as_str().map(str::to_owned)?;
            (status != "in-doubt").then_some(status)
        })
        .await
    }

    /// The same request once more is answered 200 and adds nothing that is there.
    pub async fn send_again(&mut self, prepared: &Prepared) {
        for _ in 0..2 {
            let answer = until("the request is taken again", async || {
                let answer = self.writer.send(prepared).await.ok()?;
                (answer.status < 500).then_some(answer)
            })
            .await;
            answer.expect(200);
        }
        let table = self.table().await;
        table.assert_whole();
        assert!(table.has(prepared.snapshot_id));
    }

    /// Every file that the table refers to is there, and nothing of the catalog's lies beside them that it must have
    /// deleted: only an attempt in doubt may leave something.
    pub async fn assert_clean(&self) {
        let loaded = self.loaded().await;
        let mut referenced = referenced(&loaded);
        let table = Table::of(loaded["metadata"].clone(), &self.writer.branch);
        for snapshot in table.snapshots() {
            let manifests = table.manifests_of(snapshot["snapshot-id"].as_i64().unwrap());
            referenced.extend(manifests.into_iter().map(|manifest| manifest.path));
        }
        for location in &referenced {
            assert!(std::fs::exists(local(location)).unwrap(), "{location} is missing");
        }
        if self.told_unknown {
            return;
        }
        let folder = format!("{}/metadata", loaded["metadata"]["location"].as_str().unwrap());
        for file in std::fs::read_dir(local(&folder)).unwrap() {
            let location = format!("{folder}/{}", file.unwrap().file_name().to_str().unwrap());
            let accounted = referenced.contains(&location) || self.written.contains(&location);
            assert!(accounted, "{location} belongs to nobody");
        }
    }
}

/// A data file of its own with a row for each key.
pub fn data(table: &Table, keys: &[&str]) -> DataFile {
    DataFile::data(&table.data_folder(), keys, &unique())
}

pub fn equality_deletes(table: &Table, keys: &[&str]) -> DataFile {
    DataFile::equality_deletes(&table.data_folder(), keys, &unique())
}

pub fn position_deletes(table: &Table, keys: &[&str], of: &DataFile) -> DataFile {
    DataFile::position_deletes(&table.data_folder(), keys, &unique(), of)
}

fn unique() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

/// The metadata files and manifest lists that a loaded table refers to.
fn referenced(loaded: &Value) -> BTreeSet<String> {
    let metadata = &loaded["metadata"];
    let each = |list: &str, field: &str| -> Vec<String> {
        let entries = metadata[list].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry[field].as_str().unwrap().to_owned()).collect()
    };
    let current = loaded["metadata-location"].as_str().unwrap().to_owned();
    let older = each("metadata-log", "metadata-file").into_iter().chain(each("snapshots", "manifest-list"));
    older.chain([current]).collect()
}
