use serde_json::json;

use super::manifest::tests::{data, equality};
use super::*;
use crate::commits::identity::{Writer, WriterKind};
use crate::error::Kind;

mod deltas;
mod merging;
mod refusals;
mod restamp;
mod world;

use world::{Commit, World, parse};

fn flink(job: &str) -> Identity {
    let writer = Writer { kind: WriterKind::Flink, id: job.to_owned(), part: "o".to_owned() };
    Identity { writer, position: None, epoch: None }
}

fn named(id: &str) -> Identity {
    let writer = Writer { kind: WriterKind::Named, id: id.to_owned(), part: String::new() };
    Identity { writer, position: None, epoch: None }
}

const ADDS_ONE: &[(&str, &str)] = &[("added-data-files", "1"), ("added-records", "10")];

/// A fast append of the file `f<id>`, built on the head of `main`.
fn append(world: &World, id: i64) -> Snapshot {
    let own = world.manifest(&format!("m{id}.avro"), id, &[data(&format!("f{id}"), id)]);
    let commit = Commit { id, operation: "append", summary: ADDS_ONE };
    world.build(&commit, [vec![own], world.head_list()].concat())
}

/// A world whose `main` is at snapshot 1, an append.
fn world(format_version: u8) -> World {
    let mut world = World::new(format_version);
    let first = append(&world, 1);
    world.land(&first, None);
    world
}

/// Lets appends land.
fn land_appends(world: &mut World, ids: &[i64]) {
    for id in ids {
        let snapshot = append(world, *id);
        world.land(&snapshot, Some(&flink(&format!("job-{id}"))));
    }
}

fn names(snapshot: &Snapshot, world: &World) -> Vec<String> {
    world.live(snapshot).into_keys().collect()
}

#[tokio::test]
async fn an_append_goes_over_appends_in_every_format_version() {
    for format_version in 1..=3 {
        let mut world = world(format_version);
        let mine = append(&world, 9);
        land_appends(&mut world, &[2, 3]);
        let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
        assert_eq!((relinked.class, relinked.files.len(), relinked.unmerged), (Some(Class::Append), 1, false));
        world.put(&relinked, Some(&flink("mine")));
        let head = world.head().unwrap();
        assert_eq!((head.id(), head.parent_id()), (9, Some(3)));
        assert_eq!(names(head, &world), ["f1", "f2", "f3", "f9"]);
        let number = if format_version == 1 { 0 } else { 4 };
        assert_eq!((head.sequence_number(), world.live(head)["f9"]), (number, number));
    }
}

