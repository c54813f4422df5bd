//! Cases of [`crate::commits::store::CommitStore::swap`]: what it does to names and pointers.

use uuid::Uuid;

use super::world::{
    Checked, World, create, create_as, drop_of, ident, namespace, of_kind, rename, replace, step, with_lineage,
};
use crate::commits::store::{PointerChange, SwapOutcome};
use crate::idempotency::Answer;
use crate::ident::TableIdent;
use crate::store::Store;
use crate::tabulars::TabularKind;

pub async fn a_create_makes_the_pointer_that_it_names(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for kind in [TabularKind::Table, TabularKind::View] {
        let change = of_kind(create(kind.as_str())?, kind);
        world.must(change.clone()).await?;
        let made = world.pointer(kind.as_str()).await?;
        let PointerChange::Create { id, target, .. } = change else {
            return Err("not a create".into());
        };
        assert_eq!((made.id, made.kind, made.version), (id, kind, 1));
        assert_eq!((made.uuid, made.location), (target.uuid, target.location));
        assert_eq!(made.metadata_location, target.metadata_location);
    }
    Ok(())
}

pub async fn tables_and_views_share_one_name_space(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.table("t").await?;
    world.view("v").await?;
    for (name, owner) in [("t", TabularKind::Table), ("v", TabularKind::View)] {
        for wanted in [TabularKind::Table, TabularKind::View] {
            let outcome = world.apply(of_kind(create(name)?, wanted)).await?;
            let (kind, ident) = (owner, ident(name)?);
            assert_eq!(outcome, SwapOutcome::NameTaken { kind, ident });
        }
    }
    Ok(())
}

pub async fn a_create_needs_its_namespace(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let missing = SwapOutcome::NamespaceMissing { ident: ident("t")? };
    assert_eq!(world.apply(create("t")?).await?, missing);
    world.namespace(&["ns"]).await?;
    world.must(create("t")?).await
}

pub async fn a_move_brings_the_next_version(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for made in [world.table("t").await?, world.view("v").await?] {
        let name = if made.kind == TabularKind::Table { "t" } else { "v" };
        let change = step(&made);
        world.must(change.clone()).await?;
        let moved = world.pointer(name).await?;
        let PointerChange::Move { target, .. } = change else {
            return Err("not a move".into());
        };
        assert_eq!(moved.version, 2);
        assert_eq!(moved.metadata_location, target.metadata_location);
        assert_eq!((moved.id, moved.uuid, moved.location), (made.id, made.uuid, made.location));
    }
    Ok(())
}

pub async fn a_change_of_an_old_pointer_is_lost(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let old = world.table("t").await?;
    world.must(step(&old)).await?;
    let now = world.pointer("t").await?;
    let mut elsewhere = now.clone();
    elsewhere.metadata_location = "file:///w/never/was.json".into();
    for stale in [old, elsewhere] {
        let changes = [
            step(&stale),
            replace(&stale, Uuid::now_v7(), "file:///w/other"),
            rename(&stale, ident("u")?),
            drop_of(&stale),
        ];
        for change in changes {
            assert_eq!(world.apply(change.clone()).await?, SwapOutcome::Lost, "{change:?}");
        }
    }
    assert_eq!(world.pointer("t").await?, now);
    Ok(())
}

pub async fn a_lost_move_writes_nothing(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let old = world.table("t").await?;
    world.must(step(&old)).await?;
    for changes in [vec![step(&old)], vec![create("u")?, step(&old)]] {
        let changes = changes.into_iter().map(|change| with_lineage(change, &[5])).collect();
        let mut swap = world.swap(changes);
        swap.receipts = vec![world.receipt(Answer::Empty)];
        assert_eq!(store.swap(&swap).await?, SwapOutcome::Lost);
        assert!(!world.is_kept(&swap.receipts[0]).await?);
        assert!(store.landed(world.warehouse, None, &[5]).await?.is_empty());
    }
    assert_eq!(world.find("u").await?, None);
    Ok(())
}

pub async fn a_rename_takes_the_pointer_along(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.namespace(&["ns", "inner"]).await?;
    let made = world.table("t").await?;
    let there = TableIdent::new(namespace(&["ns", "inner"])?, "u");
    world.must(rename(&made, there.clone())).await?;
    assert_eq!(world.find("t").await?, None);
    let renamed = store.pointer(world.warehouse, &there).await?;
    let renamed = renamed.ok_or("it has the new name")?;
    assert_eq!((renamed.id, renamed.version), (made.id, 2));
    assert_eq!(renamed.metadata_location, made.metadata_location);
    world.table("t").await?;
    Ok(())
}

pub async fn a_rename_needs_a_free_name_in_a_namespace(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (table, view) = (world.table("t").await?, world.view("v").await?);
    let taken = |kind, ident| SwapOutcome::NameTaken { kind, ident };
    assert_eq!(world.apply(rename(&table, ident("v")?)).await?, taken(TabularKind::View, ident("v")?));
    assert_eq!(world.apply(rename(&view, ident("t")?)).await?, taken(TabularKind::Table, ident("t")?));
    let nowhere = TableIdent::new(namespace(&["missing"])?, "t");
    assert_eq!(world.apply(rename(&table, nowhere.clone())).await?, SwapOutcome::NamespaceMissing { ident: nowhere });
    assert_eq!((world.pointer("t").await?, world.pointer("v").await?), (table, view));
    Ok(())
}

