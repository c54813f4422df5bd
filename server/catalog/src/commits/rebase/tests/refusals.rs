use super::super::manifest_list::ManifestFile;
use super::*;
use crate::error::Error;

/// `mine` over one append, and what is said against it.
async fn refusal(
    format_version: u8,
    mine: impl Fn(&World) -> Snapshot,
    change: impl Fn(&mut World, &Snapshot),
) -> Error {
    let mut world = world(format_version);
    let mine = mine(&world);
    land_appends(&mut world, &[2]);
    change(&mut world, &mine);
    world.relink(&mine, Some(&flink("mine")), Rules::Streaming).await.unwrap_err()
}

fn usual(world: &World) -> Snapshot {
    append(world, 9)
}

type Change = fn(&mut ManifestFile);

fn with_manifest(change: Change) -> impl Fn(&World) -> Snapshot {
    move |world| {
        let mut own = world.manifest("m9.avro", 9, &[data("f9", 9)]);
        change(&mut own);
        let commit = Commit { id: 9, operation: "append", summary: ADDS_ONE };
        world.build(&commit, [vec![own], world.head_list()].concat())
    }
}

#[track_caller]
fn check(error: &Error, kind: Kind, message: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(message), "{error}");
}

#[tokio::test]
async fn manifests_that_are_in_head_already_are_no_conflict() {
    let again = |world: &mut World, mine: &Snapshot| {
        let manifests = world.list_of(mine);
        let twin = world.build(&Commit { id: 8, operation: "append", summary: ADDS_ONE }, manifests);
        world.land(&twin, Some(&flink("mine")));
    };
    let error = refusal(2, usual, again).await;
    check(&error, Kind::Unprocessable, "landed before");
}

#[tokio::test]
async fn a_partition_spec_that_is_not_there_is_no_conflict() {
    let error = refusal(2, with_manifest(|own| own.spec_id = 7), |_, _| {}).await;
    check(&error, Kind::Unprocessable, "partition spec 7");
}

#[tokio::test]
async fn manifests_that_are_not_what_they_should_be_are_refused() {
    let changes: [(Change, &str); 4] = [
        (|own| own.key_metadata = Some(vec![1]), "is encrypted"),
        (|own| own.added_snapshot_id = 5, "was added by snapshot 5"),
        (|own| own.min_sequence_number = 1, "a sequence number of their own"),
        (|own| own.deleted_files = 1, "must be validated by its writer"),
    ];
    for (change, message) in changes {
        check(&refusal(2, with_manifest(change), |_, _| {}).await, Kind::CommitFailed, message);
    }
}

#[tokio::test]
async fn files_that_cannot_be_read_are_a_conflict_and_no_fault_of_the_server() {
    let of = |id| move |world: &World| world.metadata.snapshot(id).map(|s| s.manifest_list().unwrap().to_owned());
    for id in [1, 2] {
        let error = refusal(2, usual, |world, _| {
            world.remove(&of(id)(world).unwrap());
            world.lists = Lists::new(Arc::new(crate::files::Files::new(Default::default(), None)), 0);
        });
        check(&error.await, Kind::CommitFailed, "cannot be read");
    }
    let error = refusal(2, usual, |world, mine| world.remove(mine.manifest_list().unwrap())).await;
    check(&error, Kind::CommitFailed, "cannot be read");
    let error = refusal(2, usual, |world, mine| world.write(mine.manifest_list().unwrap(), b"PAR1")).await;
    check(&error, Kind::CommitFailed, "not an Avro file");
}

#[tokio::test]
async fn a_list_outside_of_the_warehouse_is_not_read() {
    let outside = |world: &World| {
        let mine = append(world, 9);
        let raw = mine.raw().get().replace(mine.manifest_list().unwrap(), "file:///etc/passwd");
        parse(&serde_json::from_str(&raw).unwrap())
    };
    check(&refusal(2, outside, |_, _| {}).await, Kind::CommitFailed, "lies outside of this warehouse");
}

