//! What is documented of metadata. The documents themselves are kept as they come, and may hold more than is told here.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;

/// The columns of a table or view.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct Schema {
    #[schema(example = "struct")]
    pub r#type: String,
    pub schema_id: Option<i32>,
    /// The columns that tell rows apart.
    pub identifier_field_ids: Option<Vec<i32>>,
    pub fields: Vec<Field>,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct Field {
    pub id: i32,
    pub name: String,
    pub required: bool,
    /// The name of a primitive type, or an object for a nested one.
    pub r#type: Value,
    pub doc: Option<String>,
    pub initial_default: Option<Value>,
    pub write_default: Option<Value>,
}

/// How rows are put into partitions.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct PartitionSpec {
    pub spec_id: Option<i32>,
    pub fields: Vec<PartitionField>,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct PartitionField {
    pub field_id: Option<i32>,
    pub source_id: i32,
    pub name: String,
    #[schema(example = "bucket[16]")]
    pub transform: String,
}

/// How rows are sorted within a file.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct SortOrder {
    pub order_id: i32,
    pub fields: Vec<SortField>,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct SortField {
    pub source_id: i32,
    #[schema(example = "identity")]
    pub transform: String,
    #[schema(example = "asc")]
    pub direction: String,
    #[schema(example = "nulls-first")]
    pub null_order: String,
}

/// The state of a table at some time.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct Snapshot {
    pub snapshot_id: i64,
    pub parent_snapshot_id: Option<i64>,
    pub sequence_number: Option<i64>,
    pub timestamp_ms: i64,
    pub manifest_list: Option<String>,
    pub first_row_id: Option<i64>,
    pub added_rows: Option<i64>,
    pub summary: Option<BTreeMap<String, String>>,
    pub schema_id: Option<i32>,
}

/// A branch or a tag.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct SnapshotReference {
    #[schema(example = "branch")]
    pub r#type: String,
    pub snapshot_id: i64,
    pub max_ref_age_ms: Option<i64>,
    pub max_snapshot_age_ms: Option<i64>,
    pub min_snapshots_to_keep: Option<i32>,
}

/// The metadata document of a table, as its file holds it.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct TableMetadata {
    #[schema(minimum = 1, maximum = 3)]
    pub format_version: i32,
    pub table_uuid: String,
    pub location: Option<String>,
    pub last_updated_ms: Option<i64>,
    pub properties: Option<BTreeMap<String, String>>,
    pub schemas: Option<Vec<Schema>>,
    pub current_schema_id: Option<i32>,
    pub last_column_id: Option<i32>,
    pub partition_specs: Option<Vec<PartitionSpec>>,
    pub default_spec_id: Option<i32>,
    pub last_partition_id: Option<i32>,
    pub sort_orders: Option<Vec<SortOrder>>,
    pub default_sort_order_id: Option<i32>,
    pub snapshots: Option<Vec<Snapshot>>,
    pub refs: Option<BTreeMap<String, SnapshotReference>>,
    pub current_snapshot_id: Option<i64>,
    pub last_sequence_number: Option<i64>,
    pub next_row_id: Option<i64>,
}

/// One change of a table. The action says which further fields there are.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct TableUpdate {
    pub action: TableAction,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum TableAction {
    AssignUuid,
    UpgradeFormatVersion,
    AddSchema,
    SetCurrentSchema,
    AddSpec,
    SetDefaultSpec,
    RemovePartitionSpecs,
    RemoveSchemas,
    AddSortOrder,
    SetDefaultSortOrder,
    AddSnapshot,
    SetSnapshotRef,
    RemoveSnapshots,
    RemoveSnapshotRef,
    SetLocation,
    SetProperties,
    RemoveProperties,
    SetStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    RemovePartitionStatistics,
    AddEncryptionKey,
    RemoveEncryptionKey,
}

/// What must hold of a table for its changes to be applied. The type says which further fields there are.
#[derive(Debug, ToSchema)]
pub struct TableRequirement {
    pub r#type: TableRequirementType,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum TableRequirementType {
    AssertCreate,
    AssertTableUuid,
    AssertRefSnapshotId,
    AssertLastAssignedFieldId,
    AssertCurrentSchemaId,
    AssertLastAssignedPartitionId,
    AssertDefaultSpecId,
    AssertDefaultSortOrderId,
}

/// What a view says, in one or several dialects.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct ViewVersion {
    pub version_id: i32,
    pub timestamp_ms: i64,
    pub schema_id: i32,
    pub summary: BTreeMap<String, String>,
    pub default_catalog: Option<String>,
    pub default_namespace: Vec<String>,
    pub representations: Vec<ViewRepresentation>,
}

#[derive(Debug, ToSchema)]
pub struct ViewRepresentation {
    #[schema(example = "sql")]
    pub r#type: String,
    pub sql: String,
    pub dialect: String,
}

/// The metadata document of a view, as its file holds it.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct ViewMetadata {
    pub view_uuid: String,
    #[schema(minimum = 1, maximum = 1)]
    pub format_version: i32,
    pub location: String,
    pub current_version_id: i32,
    pub versions: Vec<ViewVersion>,
    pub version_log: Vec<ViewHistoryEntry>,
    pub schemas: Vec<Schema>,
    pub properties: Option<BTreeMap<String, String>>,
}

/// When a version became the current one.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct ViewHistoryEntry {
    pub version_id: i32,
    pub timestamp_ms: i64,
}

/// One change of a view. The action says which further fields there are.
#[derive(Debug, ToSchema)]
pub struct ViewUpdate {
    pub action: ViewAction,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum ViewAction {
    AssignUuid,
    UpgradeFormatVersion,
    AddSchema,
    SetLocation,
    SetProperties,
    RemoveProperties,
    AddViewVersion,
    SetCurrentViewVersion,
}

/// What must hold of a view for its changes to be applied.
#[derive(Debug, ToSchema)]
pub struct ViewRequirement {
    pub r#type: ViewRequirementType,
    pub uuid: String,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum ViewRequirementType {
    AssertViewUuid,
}
