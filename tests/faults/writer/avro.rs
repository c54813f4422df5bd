//! Manifest lists and manifests as Avro files.

use std::sync::LazyLock;

use apache_avro::types::Value as Avro;
use apache_avro::{Reader, Schema, Writer};
use serde_json::{Value, json};

use super::files::{Content, DataFile, Entry, ManifestFile, Status};

/// The file of a manifest list for a format version.
pub fn manifest_list(version: i64, header: &[(&str, String)], manifests: &[ManifestFile]) -> Vec<u8> {
    let records = manifests.iter().map(|manifest| list_record(version, manifest)).collect();
    container(of_version(&LIST_SCHEMAS, version), header, records)
}

/// Schemas of files, for version 2 and before and for those after it.
type Schemas = LazyLock<[Schema; 2]>;

static LIST_SCHEMAS: Schemas = LazyLock::new(|| [2, 3].map(|version| Schema::parse(&list_schema(version)).unwrap()));
static ENTRY_SCHEMAS: Schemas = LazyLock::new(|| [2, 3].map(|version| Schema::parse(&entry_schema(version)).unwrap()));

fn of_version(schemas: &'static Schemas, version: i64) -> &'static Schema {
    &schemas[usize::from(version >= 3)]
}

/// The file of a manifest for a format version. Its partition spec is the empty one.
pub fn manifest(version: i64, content: Content, entries: &[Entry]) -> Vec<u8> {
    let schema = json!({"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {"id": 2, "name": "data", "required": false, "type": "string"}]});
    let header = [
        ("schema", schema.to_string()),
        ("schema-id", "0".into()),
        ("partition-spec", "[]".into()),
        ("partition-spec-id", "0".into()),
        ("format-version", version.to_string()),
        ("content", if content == Content::Data { "data" } else { "deletes" }.into()),
    ];
    let records = entries.iter().map(|entry| entry_record(version, entry)).collect();
    container(of_version(&ENTRY_SCHEMAS, version), &header, records)
}

pub fn read_manifest_list(bytes: &[u8]) -> Vec<ManifestFile> {
    records(bytes).iter().map(manifest_file).collect()
}

pub fn read_manifest(bytes: &[u8]) -> Vec<Entry> {
    records(bytes).iter().map(entry).collect()
}

fn container(schema: &Schema, header: &[(&str, String)], records: Vec<Value>) -> Vec<u8> {
    let mut writer = Writer::new(schema, Vec::new());
    for (key, value) in header {
        writer.add_user_metadata((*key).to_owned(), value).unwrap();
    }
    for record in records {
        writer.append(Avro::from(record).resolve(schema).unwrap()).unwrap();
    }
    writer.into_inner().unwrap()
}

fn records(bytes: &[u8]) -> Vec<Value> {
    let records = Reader::new(bytes).unwrap();
    records.map(|record| Value::try_from(record.unwrap()).unwrap()).collect()
}

fn list_record(version: i64, manifest: &ManifestFile) -> Value {
    let mut record = json!({
        "manifest_path": manifest.path,
        "manifest_length": manifest.length,
        "partition_spec_id": manifest.spec_id,
        "content": i32::from(manifest.content != Content::Data),
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.added_snapshot_id,
        "added_files_count": manifest.files[Status::Added as usize],
        "existing_files_count": manifest.files[Status::Existing as usize],
        "deleted_files_count": manifest.files[Status::Deleted as usize],
        "added_rows_count": manifest.rows[Status::Added as usize],
        "existing_rows_count": manifest.rows[Status::Existing as usize],
        "deleted_rows_count": manifest.rows[Status::Deleted as usize],
        "partitions": null,
        "key_metadata": null,
    });
    if version >= 3 {
        record["first_row_id"] = json!(manifest.first_row_id);
    }
    record
}

fn manifest_file(record: &Value) -> ManifestFile {
    let number = |name: &str| record[name].as_i64().unwrap_or(0);
    let counts = |what: &str| ["existing", "added", "deleted"].map(|status| number(&format!("{status}_{what}_count")));
    ManifestFile {
        path: record["manifest_path"].as_str().unwrap().to_owned(),
        length: number("manifest_length"),
        spec_id: number("partition_spec_id"),
        content: if number("content") == 0 { Content::Data } else { Content::EqualityDeletes },
        sequence_number: number("sequence_number"),
        min_sequence_number: number("min_sequence_number"),
        added_snapshot_id: number("added_snapshot_id"),
        files: counts("files"),
        rows: counts("rows"),
        first_row_id: record["first_row_id"].as_i64(),
    }
}

fn entry_record(version: i64, entry: &Entry) -> Value {
    let file = &entry.file;
    let bound = file.references.as_ref().map(|path| vec![json!({"key": PATH_FIELD, "value": path.as_bytes()})]);
    let bound = if version < 3 { bound } else { None };
    let mut data_file = json!({
        "content": file.content as i32,
        "file_path": file.path,
        "file_format": if is_vector(version, file) { "PUFFIN" } else { "PARQUET" },
        "partition": {},
        "record_count": file.records,
        "file_size_in_bytes": file.bytes,
        "lower_bounds": bound,
        "upper_bounds": bound,
        "equality_ids": (file.content == Content::EqualityDeletes).then(|| vec![1]),
    });
    if version >= 3 {
        data_file["first_row_id"] = json!(null);
        data_file["referenced_data_file"] = json!(file.references);
        let place = is_vector(version, file).then_some(4);
        (data_file["content_offset"], data_file["content_size_in_bytes"]) = (json!(place), json!(place));
    }
    json!({
        "status": entry.status as i32,
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
        "data_file": data_file,
    })
}

/// From version 3 on positions are deleted by vectors.
fn is_vector(version: i64, file: &DataFile) -> bool {
    version >= 3 && file.content == Content::PositionDeletes
}

fn entry(record: &Value) -> Entry {
    let file = &record["data_file"];
    let referenced = file["referenced_data_file"].as_str().map(str::to_owned);
    Entry {
        status: match record["status"].as_i64().unwrap() {
            0 => Status::Existing,
            1 => Status::Added,
            _ => Status::Deleted,
        },
        snapshot_id: record["snapshot_id"].as_i64(),
        sequence_number: record["sequence_number"].as_i64(),
        file_sequence_number: record["file_sequence_number"].as_i64(),
        file: DataFile {
            content: match file["content"].as_i64().unwrap() {
                0 => Content::Data,
                1 => Content::PositionDeletes,
                _ => Content::EqualityDeletes,
            },
            path: file["file_path"].as_str().unwrap().to_owned(),
            records: file["record_count"].as_i64().unwrap(),
            bytes: file["file_size_in_bytes"].as_i64().unwrap(),
            references: referenced.or_else(|| path_bound(&file["lower_bounds"])),
        },
    }
}

/// The id of the column `file_path` in files of position deletes.
const PATH_FIELD: i64 = 2_147_483_546;

fn path_bound(bounds: &Value) -> Option<String> {
    let bound = bounds.as_array()?.iter().find(|bound| bound["key"] == PATH_FIELD)?;
    let bytes = bound["value"].as_array()?.iter().map(|byte| byte.as_u64().unwrap_or(0) as u8).collect();
    String::from_utf8(bytes).ok()
}

fn field(id: i64, name: &str, of_type: Value) -> Value {
    json!({"name": name, "type": of_type, "field-id": id})
}

fn optional(id: i64, name: &str, of_type: Value) -> Value {
    json!({"name": name, "type": ["null", of_type], "default": null, "field-id": id})
}

fn list_schema(version: i64) -> Value {
    let (long, int) = (|| json!("long"), || json!("int"));
    let summary = json!({"type": "record", "name": "r508", "fields": [
        field(509, "contains_null", json!("boolean")),
        optional(518, "contains_nan", json!("boolean")),
        optional(510, "lower_bound", json!("bytes")),
        optional(511, "upper_bound", json!("bytes"))]});
    let mut fields = vec![
        field(500, "manifest_path", json!("string")),
        field(501, "manifest_length", long()),
        field(502, "partition_spec_id", int()),
        field(517, "content", int()),
        field(515, "sequence_number", long()),
        field(516, "min_sequence_number", long()),
        field(503, "added_snapshot_id", long()),
        field(504, "added_files_count", int()),
        field(505, "existing_files_count", int()),
        field(506, "deleted_files_count", int()),
        field(512, "added_rows_count", long()),
        field(513, "existing_rows_count", long()),
        field(514, "deleted_rows_count", long()),
        optional(507, "partitions", json!({"type": "array", "items": summary, "element-id": 508})),
        optional(519, "key_metadata", json!("bytes")),
    ];
    if version >= 3 {
        fields.push(optional(520, "first_row_id", long()));
    }
    json!({"type": "record", "name": "manifest_file", "fields": fields})
}

fn entry_schema(version: i64) -> Value {
    let bounds = |record: &str, key: i64| {
        let item = json!({"type": "record", "name": record, "fields": [
            field(key, "key", json!("int")), field(key + 1, "value", json!("bytes"))]});
        json!({"type": "array", "items": item, "logicalType": "map"})
    };
    let mut fields = vec![
        field(134, "content", json!("int")),
        field(100, "file_path", json!("string")),
        field(101, "file_format", json!("string")),
        field(102, "partition", json!({"type": "record", "name": "r102", "fields": []})),
        field(103, "record_count", json!("long")),
        field(104, "file_size_in_bytes", json!("long")),
        optional(125, "lower_bounds", bounds("k126_v127", 126)),
        optional(128, "upper_bounds", bounds("k129_v130", 129)),
        optional(135, "equality_ids", json!({"type": "array", "items": "int", "element-id": 136})),
    ];
    if version >= 3 {
        fields.push(optional(142, "first_row_id", json!("long")));
        fields.push(optional(143, "referenced_data_file", json!("string")));
        fields.push(optional(144, "content_offset", json!("long")));
        fields.push(optional(145, "content_size_in_bytes", json!("long")));
    }
    json!({"type": "record", "name": "manifest_entry", "fields": [
        field(0, "status", json!("int")),
        optional(1, "snapshot_id", json!("long")),
        optional(3, "sequence_number", json!("long")),
        optional(4, "file_sequence_number", json!("long")),
        field(2, "data_file", json!({"type": "record", "name": "r2", "fields": fields}))]})
}