pub async fn a_dropped_name_is_free_again(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    world.must(drop_of(&made)).await?;
    assert_eq!(world.find("t").await?, None);
    assert_eq!(world.apply(step(&made)).await?, SwapOutcome::Lost);
    let again = world.table("t").await?;
    assert_ne!(again.id, made.id);
    assert_eq!(world.apply(step(&made)).await?, SwapOutcome::Lost);
    Ok(())
}

pub async fn a_table_uuid_lives_under_one_name(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (first, second) = (world.table("t").await?, world.table("u").await?);
    let taken = SwapOutcome::UuidTaken { owner: ident("t")? };
    let register = create_as("copy", first.uuid, "file:///w/copy")?;
    assert_eq!(world.apply(register.clone()).await?, taken);
    let overwrite = replace(&second, first.uuid, &second.location);
    assert_eq!(world.apply(overwrite).await?, taken);
    world.must(drop_of(&first)).await?;
    world.must(register).await?;
    assert_eq!(world.pointer("copy").await?.uuid, first.uuid);
    Ok(())
}

pub async fn a_table_uuid_may_live_in_two_warehouses(store: &dyn Store) -> Checked {
    let (one, two) = (World::new(store).await?, World::bare(store, "two").await?);
    two.namespace(&["ns"]).await?;
    let uuid = Uuid::now_v7();
    for world in [one, two] {
        let register = with_lineage(create_as("t", uuid, "file:///w/t")?, &[1]);
        world.must(register).await?;
        let made = world.pointer("t").await?;
        world.must(with_lineage(step(&made), &[2])).await?;
    }
    Ok(())
}

pub async fn an_overwrite_brings_another_uuid_and_place(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let uuid = Uuid::now_v7();
    world.must(replace(&made, uuid, "file:///w/elsewhere")).await?;
    let now = world.pointer("t").await?;
    assert_eq!((now.id, now.uuid, now.version), (made.id, uuid, 2));
    assert_eq!(now.location, "file:///w/elsewhere");
    Ok(())
}

pub async fn several_changes_are_made_together(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (moved, renamed, dropped) =
        (world.table("moved").await?, world.table("old").await?, world.table("dropped").await?);
    let mut swap = world.swap(vec![
        create("dropped")?,
        create("new")?,
        step(&moved),
        rename(&renamed, ident("renamed")?),
        drop_of(&dropped),
    ]);
    swap.receipts = vec![world.receipt(Answer::Empty)];
    assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
    assert_eq!(world.pointer("moved").await?.version, 2);
    assert_eq!(world.pointer("renamed").await?.id, renamed.id);
    assert_ne!(world.pointer("dropped").await?.id, dropped.id);
    assert_eq!(world.pointer("new").await?.version, 1);
    assert!(world.is_kept(&swap.receipts[0]).await?);
    Ok(())
}

pub async fn one_failing_change_leaves_all_untouched(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (a, b) = (world.table("a").await?, world.table("b").await?);
    world.must(step(&b)).await?;
    let now = world.pointer("b").await?;
    for changes in [
        vec![step(&a), step(&b)],
        vec![step(&b), step(&a)],
        vec![create("new")?, step(&a), step(&b)],
        vec![step(&a), step(&now), create("b")?],
        vec![drop_of(&a), step(&now), rename(&now, ident("c")?)],
    ] {
        let outcome = store.swap(&world.swap(changes)).await?;
        assert_ne!(outcome, SwapOutcome::Applied);
        assert_eq!((world.pointer("a").await?, world.pointer("b").await?), (a.clone(), now.clone()));
        assert_eq!(world.find("new").await?, None);
    }
    Ok(())
}

pub async fn a_receipt_is_kept_with_the_change(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    for change in [step(&made), create("u")?] {
        let mut swap = world.swap(vec![change]);
        let document = Answer::Document { uuid: made.uuid, metadata_location: "file:///w/m.json".into() };
        swap.receipts = vec![world.receipt(document)];
        assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
        assert!(world.is_kept(&swap.receipts[0]).await?);
    }
    Ok(())
}

pub async fn the_receipts_of_several_requests_are_kept_with_the_change(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    for change in [step(&made), create("u")?] {
        let mut swap = world.swap(vec![change]);
        let answers = ["a\u{0}", "b", "c"].map(|body| Answer::Body(body.to_owned()));
        swap.receipts = answers.map(|answer| world.receipt(answer)).to_vec();
        assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
        for receipt in &swap.receipts {
            assert!(world.is_kept(receipt).await?);
        }
    }
    Ok(())
}

pub async fn a_key_that_is_taken_changes_nothing(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let receipt = world.receipt(Answer::Empty);
    store.keep(&receipt).await?;
    for change in [step(&made), create("u")?, drop_of(&made), rename(&made, ident("u")?)] {
        let mut swap = world.swap(vec![change]);
        swap.receipts = vec![world.receipt(Answer::Empty), receipt.clone(), world.receipt(Answer::Empty)];
        assert_eq!(store.swap(&swap).await?, SwapOutcome::KeyTaken);
        assert!(!world.is_kept(&swap.receipts[0]).await? && !world.is_kept(&swap.receipts[2]).await?);
    }
    assert_eq!((world.pointer("t").await?, world.find("u").await?), (made, None));
    Ok(())
}

pub async fn names_of_any_kind_come_back_as_they_are(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for name in ["a.b", "a/b", "100%", "'\"`;--", "\u{1F9CA}", " ", &"n".repeat(1024)] {
        let made = world.table(name).await?;
        world.must(step(&made)).await?;
        assert_eq!(world.pointer(name).await?.version, 2, "{name}");
    }
    Ok(())
}
