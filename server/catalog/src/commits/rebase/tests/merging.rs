use super::super::manifest::tests::Written;
use super::super::manifest::{self, Status};
use super::super::manifest_list::{Content, ManifestFile};
use super::*;

/// What the manifests of the head hold, as a merge carries it over.
fn carried(world: &World, content: Content) -> Vec<Written> {
    let mut carried = Vec::new();
    for manifest in world.head_list().into_iter().filter(|manifest| manifest.content == content) {
        for entry in manifest::read(&world.read(&manifest.path)).unwrap() {
            let sequence_number = Some(entry.sequence_number.unwrap_or(manifest.sequence_number));
            let sequence_number = sequence_number.filter(|_| world.metadata.format_version() >= 2);
            let entry = manifest::Entry { status: Status::Existing, sequence_number, ..entry };
            carried.push(Written { entry, bounds: None });
        }
    }
    carried
}

fn of(world: &World, content: Content) -> Vec<ManifestFile> {
    world.head_list().into_iter().filter(|manifest| manifest.content == content).collect()
}

/// An append of `f<id>` that merges all data manifests of the head into its own.
fn merging_append(world: &World, id: i64) -> Snapshot {
    let entries = [vec![data(&format!("f{id}"), id)], carried(world, Content::Data)].concat();
    let own = world.manifest(&format!("merged{id}.avro"), id, &entries);
    let commit = Commit { id, operation: "append", summary: ADDS_ONE };
    world.build(&commit, [vec![own], of(world, Content::Deletes)].concat())
}

/// An upsert of `f<id>` that merges all manifests of the head into its own two.
fn merging_delta(world: &World, id: i64) -> Snapshot {
    let data = [vec![data(&format!("f{id}"), id)], carried(world, Content::Data)].concat();
    let deletes = [vec![equality(&format!("e{id}"), id)], carried(world, Content::Deletes)].concat();
    let own =
        [("m", data), ("d", deletes)].map(|(kind, entries)| world.manifest(&format!("{kind}{id}.avro"), id, &entries));
    world.build(&Commit { id, operation: "overwrite", summary: &[] }, own.to_vec())
}

#[tokio::test]
async fn a_merge_of_manifests_that_are_still_there_is_kept() {
    for format_version in 1..=3 {
        let mut world = world(format_version);
        let mine = merging_append(&world, 9);
        land_appends(&mut world, &[2, 3]);
        let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
        assert_eq!((relinked.files.len(), relinked.unmerged), (1, false));
        world.put(&relinked, None);
        let head = world.head().unwrap();
        assert_eq!(names(head, &world), ["f1", "f2", "f3", "f9"]);
        assert_eq!(world.head_list().len(), 3);
        let number = i64::from(format_version > 1);
        assert_eq!((world.live(head)["f1"], world.live(head)["f9"]), (number, 4 * number));
    }
}

#[tokio::test]
async fn a_merge_of_manifests_that_are_gone_is_taken_apart() {
    for format_version in 1..=3 {
        let mut world = world(format_version);
        land_appends(&mut world, &[2]);
        let (mine, theirs) = (merging_append(&world, 9), merging_append(&world, 3));
        world.land(&theirs, None);
        let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
        assert_eq!((relinked.files.len(), relinked.unmerged), (2, true));
        world.put(&relinked, None);
        let (head, list) = (world.head().unwrap(), world.head_list());
        assert_eq!(names(head, &world), ["f1", "f2", "f3", "f9"]);
        let own = &list[0];
        assert_eq!((own.path.as_str(), own.added_snapshot_id), (relinked.files[0].location.as_str(), 9));
        assert_eq!((own.added_files, own.existing_files, own.added_rows, own.existing_rows), (1, 0, 10, 0));
        assert_eq!(own.length_bytes, relinked.files[0].bytes.len() as i64);
        assert_eq!(own.min_sequence_number, own.sequence_number);
    }
}

