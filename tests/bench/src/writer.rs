//! A stock writer: it loads the table, writes a manifest and a manifest list, commits, and on a conflict loads again and
//! tries again under the same snapshot id. Each operation begins with a load of its own, as after `table.refresh()`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use faults::random::Random;
use faults::writer::files::{Content, ManifestFile};
use faults::writer::{Change, DataFile, Draft, Prepared, Retry, Table, avro, identity};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::clock::now_ms;
use crate::report::Result;
use crate::rest::{Answer, Catalog, Loaded, Name};
use crate::store::Store;

/// `commit.manifest.min-count-to-merge`: an append that meets so many manifests puts them into one.
const MERGED_FROM: usize = 100;

/// A writer of one table.
#[derive(Debug)]
pub struct Writer {
    catalog: Catalog,
    store: Arc<Store>,
    table: Name,
    retry: Retry,
    name: String,
    random: Random,
    drafts: u64,
}

/// How a commit ended for its writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Landed,
    /// 409 to the last attempt.
    Conflicted,
    Refused(String),
    /// It may have landed.
    Unknown(String),
}

/// A commit that has ended.
#[derive(Debug)]
pub struct Commit {
    pub ended: Ended,
    pub attempts: u32,
    /// The data files that it adds and removes.
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// The last request alone.
    pub post: Duration,
    /// From the first load to the last answer.
    pub cycle: Duration,
    /// Snapshots in the table when it was loaded last.
    pub snapshots: usize,
    /// The body of the last answer.
    pub answer_bytes: usize,
    pub metadata_location: Option<String>,
    /// Files that each attempt read and put together, where it was a compaction.
    pub rewritten: usize,
}

/// A change whose manifests are written, and the table that it is to be put on.
#[derive(Debug)]
pub struct Begun {
    start: Instant,
    table: Table,
    draft: Draft,
    commit: Commit,
}

impl Writer {
    pub fn of(catalog: &Catalog, store: &Arc<Store>, table: &Name, name: &str) -> Self {
        Self {
            catalog: catalog.clone(),
            store: store.clone(),
            table: table.clone(),
            retry: Retry::STOCK,
            name: name.to_owned(),
            random: Random::from_seed(Uuid::new_v4().as_u128() as u64),
            drafts: 0,
        }
    }

    pub fn retrying(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Appends one file of one row.
    pub async fn append(&mut self) -> Result<Commit> {
        let begun = self.begin_append().await?;
        self.see_through(begun).await
    }

    /// Loads the table, and writes the manifest of what is going to be appended.
    pub async fn begin_append(&mut self) -> Result<Begun> {
        let start = Instant::now();
        let table = self.load().await?;
        let key = format!("{}-{}", self.name, self.drafts);
        let file = DataFile::data(&table.data_folder(), &[&key], &Uuid::now_v7().to_string());
        self.begin(start, table, Change::MergingAppend { files: vec![file], min_count: MERGED_FROM }).await
    }

    /// Puts all live data files into one; nothing where there are fewer than two.
    pub async fn compact(&mut self) -> Result<Option<Commit>> {
        let start = Instant::now();
        let table = self.load().await?;
        let live = live_files(&self.store, &table).await?;
        if live.len() < 2 {
            return Ok(None);
        }
        let keys = [format!("{}-{}", self.name, self.drafts)];
        let mut file = DataFile::data(&table.data_folder(), &[&keys[0]], &Uuid::now_v7().to_string());
        (file.records, file.bytes) =
            live.iter().fold((0, 0), |(records, bytes), file| (records + file.records, bytes + file.bytes));
        let removed: Vec<String> = live.into_iter().map(|file| file.path).collect();
        let sequence_number = Some(table.last_sequence_number());
        let begun = self.begin(start, table, Change::Rewrite { removed, added: vec![file], sequence_number }).await?;
        self.see_through(begun).await.map(Some)
    }

    async fn begin(&mut self, start: Instant, table: Table, change: Change) -> Result<Begun> {
        self.drafts += 1;
        let commit = Commit::of(&change);
        let keys = [identity::named(&self.name, None, None), environment()].concat();
        let at_ms = now_ms().max(table.metadata["last-updated-ms"].as_i64().unwrap_or(0) + 1);
        let draft = Draft::of(&table, change, self.random.snapshot_id(), keys).at_ms(at_ms);
        self.store.put_all(draft.objects()).await?;
        Ok(Begun { start, table, draft, commit })
    }

    /// The attempts of a change, the first of them on the table that it was begun on.
    pub async fn see_through(&mut self, begun: Begun) -> Result<Commit> {
        let Begun { start, mut table, draft, mut commit } = begun;
        let mut tried = Vec::new();
        loop {
            commit.snapshots = table.snapshots().len();
            let prepared = self.prepare(&draft, &table, commit.is_compaction()).await?;
            let told = self.catalog.post(&self.table.path(), &prepared.body).await;
            tried.push(prepared);
            commit.attempts += 1;
            commit.cycle = start.elapsed();
            commit.ended = ended(&told);
            if let Ok(answer) = &told {
                (commit.post, commit.answer_bytes) = (answer.took, answer.bytes.len());
                if commit.ended == Ended::Landed {
                    let loaded = answer.loaded()?;
                    commit.metadata_location.clone_from(&loaded.metadata_location);
                    self.leave_spare(&tried, loaded);
                    return Ok(commit);
                }
            }
            if commit.ended != Ended::Conflicted || commit.attempts > self.retry.retries {
                self.clean_up(&tried, &commit.ended);
                return Ok(commit);
            }
            sleep(Duration::from_millis(wait_ms(self.retry, commit.attempts, &mut self.random))).await;
            table = self.load().await?;
            if table.has(draft.snapshot_id) {
                commit.ended = Ended::Landed;
                commit.cycle = start.elapsed();
                return Ok(commit);
            }
        }
    }

    async fn load(&self) -> Result<Table> {
        Ok(Table::of(self.catalog.load(&self.table).await?.metadata, "main"))
    }

    /// Reads what the change is put on, and writes what the request is going to name.
    async fn prepare(&self, draft: &Draft, table: &Table, reads_manifests: bool) -> Result<Prepared> {
        let read_from = if reads_manifests { 0 } else { MERGED_FROM - 1 };
        let files = fetch(&self.store, table, read_from).await?;
        let (prepared, objects) = draft.attempt(table, &files);
        self.store.put_all(&objects).await?;
        Ok(prepared)
    }

    /// Has no more use for the lists of attempts that are not the snapshot's.
    fn leave_spare(&self, tried: &[Prepared], loaded: Loaded) {
        let table = Table::of(loaded.metadata, "main");
        let Some(landed) = tried.first().map(|prepared| prepared.snapshot_id).filter(|id| table.has(*id)) else {
            return;
        };
        for spare in tried.iter().filter(|prepared| prepared.list != table.manifest_list(landed)) {
            self.store.spare(&spare.list);
        }
    }

    /// Has no more use for what is known not to be in the table.
    fn clean_up(&self, tried: &[Prepared], ended: &Ended) {
        if matches!(ended, Ended::Unknown(_)) {
            return;
        }
        for prepared in tried {
            self.store.spare(&prepared.list);
            for manifest in &prepared.manifests {
                self.store.spare(manifest);
            }
        }
    }
}

impl Commit {
    fn of(change: &Change) -> Self {
        let paths = |files: &[DataFile]| files.iter().map(|file| file.path.clone()).collect();
        let (added, removed) = match change {
            Change::FastAppend(files) | Change::MergingAppend { files, .. } => (paths(files), Vec::new()),
            Change::Rewrite { removed, added, .. } => (paths(added), removed.clone()),
            _ => (Vec::new(), Vec::new()),
        };
        Self {
            ended: Ended::Conflicted,
            attempts: 0,
            rewritten: removed.len(),
            added,
            removed,
            post: Duration::ZERO,
            cycle: Duration::ZERO,
            snapshots: 0,
            answer_bytes: 0,
            metadata_location: None,
        }
    }

