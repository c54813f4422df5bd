//! A new table out of a `createTable` request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use uuid::Uuid;

use super::json::Checked;
use super::naming::without_trailing_slash;
use super::partition::UnboundSpec;
use super::schema::{Columns, FreshIds, check_format_version, with_fresh_ids};
use super::{FORMAT_VERSION_MAX, PartitionSpec, Schema, SortOrder, TableMetadata, properties};
use crate::error::{Error, Result};

/// What a `createTable` request asks for, and what the catalog decided for it.
#[derive(Debug, Clone)]
pub struct NewTable<'a> {
    pub uuid: Uuid,
    pub location: String,
    pub schema: &'a RawValue,
    pub partition_spec: Option<&'a RawValue>,
    pub sort_order: Option<&'a RawValue>,
    pub properties: BTreeMap<String, String>,
    pub now_ms: i64,
}

/// Makes the first document of a table.
///
/// Columns are numbered anew from 1, partition fields from 1000, and spec and order follow their columns. The property
/// `format-version` chooses the version and, like every reserved property, is not stored. Errors are `Invalid`.
pub fn create(new: NewTable<'_>) -> Result<TableMetadata> {
    let format_version = format_version(&new.properties)?;
    let (schema, ids) = fresh_schema(new.schema, format_version).map_err(|f| f.under("schema"))?;
    let columns = schema.columns().map_err(|f| f.under("schema"))?;
    let spec = new.partition_spec.map(|raw| fresh_spec(raw, &ids, columns)).transpose();
    let spec = spec
        .map_err(|f| f.under("partition-spec"))?
        .unwrap_or_else(PartitionSpec::unpartitioned);
    let order = new.sort_order.map(|raw| fresh_order(raw, &ids, columns)).transpose();
    let order = order
        .map_err(|f| f.under("write-order"))?
        .unwrap_or_else(SortOrder::unsorted);
    Ok(TableMetadata {
        uuid: Some(new.uuid),
        location: without_trailing_slash(&new.location).to_owned(),
        last_updated_ms: new.now_ms,
        last_column_id: ids.last(),
        current_schema_id: schema.id(),
        schemas: vec![Arc::new(schema)],
        last_partition_id: spec.last_field_id(),
        default_spec_id: spec.id(),
        specs: vec![Arc::new(spec)],
        default_sort_order_id: order.id(),
        sort_orders: vec![Arc::new(order)],
        properties: Arc::new(stored_properties(new.properties)),
        ..TableMetadata::empty(format_version)
    })
}

fn format_version(properties: &BTreeMap<String, String>) -> Result<u8> {
    let Some(asked) = properties.get(properties::FORMAT_VERSION) else {
        return Ok(2);
    };
    match asked.trim().parse() {
        Ok(version @ 1..=FORMAT_VERSION_MAX) => Ok(version),
        _ => Err(Error::invalid(format!(
            "properties.format-version: '{asked}' is not supported (supported: 1 to {FORMAT_VERSION_MAX})"
        ))),
    }
}

/// Columns are read before they are renumbered, so that every flaw is told by the ids and paths of the request.
fn fresh_schema(raw: &RawValue, format_version: u8) -> Checked<(Schema, FreshIds)> {
    let columns = Columns::read(raw)?;
    columns.check_identifiers()?;
    check_format_version(&columns, format_version)?;
    let (renumbered, ids) = with_fresh_ids(raw)?;
    Ok((Schema::with_id(&renumbered, 0)?, ids))
}

fn fresh_spec(raw: &RawValue, ids: &FreshIds, columns: &Columns) -> Checked<PartitionSpec> {
    let spec = PartitionSpec::read(&UnboundSpec::read(raw)?.with_fresh_ids(ids)?)?;
    spec.check_fields(columns)?;
    spec.check_sources(columns)?;
    Ok(spec)
}

fn fresh_order(raw: &RawValue, ids: &FreshIds, columns: &Columns) -> Checked<SortOrder> {
    let order = SortOrder::read_with_fresh_ids(raw, ids)?;
    order.check_sources(columns)?;
    Ok(order)
}

/// Reserved keys go; new tables compress Parquet with zstd unless they say otherwise, as the reference has it.
fn stored_properties(mut properties: BTreeMap<String, String>) -> BTreeMap<String, String> {
    properties.retain(|key, _| !properties::is_reserved(key));
    properties
        .entry(properties::PARQUET_COMPRESSION.to_owned())
        .or_insert_with(|| "zstd".to_owned());
    properties
}
