//! Tables and views: is the metadata file there that the catalog names?

use catalog::error::Error as Refused;
use catalog::files::Files;
use catalog::finding::Finding;
use catalog::ident::{NamespaceIdent, TableIdent};
use catalog::store::{Page, Store};
use catalog::tabulars::TabularKind;
use catalog::warehouses::Warehouse;
use futures::StreamExt;

/// Files that are asked for at one time.
const AT_ONCE: usize = 16;

const MEND: &str =
    "bring the file back from a version or a backup of the store, or register the newest metadata file that is there";

/// A finding for each that has no file, and one for all others.
pub async fn examine(store: &dyn Store, warehouse: &Warehouse, files: &Files) -> Vec<Finding> {
    let check = format!("warehouse {} tables", warehouse.name);
    let idents = match idents(store, warehouse).await {
        Ok(idents) => idents,
        Err(error) => return vec![Finding::failed(check, error.to_string(), "look at the findings of the database")],
    };
    let all = idents.len();
    let asked = idents.into_iter().map(|ident| of_tabular(store, warehouse, files, ident));
    let mut found: Vec<Finding> =
        futures::stream::iter(asked).buffered(AT_ONCE).filter_map(|finding| async { finding }).collect().await;
    let whole = all - found.len();
    found.push(Finding::ok(check, format!("{whole} tables and views have their metadata files")));
    found
}

/// Of all namespaces.
async fn idents(store: &dyn Store, warehouse: &Warehouse) -> Result<Vec<TableIdent>, Refused> {
    let mut idents = Vec::new();
    let mut namespaces = below(store, warehouse, None).await?;
    while let Some(namespace) = namespaces.pop() {
        for kind in [TabularKind::Table, TabularKind::View] {
            let names = store.list_tabulars(warehouse.id, &namespace, kind, &Page::ALL).await?;
            idents.extend(names.into_iter().flatten().map(|name| TableIdent::new(namespace.clone(), name)));
        }
        namespaces.extend(below(store, warehouse, Some(&namespace)).await?);
    }
    Ok(idents)
}

async fn below(
    store: &dyn Store,
    warehouse: &Warehouse,
    parent: Option<&NamespaceIdent>,
) -> Result<Vec<NamespaceIdent>, Refused> {
    let names = store.list_namespaces(warehouse.id, parent, &Page::ALL).await?;
    let levels = |name: String| [parent.map_or(&[][..], NamespaceIdent::levels), &[name]].concat();
    names.into_iter().flatten().map(|name| NamespaceIdent::new(levels(name))).collect()
}

/// Nothing where all is well, or it was dropped meanwhile.
async fn of_tabular(store: &dyn Store, warehouse: &Warehouse, files: &Files, ident: TableIdent) -> Option<Finding> {
    let check = || {
        let levels = [ident.namespace.levels(), std::slice::from_ref(&ident.name)].concat();
        format!("warehouse {}, {}", warehouse.name, levels.join("."))
    };
    let pointer = match store.pointer(warehouse.id, &ident).await {
        Ok(pointer) => pointer?,
        Err(error) => return Some(Finding::failed(check(), Refused::from(error).to_string(), MEND)),
    };
    match files.exists(&warehouse.place, &pointer.metadata_location).await {
        Ok(true) => None,
        Ok(false) => Some(Finding::failed(check(), format!("{} is missing", pointer.metadata_location), MEND)),
        Err(error) => Some(Finding::failed(check(), error.to_string(), MEND)),
    }
}