#[tokio::test]
async fn what_a_snapshot_says_of_its_place_changes_and_nothing_else() {
    let mut world = world(3);
    let before = parse(&json!({"custom": [1, 2], "snapshot-id": 9, "parent-snapshot-id": 1, "sequence-number": 2,
        "first-row-id": 10, "added-rows": 10, "timestamp-ms": 5, "schema-id": 7,
        "manifest-list": append(&world, 9).manifest_list().unwrap(),
        "summary": {"operation": "append", "total-records": "20", "total-data-files": "2", "added-records": "10",
            "added-data-files": "1", "flink.job-id": "j", "total-files-size": "5", "manifests-created": "1"}}));
    let theirs = Commit { id: 2, operation: "append", summary: &[("total-records", "50"), ("total-data-files", "5")] };
    let own = world.manifest("m2.avro", 2, &[data("f2", 2)]);
    let theirs = world.build(&theirs, [vec![own], world.head_list()].concat());
    world.land(&theirs, None);
    let relinked = world.relink(&before, Some(&flink("mine")), Rules::Append).await.unwrap();
    let after = &relinked.snapshot;
    let expected = before
        .raw()
        .get()
        .replace(r#""parent-snapshot-id":1"#, r#""parent-snapshot-id":2"#)
        .replace(r#""sequence-number":2"#, r#""sequence-number":3"#)
        .replace(r#""first-row-id":10"#, r#""first-row-id":20"#)
        .replace(r#""schema-id":7"#, r#""schema-id":0"#)
        .replace(before.manifest_list().unwrap(), after.manifest_list().unwrap())
        .replace(r#""total-records":"20""#, r#""total-records":"60""#)
        .replace(r#""total-data-files":"2""#, r#""total-data-files":"6""#)
        .replace(r#","total-files-size":"5""#, "");
    assert_eq!(after.raw().get(), expected);
    let name = after.manifest_list().unwrap().rsplit_once('/').unwrap();
    assert_eq!(name.0, format!("{}/metadata", world.metadata.location()));
    assert!(name.1.starts_with("snap-9-1-") && name.1.ends_with(".avro"), "{name:?}");
    assert_eq!((after.parent_id(), after.sequence_number(), after.schema_id()), (Some(2), 3, Some(0)));
    assert_eq!((after.first_row_id(), after.added_rows(), after.timestamp_ms()), (Some(20), Some(10), 5));
}

#[tokio::test]
async fn lists_go_to_the_folder_that_the_table_names() {
    let mut world = world(2);
    let mine = append(&world, 9);
    land_appends(&mut world, &[2]);
    let folder = format!("{}/elsewhere/", world.metadata.location());
    world.update_with(json!({"action": "set-properties", "updates": {"write.metadata.path": folder}}));
    let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
    assert!(relinked.files[0].location.starts_with(&format!("{folder}snap-9-1-")), "{:?}", relinked.files);
}

#[tokio::test]
async fn a_schema_that_is_gone_is_replaced_by_the_current_one() {
    let mut world = world(2);
    let mine = append(&world, 9);
    let fields = json!([{"id": 1, "name": "b", "required": false, "type": "long"}]);
    world.update_with(json!({"action": "add-schema", "schema": {"type": "struct", "schema-id": 1, "fields": fields}}));
    world.update_with(json!({"action": "set-current-schema", "schema-id": 1}));
    land_appends(&mut world, &[2]);
    let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
    assert_eq!(relinked.snapshot.schema_id(), Some(1));
}

#[tokio::test]
async fn row_ids_follow_on_without_a_gap() {
    let mut world = world(3);
    let mine = append(&world, 9);
    land_appends(&mut world, &[2, 3]);
    let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
    world.put(&relinked, None);
    let ids: Vec<Option<i64>> = world.head_list().iter().map(|manifest| manifest.first_row_id).collect();
    assert_eq!(ids, [Some(30), Some(20), Some(10), Some(0)]);
    assert_eq!(world.metadata.next_row_id(), Some(40));
}

#[tokio::test]
async fn members_of_a_group_are_put_on_each_other_before_anything_is_written() {
    for format_version in 1..=3 {
        let mut world = world(format_version);
        let members: Vec<Snapshot> = (2..=5).map(|id| append(&world, id)).collect();
        let before = world.files();
        let mut files = Vec::new();
        for member in &members {
            let writer = flink(&format!("job-{}", member.id()));
            let relinked = world.relink(member, Some(&writer), Rules::Append).await.unwrap();
            world.land(&relinked.snapshot, Some(&writer));
            files.extend(relinked.files);
        }
        assert_eq!(world.files(), before);
        files.iter().for_each(|file| world.write(&file.location, &file.bytes));
        assert_eq!(names(world.head().unwrap(), &world), ["f1", "f2", "f3", "f4", "f5"]);
    }
}

#[tokio::test]
async fn a_commit_without_files_goes_over_anything() {
    let mut world = world(2);
    let idle = world.build(&Commit { id: 9, operation: "append", summary: &[] }, world.head_list());
    land_appends(&mut world, &[2]);
    let relinked = world.relink(&idle, Some(&flink("mine")), Rules::Append).await.unwrap();
    world.put(&relinked, None);
    assert_eq!(names(world.head().unwrap(), &world), ["f1", "f2"]);
}

#[tokio::test]
async fn what_was_built_on_an_empty_branch_goes_over_appends() {
    for format_version in 1..=3 {
        let mut world = World::new(format_version);
        let mine = append(&world, 9);
        land_appends(&mut world, &[1, 2]);
        let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap();
        assert_eq!(relinked.classes, [(2, Class::Append), (1, Class::Append)]);
        world.put(&relinked, None);
        assert_eq!(names(world.head().unwrap(), &world), ["f1", "f2", "f9"]);
    }
}

#[tokio::test]
async fn what_was_built_on_an_empty_branch_goes_over_nothing_else() {
    let mut world = World::new(2);
    let mine = append(&world, 9);
    let deletes = world.manifest("d1.avro", 1, &[equality("e1", 1)]);
    let delta = world.build(&Commit { id: 1, operation: "overwrite", summary: &[] }, vec![deletes]);
    world.land(&delta, None);
    let error = world.relink(&mine, Some(&flink("mine")), Rules::Append).await.unwrap_err();
    assert_eq!(error.kind(), Kind::CommitFailed);
    assert!(error.message().contains("snapshot 1 of class equality-delta"), "{error}");
}

#[tokio::test]
async fn the_files_that_a_snapshot_added_are_told_and_no_others() {
    let mut world = world(2);
    let own = world.manifest("m2.avro", 2, &[data("f2", 2), data("f1", 1).numbered(1).as_(manifest::Status::Existing)]);
    let deletes = world.manifest("d2.avro", 2, &[equality("e2", 2)]);
    let snapshot = world.build(&Commit { id: 2, operation: "overwrite", summary: &[] }, vec![own, deletes]);
    world.land(&snapshot, None);
    let added = world.lists.added_paths(&world.warehouse, &snapshot).await.unwrap();
    assert_eq!(added.into_iter().collect::<Vec<_>>(), ["e2", "f2"]);
    world.remove(snapshot.manifest_list().unwrap());
    let again = Lists::new(Arc::new(crate::files::Files::new(Default::default(), None)), 0);
    assert!(again.added_paths(&world.warehouse, &snapshot).await.is_err());
}

#[tokio::test]
async fn work_under_way_may_move_between_threads() {
    let mut world = world(2);
    let mine = append(&world, 9);
    land_appends(&mut world, &[2]);
    let done = tokio::spawn(async move {
        let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Append).await;
        relinked.map(|relinked| relinked.snapshot.parent_id())
    });
    assert_eq!(done.await.unwrap().unwrap(), Some(2));
}
