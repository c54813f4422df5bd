//! A new table out of a `createTable` request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use uuid::Uuid;

use super::json::{Checked, check_nesting};
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
    let given = [Some(new.schema), new.partition_spec, new.sort_order];
    given.into_iter().flatten().try_for_each(|raw| check_nesting(raw.get()))?;
    let format_version = format_version(&new.properties)?;
    let (schema, ids) = fresh_schema(new.schema, format_version).map_err(|f| f.under("schema"))?;
    let columns = schema.columns().map_err(|f| f.under("schema"))?;
    let spec = new.partition_spec.map(|raw| {
        UnboundSpec::read(raw)?.check_format_version(format_version)?;
        fresh_spec(raw, &ids, columns)
    });
    let spec = spec.transpose().map_err(|f| f.under("partition-spec"))?.unwrap_or_else(PartitionSpec::unpartitioned);
    let order = new.sort_order.map(|raw| fresh_order(raw, &ids, columns)).transpose();
    let order = order.map_err(|f| f.under("write-order"))?.unwrap_or_else(SortOrder::unsorted);
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
    columns.check_new(|_| None)?;
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
    order.check_fields()?;
    order.check_sources(columns)?;
    Ok(order)
}

/// Reserved keys go; new tables compress Parquet with zstd unless they say otherwise, as the reference has it.
fn stored_properties(mut properties: BTreeMap<String, String>) -> BTreeMap<String, String> {
    properties.retain(|key, _| !properties::is_reserved(key));
    properties.entry(properties::PARQUET_COMPRESSION.to_owned()).or_insert_with(|| "zstd".to_owned());
    properties
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::json;

    const SCHEMA: &str = r#"{"type":"struct","schema-id":4,"x":true,"identifier-field-ids":[7],"fields":[
        {"id":7,"name":"id","required":true,"type":"long"},
        {"id":3,"name":"ts","required":false,"type":"timestamp","doc":"when"},
        {"id":12,"name":"p","required":false,"type":{"type":"struct","fields":[{"id":13,"name":"c","required":false,"type":"string"}]}}]}"#;

    fn made(
        schema: &str,
        spec: Option<&str>,
        order: Option<&str>,
        properties: &[(&str, &str)],
    ) -> Result<TableMetadata> {
        let raw = |text: &str| json::raw(text.to_owned());
        let (schema, spec, order) = (raw(schema), spec.map(raw), order.map(raw));
        create(NewTable {
            uuid: Uuid::from_u128(1),
            location: "s3://b/t/".into(),
            schema: &schema,
            partition_spec: spec.as_deref(),
            sort_order: order.as_deref(),
            properties: properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            now_ms: 5,
        })
    }

    #[test]
    fn partition_and_sort_sources_follow_the_renumbered_columns() {
        let spec = r#"{"fields":[{"source-id":3,"name":"ts_day","transform":"day"},{"source-id":13,"field-id":5,"name":"p.c","transform":"identity"}]}"#;
        let order = r#"{"order-id":8,"fields":[{"source-id":13,"transform":"x","direction":"asc","null-order":"nulls-first"}]}"#;
        let table = made(SCHEMA, Some(spec), Some(order), &[]).unwrap();
        let fields: Vec<_> = table.spec(0).unwrap().fields().iter().map(|f| (f.source_ids[0], f.field_id)).collect();
        assert_eq!(fields, [(2, 1000), (4, 1001)]);
        assert_eq!((table.last_column_id(), table.last_partition_id()), (4, 1001));
        assert_eq!((table.default_sort_order_id(), table.sort_order(1).unwrap().fields()[0].source_ids[0]), (1, 4));
        let schema = table.schema(0).unwrap().raw().get();
        assert!(schema.contains(r#""identifier-field-ids":[1]"#) && schema.contains(r#""x":true"#), "{schema}");
    }

    #[test]
    fn a_table_is_v2_unpartitioned_unsorted_and_zstd_unless_it_says_otherwise() {
        let table = made(SCHEMA, None, None, &[("snapshot-count", "3")]).unwrap();
        assert_eq!((table.format_version(), table.location(), table.last_partition_id()), (2, "s3://b/t", 999));
        assert_eq!((table.specs().len(), table.default_sort_order_id(), table.current_snapshot_id()), (1, 0, None));
        assert_eq!(
            table.properties().iter().collect::<Vec<_>>(),
            [(&"write.parquet.compression-codec".to_owned(), &"zstd".to_owned())]
        );
        let asked =
            made(SCHEMA, None, None, &[("format-version", "3"), ("write.parquet.compression-codec", "gzip")]).unwrap();
        assert_eq!((asked.format_version(), asked.next_row_id(), asked.properties().len()), (3, Some(0), 1));
        assert_eq!(asked.property("write.parquet.compression-codec"), Some("gzip"));
    }

    #[test]
    fn what_no_client_could_read_back_is_refused() {
        let of_type = |type_: &str| SCHEMA.replace("\"timestamp\"", type_);
        let spec = |field: &str| format!(r#"{{"fields":[{{"name":"x",{field}}}]}}"#);
        let order = |field: &str| format!(r#"{{"fields":[{{"direction":"asc","null-order":"nulls-last",{field}}}]}}"#);
        let sound = SCHEMA.to_owned();
        for (schema, spec, order, message) in [
            (of_type("\"martian\""), None, None, "schema.fields: column ts: unknown type 'martian'"),
            (of_type("\"decimal(50,60)\""), None, None, "schema.fields: column ts: unknown type 'decimal(50,60)'"),
            (SCHEMA.replace("\"when\"", "5"), None, None, "schema.fields: column ts: doc must be a string"),
            (SCHEMA.replacen("struct", "list", 1), None, None, "schema.type: must be 'struct'"),
            (
                SCHEMA.replacen("true", &format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000)), 1),
                None,
                None,
                "JSON is nested deeper than 100 levels",
            ),
            (
                sound.clone(),
                Some(spec(r#""source-id":7,"transform":"bucket""#)),
                None,
                "partition-spec.transform: 'bucket' needs a positive number, as in bucket[16]",
            ),
            (
                sound.clone(),
                Some(spec(r#""source-ids":[7],"transform":"identity""#)),
                None,
                "partition-spec: partition field x needs source-id: source-ids are not supported until v3",
            ),
            (
                sound.clone(),
                None,
                Some(order(r#""source-ids":[],"transform":"identity""#)),
                "write-order.fields: identity has no source column",
            ),
        ] {
            let error = made(&schema, spec.as_deref(), order.as_deref(), &[]).unwrap_err();
            assert_eq!(error.message(), message);
        }
    }

    #[test]
    fn spellings_that_some_clients_cannot_read_are_stored_in_their_normal_form() {
        let order = r#"{"order-id":1,"fields":[{"source-id":7,"transform":"identity","direction":"ASC","null-order":"NULLS-FIRST"}]}"#;
        let table = made(&SCHEMA.replace("[7]", "null"), None, Some(order), &[]).unwrap();
        let stored = table.sort_order(1).unwrap().raw().get();
        assert!(stored.contains(r#""direction":"asc","null-order":"nulls-first""#), "{stored}");
        assert!(!table.schema(0).unwrap().raw().get().contains("identifier-field-ids"));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let variant = SCHEMA.replace("\"timestamp\"", "\"variant\"");
        assert!(made(&variant, None, None, &[]).unwrap_err().message().contains("variant is not supported until v3"));
        assert!(made(&variant, None, None, &[("format-version", "3")]).is_ok());
        assert!(made(SCHEMA, None, None, &[("format-version", "4")]).is_err());
        let spec = r#"{"fields":[{"source-id":99,"name":"x","transform":"day"}]}"#;
        let error = made(SCHEMA, Some(spec), None, &[]).unwrap_err();
        assert_eq!(error.message(), "partition-spec: Cannot find source column for partition field: x");
        let error =
            made(r#"{"type":"struct","fields":[{"id":1,"name":"a","type":"int"}]}"#, None, None, &[]).unwrap_err();
        assert_eq!(error.message(), "schema.fields[0].required: is required");
    }
}
