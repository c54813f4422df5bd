//! Cases of [`crate::tabulars::TabularStore`].

use super::world::{Checked, World, ident, namespace};
use crate::ident::TableIdent;
use crate::store::{Page, Store};
use crate::tabulars::TabularKind;

pub async fn a_listing_shows_one_kind_of_one_namespace(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for name in ["b", "a", "B"] {
        world.table(name).await?;
        world.view(&format!("{name}-view")).await?;
    }
    let list = async |levels: &[&str], kind| -> Checked<Option<Vec<String>>> {
        Ok(store.list_tabulars(world.warehouse, &namespace(levels)?, kind, &Page::ALL).await?)
    };
    let names = |names: [&str; 3]| Some(names.map(str::to_owned).to_vec());
    assert_eq!(list(&["ns"], TabularKind::Table).await?, names(["B", "a", "b"]));
    assert_eq!(list(&["ns"], TabularKind::View).await?, names(["B-view", "a-view", "b-view"]));
    world.namespace(&["empty"]).await?;
    assert_eq!(list(&["empty"], TabularKind::Table).await?, Some(vec![]));
    assert_eq!(list(&["missing"], TabularKind::Table).await?, None);
    Ok(())
}

pub async fn pages_lose_and_double_nothing_whatever_their_size(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    for n in 0..7 {
        world.table(&format!("t{n}")).await?;
    }
    let ns = namespace(&["ns"])?;
    for limit in [1, 2, 6, 7, 8] {
        let (mut walked, mut after) = (Vec::new(), None);
        loop {
            let limit = Some(limit);
            let page = Page { after, limit };
            let listed = store.list_tabulars(world.warehouse, &ns, TabularKind::Table, &page).await?;
            let listed = listed.ok_or("the namespace is there")?;
            after = listed.last().cloned();
            if after.is_none() {
                break;
            }
            walked.extend(listed);
        }
        assert_eq!(walked, ["t0", "t1", "t2", "t3", "t4", "t5", "t6"], "in pages of {limit}");
    }
    Ok(())
}

pub async fn a_pointer_is_found_by_all_of_its_name(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let table = world.table("t").await?;
    assert_eq!((table.version, table.kind), (1, TabularKind::Table));
    world.namespace(&["other"]).await?;
    let elsewhere = [
        TableIdent::new(namespace(&["other"])?, "t"),
        TableIdent::new(namespace(&["missing"])?, "t"),
        ident("T")?,
        ident("t\u{0}")?,
    ];
    for ident in elsewhere {
        assert_eq!(store.pointer(world.warehouse, &ident).await?, None, "{ident:?}");
    }
    let stranger = World::bare(store, "stranger").await?;
    assert_eq!(stranger.find("t").await?, None);
    Ok(())
}
