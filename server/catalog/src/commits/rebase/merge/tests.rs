use super::*;

fn manifest(path: &str) -> ManifestFile {
    ManifestFile {
        path: path.to_owned(),
        sequence_number: 5,
        min_sequence_number: 5,
        added_files: 1,
        added_rows: 10,
        ..ManifestFile::default()
    }
}

fn list(paths: &[&str]) -> Vec<ManifestFile> {
    paths.iter().map(|path| manifest(path)).collect()
}

fn names(manifests: &[ManifestFile]) -> Vec<&str> {
    manifests.iter().map(|manifest| manifest.path.as_str()).collect()
}

const V2: Numbers = Numbers { was: 5, is: 9, next_row_id: None };

#[test]
fn an_append_is_carried_over_what_landed_meanwhile() {
    let delta = Delta::of(&list(&["a"]), &list(&["mine", "a"]));
    assert_eq!((names(&delta.new), delta.replaced.len()), (vec!["mine"], 0));
    let merged = delta.onto(&list(&["theirs", "a"]), V2);
    assert_eq!(names(&merged.manifests), ["mine", "theirs", "a"]);
    let numbers = |at: usize| (merged.manifests[at].sequence_number, merged.manifests[at].min_sequence_number);
    assert_eq!((numbers(0), numbers(1)), ((9, 9), (5, 5)), "what is kept stands as it does in head");
}

#[test]
fn entries_that_keep_their_sequence_number_keep_it() {
    let merged_by_client = ManifestFile { min_sequence_number: 2, ..manifest("mine") };
    let delta = Delta::of(&list(&["a"]), &[merged_by_client]);
    assert_eq!(names(&delta.replaced), ["a"]);
    let merged = delta.onto(&list(&["a", "theirs"]), V2).manifests;
    assert_eq!(names(&merged), ["mine", "theirs"]);
    assert_eq!((merged[0].sequence_number, merged[0].min_sequence_number), (9, 2));
}

#[test]
fn what_is_replaced_must_still_be_there() {
    let delta = Delta::of(&list(&["a", "b"]), &list(&["mine", "b"]));
    assert_eq!(delta.missing(&list(&["a", "b", "theirs"])), None);
    assert_eq!(delta.missing(&list(&["merged-by-another", "b"])), Some("a"));
}

#[test]
fn a_manifest_without_a_live_entry_may_be_dropped_by_anybody() {
    let dead = ManifestFile { added_files: 0, deleted_files: 3, ..manifest("dead") };
    let delta = Delta::of(&[dead, manifest("a")], &list(&["mine", "a"]));
    assert!(delta.replaced.is_empty());
    assert_eq!(delta.missing(&list(&["a"])), None);
}

#[test]
fn a_manifest_that_head_has_already_shows_that_the_commit_landed() {
    let delta = Delta::of(&list(&["a"]), &list(&["mine", "a"]));
    assert_eq!(delta.landed(&list(&["mine", "a"])), Some("mine"));
    assert_eq!(delta.landed(&list(&["a"])), None);
}

#[test]
fn row_ids_are_given_in_the_order_of_the_list() {
    let numbers = Numbers { next_row_id: Some(100), ..V2 };
    let head = vec![
        ManifestFile { first_row_id: Some(0), ..manifest("old") },
        ManifestFile { content: Content::Deletes, ..manifest("deletes") },
        ManifestFile { added_files: 0, existing_files: 1, added_rows: 0, existing_rows: 7, ..manifest("unnumbered") },
    ];
    let mine = [vec![ManifestFile { first_row_id: Some(3), ..manifest("mine") }], head.clone()].concat();
    let merged = Delta::of(&head, &mine).onto(&head, numbers);
    let ids: Vec<Option<i64>> = merged.manifests.iter().map(|manifest| manifest.first_row_id).collect();
    assert_eq!(ids, [Some(100), Some(0), None, Some(110)]);
    assert_eq!(merged.next_row_id, Some(117));
}

#[test]
fn numbers_that_a_client_makes_up_do_not_overflow() {
    let numbers = Numbers { next_row_id: Some(1), ..V2 };
    let huge = ManifestFile { added_rows: i64::MAX, ..manifest("mine") };
    assert_eq!(Delta::of(&[], &[huge]).onto(&[], numbers).next_row_id, Some(i64::MAX));
}

#[test]
fn totals_follow_head_and_unknown_ones_stay_unknown() {
    let map = |entries: &[(&str, &str)]| -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let head = map(&[("total-records", "50"), ("total-data-files", "5"), ("total-files-size", "big")]);
    let summary = map(&[("added-records", "7"), ("deleted-records", "2"), ("added-data-files", "1")]);
    let known: Vec<_> = totals(&head, &summary).into_iter().filter(|(_, total)| total.is_some()).collect();
    assert_eq!(known, [("total-data-files", Some(6)), ("total-records", Some(55))]);
}