#[tokio::test]
async fn a_group_of_merging_writers_lands_as_a_whole() {
    for format_version in [2, 3] {
        let mut world = world(format_version);
        let members: Vec<Snapshot> = (2..=8)
            .map(|id| if id % 2 == 0 { merging_append(&world, id) } else { merging_delta(&world, id) })
            .collect();
        for member in &members {
            let writer = flink(&format!("job-{}", member.id()));
            let relinked = world.relink(member, Some(&writer), Rules::Streaming).await.unwrap();
            world.put(&relinked, Some(&writer));
        }
        let live = names(world.head().unwrap(), &world);
        assert_eq!(live, ["e3", "e5", "e7", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"]);
        let next = world.metadata.next_row_id();
        let mut ids: Vec<(i64, i64)> = of(&world, Content::Data)
            .iter()
            .filter_map(|manifest| Some((manifest.first_row_id?, manifest.added_rows + manifest.existing_rows)))
            .collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{ids:?}");
        assert_eq!(ids.last().map(|(first, rows)| first + rows), next);
    }
}

#[tokio::test]
async fn merged_deletes_are_taken_apart_too() {
    let mut world = world(2);
    let first = merging_delta(&world, 2);
    world.land(&first, None);
    let (mine, theirs) = (merging_delta(&world, 9), merging_delta(&world, 3));
    world.land(&theirs, None);
    let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Streaming).await.unwrap();
    assert_eq!((relinked.class, relinked.files.len()), (Some(Class::EqualityDelta), 3));
    assert_eq!(relinked.classes, [(3, Class::EqualityDelta)]);
    world.put(&relinked, None);
    assert_eq!(names(world.head().unwrap(), &world), ["e2", "e3", "e9", "f1", "f2", "f3", "f9"]);
}

#[tokio::test]
async fn what_was_taken_apart_can_be_built_on_before_it_is_written() {
    let mut world = world(2);
    let (one, two) = (merging_append(&world, 2), merging_append(&world, 3));
    let theirs = merging_append(&world, 4);
    world.land(&theirs, None);
    let one = world.relink(&one, Some(&flink("one")), Rules::Append).await.unwrap();
    world.land(&one.snapshot, Some(&flink("one")));
    let added = world.lists.added_paths(&world.warehouse, &one.snapshot).await.unwrap();
    assert_eq!(added.into_iter().collect::<Vec<_>>(), ["f2"]);
    let two = world.relink(&two, Some(&flink("two")), Rules::Append).await.unwrap();
    for file in one.files.iter().chain(&two.files) {
        world.write(&file.location, &file.bytes);
    }
    assert_eq!(names(&two.snapshot, &world), ["f1", "f2", "f3", "f4"]);
}

/// A table of version 2 that was upgraded, a merge by a client that saw the upgrade, and a commit that gave ids to all rows.
fn upgraded(mine: fn(&World, i64) -> Snapshot) -> (World, Snapshot) {
    let mut world = world(2);
    land_appends(&mut world, &[2]);
    world.update_with(json!({"action": "upgrade-format-version", "format-version": 3}));
    let mine = mine(&world, 9);
    land_appends(&mut world, &[3]);
    (world, mine)
}

#[tokio::test]
async fn rows_that_have_ids_by_now_keep_them() {
    let (mut world, mine) = upgraded(merging_append);
    let before: Vec<(String, Option<i64>)> =
        world.head_list().into_iter().map(|manifest| (manifest.path, manifest.first_row_id)).collect();
    assert!(before.iter().all(|(_, id)| id.is_some()));
    let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
    assert!(relinked.unmerged);
    world.put(&relinked, None);
    let after: Vec<(String, Option<i64>)> =
        world.head_list().into_iter().map(|manifest| (manifest.path, manifest.first_row_id)).collect();
    assert_eq!(after[1..], before);
    assert_eq!((after[0].1, world.metadata.next_row_id()), (Some(30), Some(40)));
}

#[tokio::test]
async fn a_fast_append_over_the_first_commit_after_an_upgrade_needs_no_more() {
    let (mut world, mine) = upgraded(append);
    let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
    assert!(!relinked.unmerged);
    world.put(&relinked, None);
    assert_eq!(names(world.head().unwrap(), &world), ["f1", "f2", "f3", "f9"]);
    assert_eq!(world.metadata.next_row_id(), Some(40));
}

#[tokio::test]
async fn a_compaction_of_rows_that_have_ids_by_now_is_refused() {
    let (world, mine) = upgraded(|world, id| super::deltas::replace(world, id, Some(2)));
    let error = world.relink(&mine, None, Rules::Streaming).await.unwrap_err();
    assert!(error.message().contains("from before format version 3"), "{error}");
}

#[tokio::test]
async fn a_merge_that_lies_about_itself_is_refused() {
    let own = |entries: &[Written], change: fn(&mut ManifestFile)| {
        let mut world = world(2);
        let entries = [entries, &carried(&world, Content::Data)].concat();
        let mut own = world.manifest("m9.avro", 9, &entries);
        change(&mut own);
        let mine = world.build(&Commit { id: 9, operation: "append", summary: &[] }, vec![own]);
        let theirs = merging_append(&world, 2);
        world.land(&theirs, None);
        (world, mine)
    };
    for (entries, change, message) in [
        (vec![data("f9", 9)], (|own| own.added_files = 2) as fn(&mut ManifestFile), "is not what its list says"),
        (vec![data("f9", 8)], |_| {}, "f9 was added by another snapshot"),
        (vec![data("f9", 9).numbered(1)], |_| {}, "has a sequence number of its own"),
        (vec![data("f9", 9), data("f1", 9).as_(Status::Deleted)], |own| own.deleted_files = 0, "it deletes f1"),
    ] {
        let (world, mine) = own(&entries, change);
        let error = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap_err();
        assert_eq!(error.kind(), Kind::CommitFailed);
        assert!(error.message().contains(message), "{error}");
    }
}
