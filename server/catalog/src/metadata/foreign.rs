//! A document that somebody else wrote: what must hold before it becomes a table of this catalog.
//!
//! A document that is a table's already is read with all its faults; nothing here keeps it from loading.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::json::{Checked, Flaw, check_nesting};
use super::{MAIN_BRANCH, PartitionSpec, Schema, SortOrder, TableMetadata};
use crate::error::Result;

impl TableMetadata {
    /// Refuses a document that clients could not read, or could not write on without harm. Reads every schema and every
    /// snapshot. Errors are `Invalid` and name the path of the field.
    pub fn check_foreign(&self) -> Result<()> {
        self.raws().try_for_each(|raw| check_nesting(raw.get()))?;
        let checked = self.check_ids().and_then(|()| self.check_columns());
        let checked = checked.and_then(|()| self.check_history());
        let checked = checked.and_then(|()| self.check_attachments());
        Ok(checked.map_err(|flaw| flaw.under("table metadata"))?)
    }

    /// Ids are unique, and the next one is a number too.
    fn check_ids(&self) -> Checked<()> {
        check_unique("schemas", "schema id", self.schemas().map(Schema::id))?;
        check_unique("partition-specs", "spec id", self.specs().map(PartitionSpec::id))?;
        check_unique("sort-orders", "order id", self.sort_orders().map(SortOrder::id))
    }

    /// Every schema can be read, and no id that is in use will be given away again.
    fn check_columns(&self) -> Checked<()> {
        let (mut last_column_id, mut last_partition_id) = (0, 0);
        for (at, schema) in self.schemas().enumerate() {
            let here = |f: Flaw| f.under(format_args!("[{at}]")).under("schemas");
            let columns = schema.columns().map_err(here)?;
            columns.check_foreign().map_err(here)?;
            last_column_id = columns.highest_id().max(last_column_id);
        }
        for spec in self.specs().filter(|spec| !spec.fields().is_empty()) {
            last_partition_id = spec.last_field_id().max(last_partition_id);
        }
        check_last("last-column-id", self.last_column_id, last_column_id)?;
        check_last("last-partition-id", self.last_partition_id, last_partition_id)
    }

    fn check_history(&self) -> Checked<()> {
        for (at, snapshot) in self.snapshots().enumerate() {
            let here = |f: Flaw| f.under(format_args!("[{at}]")).under("snapshots");
            snapshot.check().map_err(here)?;
        }
        if let Some(id) = self.snapshots.circular() {
            return Err(Flaw::new(format!("snapshot {id} is among its own ancestors")).under("snapshots"));
        }
        match self.refs.get(MAIN_BRANCH) {
            Some(main) if !main.is_branch() => Err(Flaw::new("must be a branch").under(MAIN_BRANCH).under("refs")),
            _ => Ok(()),
        }
    }

    fn check_attachments(&self) -> Checked<()> {
        let under = |key: &'static str, at: usize| move |f: Flaw| f.under(format_args!("[{at}]")).under(key);
        for (at, file) in self.statistics.iter().enumerate() {
            file.check_of_table().map_err(under("statistics", at))?;
        }
        for (at, file) in self.partition_statistics.iter().enumerate() {
            file.check_of_partitions().map_err(under("partition-statistics", at))?;
        }
        for (at, key) in self.encryption_keys().enumerate() {
            key.check().map_err(under("encryption-keys", at))?;
        }
        Ok(())
    }

    /// All that a writer may nest to its liking.
    fn raws(&self) -> impl Iterator<Item = &RawValue> {
        let shape = self.schemas().map(Schema::raw);
        let shape = shape.chain(self.specs().map(PartitionSpec::raw));
        let shape = shape.chain(self.sort_orders().map(SortOrder::raw));
        let history = self.snapshots().map(|snapshot| snapshot.raw());
        let history = history.chain(self.refs.values().map(|target| target.raw()));
        let history = history.chain(self.snapshot_log.iter().filter_map(|entry| entry.raw()));
        let history = history.chain(self.metadata_log.iter().filter_map(|entry| entry.raw()));
        let files = self.statistics.iter().chain(self.partition_statistics.iter());
        let rest = files.map(|file| file.raw()).chain(self.encryption_keys().map(|key| key.raw()));
        shape.chain(history).chain(rest).chain(self.unknown.iter().map(|(_, raw)| &**raw))
    }
}

fn check_unique(key: &str, what: &str, ids: impl Iterator<Item = i32>) -> Checked<()> {
    let mut seen = HashSet::new();
    for id in ids {
        if !(0..i32::MAX).contains(&id) {
            return Err(Flaw::new(format!("{what} {id} is negative, or leaves no next one")).under(key));
        }
        if !seen.insert(id) {
            return Err(Flaw::new(format!("{what} {id} comes twice")).under(key));
        }
    }
    Ok(())
}

