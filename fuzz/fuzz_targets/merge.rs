//! The three-way merge of manifest lists. The input is what `arbitrary` makes three lists of: those of the base, of a
//! commit and of the head that it is put on.

#![no_main]

use std::collections::HashSet;

use arbitrary::Arbitrary;
use catalog::testing::rebase::{
    Content, Delta, FieldSummary, Head, List, ManifestFile, Merged, Numbers, read_list, write_list,
};
use libfuzzer_sys::fuzz_target;

/// Manifests of so many paths meet in the three lists.
const PATHS: u8 = 32;

#[derive(Debug, Arbitrary)]
struct Input {
    /// Those of the base; each says whether the commit, and whether head, still has it.
    base: Vec<(Manifest, bool, bool)>,
    mine: Vec<Manifest>,
    head: Vec<Manifest>,
    was: i64,
    is: i64,
    next_row_id: Option<u64>,
    format_version: u8,
}

/// A manifest as a list may describe it, whatever sense that makes.
#[derive(Debug, Clone, Arbitrary)]
struct Manifest {
    path: u8,
    length_bytes: i64,
    spec_id: i32,
    is_deletes: bool,
    sequence_numbers: (i64, i64),
    added_snapshot_id: i64,
    files: [u16; 3],
    rows: [u64; 3],
    partitions: Option<Vec<(bool, Option<bool>, Option<Vec<u8>>, Option<Vec<u8>>)>>,
    key_metadata: Option<Vec<u8>>,
    first_row_id: Option<i64>,
}

impl Manifest {
    fn described(&self) -> ManifestFile {
        let summary = |(contains_null, contains_nan, lower_bound, upper_bound)| FieldSummary {
            contains_null,
            contains_nan,
            lower_bound,
            upper_bound,
        };
        let [added_files, existing_files, deleted_files] = self.files.map(i32::from);
        let [added_rows, existing_rows, deleted_rows] = self.rows.map(|rows| (rows >> 1) as i64);
        ManifestFile {
            path: format!("s3://b/t/metadata/{}.avro", self.path % PATHS),
            length_bytes: self.length_bytes,
            spec_id: self.spec_id,
            content: if self.is_deletes { Content::Deletes } else { Content::Data },
            sequence_number: self.sequence_numbers.0,
            min_sequence_number: self.sequence_numbers.1,
            added_snapshot_id: self.added_snapshot_id,
            added_files,
            existing_files,
            deleted_files,
            added_rows,
            existing_rows,
            deleted_rows,
            partitions: self.partitions.clone().map(|fields| fields.into_iter().map(summary).collect()),
            key_metadata: self.key_metadata.clone(),
            first_row_id: self.first_row_id,
        }
    }
}

/// The three lists of an input, each with every path once.
struct Lists {
    base: Vec<ManifestFile>,
    mine: Vec<ManifestFile>,
    head: Vec<ManifestFile>,
}

impl Lists {
    fn of(input: &Input) -> Self {
        let shared =
            |keeps: fn(&(Manifest, bool, bool)) -> bool| input.base.iter().filter(move |it| keeps(it)).map(|it| &it.0);
        Self {
            base: once(shared(|_| true)),
            mine: once(input.mine.iter().chain(shared(|it| it.1))),
            head: once(input.head.iter().chain(shared(|it| it.2))),
        }
    }
}

fn once<'a>(manifests: impl Iterator<Item = &'a Manifest>) -> Vec<ManifestFile> {
    let mut paths = HashSet::new();
    manifests.filter(|manifest| paths.insert(manifest.path % PATHS)).map(Manifest::described).collect()
}

fuzz_target!(|input: Input| {
    let Lists { base, mine, head } = Lists::of(&input);
    let delta = Delta::of(&base, &mine);
    // Such a commit is refused: it landed before, or what it replaces is gone.
    if delta.landed(&head).is_some() || delta.missing(&head).is_some() {
        return;
    }
    let format_version = 1 + input.format_version % 3;
    let next_row_id = input.next_row_id.filter(|_| format_version == 3).map(|id| (id >> 1) as i64);
    let numbers = Numbers { was: input.was, is: input.is, next_row_id };
    let merged = delta.onto(&head, numbers);
    check_merged(&delta, &head, &merged);
    check_row_ids(&delta, &merged, next_row_id);
    check_written(format_version, &merged.manifests, head);
});

/// Nothing but what the commit replaced is lost, nothing comes twice, and what is kept is as it stood in head.
fn check_merged(delta: &Delta, head: &[ManifestFile], merged: &Merged) {
    let replaced: HashSet<&str> = delta.replaced.iter().map(|it| it.path.as_str()).collect();
    let new = delta.new.iter().map(|it| it.path.as_str());
    let kept = head.iter().map(|it| it.path.as_str()).filter(|path| !replaced.contains(path));
    let expected: Vec<&str> = new.chain(kept).collect();
    let paths: Vec<&str> = merged.manifests.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, expected);
    assert_eq!(paths.iter().collect::<HashSet<_>>().len(), paths.len());
    for kept in &merged.manifests[delta.new.len()..] {
        let before = head.iter().find(|it| it.path == kept.path).expect("a kept manifest stands in head");
        assert_eq!(*before, ManifestFile { first_row_id: before.first_row_id, ..kept.clone() });
    }
}

/// Every data manifest has row ids then, and no row id is given back.
fn check_row_ids(delta: &Delta, merged: &Merged, next_row_id: Option<i64>) {
    assert_eq!(merged.next_row_id.is_some(), next_row_id.is_some());
    let Some(first) = next_row_id else { return };
    assert!(merged.next_row_id.is_some_and(|next| next >= first));
    let data = || merged.manifests.iter().filter(|it| it.content == Content::Data);
    assert!(data().all(|it| it.first_row_id.is_some()));
    assert!(
        data()
            .take_while(|it| delta.new.iter().any(|new| new.path == it.path))
            .all(|it| it.first_row_id >= Some(first))
    );
}

/// The merged list is put on that of head, which was written before.
fn check_written(format_version: u8, manifests: &[ManifestFile], head: Vec<ManifestFile>) {
    let header = Head { format_version, snapshot_id: 7, parent_id: Some(6), sequence_number: 5, first_row_id: Some(4) };
    let write = |manifests: &[ManifestFile], on: &List| write_list(&header, manifests, on).expect("it can be written");
    let head_written = write(&head, &List::default());
    let head = List { format_version, manifests: head, written: Some(head_written) };
    let read = read_list(&write(manifests, &head).bytes).expect("a merged list can be read");
    assert_eq!(read.format_version, format_version);
    if format_version == 3 {
        assert_eq!(read, List { format_version, manifests: manifests.to_vec(), written: None });
    } else {
        let paths = |manifests: &[ManifestFile]| manifests.iter().map(|it| it.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&read.manifests), paths(manifests));
    }
}
