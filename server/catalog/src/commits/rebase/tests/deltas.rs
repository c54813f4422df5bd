use super::super::manifest::Status;
use super::super::manifest::tests::{Written, positions, vector};
use super::super::manifest_list::Content;
use super::*;

/// An upsert of `f<id>` with these deletes.
fn delta(world: &World, id: i64, deletes: &[Written]) -> Snapshot {
    let own = world.manifest(&format!("m{id}.avro"), id, &[data(&format!("f{id}"), id)]);
    let deletes = world.manifest(&format!("d{id}.avro"), id, deletes);
    let commit = Commit { id, operation: "overwrite", summary: ADDS_ONE };
    world.build(&commit, [vec![own, deletes], world.head_list()].concat())
}

fn upsert(world: &World, id: i64) -> Snapshot {
    delta(world, id, &[equality(&format!("e{id}"), id)])
}

/// A compaction of all data into `c<id>`, which keeps an older sequence number if one is given.
pub(super) fn replace(world: &World, id: i64, number: Option<i64>) -> Snapshot {
    let (old, kept): (Vec<_>, Vec<_>) =
        world.head_list().into_iter().partition(|manifest| manifest.content == Content::Data);
    let dead: Vec<Written> = old
        .iter()
        .flat_map(|manifest| manifest::read(&world.read(&manifest.path)).unwrap())
        .map(|entry| data(&entry.path, id).numbered(1).as_(Status::Deleted))
        .collect();
    let compacted = data(&format!("c{id}"), id);
    let compacted = number.map_or(compacted.clone(), |number| compacted.numbered(number));
    let new = world.manifest(&format!("m{id}.avro"), id, &[compacted]);
    let removed = world.manifest(&format!("r{id}.avro"), id, &dead);
    world.build(&Commit { id, operation: "replace", summary: &[] }, [vec![new, removed], kept].concat())
}

/// A merge-on-read delete of rows of an older file.
fn row_delete(world: &World, id: i64) -> Snapshot {
    let deletes = world.manifest(&format!("d{id}.avro"), id, &[vector(&format!("v{id}"), id, "f1")]);
    let commit = Commit { id, operation: "delete", summary: &[] };
    world.build(&commit, [vec![deletes], world.head_list()].concat())
}

type Build = fn(&World, i64) -> Snapshot;

/// What becomes of `mine` over `theirs`, both built on the same head.
async fn over(mine: Build, theirs: Build, rules: Rules) -> Result<Vec<String>> {
    let mut world = world(2);
    let mine = mine(&world, 9);
    let theirs = theirs(&world, 2);
    world.land(&theirs, None);
    let relinked = world.relink(&mine, Some(&flink("mine")), rules).await?;
    world.put(&relinked, None);
    Ok(names(world.head().unwrap(), &world))
}

#[tokio::test]
async fn pairs_that_no_writer_would_validate_go_through() {
    let (numbered, unnumbered): (Build, Build) = (|w, id| replace(w, id, Some(1)), |w, id| replace(w, id, None));
    for (mine, theirs, live) in [
        (append as Build, upsert as Build, vec!["e2", "f1", "f2", "f9"]),
        (append, unnumbered, vec!["c2", "f9"]),
        (append, row_delete, vec!["f1", "f9", "v2"]),
        (upsert, append, vec!["e9", "f1", "f2", "f9"]),
        (upsert, upsert, vec!["e2", "e9", "f1", "f2", "f9"]),
        (upsert, unnumbered, vec!["c2", "e9", "f9"]),
        (numbered, append, vec!["c9", "f2"]),
        (unnumbered, append, vec!["c9", "f2"]),
        (numbered, upsert, vec!["c9", "e2", "f2"]),
    ] {
        assert_eq!(over(mine, theirs, Rules::Streaming).await.unwrap(), live);
    }
}

