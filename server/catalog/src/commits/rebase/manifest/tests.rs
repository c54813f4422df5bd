use apache_avro::{Codec, DeflateSettings};

use super::*;
use crate::avro::tests::container;

/// A manifest of format version 2 or 3, partitioned, with the bounds and a text that must come through untouched.
pub(crate) const SCHEMA: &str = r#"{"name": "manifest_entry", "type": "record", "doc": "kept", "fields": [
    {"field-id": 0, "name": "status", "type": "int"},
    {"field-id": 1, "name": "snapshot_id", "type": ["null", "long"], "default": null},
    {"field-id": 3, "name": "sequence_number", "type": ["null", "long"], "default": null},
    {"field-id": 2, "name": "data_file", "type": {"type": "record", "name": "r2", "fields": [
        {"field-id": 134, "name": "content", "type": "int"},
        {"field-id": 100, "name": "file_path", "type": "string"},
        {"field-id": 101, "name": "file_format", "type": "string"},
        {"field-id": 102, "name": "partition", "type": {"type": "record", "name": "r102", "fields": [
            {"field-id": 1000, "name": "u", "default": null, "type": ["null",
                {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}]}]}},
        {"field-id": 103, "name": "record_count", "type": "long"},
        {"field-id": 125, "name": "lower_bounds", "default": null, "type": ["null", {"type": "array", "logicalType": "map",
            "items": {"type": "record", "name": "k126_v127", "fields": [
                {"field-id": 126, "name": "key", "type": "int"}, {"field-id": 127, "name": "value", "type": "bytes"}]}}]},
        {"field-id": 128, "name": "upper_bounds", "default": null, "type": ["null", {"type": "array", "logicalType": "map",
            "items": {"type": "record", "name": "k129_v130", "fields": [
                {"field-id": 129, "name": "key", "type": "int"}, {"field-id": 130, "name": "value", "type": "bytes"}]}}]},
        {"field-id": 143, "name": "referenced_data_file", "type": ["null", "string"], "default": null}]}}]}"#;

/// An entry that is to be written.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub entry: Entry,
    /// The bounds of the column that names the data file.
    pub bounds: Option<(&'static str, &'static str)>,
}

pub(crate) fn data(path: &str, snapshot_id: i64) -> Written {
    let entry = Entry {
        status: Status::Added,
        snapshot_id: Some(snapshot_id),
        sequence_number: None,
        content: FileContent::Data,
        path: path.to_owned(),
        record_count: 10,
        referenced: None,
        is_vector: false,
    };
    Written { entry, bounds: None }
}

pub(crate) fn equality(path: &str, snapshot_id: i64) -> Written {
    let data = data(path, snapshot_id);
    Written { entry: Entry { content: FileContent::EqualityDeletes, ..data.entry }, ..data }
}

/// Position deletes on one file, as format version 3 names it.
pub(crate) fn vector(path: &str, snapshot_id: i64, on: &str) -> Written {
    let data = data(path, snapshot_id);
    let content = FileContent::PositionDeletes;
    Written { entry: Entry { content, referenced: Some(on.to_owned()), is_vector: true, ..data.entry }, ..data }
}

/// Position deletes on the files between two bounds, as format version 2 names them.
pub(crate) fn positions(path: &str, snapshot_id: i64, bounds: Option<(&'static str, &'static str)>) -> Written {
    let data = data(path, snapshot_id);
    Written { entry: Entry { content: FileContent::PositionDeletes, ..data.entry }, bounds }
}

impl Written {
    pub(crate) fn as_(self, status: Status) -> Self {
        Self { entry: Entry { status, ..self.entry }, ..self }
    }

    pub(crate) fn numbered(self, sequence_number: i64) -> Self {
        Self { entry: Entry { sequence_number: Some(sequence_number), ..self.entry }, ..self }
    }

