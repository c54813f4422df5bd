//! Views as they are asked for.

use std::collections::BTreeMap;

use bytes::Bytes;
use catalog::error::Result;
use catalog::ident::{NamespaceIdent, TableIdent};
use catalog::views::{CreateView, RegisterView, ReplaceView};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::iceberg::wire::metadata::{Schema, ViewMetadata, ViewRequirement, ViewUpdate, ViewVersion};
use crate::api::iceberg::wire::tables::TableIdentifier;
use crate::api::request::{BodySize, RequestBody, json_bodies};

json_bodies! {
    CreateViewRequest: Metadata,
    RegisterViewRequest: Plain,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CreateViewRequest {
    name: String,
    /// Where the view's metadata is to lie; without it the catalog chooses.
    location: Option<String>,
    #[schema(value_type = Schema)]
    schema: Box<RawValue>,
    #[schema(value_type = ViewVersion)]
    view_version: Box<RawValue>,
    properties: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RegisterViewRequest {
    name: String,
    metadata_location: String,
}

/// Changes of one view.
#[derive(Debug, ToSchema)]
pub struct CommitViewRequest {
    /// Passed over: the path names the view.
    pub identifier: Option<TableIdentifier>,
    pub requirements: Option<Vec<ViewRequirement>>,
    pub updates: Vec<ViewUpdate>,
}

/// A view with its metadata.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct LoadViewResult {
    pub metadata_location: String,
    pub metadata: ViewMetadata,
    /// Settings for this view, for the client.
    pub config: BTreeMap<String, String>,
}

impl RequestBody for ReplaceView {
    const SIZE: BodySize = BodySize::Metadata;

    fn read(body: &Bytes) -> Result<Self> {
        Self::parse(body)
    }
}

impl CreateViewRequest {
    pub fn within(self, namespace: NamespaceIdent) -> CreateView {
        CreateView {
            ident: TableIdent::new(namespace, self.name),
            location: self.location,
            schema: self.schema,
            view_version: self.view_version,
            properties: self.properties.unwrap_or_default(),
        }
    }
}

impl RegisterViewRequest {
    pub fn within(self, namespace: NamespaceIdent) -> RegisterView {
        RegisterView { ident: TableIdent::new(namespace, self.name), metadata_location: self.metadata_location }
    }
}
