//! A JSON object whose members keep their order and their bytes.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, Result};

/// Members in the order they were written. Of a name that is given twice the last value counts, as in most readers.
#[derive(Debug, Clone, Default)]
pub(super) struct RawObject {
    /// What the object is, for messages.
    what: &'static str,
    members: Vec<(String, Box<RawValue>)>,
}

impl RawObject {
    pub fn parse(what: &'static str, json: &[u8]) -> Result<Self> {
        let object: Self = serde_json::from_slice(json).map_err(|error| Error::invalid(format!("{what}: {error}")))?;
        Ok(Self { what, ..object })
    }

    pub fn from_raw(what: &'static str, raw: &RawValue) -> Result<Self> {
        Self::parse(what, raw.get().as_bytes())
    }

    /// The member as a `T`; one that is missing or null is `None` for an `Option` and an error for anything else.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let member = self.members.iter().find(|(known, _)| known == name);
        let json = member.map_or("null", |(_, value)| value.get());
        serde_json::from_str(json).map_err(|error| {
            let what = self.what;
            Error::invalid(match json {
                "null" => format!("{what}: '{name}' is missing"),
                _ => format!("{what}: '{name}': {error}"),
            })
        })
    }

    /// The member `name`, or when it is not there `older`, as old clients call it.
    pub fn get_aliased<T: DeserializeOwned>(&self, name: &str, older: &str) -> Result<T> {
        let has = |wanted| self.members.iter().any(|(known, _)| known == wanted);
        self.get(if !has(name) && has(older) { older } else { name })
    }

    /// Replaces the member, or adds it at the end.
    pub fn set(&mut self, name: &str, value: impl Into<i64>) {
        let value = to_raw_value(&value.into()).expect("a number always encodes");
        self.put(name.to_owned(), value);
    }

    pub fn set_raw(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        let value = to_raw_value(value).expect("strings and raw JSON always encode");
        self.put(name.to_owned(), value);
    }

    pub fn without(mut self, names: &[&str]) -> Self {
        self.members.retain(|(name, _)| !names.contains(&name.as_str()));
        self
    }

    pub fn to_raw(&self) -> Box<RawValue> {
        to_raw_value(self).expect("raw JSON always encodes")
    }

    pub fn memory_bytes(&self) -> usize {
        let member = |(name, value): &(String, Box<RawValue>)| name.len() + value.get().len() + 40;
        self.members.iter().map(member).sum()
    }

    fn put(&mut self, name: String, value: Box<RawValue>) {
        match self.members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.members.push((name, value)),
        }
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.members.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<RawObject, A::Error> {
        let mut object = RawObject::default();
        while let Some((name, value)) = map.next_entry()? {
            object.put(name, value);
        }
        Ok(object)
    }
}

/// The value with every null member taken out, so that "null" and "not there" compare as the same.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name, without_nulls(member)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_keep_their_order_and_their_bytes() {
        let mut object = RawObject::parse("thing", br#"{"z": 1.50, "a": {"b" : [ ]}, "schema-id": 7}"#).unwrap();
        object.set("schema-id", 0);
        object.set("added", 1);
        assert_eq!(object.to_raw().get(), r#"{"z":1.50,"a":{"b" : [ ]},"schema-id":0,"added":1}"#);
    }

    #[test]
    fn the_last_value_of_a_repeated_name_counts() {
        let object = RawObject::parse("thing", br#"{"a": 1, "a": 2}"#).unwrap();
        assert_eq!(object.get::<i32>("a").unwrap(), 2);
    }

    #[test]
    fn errors_name_the_object_and_the_member() {
        let object = RawObject::parse("view version", br#"{"schema-id": "x", "summary": null}"#).unwrap();
        let message = |name| object.get::<i32>(name).unwrap_err().to_string();
        assert!(message("schema-id").starts_with("view version: 'schema-id': invalid type"));
        assert_eq!(message("summary"), "view version: 'summary' is missing");
        assert_eq!(message("version-id"), "view version: 'version-id' is missing");
        assert_eq!(object.get::<Option<i32>>("version-id").unwrap(), None);
        assert!(RawObject::parse("view version", b"[]").is_err());
    }

    #[test]
    fn nulls_count_as_not_there() {
        let value = json!({"a": null, "b": [{"c": null, "d": 1}]});
        assert_eq!(without_nulls(value), json!({"b": [{"d": 1}]}));
    }
}
