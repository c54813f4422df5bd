//! Table documents as Java, Spark and PyIceberg write them (`tests/metadata/v*.json`): they load and come back as they
//! were.

use std::fs;
use std::path::{Path, PathBuf};

use catalog::metadata::{ApplyAt, TableMetadata, TableUpdate, apply};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

/// Every table document of the folder; those of views are called `view-….json`.
fn documents() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/metadata");
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_view = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("view-"));
    let mut tables: Vec<PathBuf> = paths.filter(|path| !is_view(path)).collect();
    tables.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("a readable file"));
    tables.into_iter().map(read).collect()
}

/// A document without the freedoms of its writing: members that say nothing, and what format version 1 may leave out.
fn meaning(bytes: &[u8]) -> Value {
    let mut document: Map<String, Value> = serde_json::from_slice(bytes).expect("JSON");
    document.retain(|_, value| !value.is_null() && *value != json!([]) && *value != json!({}));
    if document.get("current-snapshot-id") == Some(&json!(-1)) {
        document.remove("current-snapshot-id");
    }
    if let Some(current) = document.get("current-snapshot-id").cloned() {
        let main = json!({"main": {"snapshot-id": current, "type": "branch"}});
        document.entry("refs").or_insert(main);
    }
    if document["format-version"] == 1 {
        let uuid = TableMetadata::parse(bytes).expect("a table").uuid();
        document.entry("table-uuid").or_insert(json!(uuid));
        complete_v1(&mut document);
    }
    document.into()
}

/// What format version 1 leaves to the reader: ids of schemas, specs and partition fields, and the unsorted order.
fn complete_v1(document: &mut Map<String, Value>) {
    let schema = document.get_mut("schema").expect("v1 has a schema");
    schema.as_object_mut().expect("an object").entry("schema-id").or_insert(0.into());
    let schemas = json!([schema]);
    document.entry("schemas").or_insert(schemas);
    document.entry("current-schema-id").or_insert(0.into());
    let fields = document.entry("partition-spec").or_insert(json!([])).as_array_mut().expect("an array");
    for (field, id) in fields.iter_mut().zip(1000..) {
        field.as_object_mut().expect("an object").entry("field-id").or_insert(id.into());
    }
    let (last, specs) = (999 + fields.len(), json!([{"spec-id": 0, "fields": fields}]));
    document.entry("partition-specs").or_insert(specs);
    document.entry("last-partition-id").or_insert(last.into());
    document.entry("default-spec-id").or_insert(0.into());
    document.entry("sort-orders").or_insert(json!([{"order-id": 0, "fields": []}]));
    document.entry("default-sort-order-id").or_insert(0.into());
    // Some writers leave there what was current when the table was made.
    document["schema"] = named(&document["schemas"], "schema-id", &document["current-schema-id"]).clone();
    let spec = named(&document["partition-specs"], "spec-id", &document["default-spec-id"]);
    document["partition-spec"] = spec["fields"].clone();
}

fn named<'a>(list: &'a Value, key: &str, id: &Value) -> &'a Value {
    let list = list.as_array().expect("a list");
    list.iter().find(|entry| entry[key] == *id).expect("what is current is there")
}

#[test]
fn every_stored_document_comes_back_as_it_was() {
    let documents = documents();
    assert!(documents.len() >= 8);
    for (path, bytes) in documents {
        let table = TableMetadata::parse(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(meaning(&table.encode()), meaning(&bytes), "{}", path.display());
        let again = TableMetadata::parse(&table.encode()).unwrap();
        assert_eq!(again.encode(), table.encode(), "{}", path.display());
    }
}

#[test]
fn every_stored_document_may_become_a_table() {
    for (path, bytes) in documents() {
        let table = TableMetadata::parse(&bytes).unwrap();
        table.check_foreign().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn every_stored_document_takes_a_commit() {
    let update = json!({"action": "set-properties", "updates": {"a": "b"}});
    let update = TableUpdate::parse(&to_raw_value(&update).unwrap()).unwrap();
    for (path, bytes) in documents() {
        let table = TableMetadata::parse(&bytes).unwrap();
        let at = ApplyAt { now_ms: table.last_updated_ms() + 7, previous_location: None };
        let after = apply(&table, std::slice::from_ref(&update), &at).unwrap().metadata;
        let mut expected = meaning(&bytes);
        expected["last-updated-ms"] = (table.last_updated_ms() + 7).into();
        if expected.get("properties").is_none() {
            expected["properties"] = json!({});
        }
        expected["properties"]["a"] = json!("b");
        assert_eq!(meaning(&after.encode()), expected, "{}", path.display());
    }
}
