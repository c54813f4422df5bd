//! Schemas: kept as received, read into columns only when a rule asks for them.

mod columns;
mod defaults;
mod evolution;
mod fresh_ids;
mod types;

use std::sync::OnceLock;

use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use columns::{Columns, Kind};
pub(crate) use evolution::{NewestColumns, check_evolution, check_format_version};
pub(crate) use fresh_ids::{FreshIds, with_fresh_ids};
pub(crate) use types::{accepts, check_width};

use super::json::{self, Checked, Object};

/// One schema of a table.
#[derive(Debug)]
pub struct Schema {
    id: i32,
    raw: Box<RawValue>,
    columns: OnceLock<Columns>,
    /// Of what makes two schemas the same; `None` where the schema cannot be read.
    digest: OnceLock<Option<[u8; 32]>>,
}

impl Schema {
    /// Reads a schema of a document; one that has no id (format version 1) is schema 0.
    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        match Object::parse(raw)?.optional("schema-id")? {
            Some(id) => Ok(Self::unread(raw.to_owned(), id)),
            None => Self::with_id(raw, 0),
        }
    }

    /// The same schema under another id, and without the null that some clients cannot read.
    pub(crate) fn with_id(raw: &RawValue, id: i32) -> Checked<Self> {
        let raw = Object::parse(raw)?.without_null(&["identifier-field-ids"]);
        let raw = Object::parse(&raw)?.with(&[("schema-id", id.to_string())]);
        Ok(Self::unread(raw, id))
    }

    fn unread(raw: Box<RawValue>, id: i32) -> Self {
        Self { id, raw, columns: OnceLock::new(), digest: OnceLock::new() }
    }

    pub fn id(&self) -> i32 {
        self.id
    }

    /// The schema as it was received, but for its id.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The columns, nested ones too. A type that nobody here knows is no flaw; a broken structure is.
    pub(crate) fn columns(&self) -> Checked<&Columns> {
        if let Some(columns) = self.columns.get() {
            return Ok(columns);
        }
        let columns = Columns::read(&self.raw)?;
        Ok(self.columns.get_or_init(|| columns))
    }

    /// Same columns, documentation, defaults and identifier fields; the schema's own id does not count.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.digest().is_some_and(|digest| Some(digest) == other.digest())
    }

    fn digest(&self) -> Option<&[u8; 32]> {
        let digest = self.digest.get_or_init(|| comparable(&self.raw).map(json::digest));
        digest.as_ref()
    }
}

/// A schema without its id and without the freedoms of its writing: null for absent, blanks in type names.
fn comparable(raw: &RawValue) -> Option<Value> {
    let mut value: Value = serde_json::from_str(raw.get()).ok()?;
    let schema = value.as_object_mut()?;
    schema.remove("schema-id");
    let mut identifiers: Vec<i64> = match schema.remove("identifier-field-ids") {
        Some(Value::Array(ids)) => ids.iter().filter_map(Value::as_i64).collect(),
        _ => Vec::new(),
    };
    identifiers.sort_unstable();
    normalise(&mut value);
    Some(Value::Array(vec![value, Value::from(identifiers)]))
}

fn normalise(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            for (key, member) in members.iter_mut() {
                match member {
                    Value::String(name) if matches!(key.as_str(), "type" | "element" | "key" | "value") => {
                        name.retain(|c| c != ' ');
                    }
                    _ => normalise(member),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::json;

    fn schema(text: &str) -> Schema {
        Schema::read(&json::raw(text.to_owned())).unwrap()
    }

    #[test]
    fn schemas_are_the_same_whatever_their_ids_and_their_writing() {
        let a = schema(
            r#"{"schema-id":3,"type":"struct","fields":[{"id":1,"name":"d","required":false,"type":"decimal(9, 2)"}]}"#,
        );
        let same = r#"{"type":"struct","identifier-field-ids":[],"fields":[{"required":false,"id":1,"doc":null,"type":"decimal(9,2)","name":"d"}]}"#;
        assert!(a.is_same_as(&schema(same)));
        for other in [
            same.replace("false", "true"),
            same.replace(r#""doc":null"#, r#""doc":"words""#),
            same.replace("\"identifier-field-ids\":[]", "\"identifier-field-ids\":[1]"),
            same.replace("9,2", "10,2"),
        ] {
            assert!(!a.is_same_as(&schema(&other)), "{other}");
        }
    }

    #[test]
    fn a_schema_without_an_id_is_schema_0_and_says_so() {
        let schema = schema(r#"{"type":"struct","fields":[]}"#);
        assert_eq!((schema.id(), schema.raw().get()), (0, r#"{"type":"struct","fields":[],"schema-id":0}"#));
    }
}
