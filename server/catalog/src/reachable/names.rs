//! File names out of manifest lists and manifests, whatever else their schemas say.

use apache_avro::types::Value;

use crate::avro::{File, Unreadable};

/// Which names are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Those of the manifests in a manifest list.
    Manifests,
    /// Those of the data and delete files in a manifest, whether they are live or deleted there.
    DataFiles,
}

/// The wanted names of a whole file, in its order.
///
/// They are found by the names of their fields, which no writer was ever seen to change; some schemas have no ids.
pub fn names(bytes: &[u8], wanted: Wanted) -> Result<Vec<String>, Unreadable> {
    let mut names = Vec::new();
    File::open(bytes)?.for_each(|record, _| {
        names.push(name(record, wanted)?);
        Ok(())
    })?;
    Ok(names)
}

fn name(record: Value, wanted: Wanted) -> Result<String, Unreadable> {
    let found = match wanted {
        Wanted::Manifests => field(record, "manifest_path"),
        Wanted::DataFiles => field(record, "data_file").and_then(|file| field(file, "file_path")),
    };
    match found {
        Some(Value::String(name)) => Ok(name),
        _ => Err(Unreadable::NoField(match wanted {
            Wanted::Manifests => "manifest_path",
            Wanted::DataFiles => "data_file.file_path",
        })),
    }
}

/// The value of a record's field, out of its union.
fn field(record: Value, name: &str) -> Option<Value> {
    let Value::Record(fields) = record else { return None };
    let (_, value) = fields.into_iter().find(|(field, _)| field == name)?;
    match value {
        Value::Union(_, value) => Some(*value),
        value => Some(value),
    }
}

#[cfg(test)]
pub mod tests {
    use apache_avro::{Codec, DeflateSettings, ZstandardSettings};

    use super::*;
    use crate::avro::tests::container;

    pub const MANIFEST_LIST: &str = r#"{"type": "record", "name": "manifest_file", "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501}]}"#;

    pub const MANIFEST: &str = r#"{"type": "record", "name": "manifest_entry", "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "r2", "fields": [
            {"name": "file_path", "type": "string", "field-id": 100}]}}]}"#;

    /// A manifest with all that engines were seen to write, partitioned by types that are rare, unknown or newer than this.
    const RICH_MANIFEST: &str = r#"{"type": "record", "name": "manifest_entry", "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot_id", "type": ["null", "long"], "default": null, "field-id": 1},
        {"name": "data_file", "field-id": 2, "type": {"type": "record", "name": "r2", "fields": [
            {"name": "content", "type": "int", "doc": "0=DATA", "field-id": 134},
            {"name": "file_path", "type": "string", "field-id": 100},
            {"name": "partition", "field-id": 102, "type": {"type": "record", "name": "r102", "fields": [
                {"name": "u", "type": ["null", {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"}], "default": null, "field-id": 1000},
                {"name": "d", "type": ["null", {"type": "fixed", "name": "decimal_9_2", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}], "default": null, "field-id": 1001},
                {"name": "ns", "type": ["null", {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": true}], "default": null, "field-id": 1002},
                {"name": "g", "type": ["null", {"type": "bytes", "logicalType": "geometry-of-tomorrow"}], "default": null, "field-id": 1003},
                {"name": "d-again", "type": ["null", {"type": "fixed", "name": "decimal_9_2", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}], "default": null, "field-id": 1004},
                {"name": "1st day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": 7, "field-id": 1005}]}},
            {"name": "lower_bounds", "default": null, "field-id": 125, "type": ["null", {"type": "array", "logicalType": "map",
                "items": {"type": "record", "name": "k126_v127", "fields": [
                    {"name": "key", "type": "int", "field-id": 126},
                    {"name": "value", "type": "bytes", "field-id": 127}]}}]}]}}]}"#;

    fn record(fields: Vec<(&str, Value)>) -> Value {
        Value::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub fn manifest_file(path: &str) -> Value {
        record(vec![("manifest_path", Value::String(path.to_owned())), ("manifest_length", Value::Long(7))])
    }

    pub fn entry(path: &str) -> Value {
        let file = record(vec![("file_path", Value::String(path.to_owned()))]);
        record(vec![("status", Value::Int(1)), ("data_file", file)])
    }

    fn rich_entry(path: &str) -> Value {
        let some = |value| Value::Union(1, Box::new(value));
        let partition = record(vec![
            ("u", some(Value::Fixed(16, vec![7; 16]))),
            ("d", some(Value::Fixed(4, vec![0, 0, 1, 2]))),
            ("ns", some(Value::Long(1))),
            ("g", some(Value::Bytes(vec![1, 2]))),
            ("field_at_4", some(Value::Fixed(4, vec![0, 0, 1, 3]))),
            ("field_at_5", some(Value::Int(3))),
        ]);
        let bound = record(vec![("key", Value::Int(1)), ("value", Value::Bytes(vec![9]))]);
        let file = record(vec![
            ("content", Value::Int(0)),
            ("file_path", Value::String(path.to_owned())),
            ("partition", partition),
            ("lower_bounds", some(Value::Array(vec![bound]))),
        ]);
        record(vec![("status", Value::Int(2)), ("snapshot_id", some(Value::Long(4))), ("data_file", file)])
    }

    #[test]
    fn names_are_read_with_every_codec() {
        for codec in [
            Codec::Null,
            Codec::Deflate(DeflateSettings::default()),
            Codec::Snappy,
            Codec::Zstandard(ZstandardSettings::default()),
        ] {
            let list = container(MANIFEST_LIST, codec, &[manifest_file("s3://b/m1"), manifest_file("s3://b/m2")]);
            assert_eq!(names(&list, Wanted::Manifests).unwrap(), ["s3://b/m1", "s3://b/m2"], "{codec:?}");
            let manifest = container(MANIFEST, codec, &[entry("s3://b/a")]);
            assert_eq!(names(&manifest, Wanted::DataFiles).unwrap(), ["s3://b/a"], "{codec:?}");
        }
    }

    #[test]
    fn names_are_read_beside_types_that_nobody_here_knows() {
        let manifest = container(RICH_MANIFEST, Codec::Null, &[rich_entry("s3://b/p=1/a b%20.parquet")]);
        assert_eq!(names(&manifest, Wanted::DataFiles).unwrap(), ["s3://b/p=1/a b%20.parquet"]);
    }

    #[test]
    fn an_empty_file_list_has_no_names() {
        assert!(names(&container(MANIFEST, Codec::Null, &[]), Wanted::DataFiles).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_manifest_is_unreadable() {
        let whole = container(MANIFEST, Codec::Null, &[entry("s3://b/a")]);
        for bytes in [&b""[..], b"PAR1", b"Obj\x01\x00"] {
            assert!(matches!(names(bytes, Wanted::DataFiles), Err(Unreadable::NoSchema)));
        }
        for end in [10, whole.len() - 20] {
            let read = names(&whole[..end], Wanted::DataFiles);
            assert!(matches!(read, Err(Unreadable::Avro(_) | Unreadable::Broken)));
        }
        assert!(matches!(names(&whole, Wanted::Manifests), Err(Unreadable::NoField("manifest_path"))));
    }
}
