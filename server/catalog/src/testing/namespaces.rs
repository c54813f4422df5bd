//! Cases of [`crate::namespaces::store::NamespaceStore`].

use std::collections::{BTreeMap, BTreeSet};

use futures::future::{join, join_all};

use super::world::{Checked, RACERS, World, create, drop_of, namespace, of_kind};
use crate::commits::store::SwapOutcome;
use crate::idempotency::Answer;
use crate::namespaces::store::{NamespaceCreated, NamespaceDropped, NamespaceUpdated};
use crate::namespaces::{Namespace, PropertiesChange, PropertiesChanged};
use crate::store::{Page, Store};
use crate::tabulars::TabularKind;

fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

pub async fn a_namespace_comes_back_as_it_was_made(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let mut new = world.new_namespace(&["a.b \"ü\" 100%/\u{1F9CA}"])?;
    new.properties = properties(&[("owner", "me"), ("nul", "a\u{0}b"), ("", "")]);
    assert_eq!(store.create_namespace(&new, None).await?, NamespaceCreated::Created);
    let made = Namespace { ident: new.ident.clone(), properties: new.properties };
    assert_eq!(store.namespace(world.warehouse, &new.ident).await?, Some(made));
    Ok(())
}

pub async fn names_are_told_apart_by_their_bytes(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    for name in ["a", "A", "a ", "\u{e9}", "e\u{301}"] {
        world.namespace(&[name]).await?;
    }
    let listed = store.list_namespaces(world.warehouse, None, &Page::ALL).await?;
    let listed = listed.ok_or("the top is always there")?;
    assert_eq!(listed, ["A", "a", "a ", "e\u{301}", "\u{e9}"]);
    Ok(())
}

pub async fn levels_are_not_joined(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    world.namespace(&["a.b"]).await?;
    assert_eq!(store.namespace(world.warehouse, &namespace(&["a", "b"])?).await?, None);
    Ok(())
}

pub async fn levels_of_a_kilobyte_can_be_nested(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    // Digits that do not repeat, so that no compression helps a key to fit.
    let digits: String =
        (0..103_000_u32).map(|n| char::from_digit(n.wrapping_mul(2_654_435_761) >> 28, 16).unwrap_or('x')).collect();
    let level = |n: usize| &digits[n * 1024..(n + 1) * 1024];
    let levels: Vec<&str> = (0..16).map(level).collect();
    for depth in 1..=levels.len() {
        let made = world.namespace(&levels[..depth]).await?;
        assert!(store.namespace(world.warehouse, &made).await?.is_some());
    }
    Ok(())
}

pub async fn a_name_that_no_name_can_be_is_missing(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let odd = namespace(&["a\u{0}b"])?;
    assert_eq!(store.namespace(world.warehouse, &odd).await?, None);
    let listed = store.list_namespaces(world.warehouse, Some(&odd), &Page::ALL).await?;
    assert_eq!(listed, None);
    let dropped = store.drop_namespace(world.warehouse, &odd, None).await?;
    assert_eq!(dropped, NamespaceDropped::Missing);
    Ok(())
}

pub async fn a_namespace_needs_its_parent(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let child = world.new_namespace(&["a", "b"])?;
    assert_eq!(store.create_namespace(&child, None).await?, NamespaceCreated::ParentMissing);
    world.namespace(&["a"]).await?;
    assert_eq!(store.create_namespace(&child, None).await?, NamespaceCreated::Created);
    Ok(())
}

pub async fn a_namespace_is_made_once_below_each_parent(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    for levels in [&["a"][..], &["b"], &["a", "x"], &["b", "x"]] {
        world.namespace(levels).await?;
        let again = world.new_namespace(levels)?;
        assert_eq!(store.create_namespace(&again, None).await?, NamespaceCreated::AlreadyExists);
    }
    Ok(())
}

