//! Lists as they are written. One that only adds to another takes over what that one has, as it stands in its file.

use std::sync::LazyLock;

use apache_avro::types::Value;
use apache_avro::{Codec, DeflateSettings, Schema, Writer, read_marker};
use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::{Content, FieldSummary, List, ManifestFile, id};

/// How many manifests come together before their blocks are left as they are. A block is compressed by itself: many small
/// ones take more room, and a large one takes longer to be written anew.
const BLOCK_MANIFESTS: usize = 64;

/// What the header of a list says of its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub format_version: u8,
    pub snapshot_id: i64,
    pub parent_id: Option<i64>,
    /// From format version 2 on.
    pub sequence_number: i64,
    /// From format version 3 on.
    pub first_row_id: Option<i64>,
}

/// The file of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub bytes: Bytes,
    /// How many manifests stand before those blocks that the next list may take over.
    open: usize,
    /// Where those blocks begin.
    full_at: usize,
}

/// A list with the schema of its format version, compressed as Iceberg's own writers do it.
///
/// Where all of `on` stands at its end, unchanged, what `on` has in full blocks is not encoded again.
pub fn write(head: &Head, manifests: &[ManifestFile], on: &List) -> Result<Written, apache_avro::Error> {
    let is_kept = on.format_version == head.format_version && manifests.ends_with(&on.manifests);
    let on = on.written.as_ref().filter(|_| is_kept).map(|file| (file, on.manifests.len() - file.open));
    // It stands behind each block, and behind a header without any.
    let marker = on.map(|(file, _)| read_marker(&file.bytes));
    let (kept, full) = on.map_or((0, Bytes::new()), |(file, kept)| (kept, file.bytes.slice(file.full_at..)));
    let fresh = &manifests[..manifests.len() - kept];
    let Layout { columns, schema } = Layout::of(head.format_version);
    let codec = Codec::Deflate(DeflateSettings::default());
    let mut writer = Writer::builder().schema(schema).writer(Vec::new()).codec(codec).maybe_marker(marker).build();
    for (key, value) in header(head) {
        writer.add_user_metadata(key.to_owned(), value)?;
    }
    writer.flush()?;
    let blocks_at = writer.get_ref().len();
    for manifest in fresh {
        let fields = columns.iter().map(|column| (column.name.to_owned(), column.value(manifest)));
        writer.append(Value::Record(fields.collect()))?;
    }
    let mut bytes = writer.into_inner()?;
    let (open, full_at) = match fresh.len() < BLOCK_MANIFESTS {
        true => (fresh.len(), bytes.len()),
        false => (0, blocks_at),
    };
    bytes.extend_from_slice(&full);
    // Without room to grow: it may be kept for long.
    Ok(Written { bytes: bytes.into_boxed_slice().into(), open, full_at })
}

fn header(head: &Head) -> Vec<(&'static str, String)> {
    let or_null = |value: Option<i64>| value.map_or("null".to_owned(), |value| value.to_string());
    let mut entries = vec![
        ("snapshot-id", head.snapshot_id.to_string()),
        ("parent-snapshot-id", or_null(head.parent_id)),
        ("format-version", head.format_version.to_string()),
    ];
    if head.format_version >= 2 {
        entries.push(("sequence-number", head.sequence_number.to_string()));
    }
    if head.format_version >= 3 {
        entries.push(("first-row-id", or_null(head.first_row_id)));
    }
    entries
}

/// One field of a list's schema, and where its value comes from.
struct Column {
    name: &'static str,
    id: i64,
    kind: Json,
    nullable: bool,
    value: fn(&ManifestFile) -> Option<Value>,
}

impl Column {
    fn value(&self, manifest: &ManifestFile) -> Value {
        let value = (self.value)(manifest);
        match self.nullable {
            true => optional(value),
            false => value.unwrap_or(Value::Null),
        }
    }

    fn schema(&self) -> Json {
        match self.nullable {
            true => json!({"name": self.name, "type": ["null", self.kind], "default": null, "field-id": self.id}),
            false => json!({"name": self.name, "type": self.kind, "field-id": self.id}),
        }
    }
}

fn optional(value: Option<Value>) -> Value {
    match value {
        Some(value) => Value::Union(1, Box::new(value)),
        None => Value::Union(0, Box::new(Value::Null)),
    }
}