    fn avro(&self) -> Value {
        let Entry { status, content, .. } = self.entry;
        let status = [Status::Existing, Status::Added, Status::Deleted].iter().position(|other| *other == status);
        let contents = [FileContent::Data, FileContent::PositionDeletes, FileContent::EqualityDeletes];
        let content = contents.iter().position(|other| *other == content);
        let format = if self.entry.is_vector { "puffin" } else { "parquet" };
        let bounds = |bound: Option<&str>| {
            let pair = |(key, value): (i32, &str)| {
                record(vec![("key", Value::Int(key)), ("value", Value::Bytes(value.into()))])
            };
            optional(bound.map(|path| Value::Array([(1, "x"), (2_147_483_546, path)].map(pair).to_vec())))
        };
        let partition = record(vec![("u", optional(Some(Value::Fixed(16, vec![7; 16]))))]);
        let file = record(vec![
            ("content", Value::Int(content.unwrap() as i32)),
            ("file_path", Value::String(self.entry.path.clone())),
            ("file_format", Value::String(format.to_owned())),
            ("partition", partition),
            ("record_count", Value::Long(self.entry.record_count)),
            ("lower_bounds", bounds(self.bounds.map(|(lower, _)| lower))),
            ("upper_bounds", bounds(self.bounds.map(|(_, upper)| upper))),
            ("referenced_data_file", optional(self.entry.referenced.clone().map(Value::String))),
        ]);
        record(vec![
            ("status", Value::Int(status.unwrap() as i32)),
            ("snapshot_id", optional(self.entry.snapshot_id.map(Value::Long))),
            ("sequence_number", optional(self.entry.sequence_number.map(Value::Long))),
            ("data_file", file),
        ])
    }
}

fn record(fields: Vec<(&str, Value)>) -> Value {
    Value::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn optional(value: Option<Value>) -> Value {
    match value {
        Some(value) => Value::Union(1, Box::new(value)),
        None => Value::Union(0, Box::new(Value::Null)),
    }
}

pub(crate) fn bytes(entries: &[Written]) -> Vec<u8> {
    let records: Vec<Value> = entries.iter().map(Written::avro).collect();
    container(SCHEMA, Codec::Deflate(DeflateSettings::default()), &records)
}

#[test]
fn what_a_rebase_asks_of_entries_is_read() {
    let written = [
        data("a", 7),
        data("b", 7).numbered(3).as_(Status::Existing),
        data("c", 7).as_(Status::Deleted),
        equality("d", 7),
        vector("e", 7, "a"),
    ];
    let read = read(&bytes(&written)).unwrap();
    assert_eq!(read, written.map(|written| written.entry));
}

#[test]
fn equal_bounds_name_the_data_file_and_others_do_not() {
    for (bounds, referenced) in [
        (Some(("f1", "f1")), Some("f1".to_owned())),
        (Some(("f1", "f2")), None),
        (Some(("f", "g")), None),
        (None, None),
    ] {
        let read = read(&bytes(&[positions("p", 7, bounds)])).unwrap();
        assert_eq!(read[0].referenced, referenced);
        assert!(!read[0].is_vector);
    }
}

#[test]
fn a_manifest_of_format_version_1_holds_data() {
    let schema = r#"{"type": "record", "name": "manifest_entry", "fields": [
        {"name": "status", "type": "int", "field-id": 0}, {"name": "snapshot_id", "type": "long", "field-id": 1},
        {"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "r2", "fields": [
            {"name": "file_path", "type": "string", "field-id": 100},
            {"name": "record_count", "type": "long", "field-id": 103}]}}]}"#;
    let file = record(vec![("file_path", Value::String("a".to_owned())), ("record_count", Value::Long(10))]);
    let entry = record(vec![("status", Value::Int(1)), ("snapshot_id", Value::Long(7)), ("data_file", file)]);
    assert_eq!(read(&container(schema, Codec::Null, &[entry])).unwrap(), [data("a", 7).entry]);
}

#[test]
fn what_has_not_what_it_must_is_unreadable() {
    let schema = r#"{"type": "record", "name": "manifest_entry", "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "r2", "fields": [
            {"name": "file_path", "type": "string", "field-id": 100}]}}]}"#;
    let entry = |status| {
        let file = record(vec![("file_path", Value::String("a".to_owned()))]);
        record(vec![("status", Value::Int(status)), ("data_file", file)])
    };
    for (status, name) in [(1, "data_file.record_count"), (3, "status of a kind that is known")] {
        let error = read(&container(schema, Codec::Null, &[entry(status)])).unwrap_err();
        assert!(matches!(error, Unreadable::NoField(field) if field == name), "{error}");
    }
}

#[test]
fn a_file_with_rows_below_zero_is_unreadable() {
    let mut negative = data("a", 7);
    negative.entry.record_count = -1;
    let error = read(&bytes(&[negative])).unwrap_err();
    assert!(matches!(error, Unreadable::NoField("data_file.record_count")), "{error}");
}