pub async fn warehouses_do_not_share_namespaces(store: &dyn Store) -> Checked {
    let (one, two) = (World::bare(store, "one").await?, World::bare(store, "two").await?);
    let a = one.namespace(&["a"]).await?;
    assert_eq!(store.namespace(two.warehouse, &a).await?, None);
    two.namespace(&["a"]).await?;
    store.drop_namespace(two.warehouse, &a, None).await?;
    assert!(store.namespace(one.warehouse, &a).await?.is_some());
    Ok(())
}

pub async fn a_listing_shows_one_level(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    for levels in [&["a"][..], &["b"], &["a", "y"], &["a", "x"], &["a", "x", "deep"]] {
        world.namespace(levels).await?;
    }
    let list = async |parent: &[&str]| -> Checked<Option<Vec<String>>> {
        let parent = namespace(parent).ok();
        Ok(store.list_namespaces(world.warehouse, parent.as_ref(), &Page::ALL).await?)
    };
    assert_eq!(list(&[]).await?, Some(vec!["a".into(), "b".into()]));
    assert_eq!(list(&["a"]).await?, Some(vec!["x".into(), "y".into()]));
    assert_eq!(list(&["b"]).await?, Some(vec![]));
    assert_eq!(list(&["c"]).await?, None);
    Ok(())
}

pub async fn pages_lose_and_double_nothing_whatever_their_size(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let parent = world.namespace(&["p"]).await?;
    for n in 0..24 {
        world.namespace(&["p", &format!("n{n}")]).await?;
        world.namespace(&[&format!("n{n}")]).await?;
    }
    for parent in [Some(&parent), None] {
        let list = async |page: Page| -> Checked<Vec<String>> {
            let listed = store.list_namespaces(world.warehouse, parent, &page).await?;
            Ok(listed.ok_or("the parent is there")?)
        };
        let all = list(Page::ALL).await?;
        assert!(all.is_sorted() && all.len() >= 24);
        for limit in [1, 2, 5, 8, 23, 24, 25, 1000] {
            let (mut walked, mut after) = (Vec::new(), None);
            loop {
                let limit = Some(limit);
                let page = list(Page { after, limit }).await?;
                after = page.last().cloned();
                if after.is_none() {
                    break;
                }
                walked.extend(page);
            }
            assert_eq!(walked, all, "in pages of {limit}");
        }
    }
    Ok(())
}

pub async fn properties_change_by_key(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let mut new = world.new_namespace(&["a"])?;
    new.properties = properties(&[("stays", "1"), ("goes", "2"), ("changes", "3")]);
    store.create_namespace(&new, None).await?;
    let change =
        PropertiesChange { removals: vec!["goes".into(), "absent".into()], updates: properties(&[("changes", "4")]) };
    let updated = store.update_namespace(world.warehouse, &new.ident, &change, None).await?;
    let changed = PropertiesChanged {
        updated: vec!["changes".into()],
        removed: vec!["goes".into()],
        missing: vec!["absent".into()],
    };
    assert_eq!(updated, NamespaceUpdated::Updated(changed));
    let found = store.namespace(world.warehouse, &new.ident).await?;
    let found = found.ok_or("the namespace is there")?;
    assert_eq!(found.properties, properties(&[("stays", "1"), ("changes", "4")]));
    Ok(())
}

pub async fn properties_of_no_namespace_are_missing(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let (ident, change) = (namespace(&["a"])?, PropertiesChange::default());
    let updated = store.update_namespace(world.warehouse, &ident, &change, None).await?;
    assert_eq!(updated, NamespaceUpdated::Missing);
    Ok(())
}

