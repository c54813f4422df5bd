//! Avro files as Iceberg has them, read whatever their schemas say: fields are found by their ids, and values are kept
//! as the file's own schema lays them out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::str::FromStr;

use apache_avro::headers::HeaderBuilder;
use apache_avro::types::Value;
use apache_avro::{Codec, GenericSingleObjectReader, Schema, from_avro_datum, to_avro_datum};
use serde_json::{Value as Json, json};

mod extent;
mod inflate;

use extent::Extent;

/// Bound of what the blocks of a file hold when they are inflated, in bytes: a small file may promise anything.
const INFLATED_MAX_BYTES: usize = 256 << 20;

/// Bound of the schema of a file, in bytes; those of manifests take seven thousand, and more for fields of a partition.
const SCHEMA_MAX_BYTES: usize = 256 << 10;

/// What the header of a file may cost, as [`Extent::measure`] counts: some hundred entries.
const HEADER_COST_MAX: usize = 1_000;

/// What the records of a file may cost beside what their bytes allow, and what each byte allows.
const COST_MAX: usize = 1_000_000;
const COST_MAX_PER_BYTE: usize = 16;

/// A record may be little and its schema long; so many bytes of the schema's text cost 1 for each record.
const SCHEMA_BYTES: usize = 16;

const MAGIC: &[u8] = b"Obj\x01";
const SCHEMA: &str = "avro.schema";
const CODEC: &str = "avro.codec";
const MARKER_BYTES: usize = 16;

/// Why a file gave no records.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("not readable as Avro: {0}")]
    Avro(#[from] apache_avro::Error),
    #[error("not an Avro file with a schema")]
    NoSchema,
    #[error("compressed by a codec that is not known here")]
    UnknownCodec,
    #[error("broken off or damaged")]
    Broken,
    #[error("longer than {INFLATED_MAX_BYTES} bytes when inflated")]
    TooLong,
    #[error("nested or repeated beyond what any manifest is")]
    TooComplex,
    /// A record without a field that it must have.
    #[error("a record has no field {0}")]
    NoField(&'static str),
}

type Result<T> = std::result::Result<T, Unreadable>;

/// An Avro file in memory, its header read.
pub struct File<'a> {
    /// Everything before the first block.
    preamble: &'a [u8],
    header: BTreeMap<String, Vec<u8>>,
    schema: Json,
    /// The schema with only what bears on the layout of values.
    layout: Schema,
    codec: Codec,
    marker: &'a [u8],
    blocks: &'a [u8],
}

impl<'a> File<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(Unreadable::NoSchema)?;
        let header = header_at(&mut rest)?;
        let text = header.get(SCHEMA).ok_or(Unreadable::NoSchema)?;
        if text.len() > SCHEMA_MAX_BYTES {
            return Err(Unreadable::TooComplex);
        }
        let schema: Json = serde_json::from_slice(text).map_err(|_| Unreadable::NoSchema)?;
        let mut plain = schema.clone();
        make_plain(&mut plain, &mut HashSet::new());
        let layout = Schema::parse(&plain)?;
        let codec = codec(header.get(CODEC))?;
        let (marker, blocks) = rest.split_at_checked(MARKER_BYTES).ok_or(Unreadable::Broken)?;
        let preamble = &bytes[..bytes.len() - blocks.len()];
        Ok(Self { preamble, header, schema, layout, codec, marker, blocks })
    }

    /// What the header says under `key`, where it is text.
    pub fn header(&self, key: &str) -> Option<&str> {
        self.header.get(key).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The schema as it was written.
    pub fn schema(&self) -> &Json {
        &self.schema
    }

    /// Calls `each` with every record and the bytes that it was read from, in the order of the file.
    pub fn for_each(&self, mut each: impl FnMut(Value, &[u8]) -> Result<()>) -> Result<()> {
        let extent = Extent::of(&self.layout)?;
        let decoder = GenericSingleObjectReader::new_with_header_builder(self.layout.clone(), NoHeader)?;
        let (mut rest, mut left, mut cost_left) = (self.blocks, INFLATED_MAX_BYTES, COST_MAX);
        while !rest.is_empty() {
            let (count, size) = (long_at(&mut rest)?, long_at(&mut rest)?);
            let size = usize::try_from(size).map_err(|_| Unreadable::Broken)?;
            let (block, after) = rest.split_at_checked(size).ok_or(Unreadable::Broken)?;
            rest = after.strip_prefix(self.marker).ok_or(Unreadable::Broken)?;
            let block = inflate::inflate(self.codec, block, left)?;
            left -= block.len();
            cost_left += COST_MAX_PER_BYTE * block.len();
            let mut records = block.as_ref();
            for _ in 0..count {
                let (record, after) = records.split_at(self.next_record(&extent, records, &mut cost_left)?);
                records = after;
                each(decoder.read_value(&mut &*record)?, record)?;
            }
        }
        Ok(())
    }

    /// How many of the bytes the next record takes.
    fn next_record(&self, extent: &Extent<'_>, bytes: &[u8], cost_left: &mut usize) -> Result<usize> {
        let schema_bytes = self.header.get(SCHEMA).map_or(0, Vec::len);
        *cost_left = cost_left.checked_sub(schema_bytes / SCHEMA_BYTES).ok_or(Unreadable::TooComplex)?;
        match extent.measure(bytes, cost_left)? {
            // A count of records that take no room could be anything.
            0 => Err(Unreadable::Broken),
            taken => Ok(taken),
        }
    }

    /// The same file, header and all, with only those records that `keep` wants; each keeps its bytes.
    pub fn filtered(&self, mut keep: impl FnMut(&Value) -> Result<bool>) -> Result<Vec<u8>> {
        let (mut count, mut block) = (0, Vec::new());
        self.for_each(|record, bytes| {
            if keep(&record)? {
                count += 1;
                block.extend_from_slice(bytes);
            }
            Ok(())
        })?;
        self.codec.compress(&mut block)?;
        let mut file = self.preamble.to_vec();
        if count > 0 {
            file.extend([&long_bytes(count), &long_bytes(block.len()), block.as_slice(), self.marker].concat());
        }
        Ok(file)
    }
}

