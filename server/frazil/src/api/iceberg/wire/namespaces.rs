//! Namespaces as they are sent.

use std::collections::BTreeMap;

use catalog::error::Result;
use catalog::ident::NamespaceIdent;
use catalog::listing::Listing;
use catalog::namespaces::{Namespace, PropertiesChange, PropertiesChanged};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::request::json_bodies;

json_bodies! {
    CreateNamespaceRequest: Plain,
    UpdateNamespacePropertiesRequest: Plain,
}

#[derive(Debug, Deserialize, ToSchema)]
pub struct CreateNamespaceRequest {
    /// The levels, outermost first.
    #[schema(min_items = 1, example = json!(["accounting", "tax"]))]
    namespace: Vec<String>,
    properties: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub struct UpdateNamespacePropertiesRequest {
    /// Keys to remove.
    removals: Option<Vec<String>>,
    /// Properties to set.
    updates: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct NamespaceResponse {
    pub namespace: Vec<String>,
    pub properties: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct UpdateNamespacePropertiesResponse {
    updated: Vec<String>,
    removed: Vec<String>,
    /// Keys that were to be removed and were not there.
    missing: Vec<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListNamespacesResponse {
    namespaces: Vec<Vec<String>>,
    /// The token of the next page; null after the last one.
    #[schema(required)]
    next_page_token: Option<String>,
}

impl TryFrom<CreateNamespaceRequest> for Namespace {
    type Error = catalog::error::Error;

    fn try_from(request: CreateNamespaceRequest) -> Result<Self> {
        let ident = NamespaceIdent::new(request.namespace)?;
        Ok(Self { ident, properties: request.properties.unwrap_or_default() })
    }
}

impl From<UpdateNamespacePropertiesRequest> for PropertiesChange {
    fn from(request: UpdateNamespacePropertiesRequest) -> Self {
        Self { removals: request.removals.unwrap_or_default(), updates: request.updates.unwrap_or_default() }
    }
}

impl From<Namespace> for NamespaceResponse {
    fn from(namespace: Namespace) -> Self {
        Self { namespace: namespace.ident.levels().to_vec(), properties: namespace.properties }
    }
}

impl From<PropertiesChanged> for UpdateNamespacePropertiesResponse {
    fn from(changed: PropertiesChanged) -> Self {
        Self { updated: changed.updated, removed: changed.removed, missing: changed.missing }
    }
}

impl From<Listing<NamespaceIdent>> for ListNamespacesResponse {
    fn from(listing: Listing<NamespaceIdent>) -> Self {
        let namespaces = listing.entries.iter().map(|ident| ident.levels().to_vec()).collect();
        Self { namespaces, next_page_token: listing.next_page_token }
    }
}