pub async fn parallel_changes_of_different_keys_all_survive(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let ident = namespace(&["ns"])?;
    let change = |n: usize| PropertiesChange { removals: Vec::new(), updates: properties(&[(&format!("k{n}"), "v")]) };
    let changes: Vec<_> = (0..RACERS).map(change).collect();
    let racers = changes.iter().map(|change| store.update_namespace(world.warehouse, &ident, change, None));
    for updated in join_all(racers).await {
        assert!(matches!(updated?, NamespaceUpdated::Updated(_)));
    }
    let found = store.namespace(world.warehouse, &ident).await?;
    let found = found.ok_or("the namespace is there")?;
    assert_eq!(found.properties.len(), RACERS);
    let removals = PropertiesChange { removals: found.properties.into_keys().collect(), updates: BTreeMap::new() };
    store.update_namespace(world.warehouse, &ident, &removals, None).await?;
    let emptied = store.namespace(world.warehouse, &ident).await?;
    assert_eq!(emptied.map(|namespace| namespace.properties.len()), Some(0));
    Ok(())
}

pub async fn a_namespace_with_a_child_a_table_or_a_view_stays(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (ns, child) = (namespace(&["ns"])?, namespace(&["ns", "child"])?);
    let drop =
        async |ident| -> Checked<NamespaceDropped> { Ok(store.drop_namespace(world.warehouse, ident, None).await?) };
    world.namespace(&["ns", "child"]).await?;
    assert_eq!(drop(&ns).await?, NamespaceDropped::NotEmpty);
    assert_eq!(drop(&child).await?, NamespaceDropped::Dropped);
    for kind in [TabularKind::Table, TabularKind::View] {
        world.must(of_kind(create("t")?, kind)).await?;
        assert_eq!(drop(&ns).await?, NamespaceDropped::NotEmpty);
        let pointer = world.pointer("t").await?;
        world.must(drop_of(&pointer)).await?;
    }
    assert_eq!(drop(&ns).await?, NamespaceDropped::Dropped);
    assert_eq!(drop(&ns).await?, NamespaceDropped::Missing);
    Ok(())
}

pub async fn of_racing_creators_one_wins(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let mut racing = Vec::new();
    for n in 0..RACERS {
        let mut new = world.new_namespace(&["a"])?;
        new.properties = properties(&[("by", &n.to_string())]);
        racing.push(new);
    }
    let created = join_all(racing.iter().map(|new| store.create_namespace(new, None))).await;
    let mut winners = BTreeSet::new();
    for (n, created) in created.into_iter().enumerate() {
        match created? {
            NamespaceCreated::Created => assert!(winners.insert(n)),
            other => assert_eq!(other, NamespaceCreated::AlreadyExists),
        }
    }
    let winner = winners.pop_first().ok_or("nobody won")?;
    assert!(winners.is_empty(), "more than one won");
    let found = store.namespace(world.warehouse, &namespace(&["a"])?).await?;
    assert_eq!(found.map(|found| found.properties), Some(properties(&[("by", &winner.to_string())])));
    Ok(())
}

pub async fn a_child_and_the_drop_of_its_parent_exclude_each_other(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    for n in 0..RACERS {
        let parent = world.namespace(&[&format!("p{n}")]).await?;
        let child = world.new_namespace(&[&format!("p{n}"), "c"])?;
        let (created, dropped) =
            join(store.create_namespace(&child, None), store.drop_namespace(world.warehouse, &parent, None)).await;
        let expected = [
            (NamespaceCreated::Created, NamespaceDropped::NotEmpty),
            (NamespaceCreated::ParentMissing, NamespaceDropped::Dropped),
        ];
        let (created, dropped) = (created?, dropped?);
        assert!(expected.contains(&(created, dropped)), "{created:?} {dropped:?}");
    }
    Ok(())
}