/// Records of a file stand there bare. This is how a reader is had that looks types up once, and not for each record.
struct NoHeader;

impl HeaderBuilder for NoHeader {
    fn build_header(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Where the fields of a record stand in it, by their ids.
#[derive(Debug, Default)]
pub struct Fields(HashMap<i64, usize>);

impl Fields {
    /// Those of a record's schema; none of what is no record.
    pub fn of(schema: &Json) -> Self {
        let fields = schema["fields"].as_array().into_iter().flatten().enumerate();
        Self(fields.filter_map(|(at, field)| Some((field["field-id"].as_i64()?, at))).collect())
    }

    pub fn contains(&self, id: i64) -> bool {
        self.0.contains_key(&id)
    }

    /// The field's value out of its union; `None` where the record does not have it, or has null.
    pub fn get<'v>(&self, record: &'v Value, id: i64) -> Option<&'v Value> {
        let Value::Record(fields) = record else { return None };
        let (_, value) = fields.get(*self.0.get(&id)?)?;
        present(value)
    }

    pub fn long(&self, record: &Value, id: i64) -> Option<i64> {
        match self.get(record, id)? {
            Value::Long(value) => Some(*value),
            Value::Int(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    pub fn int(&self, record: &Value, id: i64) -> Option<i32> {
        self.long(record, id).and_then(|value| i32::try_from(value).ok())
    }

    pub fn string<'v>(&self, record: &'v Value, id: i64) -> Option<&'v str> {
        match self.get(record, id)? {
            Value::String(value) => Some(value),
            _ => None,
        }
    }

    pub fn boolean(&self, record: &Value, id: i64) -> Option<bool> {
        match self.get(record, id)? {
            Value::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    pub fn bytes(&self, record: &Value, id: i64) -> Option<Vec<u8>> {
        bytes_of(self.get(record, id)?)
    }

    /// The elements of an array, none where there is no array.
    pub fn array<'v>(&self, record: &'v Value, id: i64) -> Option<&'v [Value]> {
        match self.get(record, id)? {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }
}

/// The type of the field with that id in a record's schema, without the null of its union.
pub fn type_of(schema: &Json, id: i64) -> Json {
    let mut fields = schema["fields"].as_array().into_iter().flatten();
    let found = fields.find(|field| field["field-id"] == id).map(|field| &field["type"]);
    match found {
        Some(Json::Array(members)) => members.iter().find(|member| **member != "null").cloned().unwrap_or_default(),
        Some(one) => one.clone(),
        None => Json::Null,
    }
}

/// A value out of its union; `None` for null.
fn present(value: &Value) -> Option<&Value> {
    match value {
        Value::Union(_, value) => present(value),
        Value::Null => None,
        value => Some(value),
    }
}

fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Bytes(bytes) | Value::Fixed(_, bytes) => Some(bytes.clone()),
        _ => None,
    }
}

fn header_at(rest: &mut &[u8]) -> Result<BTreeMap<String, Vec<u8>>> {
    let layout = Schema::map(Schema::Bytes);
    let mut cost_left = HEADER_COST_MAX;
    Extent::of(&layout)?.measure(rest, &mut cost_left)?;
    let Value::Map(entries) = from_avro_datum(&layout, rest, None)? else {
        return Err(Unreadable::NoSchema);
    };
    Ok(entries.into_iter().filter_map(|(key, value)| Some((key, bytes_of(&value)?))).collect())
}

fn codec(name: Option<&Vec<u8>>) -> Result<Codec> {
    let Some(name) = name else { return Ok(Codec::Null) };
    let name = std::str::from_utf8(name).map_err(|_| Unreadable::UnknownCodec)?;
    Codec::from_str(name).map_err(|_| Unreadable::UnknownCodec)
}

fn long_at(rest: &mut &[u8]) -> Result<i64> {
    match from_avro_datum(&Schema::Long, rest, None)? {
        Value::Long(value) => Ok(value),
        _ => Err(Unreadable::Broken),
    }
}

fn long_bytes(value: usize) -> Vec<u8> {
    let value = i64::try_from(value).expect("what is in memory is shorter than i64::MAX");
    to_avro_datum(&Schema::Long, Value::Long(value)).expect("a long is a long")
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
            for key in ["name", "type"] {
                let name = object.get(key).and_then(Json::as_str);
                if name.is_some_and(|name| !name.split('.').all(is_avro_name)) {
                    // The parser panics at it. Nothing can refer to the new one.
                    object.insert(key.to_owned(), format!("{key}_at_{}", defined.len()).into());
                }
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
    if !field.is_object() {
        // The parser would pass over it, and the fields behind it would not be where they seem to be. A field without a
        // type is refused.
        *field = json!({});
    }
    if !field["name"].as_str().is_some_and(is_avro_name) {
        field["name"] = Json::from(format!("field_at_{position}"));
    }
}

fn is_avro_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(plain) && name.starts_with(|c: char| plain(c) && !c.is_ascii_digit())
}

#[cfg(test)]
pub(crate) mod tests;