#[tokio::test]
async fn a_snapshot_of_format_version_1_that_names_its_manifests_itself_stays() {
    let inline = |world: &World| {
        let mine = append(world, 9);
        let raw = mine.raw().get().replace(r#""manifest-list":"#, r#""manifests":["x"],"was":"#);
        parse(&serde_json::from_str(&raw).unwrap())
    };
    check(&refusal(1, inline, |_, _| {}).await, Kind::CommitFailed, "names its manifests itself");
}

#[tokio::test]
async fn an_upgrade_in_between_is_seen_by_the_list() {
    let with_rows = |world: &World| {
        let mine = append(world, 9);
        let raw = mine.raw().get().replace(r#""snapshot-id":9"#, r#""first-row-id":0,"added-rows":10,"snapshot-id":9"#);
        parse(&serde_json::from_str(&raw).unwrap())
    };
    let upgrade = |world: &mut World, _: &Snapshot| {
        world.update_with(json!({"action": "upgrade-format-version", "format-version": 3}));
    };
    check(&refusal(2, usual, upgrade).await, Kind::CommitFailed, "no first-row-id");
    check(&refusal(2, with_rows, upgrade).await, Kind::CommitFailed, "of format version 2, the table of 3");
}

#[tokio::test]
async fn an_encrypted_table_stays_with_its_writers() {
    let property = |world: &mut World, _: &Snapshot| {
        world.update_with(json!({"action": "set-properties", "updates": {"encryption.key-id": "k"}}));
    };
    check(&refusal(2, usual, property).await, Kind::CommitFailed, "encrypted");
    let key = |world: &World| {
        let raw = append(world, 9).raw().get().replace(r#""snapshot-id":9"#, r#""key-id":"k","snapshot-id":9"#);
        parse(&serde_json::from_str(&raw).unwrap())
    };
    check(&refusal(3, key, |_, _| {}).await, Kind::CommitFailed, "encrypted");
}

#[tokio::test]
async fn a_gap_in_the_lineage_is_a_conflict() {
    let mut world = world(2);
    let mine = append(&world, 9);
    land_appends(&mut world, &[2, 3]);
    let between = world.between(Some(1));
    let writer = flink("mine");
    for lineage in [None, Some(&between[..1]), Some(&between[1..]), Some(&[][..])] {
        let error = world.relink_over(&mine, (Some(&writer), Rules::Append), lineage).await.unwrap_err();
        check(&error, Kind::CommitFailed, "without a gap");
    }
}

#[tokio::test]
async fn a_base_that_expired_is_a_conflict() {
    let error = refusal(2, usual, |world, _| {
        world.update_with(json!({"action": "remove-snapshots", "snapshot-ids": [1]}));
    });
    check(&error.await, Kind::CommitFailed, "snapshot 1 is not in the table any more");
}

#[tokio::test]
async fn the_same_writer_in_between_is_a_fence() {
    let error = refusal(2, usual, |world, _| {
        let theirs = append(world, 3);
        world.land(&theirs, Some(&flink("mine")));
    });
    check(&error.await, Kind::CommitFailed, "snapshot 3 of the same writer (flink mine/o)");
}

#[tokio::test]
async fn a_late_commit_of_a_job_whose_successor_has_begun_is_refused() {
    let error = refusal(2, usual, |world, _| {
        let theirs = append(world, 3);
        world.land(&theirs, Some(&flink("successor")));
        world.landed.last_mut().unwrap().is_first = true;
    });
    check(&error.await, Kind::CommitFailed, "flink successor/o");
}

#[tokio::test]
async fn entries_of_writers_that_nobody_knows_are_read() {
    let numbered = |world: &World| {
        let own = world.manifest("m9.avro", 9, &[data("f9", 9).numbered(2)]);
        let commit = Commit { id: 9, operation: "append", summary: ADDS_ONE };
        world.build(&commit, [vec![own], world.head_list()].concat())
    };
    let mut world = world(2);
    let (mine, plain) = (numbered(&world), append(&world, 8));
    land_appends(&mut world, &[2]);
    let mine = |identity: Option<Identity>| {
        let (world, mine) = (&world, &mine);
        async move { world.relink(mine, identity.as_ref(), Rules::Append).await }
    };
    for identity in [None, Some(named("w"))] {
        check(&mine(identity).await.unwrap_err(), Kind::CommitFailed, "f9 in manifest");
    }
    assert!(mine(Some(flink("known"))).await.is_ok());
    for identity in [None, Some(named("w"))] {
        assert!(world.relink(&plain, identity.as_ref(), Rules::Append).await.is_ok());
    }
}