#[tokio::test]
async fn pairs_that_must_be_validated_are_refused() {
    let (numbered, unnumbered): (Build, Build) = (|w, id| replace(w, id, Some(1)), |w, id| replace(w, id, None));
    let own_positions: Build = |w, id| delta(w, id, &[vector(&format!("v{id}"), id, &format!("f{id}"))]);
    let overwrite: Build = |w, id| {
        let removed = w.manifest(&format!("r{id}.avro"), id, &[data("f1", 1).as_(Status::Deleted)]);
        w.build(&Commit { id, operation: "overwrite", summary: &[("deleted-data-files", "1")] }, vec![removed])
    };
    let partitions: Build = |w, id| {
        let own = w.manifest(&format!("m{id}.avro"), id, &[data(&format!("f{id}"), id)]);
        let commit = Commit { id, operation: "append", summary: &[("replace-partitions", "true")] };
        w.build(&commit, [vec![own], w.head_list()].concat())
    };
    for (mine, theirs, message) in [
        (unnumbered, upsert as Build, "has no sequence number of its own"),
        (numbered, numbered, "class replace cannot be put over snapshot 2 of class replace"),
        (numbered, row_delete as Build, "over snapshot 2 of class other"),
        (numbered, own_positions, "over snapshot 2 of class equality-delta-with-positions"),
        (upsert, row_delete, "over snapshot 2 of class other"),
        (upsert, overwrite, "over snapshot 2 of class other"),
        (row_delete, append, "must be validated by its writer"),
        (overwrite, append, "must be validated by its writer"),
        (partitions, partitions, "must be validated by its writer"),
        (upsert, partitions, "over snapshot 2 of class other"),
    ] {
        let error = over(mine, theirs, Rules::Streaming).await.unwrap_err();
        assert_eq!(error.kind(), Kind::CommitFailed);
        assert!(error.message().contains(message), "{error}");
    }
}

#[tokio::test]
async fn a_table_that_asks_for_appends_gets_no_deltas() {
    let error = over(upsert, append, Rules::Append).await.unwrap_err();
    assert!(error.message().contains("does not have equality-delta snapshots rebased"), "{error}");
}

#[tokio::test]
async fn position_deletes_must_be_on_files_of_the_same_commit() {
    for (deletes, fits) in [
        (vec![vector("v9", 9, "f9")], true),
        (vec![equality("e9", 9), vector("v9", 9, "f9")], true),
        (vec![positions("p9", 9, Some(("f9", "f9")))], true),
        (vec![positions("p9", 9, Some(("f1", "f9")))], false),
        (vec![positions("p9", 9, None)], false),
        (vec![vector("v9", 9, "f1")], false),
        (vec![vector("v9", 9, "f9"), vector("w9", 9, "f9")], false),
    ] {
        let mut world = world(3);
        let mine = delta(&world, 9, &deletes);
        let theirs = upsert(&world, 2);
        world.land(&theirs, None);
        let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Streaming).await;
        assert_eq!(relinked.is_ok(), fits, "{deletes:?}");
        assert!(relinked.is_err() || relinked.unwrap().class == Some(Class::EqualityDeltaWithPositions));
    }
}

#[tokio::test]
async fn delete_manifests_take_no_row_ids() {
    let mut world = world(3);
    let mine = upsert(&world, 9);
    land_appends(&mut world, &[2]);
    let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Streaming).await.unwrap();
    world.put(&relinked, None);
    let ids: Vec<Option<i64>> = world.head_list().iter().map(|manifest| manifest.first_row_id).collect();
    assert_eq!(ids, [Some(20), None, Some(10), Some(0)]);
}

#[tokio::test]
async fn deletes_of_a_later_place_reach_what_landed_in_between() {
    let mut world = world(2);
    let mine = upsert(&world, 9);
    land_appends(&mut world, &[2]);
    let relinked = world.relink(&mine, Some(&flink("mine")), Rules::Streaming).await.unwrap();
    world.put(&relinked, None);
    let live = world.live(world.head().unwrap());
    assert!(live["e9"] > live["f2"] && live["e9"] == live["f9"], "{live:?}");
}

#[tokio::test]
async fn what_is_known_of_the_snapshots_between_is_not_asked_again() {
    let mut world = world(2);
    let mine = upsert(&world, 9);
    land_appends(&mut world, &[2, 3]);
    let mut between = world.between(Some(1));
    between[0].class = Some(Class::EqualityDelta);
    let relinked = world.relink_over(&mine, (Some(&flink("mine")), Rules::Streaming), Some(&between)).await.unwrap();
    assert_eq!(relinked.classes, [(2, Class::Append)]);
    between[1].class = Some(Class::Other);
    assert!(world.relink_over(&mine, (Some(&flink("mine")), Rules::Streaming), Some(&between)).await.is_err());
}

#[tokio::test]
async fn a_snapshot_whose_list_cannot_be_read_may_be_anything() {
    let mut world = world(2);
    let mine = upsert(&world, 9);
    land_appends(&mut world, &[2, 3]);
    world.remove(world.metadata.snapshot(2).unwrap().manifest_list().unwrap());
    let error = world.relink(&mine, Some(&flink("mine")), Rules::Streaming).await.unwrap_err();
    assert!(error.message().contains("class other"), "{error}");
    let mine = append(&world, 8);
    land_appends(&mut world, &[4]);
    assert!(world.relink(&mine, Some(&flink("mine")), Rules::Append).await.is_ok());
}