fn check_last(key: &str, last: i32, highest: i32) -> Checked<()> {
    match last < highest {
        true => Err(Flaw::new(format!("{last} is lower than an id that is in use: {highest}")).under(key)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn document() -> Value {
        let snapshot = |id: i64, parent: Option<i64>| {
            json!({"snapshot-id": id, "parent-snapshot-id": parent, "timestamp-ms": id, "sequence-number": id,
                "manifest-list": format!("l{id}"), "summary": {"operation": "append"}})
        };
        json!({"format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b/t",
            "last-sequence-number": 2, "last-updated-ms": 2, "last-column-id": 3, "current-schema-id": 1, "schemas": [
                {"type": "struct", "schema-id": 0, "fields": [{"id": 3, "name": "a", "required": false, "type": "martian"}]},
                {"type": "struct", "schema-id": 1, "fields": [{"id": 1, "name": "b", "required": false, "type": "int"}]}],
            "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []},
                {"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1000, "name": "b", "transform": "identity"}]}],
            "last-partition-id": 1000, "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
            "next-row-id": 0, "current-snapshot-id": 2, "snapshots": [snapshot(1, None), snapshot(2, Some(1))],
            "refs": {"main": {"snapshot-id": 2, "type": "branch"}}, "x": 1,
            "statistics": [{"snapshot-id": 1, "statistics-path": "p", "file-size-in-bytes": 1,
                "file-footer-size-in-bytes": 1, "blob-metadata": []}],
            "partition-statistics": [{"snapshot-id": 1, "statistics-path": "p", "file-size-in-bytes": 1}],
            "encryption-keys": [{"key-id": "k", "encrypted-key-metadata": "AA=="}]})
    }

    #[test]
    fn a_document_that_clients_read_is_taken_types_that_nobody_knows_included() {
        let table = TableMetadata::parse(document().to_string().as_bytes()).unwrap();
        assert!(table.check_foreign().is_ok());
    }

    /// Loads the document with one member replaced, and is refused.
    fn refusal(pointer: &str, value: Value) -> String {
        let mut broken = document();
        *broken.pointer_mut(pointer).unwrap() = value;
        let table = TableMetadata::parse(broken.to_string().as_bytes()).unwrap();
        table.check_foreign().unwrap_err().message().to_owned()
    }

    #[test]
    fn schemas_and_specs_that_no_client_reads_load_where_they_are_stored_and_are_not_taken_in() {
        for (pointer, value, message) in [
            ("/schemas/0/fields", json!("x"), "schemas[0].fields: invalid type: string, expected a sequence"),
            (
                "/schemas/0/fields/0/type",
                json!("decimal(50,60)"),
                "schemas[0].fields: column a: unknown type 'decimal(50,60)'",
            ),
            ("/schemas/0/type", json!("list"), "schemas[0].type: must be 'struct'"),
            ("/schemas/0/schema-id", json!(1), "schemas: schema id 1 comes twice"),
            ("/schemas/0/schema-id", json!(-3), "schemas: schema id -3 is negative, or leaves no next one"),
            (
                "/schemas/0/schema-id",
                json!(i32::MAX),
                "schemas: schema id 2147483647 is negative, or leaves no next one",
            ),
            ("/partition-specs/1/spec-id", json!(0), "partition-specs: spec id 0 comes twice"),
            ("/last-column-id", json!(2), "last-column-id: 2 is lower than an id that is in use: 3"),
            ("/last-partition-id", json!(999), "last-partition-id: 999 is lower than an id that is in use: 1000"),
        ] {
            assert_eq!(refusal(pointer, value), format!("table metadata.{message}"));
        }
    }

    #[test]
    fn history_that_no_client_reads_loads_where_it_is_stored_and_is_not_taken_in() {
        for (pointer, value, message) in [
            ("/snapshots/0/snapshot-id", json!(-7), "snapshots[0].snapshot-id: must not be negative"),
            ("/snapshots/0/manifest-list", json!(""), "snapshots[0].manifest-list: must not be empty"),
            ("/snapshots/0/parent-snapshot-id", json!(2), "snapshots: snapshot 1 is among its own ancestors"),
            ("/refs/main/type", json!("tag"), "refs.main: must be a branch"),
            ("/statistics/0/blob-metadata", Value::Null, "statistics[0].blob-metadata: is required"),
            (
                "/partition-statistics/0/file-size-in-bytes",
                Value::Null,
                "partition-statistics[0].file-size-in-bytes: is required",
            ),
            (
                "/encryption-keys/0/encrypted-key-metadata",
                json!("?"),
                "encryption-keys[0].encrypted-key-metadata: is not base64",
            ),
        ] {
            assert_eq!(refusal(pointer, value), format!("table metadata.{message}"));
        }
    }

    #[test]
    fn a_document_that_is_nested_too_deeply_loads_where_it_is_stored_and_is_not_taken_in() {
        let deep: Value = (0..200).fold(json!(1), |inner, _| json!([inner]));
        for pointer in ["/x", "/schemas/0/fields/0/doc", "/snapshots/0/summary"] {
            let mut broken = document();
            let (object, key) = pointer.rsplit_once('/').unwrap();
            broken.pointer_mut(object).unwrap()[key] = deep.clone();
            let table = TableMetadata::parse(broken.to_string().as_bytes()).unwrap();
            let error = table.check_foreign().unwrap_err();
            assert_eq!(error.message(), "JSON is nested deeper than 100 levels");
        }
    }
}
