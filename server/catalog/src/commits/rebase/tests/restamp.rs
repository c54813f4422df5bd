use super::super::manifest::Status;
use super::super::manifest::tests::vector;
use super::*;

/// A world with a branch `b` at snapshot 1, whose `main` has gone on to 2 while `mine` was built on snapshot 1.
fn branched(format_version: u8, mine: fn(&World) -> Snapshot) -> (World, Snapshot) {
    let mut world = world(format_version);
    let put = json!({"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 1});
    world.update_with(put);
    let mine = mine(&world);
    land_appends(&mut world, &[2]);
    (world, mine)
}

async fn relink_on(world: &World, branch: &str, snapshot: &Snapshot, asserted: Option<i64>) -> Result<Relinked> {
    let candidate = Candidate { snapshot_id: snapshot.id(), ref_name: branch.to_owned(), asserted };
    let link = Link {
        warehouse: &world.warehouse,
        metadata: &world.metadata,
        candidate: &candidate,
        snapshot,
        identity: None,
        between: Some(&[]),
        rules: Rules::Restamp,
    };
    world.lists.relink(&world::context(), &link).await
}

fn write(world: &World, relinked: &Relinked) {
    relinked.files.iter().for_each(|file| world.write(&file.location, &file.bytes));
}

#[tokio::test]
async fn a_branch_goes_on_with_numbers_of_its_own() {
    for format_version in [2, 3] {
        let (mut world, mine) = branched(format_version, |world| append(world, 9));
        let relinked = relink_on(&world, "b", &mine, Some(1)).await.unwrap();
        assert_eq!((relinked.class, relinked.unmerged), (None, false));
        write(&world, &relinked);
        world.land_on("b", &relinked.snapshot, None);
        assert_eq!((relinked.snapshot.parent_id(), relinked.snapshot.sequence_number()), (Some(1), 3));
        assert_eq!(names(&relinked.snapshot, &world), ["f1", "f9"]);
        assert_eq!(relinked.snapshot.first_row_id(), (format_version == 3).then_some(20));
        assert_eq!(relinked.snapshot.summary(), mine.summary());
    }
}

#[tokio::test]
async fn any_class_by_any_writer_is_stamped_anew() {
    let (world, mine) = branched(3, |world| {
        let removed = world.manifest("r9.avro", 9, &[data("f1", 1).numbered(1).as_(Status::Deleted)]);
        let deletes = world.manifest("d9.avro", 9, &[vector("v9", 9, "f0")]);
        world.build(&Commit { id: 9, operation: "overwrite", summary: &[] }, vec![removed, deletes])
    });
    let relinked = relink_on(&world, "b", &mine, Some(1)).await.unwrap();
    write(&world, &relinked);
    assert_eq!(world.live(&relinked.snapshot).into_iter().collect::<Vec<_>>(), [("v9".to_owned(), 3)]);
}

#[tokio::test]
async fn a_first_write_to_a_branch_stays_on_its_parent() {
    let (world, mine) = branched(2, |world| append(world, 9));
    let relinked = relink_on(&world, "new", &mine, None).await.unwrap();
    write(&world, &relinked);
    assert_eq!((relinked.snapshot.parent_id(), relinked.snapshot.sequence_number()), (Some(1), 3));
    assert_eq!(
        world.live(&relinked.snapshot).into_iter().collect::<Vec<_>>(),
        [("f1".to_owned(), 1), ("f9".to_owned(), 3)]
    );
}

#[tokio::test]
async fn the_first_commit_to_a_branch_after_an_upgrade_gives_ids_to_all_rows() {
    let mut world = world(2);
    world.update_with(json!({"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 1}));
    world.update_with(json!({"action": "upgrade-format-version", "format-version": 3}));
    let mine = append(&world, 9);
    land_appends(&mut world, &[2]);
    let relinked = relink_on(&world, "b", &mine, Some(1)).await.unwrap();
    write(&world, &relinked);
    let ids: Vec<Option<i64>> =
        world.list_of(&relinked.snapshot).iter().map(|manifest| manifest.first_row_id).collect();
    assert_eq!(ids, [Some(20), Some(30)]);
    assert_eq!((relinked.snapshot.first_row_id(), relinked.snapshot.added_rows()), (Some(20), Some(20)));
}

#[tokio::test]
async fn a_restamp_moves_nothing_to_another_head() {
    let (world, mine) = branched(2, |world| append(world, 9));
    let error = world.relink(&mine, Some(&flink("mine")), Rules::Restamp).await.unwrap_err();
    assert!(error.message().contains("does not have append snapshots rebased"), "{error}");
}

#[tokio::test]
async fn what_is_stamped_anew_must_be_sound_too() {
    let (mut world, mine) = branched(2, |world| append(world, 9));
    world.update_with(json!({"action": "upgrade-format-version", "format-version": 3}));
    assert!(relink_on(&world, "b", &mine, Some(1)).await.unwrap_err().message().contains("no first-row-id"));
    let (world, mine) = branched(2, |world| append(world, 9));
    world.remove(mine.manifest_list().unwrap());
    let error = relink_on(&world, "b", &mine, Some(1)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::CommitFailed);
    assert!(
        error.message().contains("the manifest list of snapshot 9") || error.message().contains("client-9"),
        "{error}"
    );
}
