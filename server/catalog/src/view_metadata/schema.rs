//! One schema of a view: its id over the raw JSON.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::Value;
use serde_json::value::RawValue;

use super::raw_object::{RawObject, without_nulls};
use crate::error::{Error, Result};
use crate::metadata::digest;

const WHAT: &str = "view schema";

#[derive(Debug, Clone)]
pub(super) struct ViewSchema {
    pub id: i32,
    raw: Box<RawValue>,
    content: OnceLock<[u8; 32]>,
}

impl ViewSchema {
    /// Reads a stored schema. One without an id is schema 0, as other readers take it.
    pub fn parse(raw: &RawValue) -> Result<Self> {
        let schema = RawObject::from_raw(WHAT, raw)?;
        let id: Option<i32> = schema.get("schema-id")?;
        Ok(Self { id: id.unwrap_or(0), raw: raw.to_owned(), content: OnceLock::new() })
    }

    /// A schema to be added, under the id that the view gives it.
    pub fn with_id(raw: &RawValue, id: i32) -> Result<Self> {
        let mut schema = RawObject::from_raw(WHAT, raw)?;
        schema.set("schema-id", id);
        Ok(Self { id, raw: schema.to_raw(), content: OnceLock::new() })
    }

    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// See [`content`]; computed once.
    pub fn content(&self) -> Result<[u8; 32]> {
        match self.content.get() {
            Some(known) => Ok(*known),
            None => content(&self.raw).map(|content| *self.content.get_or_init(|| content)),
        }
    }
}

/// A digest of what makes two schemas the same: everything but the id, with the identifier fields as a set.
pub(super) fn content(raw: &RawValue) -> Result<[u8; 32]> {
    let value: Value = serde_json::from_str(raw.get()).map_err(|error| Error::invalid(format!("{WHAT}: {error}")))?;
    let mut value = without_nulls(value);
    if let Value::Object(members) = &mut value {
        members.remove("schema-id");
        let identifiers = members.remove("identifier-field-ids");
        let identifiers: BTreeSet<i64> =
            identifiers.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_i64).collect();
        if !identifiers.is_empty() {
            members.insert("identifier-field-ids".into(), identifiers.into_iter().collect());
        }
    }
    Ok(digest(value))
}

/// Checks the shape of a schema to be added: a struct, and for each column an id and a name of its own.
pub(super) fn check(raw: &RawValue) -> Result<()> {
    let schema = RawObject::from_raw(WHAT, raw)?;
    let kind: String = schema.get("type")?;
    if kind != "struct" {
        return Err(Error::invalid(format!("{WHAT}: 'type' must be 'struct', but is '{kind}'")));
    }
    let fields: Vec<Box<RawValue>> = schema.get("fields")?;
    let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
    for field in &fields {
        let (id, name) = check_field(field)?;
        if !ids.insert(id) {
            return Err(Error::invalid(format!("{WHAT}: field id {id} is used twice")));
        }
        if names.contains(&name) {
            return Err(Error::invalid(format!("{WHAT}: field name '{name}' is used twice")));
        }
        names.insert(name);
    }
    Ok(())
}

fn check_field(raw: &RawValue) -> Result<(i32, String)> {
    let field = RawObject::from_raw("view schema field", raw)?;
    field.get::<bool>("required")?;
    field.get::<Box<RawValue>>("type")?;
    Ok((field.get("id")?, field.get("name")?))
}