pub async fn a_table_and_the_drop_of_its_namespace_exclude_each_other(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    for n in 0..RACERS {
        let ns = world.namespace(&["ns"]).await?;
        let (created, dropped) =
            join(world.apply(create(&format!("t{n}"))?), store.drop_namespace(world.warehouse, &ns, None)).await;
        match (created?, dropped?) {
            (SwapOutcome::NamespaceMissing { .. }, NamespaceDropped::Dropped) => {}
            (SwapOutcome::Applied, NamespaceDropped::NotEmpty) => {
                let made = world.pointer(&format!("t{n}")).await?;
                world.must(drop_of(&made)).await?;
                store.drop_namespace(world.warehouse, &ns, None).await?;
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(())
}

pub async fn siblings_churn_without_harm_to_a_listing(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.namespace(&["ns", "stays"]).await?;
    let churn = async |name: &str| -> Checked {
        for _ in 0..RACERS {
            let ident = world.namespace(&["ns", name]).await?;
            let dropped = store.drop_namespace(world.warehouse, &ident, None).await?;
            assert_eq!(dropped, NamespaceDropped::Dropped);
        }
        Ok(())
    };
    let list = async || -> Checked {
        for _ in 0..RACERS {
            let parent = namespace(&["ns"])?;
            let listed = store.list_namespaces(world.warehouse, Some(&parent), &Page::ALL).await?;
            assert!(listed.is_some_and(|names| names.contains(&"stays".into())));
        }
        Ok(())
    };
    let (one, two, listed) = futures::join!(churn("one"), churn("two"), list());
    one.and(two).and(listed)
}

pub async fn a_receipt_is_kept_with_what_it_answers(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let new = world.new_namespace(&["a"])?;
    let created = world.receipt(Answer::Body("{}".into()));
    store.create_namespace(&new, Some(&created)).await?;
    assert!(world.is_kept(&created).await?);

    let change = PropertiesChange { removals: vec!["absent".into()], updates: properties(&[("k", "v")]) };
    let mut updated = world.receipt(Answer::Empty);
    let what = store.update_namespace(world.warehouse, &new.ident, &change, Some(&updated)).await?;
    let NamespaceUpdated::Updated(changed) = what else {
        return Err(format!("{what:?}").into());
    };
    updated.answer = changed.answer();
    assert!(world.is_kept(&updated).await?);

    let dropped = world.receipt(Answer::Empty);
    store.drop_namespace(world.warehouse, &new.ident, Some(&dropped)).await?;
    assert!(world.is_kept(&dropped).await?);
    Ok(())
}

pub async fn what_is_refused_keeps_no_receipt(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    world.namespace(&["ns", "child"]).await?;
    let ns = namespace(&["ns"])?;
    let receipts: Vec<_> = (0..4).map(|_| world.receipt(Answer::Empty)).collect();
    store.create_namespace(&world.new_namespace(&["ns"])?, Some(&receipts[0])).await?;
    store.create_namespace(&world.new_namespace(&["missing", "a"])?, Some(&receipts[1])).await?;
    store.drop_namespace(world.warehouse, &ns, Some(&receipts[2])).await?;
    let (missing, change) = (namespace(&["missing"])?, PropertiesChange::default());
    store.update_namespace(world.warehouse, &missing, &change, Some(&receipts[3])).await?;
    for receipt in &receipts {
        assert!(!world.is_kept(receipt).await?);
    }
    Ok(())
}

pub async fn a_key_that_is_taken_changes_nothing(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let ns = namespace(&["ns"])?;
    let receipt = world.receipt(Answer::Empty);
    store.keep(&receipt).await?;

    let new = world.new_namespace(&["a"])?;
    let created = store.create_namespace(&new, Some(&receipt)).await?;
    assert_eq!(created, NamespaceCreated::KeyTaken);
    assert_eq!(store.namespace(world.warehouse, &new.ident).await?, None);

    let change = PropertiesChange { removals: Vec::new(), updates: properties(&[("k", "v")]) };
    let updated = store.update_namespace(world.warehouse, &ns, &change, Some(&receipt)).await?;
    assert_eq!(updated, NamespaceUpdated::KeyTaken);
    let dropped = store.drop_namespace(world.warehouse, &ns, Some(&receipt)).await?;
    assert_eq!(dropped, NamespaceDropped::KeyTaken);
    let found = store.namespace(world.warehouse, &ns).await?;
    assert_eq!(found.map(|found| found.properties.len()), Some(0));
    assert!(world.is_kept(&receipt).await?);
    Ok(())
}
