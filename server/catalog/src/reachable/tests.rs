use std::os::unix::fs::symlink;
use std::path::PathBuf;

use apache_avro::Codec;
use tempfile::TempDir;

use super::names::tests::{MANIFEST, MANIFEST_LIST, entry, manifest_file};
use super::*;
use crate::avro::tests::container;
use crate::error::Kind;
use crate::files::{FilesOptions, Storage};

/// A table of two snapshots. The second one keeps a manifest of the first, and one of its data files was only added to
/// the table and lies elsewhere.
struct Tree {
    folder: TempDir,
    files: Files,
    place: Place,
}

const DATA_FILES: [&str; 3] = ["t/data/a.parquet", "t/data/b c%20d.parquet", "t/data/deletes.puffin"];
const MANIFESTS: [&str; 3] = ["t/metadata/m1.avro", "t/metadata/m2.avro", "t/metadata/v1.avro"];
const MANIFEST_LISTS: [&str; 2] = ["t/metadata/snap-1.avro", "t/metadata/snap-2.avro"];
const STATISTICS: [&str; 1] = ["t/metadata/s.stats"];
const METADATA_FILES: [&str; 3] = ["t/metadata/0.json", "t/metadata/1.json", "t/metadata/2.json"];
const OTHERS: [&str; 5] = [
    "elsewhere/added.parquet",
    "tt/data/neighbour.parquet",
    "t/data/orphan.parquet",
    "elsewhere/0.json",
    "elsewhere/m3.avro",
];

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Location::parse(&format!("file:{}", folder.path().display())).unwrap();
        let place = Place { root, allowed: Vec::new(), storage: Storage::default() };
        let tree = Self { folder, files: Files::new(FilesOptions::default(), None), place };
        for name in DATA_FILES.iter().chain(&STATISTICS).chain(&METADATA_FILES).chain(&OTHERS) {
            tree.put(name, b"x");
        }
        tree.put_manifest("t/metadata/m1.avro", &["t/data/a.parquet", "elsewhere/added.parquet", "t/data/a.parquet"]);
        tree.put_manifest("t/metadata/m2.avro", &["t/data/deletes.puffin", "tt/data/neighbour.parquet"]);
        tree.put_manifest("t/metadata/v1.avro", &["t/data/b c%20d.parquet"]);
        tree.put_manifest("elsewhere/m3.avro", &["t/data/a.parquet"]);
        tree.put_list("t/metadata/snap-1.avro", &["t/metadata/m1.avro"]);
        tree.put_list("t/metadata/snap-2.avro", &["t/metadata/m1.avro", "t/metadata/m2.avro", "elsewhere/m3.avro"]);
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn location(&self, name: &str) -> String {
        format!("file:{}", self.path(name).display())
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn put_manifest(&self, name: &str, files: &[&str]) {
        let entries: Vec<_> = files.iter().map(|file| entry(&self.location(file))).collect();
        self.put(name, &container(MANIFEST, Codec::Snappy, &entries));
    }

    fn put_list(&self, name: &str, manifests: &[&str]) {
        let manifests: Vec<_> = manifests.iter().map(|manifest| manifest_file(&self.location(manifest))).collect();
        self.put(name, &container(MANIFEST_LIST, Codec::Null, &manifests));
    }

    fn table(&self) -> Reachable {
        let locations = |names: &[&str]| names.iter().map(|name| self.location(name)).collect::<Vec<_>>();
        Reachable {
            table_location: format!("{}/", self.location("t")),
            metadata_location: self.location("t/metadata/2.json").replacen("file:", "file://", 1),
            metadata_files: locations(&[
                "t/metadata/2.json",
                "t/metadata/0.json",
                "t/metadata/1.json",
                "elsewhere/0.json",
            ]),
            manifest_lists: locations(&MANIFEST_LISTS),
            statistics: locations(&STATISTICS),
            manifests: locations(&["t/metadata/v1.avro"]),
        }
    }

    async fn purge(&self) -> Result<PurgeReport> {
        can_be_spawned(purge_table(&self.files, &self.place, &self.table())).await
    }

    fn existing<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        names.iter().copied().filter(|name| self.path(name).exists()).collect()
    }

    fn assert_purged(&self) {
        for names in [&DATA_FILES[..], &MANIFESTS, &MANIFEST_LISTS, &STATISTICS, &METADATA_FILES] {
            assert_eq!(self.existing(names), [] as [&str; 0]);
        }
        assert_eq!(self.existing(&OTHERS), OTHERS);
    }
}

fn can_be_spawned<F: Future + Send>(future: F) -> F {
    future
}

/// Keeps what it is given, and fails once it has so many files.
struct Collect {
    files: Vec<String>,
    fails_at: usize,
}