/// The fields of a format version in the order of the reference implementation. Version 1 has its counts by their old
/// names, which some of its readers insist on, and they may be null there.
fn columns(format_version: u8) -> Vec<Column> {
    let is_first = format_version == 1;
    let name = |old, new| if is_first { old } else { new };
    let column = |name, id, kind: &str, value| Column { name, id, kind: kind.into(), nullable: false, value };
    let count = |name, id, kind: &str, value| Column { nullable: is_first, ..column(name, id, kind, value) };
    let optional = |name, id, kind, value| Column { name, id, kind, nullable: true, value };
    let mut columns = vec![
        column("manifest_path", id::PATH, "string", |m| Some(Value::String(m.path.clone()))),
        column("manifest_length", id::LENGTH, "long", |m| Some(Value::Long(m.length_bytes))),
        column("partition_spec_id", id::SPEC, "int", |m| Some(Value::Int(m.spec_id))),
    ];
    if !is_first {
        columns.extend([
            column("content", id::CONTENT, "int", |m| Some(Value::Int(i32::from(m.content == Content::Deletes)))),
            column("sequence_number", id::SEQUENCE_NUMBER, "long", |m| Some(Value::Long(m.sequence_number))),
            column("min_sequence_number", id::MIN_SEQUENCE_NUMBER, "long", |m| {
                Some(Value::Long(m.min_sequence_number))
            }),
        ]);
    }
    let (added, existing) = (
        name("added_data_files_count", "added_files_count"),
        name("existing_data_files_count", "existing_files_count"),
    );
    let deleted = name("deleted_data_files_count", "deleted_files_count");
    columns.extend([
        column("added_snapshot_id", id::ADDED_SNAPSHOT, "long", |m| Some(Value::Long(m.added_snapshot_id))),
        count(added, id::ADDED_FILES, "int", |m| Some(Value::Int(m.added_files))),
        count(existing, id::EXISTING_FILES, "int", |m| Some(Value::Int(m.existing_files))),
        count(deleted, id::DELETED_FILES, "int", |m| Some(Value::Int(m.deleted_files))),
        count("added_rows_count", id::ADDED_ROWS, "long", |m| Some(Value::Long(m.added_rows))),
        count("existing_rows_count", id::EXISTING_ROWS, "long", |m| Some(Value::Long(m.existing_rows))),
        count("deleted_rows_count", id::DELETED_ROWS, "long", |m| Some(Value::Long(m.deleted_rows))),
        optional("partitions", id::PARTITIONS, summaries_schema(), |m| {
            m.partitions.as_ref().map(|all| Value::Array(all.iter().map(summary_record).collect()))
        }),
        optional("key_metadata", id::KEY_METADATA, "bytes".into(), |m| m.key_metadata.clone().map(Value::Bytes)),
    ]);
    if format_version >= 3 {
        columns.push(optional("first_row_id", id::FIRST_ROW_ID, "long".into(), |m| m.first_row_id.map(Value::Long)));
    }
    columns
}

fn summaries_schema() -> Json {
    let nullable = |name: &str, kind: &str, id: i64| json!({"name": name, "type": ["null", kind], "default": null, "field-id": id});
    let summary = json!({"type": "record", "name": "r508", "fields": [
        json!({"name": "contains_null", "type": "boolean", "field-id": id::CONTAINS_NULL}),
        nullable("contains_nan", "boolean", id::CONTAINS_NAN),
        nullable("lower_bound", "bytes", id::LOWER_BOUND),
        nullable("upper_bound", "bytes", id::UPPER_BOUND),
    ]});
    json!({"type": "array", "items": summary, "element-id": id::SUMMARY})
}

fn summary_record(summary: &FieldSummary) -> Value {
    let fields = [
        ("contains_null", Value::Boolean(summary.contains_null)),
        ("contains_nan", optional(summary.contains_nan.map(Value::Boolean))),
        ("lower_bound", optional(summary.lower_bound.clone().map(Value::Bytes))),
        ("upper_bound", optional(summary.upper_bound.clone().map(Value::Bytes))),
    ];
    Value::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// How lists of one format version are laid out.
struct Layout {
    columns: Vec<Column>,
    schema: Schema,
}

impl Layout {
    fn of(format_version: u8) -> &'static Self {
        static LAYOUTS: LazyLock<[Layout; 3]> = LazyLock::new(|| [1, 2, 3].map(Layout::new));
        let [first, second, third] = &*LAYOUTS;
        match format_version {
            0 | 1 => first,
            2 => second,
            _ => third,
        }
    }

    fn new(format_version: u8) -> Self {
        let columns = columns(format_version);
        let schema = schema(&columns);
        Self { columns, schema }
    }
}

fn schema(columns: &[Column]) -> Schema {
    let fields: Vec<Json> = columns.iter().map(Column::schema).collect();
    let record = json!({"type": "record", "name": "manifest_file", "fields": fields});
    Schema::parse(&record).expect("the schema of manifest lists is Avro")
}

#[cfg(test)]
mod tests;
