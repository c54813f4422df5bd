//! Namespaces: nested, with properties; a parent must exist, and what is not empty stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::audit;
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::idempotency::{Answer, Mutations, Ran};
use crate::ident::{NamespaceId, NamespaceIdent};
use crate::listing::{Listing, PageRequest};
use crate::location::Location;
use crate::warehouses::Warehouse;

pub mod store;

use store::{NamespaceCreated, NamespaceDropped, NamespaceStore, NamespaceUpdated, NewNamespace};

/// Bound of a level of a namespace and of a table name, in bytes.
pub const NAME_MAX_BYTES: usize = 1024;

/// The property that says where a namespace's tables and views are to lie.
pub const LOCATION: &str = "location";

/// How deep namespaces may be nested, in levels.
const LEVELS_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    #[serde(rename = "namespace")]
    pub ident: NamespaceIdent,
    pub properties: BTreeMap<String, String>,
}

/// A change of properties; no key may be both set and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PropertiesChange {
    pub removals: Vec<String>,
    pub updates: BTreeMap<String, String>,
}

/// What a change of properties did, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertiesChanged {
    pub updated: Vec<String>,
    pub removed: Vec<String>,
    /// Keys that were to be removed and were not there.
    pub missing: Vec<String>,
}

impl PropertiesChange {
    /// Applies the change and tells what it did.
    pub fn apply(&self, properties: &mut BTreeMap<String, String>) -> PropertiesChanged {
        let mut changed = PropertiesChanged { updated: self.updates.keys().cloned().collect(), ..Default::default() };
        for key in self.removals.iter().collect::<BTreeSet<_>>() {
            match properties.remove(key) {
                Some(_) => changed.removed.push(key.clone()),
                None => changed.missing.push(key.clone()),
            }
        }
        properties.extend(self.updates.iter().map(|(key, value)| (key.clone(), value.clone())));
        changed
    }
}

impl PropertiesChanged {
    /// As it is kept with an `Idempotency-Key`.
    pub fn answer(&self) -> Answer {
        Answer::of(self)
    }
}

#[derive(Clone)]
pub struct Namespaces {
    store: Arc<dyn NamespaceStore>,
    mutations: Mutations,
}

impl Namespaces {
    pub fn new(store: Arc<dyn NamespaceStore>, mutations: Mutations) -> Self {
        Self { store, mutations }
    }

    /// The namespaces one level below `parent`, or those at the top.
    pub async fn list(
        &self,
        _ctx: &RequestContext,
        warehouse: &Warehouse,
        parent: Option<&NamespaceIdent>,
        page: &PageRequest,
    ) -> Result<Listing<NamespaceIdent>> {
        let names = self.store.list_namespaces(warehouse.id, parent, &page.probe()?).await?;
        let names = names.ok_or_else(|| parent.map_or_else(missing_top, missing))?;
        let levels = |name: String| [parent.map_or(&[][..], |p| p.levels()), &[name]].concat();
        page.cut(names).try_map(|name| NamespaceIdent::new(levels(name)))
    }

    pub async fn get(&self, _ctx: &RequestContext, warehouse: &Warehouse, ident: &NamespaceIdent) -> Result<Namespace> {
        self.store.namespace(warehouse.id, ident).await?.ok_or_else(|| missing(ident))
    }

    pub async fn create(&self, ctx: &RequestContext, warehouse: &Warehouse, namespace: Namespace) -> Result<Namespace> {
        check_name(&namespace.ident)?;
        check_location(warehouse, &namespace.properties)?;
        let new = NewNamespace {
            id: NamespaceId(ctx.new_id()),
            warehouse: warehouse.id,
            ident: namespace.ident.clone(),
            properties: namespace.properties.clone(),
            at_ms: ctx.now_ms(),
        };
        let (store, told) = (self.store.clone(), told(ctx, "namespace.create", warehouse, &namespace.ident));
        let answer = self.mutations.once(ctx, warehouse.id, async move |ticket| {
            let answer = Answer::of(&namespace);
            let receipt = ticket.receipt(answer.clone());
            match store.create_namespace(&new, receipt.as_ref()).await? {
                NamespaceCreated::Created => {
                    audit::record(told);
                    Ok(Ran::Done(answer))
                }
                NamespaceCreated::KeyTaken => Ok(Ran::KeyTaken),
                NamespaceCreated::AlreadyExists => {
                    Err(Error::new(Kind::AlreadyExists, format!("Namespace already exists: {}", namespace.ident)))
                }
                NamespaceCreated::WarehouseMissing => {
                    Err(Error::new(Kind::NoSuchWarehouse, "the warehouse was deleted meanwhile"))
                }
                NamespaceCreated::ParentMissing => {
                    Err(namespace.ident.parent().as_ref().map_or_else(missing_top, missing))
                }
            }
        });
        answer.await?.answer.read()
    }

