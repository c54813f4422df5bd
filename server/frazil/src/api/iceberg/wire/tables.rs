//! Tables as they are asked for and listed.

use std::collections::BTreeMap;

use catalog::error::Result;
use catalog::ident::{NamespaceIdent, TableIdent};
use catalog::listing::Listing;
use catalog::tables::{CreateTable, RegisterTable, SnapshotMode};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::api::iceberg::wire::metadata::{PartitionSpec, Schema, SortOrder, TableMetadata};
use crate::api::json;
use crate::api::request::json_bodies;

json_bodies! {
    CreateTableRequest: Metadata,
    RegisterTableRequest: Plain,
    RenameTableRequest: Plain,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TableIdentifier {
    #[schema(min_items = 1)]
    namespace: Vec<String>,
    name: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CreateTableRequest {
    name: String,
    /// Where the table is to lie; without it the catalog chooses.
    location: Option<String>,
    #[schema(value_type = Schema)]
    schema: Box<RawValue>,
    #[schema(value_type = Option<PartitionSpec>)]
    partition_spec: Option<Box<RawValue>>,
    #[schema(value_type = Option<SortOrder>)]
    write_order: Option<Box<RawValue>>,
    /// Make the metadata and no table: its first commit makes that.
    stage_create: Option<bool>,
    /// `format-version` among them chooses the version of the table format.
    properties: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RegisterTableRequest {
    name: String,
    metadata_location: String,
    /// Point a table of that name to the file, if there is one.
    overwrite: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub struct RenameTableRequest {
    #[serde(deserialize_with = "json::object")]
    source: TableIdentifier,
    #[serde(deserialize_with = "json::object")]
    destination: TableIdentifier,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListTablesResponse {
    identifiers: Vec<TableIdentifier>,
    /// The token of the next page; null after the last one.
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A table with its metadata.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct LoadTableResult {
    /// The file of the metadata; absent for a staged table.
    pub metadata_location: Option<String>,
    pub metadata: TableMetadata,
    /// Settings for this table, for the client.
    pub config: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LoadQuery {
    /// Which snapshots are told: all, or those that a branch or tag names.
    #[serde(default)]
    #[param(value_type = Option<SnapshotsWanted>)]
    snapshots: SnapshotsWanted,
}

#[derive(Debug, Default, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SnapshotsWanted {
    #[default]
    #[serde(alias = "ALL")]
    All,
    #[serde(alias = "REFS")]
    Refs,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct DropQuery {
    /// Delete the table's files too, in the background.
    #[serde(default, deserialize_with = "boolean")]
    #[param(value_type = Option<bool>)]
    pub purge_requested: bool,
}

/// Some clients write booleans with a capital.
fn boolean<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<bool, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(serde::de::Error::custom(format!("'{text}' is neither true nor false"))),
    }
}

impl LoadQuery {
    pub fn mode(&self) -> SnapshotMode {
        match self.snapshots {
            SnapshotsWanted::All => SnapshotMode::All,
            SnapshotsWanted::Refs => SnapshotMode::Refs,
        }
    }
}

impl CreateTableRequest {
    pub fn within(self, namespace: NamespaceIdent) -> CreateTable {
        CreateTable {
            ident: TableIdent::new(namespace, self.name),
            location: self.location,
            schema: self.schema,
            partition_spec: self.partition_spec,
            write_order: self.write_order,
            stage_create: self.stage_create.unwrap_or(false),
            properties: self.properties.unwrap_or_default(),
        }
    }
}

impl RegisterTableRequest {
    pub fn within(self, namespace: NamespaceIdent) -> RegisterTable {
        RegisterTable {
            ident: TableIdent::new(namespace, self.name),
            metadata_location: self.metadata_location,
            overwrite: self.overwrite.unwrap_or(false),
        }
    }
}

impl RenameTableRequest {
    /// From where to where.
    pub fn idents(self) -> Result<(TableIdent, TableIdent)> {
        Ok((self.source.try_into()?, self.destination.try_into()?))
    }
}

impl TryFrom<TableIdentifier> for TableIdent {
    type Error = catalog::error::Error;

    fn try_from(identifier: TableIdentifier) -> Result<Self> {
        Ok(Self::new(NamespaceIdent::new(identifier.namespace)?, identifier.name))
    }
}

impl From<TableIdent> for TableIdentifier {
    fn from(ident: TableIdent) -> Self {
        Self { namespace: ident.namespace.levels().to_vec(), name: ident.name }
    }
}

impl From<Listing<TableIdent>> for ListTablesResponse {
    fn from(listing: Listing<TableIdent>) -> Self {
        let identifiers = listing.entries.into_iter().map(TableIdentifier::from).collect();
        Self { identifiers, next_page_token: listing.next_page_token }
    }
}
