//! Manifest lists, read with whatever schema they were written with and written with the schema of the table's version.

use std::sync::LazyLock;

use apache_avro::types::Value;
use apache_avro::{Codec, DeflateSettings, Schema, Writer};
use serde_json::{Value as Json, json};

use crate::avro::{Fields, File, Unreadable, type_of};

/// A manifest list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct List {
    /// As its header says, or else as its schema looks.
    pub format_version: u8,
    pub manifests: Vec<ManifestFile>,
}

/// One manifest, as its list describes it (table spec, "Manifest Lists").
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ManifestFile {
    pub path: String,
    pub length_bytes: i64,
    pub spec_id: i32,
    pub content: Content,
    /// 0 in format version 1, as is `min_sequence_number`.
    pub sequence_number: i64,
    pub min_sequence_number: i64,
    pub added_snapshot_id: i64,
    pub added_files: i32,
    pub existing_files: i32,
    pub deleted_files: i32,
    pub added_rows: i64,
    pub existing_rows: i64,
    pub deleted_rows: i64,
    pub partitions: Option<Vec<FieldSummary>>,
    pub key_metadata: Option<Vec<u8>>,
    /// From format version 3 on, and only for data.
    pub first_row_id: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Content {
    #[default]
    Data,
    Deletes,
}

/// What a manifest's entries have in one field of the partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSummary {
    pub contains_null: bool,
    pub contains_nan: Option<bool>,
    pub lower_bound: Option<Vec<u8>>,
    pub upper_bound: Option<Vec<u8>>,
}

impl List {
    pub fn memory_bytes(&self) -> usize {
        let manifests = self.manifests.iter().map(|manifest| {
            let summaries = manifest.partitions.iter().flatten().map(|summary| {
                let bounds = [&summary.lower_bound, &summary.upper_bound];
                size_of::<FieldSummary>() + bounds.into_iter().flatten().map(Vec::len).sum::<usize>()
            });
            size_of::<ManifestFile>() + manifest.path.len() + summaries.sum::<usize>()
        });
        size_of::<Self>() + manifests.sum::<usize>()
    }
}

impl ManifestFile {
    /// Whether a reader finds anything in it.
    pub fn is_live(&self) -> bool {
        self.live_files() > 0
    }

    pub fn live_files(&self) -> i64 {
        i64::from(self.added_files) + i64::from(self.existing_files)
    }
}

/// Field ids of the table spec.
mod id {
    pub const PATH: i64 = 500;
    pub const LENGTH: i64 = 501;
    pub const SPEC: i64 = 502;
    pub const ADDED_SNAPSHOT: i64 = 503;
    pub const ADDED_FILES: i64 = 504;
    pub const EXISTING_FILES: i64 = 505;
    pub const DELETED_FILES: i64 = 506;
    pub const PARTITIONS: i64 = 507;
    pub const SUMMARY: i64 = 508;
    pub const CONTAINS_NULL: i64 = 509;
    pub const LOWER_BOUND: i64 = 510;
    pub const UPPER_BOUND: i64 = 511;
    pub const ADDED_ROWS: i64 = 512;
    pub const EXISTING_ROWS: i64 = 513;
    pub const DELETED_ROWS: i64 = 514;
    pub const SEQUENCE_NUMBER: i64 = 515;
    pub const MIN_SEQUENCE_NUMBER: i64 = 516;
    pub const CONTENT: i64 = 517;
    pub const CONTAINS_NAN: i64 = 518;
    pub const KEY_METADATA: i64 = 519;
    pub const FIRST_ROW_ID: i64 = 520;
}

/// Reads a list of any format version. Fields are found by their ids, for writers have given them several names.
pub fn read(bytes: &[u8]) -> Result<List, Unreadable> {
    let file = File::open(bytes)?;
    let fields = Fields::of(file.schema());
    let summaries = Fields::of(&type_of(file.schema(), id::PARTITIONS)["items"]);
    let told = file.header("format-version").and_then(|version| version.parse().ok());
    let looks = match (fields.contains(id::FIRST_ROW_ID), fields.contains(id::CONTENT)) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) => 1,
    };
    let mut manifests = Vec::new();
    file.for_each(|record, _| {
        manifests.push(manifest_file(&fields, &summaries, &record)?);
        Ok(())
    })?;
    Ok(List { format_version: told.unwrap_or(looks), manifests })
}

fn manifest_file(fields: &Fields, summaries: &Fields, record: &Value) -> Result<ManifestFile, Unreadable> {
    let long = |id, name| fields.long(record, id).ok_or(Unreadable::NoField(name));
    let count = |id, name| fields.long(record, id).filter(|count| *count >= 0).ok_or(Unreadable::NoField(name));
    let files = |id, name| i32::try_from(count(id, name)?).map_err(|_| Unreadable::NoField(name));
    let partitions = fields.array(record, id::PARTITIONS);
    Ok(ManifestFile {
        path: fields.string(record, id::PATH).ok_or(Unreadable::NoField("manifest_path"))?.to_owned(),
        length_bytes: long(id::LENGTH, "manifest_length")?,
        spec_id: fields.int(record, id::SPEC).ok_or(Unreadable::NoField("partition_spec_id"))?,
        content: match fields.long(record, id::CONTENT) {
            None | Some(0) => Content::Data,
            Some(1) => Content::Deletes,
            Some(_) => return Err(Unreadable::NoField("content of a kind that is known")),
        },
        sequence_number: fields.long(record, id::SEQUENCE_NUMBER).unwrap_or(0),
        min_sequence_number: fields.long(record, id::MIN_SEQUENCE_NUMBER).unwrap_or(0),
        added_snapshot_id: long(id::ADDED_SNAPSHOT, "added_snapshot_id")?,
        added_files: files(id::ADDED_FILES, "added_files_count")?,
        existing_files: files(id::EXISTING_FILES, "existing_files_count")?,
        deleted_files: files(id::DELETED_FILES, "deleted_files_count")?,
        added_rows: count(id::ADDED_ROWS, "added_rows_count")?,
        existing_rows: count(id::EXISTING_ROWS, "existing_rows_count")?,
        deleted_rows: count(id::DELETED_ROWS, "deleted_rows_count")?,
        partitions: partitions.map(|items| items.iter().map(|item| field_summary(summaries, item)).collect()),
        key_metadata: fields.bytes(record, id::KEY_METADATA),
        first_row_id: fields.long(record, id::FIRST_ROW_ID),
    })
}

fn field_summary(fields: &Fields, record: &Value) -> FieldSummary {
    FieldSummary {
        // A reader that is not told must look.
        contains_null: fields.boolean(record, id::CONTAINS_NULL).unwrap_or(true),
        contains_nan: fields.boolean(record, id::CONTAINS_NAN),
        lower_bound: fields.bytes(record, id::LOWER_BOUND),
        upper_bound: fields.bytes(record, id::UPPER_BOUND),
    }
}

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

/// A list with the schema of its format version, compressed as Iceberg's own writers do it.
pub fn write(head: &Head, manifests: &[ManifestFile]) -> Result<Vec<u8>, apache_avro::Error> {
    let Layout { columns, schema } = Layout::of(head.format_version);
    let mut writer = Writer::with_codec(schema, Vec::new(), Codec::Deflate(DeflateSettings::default()));
    for (key, value) in header(head) {
        writer.add_user_metadata(key.to_owned(), value)?;
    }
    for manifest in manifests {
        let fields = columns.iter().map(|column| (column.name.to_owned(), column.value(manifest)));
        writer.append(Value::Record(fields.collect()))?;
    }
    writer.into_inner()
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