    pub async fn update_properties(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        ident: NamespaceIdent,
        change: PropertiesChange,
    ) -> Result<PropertiesChanged> {
        if let Some(key) = change.removals.iter().find(|key| change.updates.contains_key(*key)) {
            return Err(Error::unprocessable(format!("property '{key}' is in both removals and updates")));
        }
        check_location(warehouse, &change.updates)?;
        let (store, warehouse_id) = (self.store.clone(), warehouse.id);
        let told = told(ctx, "namespace.update", warehouse, &ident);
        let answer = self.mutations.once(ctx, warehouse_id, async move |ticket| {
            let receipt = ticket.receipt(Answer::Empty);
            match store.update_namespace(warehouse_id, &ident, &change, receipt.as_ref()).await? {
                NamespaceUpdated::Updated(changed) => {
                    audit::record(told);
                    Ok(Ran::Done(changed.answer()))
                }
                NamespaceUpdated::Missing => Err(missing(&ident)),
                NamespaceUpdated::KeyTaken => Ok(Ran::KeyTaken),
            }
        });
        answer.await?.answer.read()
    }

    pub async fn drop(&self, ctx: &RequestContext, warehouse: &Warehouse, ident: NamespaceIdent) -> Result<()> {
        let (store, warehouse_id) = (self.store.clone(), warehouse.id);
        let told = told(ctx, "namespace.drop", warehouse, &ident);
        let answer = self.mutations.once(ctx, warehouse_id, async move |ticket| {
            let receipt = ticket.receipt(Answer::Empty);
            match store.drop_namespace(warehouse_id, &ident, receipt.as_ref()).await? {
                NamespaceDropped::Dropped => {
                    audit::record(told);
                    Ok(Ran::Done(Answer::Empty))
                }
                NamespaceDropped::KeyTaken => Ok(Ran::KeyTaken),
                NamespaceDropped::Missing => Err(missing(&ident)),
                NamespaceDropped::NotEmpty => Err(Error::new(
                    Kind::NamespaceNotEmpty,
                    format!("Namespace {ident} is not empty: drop its tables, views and namespaces first"),
                )),
            }
        });
        answer.await.map(|_| ())
    }
}

/// What the audit log tells of a change, once it has landed.
fn told(ctx: &RequestContext, action: &str, warehouse: &Warehouse, ident: &NamespaceIdent) -> audit::Entry {
    audit::Entry::new(ctx, action).warehouse(&warehouse.name).namespace(ident)
}

/// The refusal where `ident` does not exist.
pub fn missing(ident: &NamespaceIdent) -> Error {
    Error::new(Kind::NoSuchNamespace, format!("Namespace does not exist: {ident}"))
}

fn missing_top() -> Error {
    Error::new(Kind::NoSuchNamespace, "Namespace does not exist")
}

/// What a new name may be: anything that can be addressed in a path and printed in a log.
pub fn check_part(what: &str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid(format!("{what} must not be empty")));
    }
    if name.len() > NAME_MAX_BYTES {
        return Err(Error::invalid(format!("{what} is longer than {NAME_MAX_BYTES} bytes")));
    }
    if name == "." || name == ".." {
        return Err(Error::invalid(format!("{what} must not be '{name}', which no URL can name")));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(format!("{what} must not hold control characters")));
    }
    Ok(())
}

/// Tables go below the property `location`, so it must be a place where they may lie.
fn check_location(warehouse: &Warehouse, properties: &BTreeMap<String, String>) -> Result<()> {
    match properties.get(LOCATION) {
        Some(location) => warehouse.place.check(&Location::parse(location)?),
        None => Ok(()),
    }
}

fn check_name(ident: &NamespaceIdent) -> Result<()> {
    if ident.levels().len() > LEVELS_MAX {
        return Err(Error::invalid(format!("namespace has more than {LEVELS_MAX} levels")));
    }
    ident.levels().iter().try_for_each(|level| check_part("a level of the namespace", level))
}