impl Sink for Collect {
    async fn take(&mut self, batch: Vec<Location>) -> Result<()> {
        self.files.extend(batch.iter().map(|file| file.as_str().to_owned()));
        if self.files.len() >= self.fails_at {
            return Err(crate::error::Error::new(Kind::Unavailable, "the store is gone"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_purge_deletes_what_is_reachable_under_the_location_and_nothing_else() {
    let tree = Tree::new();
    let report = tree.purge().await.unwrap();
    tree.assert_purged();
    // Added, neighbour, the manifest elsewhere, and the metadata file elsewhere.
    assert_eq!(report.walked, Walked { outside: 4, missing: 0, unreadable: 0 });
    // Twelve files; a.parquet is named by three entries.
    assert_eq!(report.deleted, 14);
}

#[tokio::test]
async fn a_second_run_finds_nothing_to_do() {
    let tree = Tree::new();
    tree.purge().await.unwrap();
    let report = tree.purge().await.unwrap();
    tree.assert_purged();
    assert_eq!(report.walked.missing, 3, "both lists and the manifest that a snapshot names");
}

#[tokio::test]
async fn files_come_in_the_order_of_deletion_with_the_current_metadata_last() {
    let tree = Tree::new();
    let mut sink = Collect { files: Vec::new(), fails_at: usize::MAX };
    reachable_files(&tree.files, &tree.place, &tree.table(), &mut sink).await.unwrap();
    let rank = |file: &String| {
        let in_group = |names: &[&str]| names.iter().any(|name| file.ends_with(name));
        [in_group(&DATA_FILES), in_group(&MANIFESTS), in_group(&MANIFEST_LISTS), in_group(&STATISTICS)]
            .iter()
            .position(|found| *found)
            .unwrap_or(4)
    };
    assert!(sink.files.is_sorted_by_key(rank), "{:?}", sink.files);
    let current = tree.location("t/metadata/2.json").replacen("file:", "file://", 1);
    assert_eq!(sink.files.last(), Some(&current));
    assert_eq!(sink.files.iter().filter(|file| **file == current).count(), 1);
}

#[tokio::test]
async fn a_run_that_dies_anywhere_is_finished_by_the_next_one() {
    for files_before_death in 1..15 {
        let tree = Tree::new();
        let mut dying = Collect { files: Vec::new(), fails_at: files_before_death };
        let died = reachable_files(&tree.files, &tree.place, &tree.table(), &mut dying).await;
        assert_eq!(died.unwrap_err().kind(), Kind::Unavailable);
        for file in &dying.files[..files_before_death] {
            tree.files.delete(&tree.place, file).await.unwrap();
        }
        tree.purge().await.unwrap();
        tree.assert_purged();
    }
}

#[tokio::test]
async fn manifests_that_are_gone_do_not_stop_a_purge() {
    let tree = Tree::new();
    for name in ["t/metadata/snap-1.avro", "t/metadata/m1.avro", "t/metadata/2.json"] {
        std::fs::remove_file(tree.path(name)).unwrap();
    }
    let report = tree.purge().await.unwrap();
    tree.assert_purged();
    assert_eq!(report.walked.missing, 2);
}

#[tokio::test]
async fn a_manifest_that_cannot_be_read_is_kept_and_the_purge_goes_on() {
    let tree = Tree::new();
    tree.put("t/metadata/m2.avro", b"not Avro");
    let report = tree.purge().await.unwrap();
    assert_eq!(report.walked.unreadable, 1);
    assert_eq!(tree.existing(&MANIFESTS), ["t/metadata/m2.avro"]);
    assert_eq!(tree.existing(&DATA_FILES), ["t/data/deletes.puffin"]);
    assert_eq!(tree.existing(&METADATA_FILES), [] as [&str; 0]);
}

#[tokio::test]
async fn a_store_that_fails_leaves_the_metadata_for_the_next_run() {
    let tree = Tree::new();
    std::fs::remove_file(tree.path("t/data/a.parquet")).unwrap();
    tree.put("t/data/a.parquet/in-the-way", b"a folder cannot be deleted like a file");
    assert!(tree.purge().await.is_err());
    assert_eq!(tree.existing(&METADATA_FILES), METADATA_FILES);
    assert_eq!(tree.existing(&MANIFESTS), MANIFESTS);
}

#[tokio::test]
async fn files_behind_a_link_that_leads_out_are_kept_and_the_purge_ends() {
    let tree = Tree::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::rename(tree.path("t/data"), outside.path().join("data")).unwrap();
    std::fs::rename(tree.path("t/metadata/snap-1.avro"), outside.path().join("list")).unwrap();
    symlink(outside.path().join("data"), tree.path("t/data")).unwrap();
    symlink(outside.path().join("list"), tree.path("t/metadata/snap-1.avro")).unwrap();
    let report = tree.purge().await.unwrap();
    assert_eq!(tree.existing(&DATA_FILES), DATA_FILES);
    assert!(outside.path().join("list").exists());
    assert_eq!(tree.existing(&METADATA_FILES), [] as [&str; 0]);
    // Besides the four of a plain purge: the list, and the data files, of which one is named three times.
    assert_eq!((report.walked.outside, report.walked.unreadable), (4 + 1 + 5, 0));
}

#[tokio::test]
async fn a_table_outside_of_the_place_is_not_purged() {
    let mut tree = Tree::new();
    tree.place.root = tree.place.root.join("tt");
    assert_eq!(tree.purge().await.unwrap_err().kind(), Kind::Invalid);
    assert_eq!(tree.existing(&DATA_FILES), DATA_FILES);
}

#[tokio::test]
async fn many_files_come_in_batches() {
    struct Batches(Vec<usize>);
    impl Sink for Batches {
        async fn take(&mut self, batch: Vec<Location>) -> Result<()> {
            self.0.push(batch.len());
            Ok(())
        }
    }
    let tree = Tree::new();
    let names: Vec<String> = (0..BATCH_FILES + 1).map(|i| format!("t/data/{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    tree.put_manifest("t/metadata/many.avro", &names);
    let table = Reachable {
        manifests: vec![tree.location("t/metadata/many.avro")],
        manifest_lists: Vec::new(),
        statistics: Vec::new(),
        metadata_files: Vec::new(),
        ..tree.table()
    };
    let mut sink = Batches(Vec::new());
    reachable_files(&tree.files, &tree.place, &table, &mut sink).await.unwrap();
    assert_eq!(sink.0, [BATCH_FILES, 1, 1, 1], "data files, the manifest, the metadata file");
}