    fn is_compaction(&self) -> bool {
        self.rewritten > 0
    }
}

/// What a stock client leaves of itself in every summary.
fn environment() -> identity::Keys {
    let entries = [("engine-name", "flink"), ("engine-version", "1.20.1"), ("iceberg-version", "Apache Iceberg 1.9.2")];
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

/// As stock clients take an answer: 4xx is a refusal, all else than 200 is unknown.
fn ended(told: &Result<Answer>) -> Ended {
    match told {
        Ok(answer) if answer.status == 200 => Ended::Landed,
        Ok(answer) if answer.status == 409 => Ended::Conflicted,
        Ok(answer) if (400..500).contains(&answer.status) || answer.status == 503 => {
            Ended::Refused(format!("{} {}", answer.status, answer.text()))
        }
        Ok(answer) => Ended::Unknown(format!("{} {}", answer.status, answer.text())),
        Err(lost) => Ended::Unknown(lost.to_string()),
    }
}

/// Iceberg's back-off before the retry of this number, the first being 1: doubled each time up to the longest wait, and
/// up to a tenth more.
pub fn wait_ms(retry: Retry, number: u32, random: &mut Random) -> u64 {
    let wait_ms = (retry.min_wait_ms << (number - 1).min(20)).min(retry.max_wait_ms);
    wait_ms + random.below((wait_ms / 10).max(1))
}

/// The manifest list of the head, and its data manifests where there are so many of them.
async fn fetch(store: &Store, table: &Table, read_from: usize) -> Result<BTreeMap<String, Vec<u8>>> {
    let Some(head) = table.head() else { return Ok(BTreeMap::new()) };
    let location = table.manifest_list(head).to_owned();
    let list = store.get(&location).await?;
    let mut manifests: Vec<ManifestFile> = avro::read_manifest_list(&list);
    manifests.retain(|manifest| manifest.content == Content::Data && manifest.live_files() > 0);
    let mut files = BTreeMap::from([(location, list)]);
    if manifests.len() >= read_from {
        let paths = manifests.into_iter().map(|manifest| manifest.path).collect();
        files.extend(store.get_all(paths).await?);
    }
    Ok(files)
}

/// The data files that readers of the head see, each as often as it is there.
pub async fn live_files(store: &Store, table: &Table) -> Result<Vec<DataFile>> {
    let Some(head) = table.head() else { return Ok(Vec::new()) };
    let files = fetch(store, table, 0).await?;
    let mut live = Vec::new();
    for manifest in avro::read_manifest_list(&files[table.manifest_list(head)]) {
        let entries = files.get(&manifest.path).map_or_else(Vec::new, |bytes| avro::read_manifest(bytes));
        live.extend(entries.into_iter().filter(|entry| entry.is_live()).map(|entry| entry.file));
    }
    Ok(live)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_longest_and_a_tenth_more() {
        let mut random = Random::from_seed(1);
        let short = Retry { max_wait_ms: 500, ..Retry::STOCK };
        for (number, least) in [(1, 100), (2, 200), (3, 400), (4, 500), (40, 500)] {
            let wait_ms = wait_ms(short, number, &mut random);
            assert!((least..=least + least / 10).contains(&wait_ms), "{number}: {wait_ms}");
        }
    }
}
