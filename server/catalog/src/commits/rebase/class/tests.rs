use super::*;
use crate::commits::rebase::manifest::tests::{Written, data, equality, positions, vector};
use crate::commits::rebase::manifest_list::ManifestFile;

fn summary(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn adds(content: Content) -> ManifestFile {
    ManifestFile { path: format!("{content:?}"), content, added_files: 1, added_rows: 10, ..ManifestFile::default() }
}

/// The delta of a snapshot that adds these to a list of one manifest.
fn delta(new: &[ManifestFile]) -> Delta {
    let old = [ManifestFile { path: "old".to_owned(), added_files: 3, ..ManifestFile::default() }];
    Delta::of(&old, &[new, &old].concat())
}

const OTHER: Told = Told::Class(Class::Other);
const APPEND: Told = Told::Class(Class::Append);

#[test]
fn the_operation_may_narrow_what_the_lists_tell_and_never_widens_it() {
    let (data, deletes) = (adds(Content::Data), adds(Content::Deletes));
    let removes = ManifestFile { deleted_files: 1, ..data.clone() };
    for (operation, new, told) in [
        ("append", vec![data.clone()], APPEND),
        ("append", vec![], APPEND),
        ("append", vec![data.clone(), deletes.clone()], Told::Deletes),
        ("append", vec![removes.clone()], OTHER),
        ("overwrite", vec![data.clone()], OTHER),
        ("overwrite", vec![data.clone(), deletes.clone()], Told::Deletes),
        ("overwrite", vec![removes.clone(), deletes.clone()], OTHER),
        ("delete", vec![deletes.clone()], Told::Deletes),
        ("delete", vec![removes.clone()], OTHER),
        ("replace", vec![removes], Told::Class(Class::Replace)),
        ("", vec![data.clone()], OTHER),
        ("sort", vec![data.clone()], OTHER),
    ] {
        let found = by_lists(&summary(&[("operation", operation)]), &delta(&new));
        assert_eq!(found, told, "{operation} of {new:?}");
    }
}

#[test]
fn an_overwrite_of_an_empty_partition_is_no_append() {
    let keys = [("operation", "append"), ("replace-partitions", "true")];
    assert_eq!(by_lists(&summary(&keys), &delta(&[adds(Content::Data)])), OTHER);
    let keys = [("operation", "overwrite"), ("replace-partitions", "true")];
    assert_eq!(by_lists(&summary(&keys), &delta(&[adds(Content::Data), adds(Content::Deletes)])), OTHER);
}

#[test]
fn removed_files_are_told_by_the_summary_too() {
    for (key, count, told) in [
        ("deleted-data-files", "1", OTHER),
        ("removed-delete-files", "2", OTHER),
        ("deleted-data-files", "many", OTHER),
        ("deleted-data-files", "0", APPEND),
    ] {
        let keys = [("operation", "append"), (key, count)];
        assert_eq!(by_lists(&summary(&keys), &delta(&[adds(Content::Data)])), told, "{key} = {count}");
    }
}

#[test]
fn a_merge_must_carry_over_every_live_file() {
    let old = ManifestFile { path: "old".to_owned(), added_files: 2, existing_files: 1, ..ManifestFile::default() };
    for (existing_files, told) in [(3, APPEND), (2, OTHER), (0, OTHER)] {
        let merged = ManifestFile { existing_files, ..adds(Content::Data) };
        let delta = Delta::of(std::slice::from_ref(&old), &[merged]);
        assert_eq!(by_lists(&summary(&[("operation", "append")]), &delta), told, "{existing_files} of 3");
    }
}

/// The class of snapshot 7 with these entries in its new delete manifests, which adds the data file `mine`.
fn class(deletes: &[Written]) -> Told {
    let entries: Vec<&Entry> = deletes.iter().map(|written| &written.entry).collect();
    match by_deletes(7, &entries, None) {
        Told::Deletes => by_deletes(7, &entries, Some(&HashSet::from(["mine", "mine-too"]))),
        told => told,
    }
}

#[test]
fn deletes_are_told_apart_by_their_entries() {
    let with_positions = Told::Class(Class::EqualityDeltaWithPositions);
    for (deletes, told) in [
        (vec![equality("e", 7)], Told::Class(Class::EqualityDelta)),
        (vec![equality("e", 7), vector("v", 7, "mine")], with_positions),
        (vec![vector("v", 7, "mine"), vector("v", 7, "mine-too")], with_positions),
        (vec![vector("v", 7, "mine"), vector("v", 7, "mine")], OTHER),
        (vec![vector("v", 7, "older")], OTHER),
        (vec![equality("e", 7), vector("v", 7, "older")], OTHER),
        (vec![positions("p", 7, None)], OTHER),
        (vec![equality("e", 7), equality("x", 7).as_(Status::Deleted)], OTHER),
        (vec![equality("e", 6)], OTHER),
        (vec![data("d", 7)], OTHER),
        (vec![], OTHER),
    ] {
        assert_eq!(class(&deletes), told, "{deletes:?}");
    }
}

#[test]
fn deletes_that_a_merge_carried_over_are_not_the_snapshots_own() {
    let carried = |written: Written| written.numbered(2).as_(Status::Existing);
    let merged = [carried(positions("p", 5, None)), carried(equality("x", 5)), equality("e", 7)];
    assert_eq!(class(&merged), Told::Class(Class::EqualityDelta));
    assert_eq!(class(&merged[..2]), OTHER);
}

#[test]
fn only_data_files_that_the_snapshot_added_are_its_own() {
    let entries = [data("mine", 7), data("old", 5).as_(Status::Existing), data("gone", 7).as_(Status::Deleted)];
    let entries: Vec<Entry> = entries.into_iter().map(|written| written.entry).collect();
    assert_eq!(added_data(7, &entries).collect::<Vec<_>>(), ["mine"]);
}
