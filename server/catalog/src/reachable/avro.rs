//! Reads file names out of manifest lists and manifests, whatever else their schemas say.

use std::collections::HashSet;
use std::fmt;
use std::io::Read;

use apache_avro::types::Value;
use apache_avro::{Reader, Schema, from_avro_datum, to_avro_datum};
use serde_json::Value as Json;

const MAGIC: &[u8] = b"Obj\x01";

/// Which names are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Those of the manifests in a manifest list.
    Manifests,
    /// Those of the data and delete files in a manifest, whether they are live or deleted there.
    DataFiles,
}

/// Why a file gave no names.
#[derive(Debug)]
pub enum Unreadable {
    Avro(apache_avro::Error),
    NoSchema,
    /// A record without the field that holds the name.
    NoName(&'static str),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Avro(error) => write!(f, "not readable as Avro: {error}"),
            Unreadable::NoSchema => f.write_str("not an Avro file with a schema"),
            Unreadable::NoName(field) => write!(f, "a record has no field {field}"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// The wanted names of a whole file, in its order.
///
/// Values are read as the file's own schema has them, so no column type needs to be known here.
pub fn names(bytes: &[u8], wanted: Wanted) -> Result<Vec<String>, Unreadable> {
    let (header, blocks) = plain_header(bytes)?;
    Reader::new(header.as_slice().chain(blocks))
        .map_err(Unreadable::Avro)?
        .map(|record| name(record.map_err(Unreadable::Avro)?, wanted))
        .collect()
}

/// The file's header with a schema that says only how values are laid out, and the rest of the file.
fn plain_header(bytes: &[u8]) -> Result<(Vec<u8>, &[u8]), Unreadable> {
    let entries = Schema::map(Schema::Bytes);
    let mut rest = bytes.strip_prefix(MAGIC).ok_or(Unreadable::NoSchema)?;
    let mut header = from_avro_datum(&entries, &mut rest, None).map_err(Unreadable::Avro)?;
    let Value::Map(map) = &mut header else {
        return Err(Unreadable::NoSchema);
    };
    let Some(Value::Bytes(text)) = map.get_mut("avro.schema") else {
        return Err(Unreadable::NoSchema);
    };
    let mut schema = serde_json::from_slice(text).map_err(|_| Unreadable::NoSchema)?;
    make_plain(&mut schema, &mut HashSet::new());
    *text = schema.to_string().into_bytes();
    let header = to_avro_datum(&entries, header).map_err(Unreadable::Avro)?;
    Ok(([MAGIC, &header].concat(), rest))
}

/// Takes from a schema what does not bear on the layout, but makes strict readers stumble over files that exist: logical
/// types (the Avro crate misreads a `uuid` in 16 bytes), defaults, columns whose names are no Avro names, and types that
/// are defined again where Avro wants their name.
fn make_plain(schema: &mut Json, defined: &mut HashSet<String>) {
    match schema {
        Json::Array(members) => members.iter_mut().for_each(|member| make_plain(member, defined)),
        Json::Object(object) => {
            for key in ["logicalType", "default", "doc", "aliases"] {
                object.remove(key);
            }
            let named = matches!(object.get("type").and_then(Json::as_str), Some("record" | "fixed" | "enum"));
            if let Some(name) = object.get("name").and_then(Json::as_str).filter(|_| named)
                && !defined.insert(name.to_owned())
            {
                *schema = Json::from(name);
                return;
            }
            if let Some(Json::Array(fields)) = object.get_mut("fields") {
                fields.iter_mut().enumerate().for_each(|(position, field)| give_avro_name(field, position));
            }
            object.values_mut().for_each(|value| make_plain(value, defined));
        }
        _ => {}
    }
}

fn give_avro_name(field: &mut Json, position: usize) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = field.get("name").and_then(Json::as_str).unwrap_or_default();
    if !name.chars().all(plain) || !name.starts_with(|c: char| plain(c) && !c.is_ascii_digit()) {
        field["name"] = Json::from(format!("field_at_{position}"));
    }
}

fn name(record: Value, wanted: Wanted) -> Result<String, Unreadable> {
    let found = match wanted {
        Wanted::Manifests => field(record, "manifest_path"),
        Wanted::DataFiles => field(record, "data_file").and_then(|file| field(file, "file_path")),
    };
    match found {
        Some(Value::String(name)) => Ok(name),
        _ => Err(Unreadable::NoName(match wanted {
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

    /// A container file with the schema's very text, which the crate's own writer would put in order.
    pub fn container(schema: &str, codec: Codec, records: &[Value]) -> Vec<u8> {
        const MARKER: [u8; 16] = *b"sixteen bytes ok";
        let mut layout = serde_json::from_str(schema).unwrap();
        make_plain(&mut layout, &mut HashSet::new());
        let layout = Schema::parse(&layout).unwrap();
        let codec_name = <&str>::from(codec);
        let mut file = MAGIC.to_vec();
        file.extend(long(2));
        for (key, value) in [("avro.schema", schema), ("avro.codec", codec_name)] {
            file.extend([long(key.len()), key.into(), long(value.len()), value.into()].concat());
        }
        file.extend(long(0));
        file.extend(MARKER);
        let mut block: Vec<u8> =
            records.iter().flat_map(|record| to_avro_datum(&layout, record.clone()).unwrap()).collect();
        codec.compress(&mut block).unwrap();
        file.extend([long(records.len()), long(block.len()), block, MARKER.to_vec()].concat());
        file
    }

    fn long(value: usize) -> Vec<u8> {
        to_avro_datum(&Schema::Long, Value::Long(value as i64)).unwrap()
    }

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
            assert!(matches!(names(&whole[..end], Wanted::DataFiles), Err(Unreadable::Avro(_))));
        }
        assert!(matches!(names(&whole, Wanted::Manifests), Err(Unreadable::NoName("manifest_path"))));
    }
}
