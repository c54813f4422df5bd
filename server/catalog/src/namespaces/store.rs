//! The port of namespaces: one method is one transaction.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::idempotency::Receipt;
use crate::ident::{NamespaceId, NamespaceIdent, WarehouseId};
use crate::namespaces::{Namespace, PropertiesChange, PropertiesChanged};
use crate::store::{Page, StoreError};

#[derive(Debug, Clone)]
pub struct NewNamespace {
    pub id: NamespaceId,
    pub warehouse: WarehouseId,
    pub ident: NamespaceIdent,
    pub properties: BTreeMap<String, String>,
    pub at_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceCreated {
    Created,
    AlreadyExists,
    ParentMissing,
    /// It was deleted a moment ago.
    WarehouseMissing,
    /// The receipt's key was used meanwhile; nothing was done.
    KeyTaken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceDropped {
    Dropped,
    Missing,
    /// It holds tables, views or namespaces.
    NotEmpty,
    /// The receipt's key was used meanwhile; nothing was done.
    KeyTaken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceUpdated {
    Updated(PropertiesChanged),
    Missing,
    /// The receipt's key was used meanwhile; nothing was done.
    KeyTaken,
}

#[async_trait]
pub trait NamespaceStore: Send + Sync + 'static {
    async fn namespace(&self, warehouse: WarehouseId, ident: &NamespaceIdent) -> Result<Option<Namespace>, StoreError>;

    /// The names one level below `parent` (or at the top), in order; `None` where the parent does not exist.
    async fn list_namespaces(
        &self,
        warehouse: WarehouseId,
        parent: Option<&NamespaceIdent>,
        page: &Page,
    ) -> Result<Option<Vec<String>>, StoreError>;

    async fn create_namespace(
        &self,
        new: &NewNamespace,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceCreated, StoreError>;

    /// Applies the change under the row's lock, so that parallel changes of different keys all survive.
    /// The receipt is kept with [`PropertiesChanged::answer`] of what happened.
    async fn update_namespace(
        &self,
        warehouse: WarehouseId,
        ident: &NamespaceIdent,
        change: &PropertiesChange,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceUpdated, StoreError>;

    async fn drop_namespace(
        &self,
        warehouse: WarehouseId,
        ident: &NamespaceIdent,
        receipt: Option<&Receipt>,
    ) -> Result<NamespaceDropped, StoreError>;
}
