//! JSON objects read as members over their own text, so that an edit touches only the bytes it means.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// How deeply the JSON of a commit or a new table may be nested. Readers of the document give up at depths from 128 on,
/// and what is stored lies some levels deep in it.
const NESTING_MAX: usize = 100;

/// A piece of JSON that is not what it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    path: String,
    problem: String,
}

pub(crate) type Checked<T> = std::result::Result<T, Flaw>;

impl Flaw {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    /// The same flaw seen from one level above: `step` is a member's name, or an index as `[3]`.
    pub(crate) fn under(mut self, step: impl fmt::Display) -> Self {
        self.path = match self.path.chars().next() {
            None => step.to_string(),
            Some('[') => format!("{step}{}", self.path),
            Some(_) => format!("{step}.{}", self.path),
        };
        self
    }

    /// From serde's words, without the position, which means nothing to somebody who sees a path, and without the
    /// value, which may be a secret of whatever file was taken for metadata.
    fn from_serde(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let words = text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words);
        Self::new(without_value(words).unwrap_or_else(|| words.to_owned()))
    }
}

/// `invalid type: string "x", expected i64` as `invalid type: string, expected i64`; `None` where no value is shown.
fn without_value(words: &str) -> Option<String> {
    let (problem, rest) = words.split_once(": ").filter(|(problem, _)| problem.starts_with("invalid "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let type_ = found.split(['"', '`']).next()?.trim_end();
    Some(format!("{problem}: {type_}, expected {expected}"))
}

impl From<Flaw> for Error {
    fn from(flaw: Flaw) -> Self {
        match flaw.path.as_str() {
            "" => Error::invalid(flaw.problem),
            path => Error::invalid(format!("{path}: {}", flaw.problem)),
        }
    }
}

/// The members of one JSON object, in the order and with the bytes in which they were received.
///
/// A key that comes twice is read as its last value, as Java and Python do; an edit changes every one of them.
pub(crate) struct Object<'a> {
    raw: &'a RawValue,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Object<'a> {
    pub(crate) fn parse(raw: &'a RawValue) -> Checked<Self> {
        let Members(members) = serde_json::from_str(raw.get()).map_err(|e| Flaw::from_serde(&e))?;
        Ok(Self { raw, members })
    }

    /// The object as it was received.
    pub(crate) fn raw(&self) -> &'a RawValue {
        self.raw
    }

    /// The member's value; null counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        let (_, value) = self.members.iter().rev().find(|(name, _)| name == key)?;
        (value.get() != "null").then_some(*value)
    }

    pub(crate) fn optional<T: Deserialize<'a>>(&self, key: &str) -> Checked<Option<T>> {
        self.get(key).map(|raw| decode(raw).map_err(|f| f.under(key))).transpose()
    }

    pub(crate) fn required<T: Deserialize<'a>>(&self, key: &str) -> Checked<T> {
        decode(self.required_raw(key)?).map_err(|f| f.under(key))
    }

    pub(crate) fn required_raw(&self, key: &str) -> Checked<&'a RawValue> {
        self.get(key).ok_or_else(|| Flaw::new("is required").under(key))
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.members.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// The same object with some values replaced; keys that it lacks are added at its end. All else keeps its bytes.
    pub(crate) fn with(&self, changes: &[(&str, String)]) -> Box<RawValue> {
        let text = self.raw.get();
        let mut out = String::with_capacity(text.len() + 64);
        let mut copied = 0;
        for (key, value) in &self.members {
            if let Some((_, new)) = changes.iter().find(|(name, _)| name == key) {
                let start = self.offset_of(value);
                out.push_str(&text[copied..start]);
                out.push_str(new);
                copied = start + value.get().len();
            }
        }
        let end = text.rfind('}').unwrap_or(text.len());
        out.push_str(&text[copied..end]);
        let mut is_empty = self.members.is_empty();
        for (key, value) in changes.iter().filter(|(key, _)| !self.members.iter().any(|(name, _)| name == key)) {
            let comma = if std::mem::take(&mut is_empty) { "" } else { "," };
            out.push_str(&format!("{comma}\"{key}\":{value}"));
        }
        out.push('}');
        raw(out)
    }

    /// The same object without some of its members.
    pub(crate) fn without(&self, keys: &[&str]) -> Box<RawValue> {
        let kept = self.members.iter().filter(|(name, _)| !keys.contains(&name.as_ref()));
        let members: Vec<String> = kept.map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
        raw(format!("{{{}}}", members.join(",")))
    }

    /// The same object without those of the members that are null. Where none is, every byte stays.
    pub(crate) fn without_null(&self, keys: &[&str]) -> Box<RawValue> {
        let is_null =
            |(name, value): &&(Cow<'_, str>, &RawValue)| keys.contains(&name.as_ref()) && value.get() == "null";
        let nulls: Vec<&str> = self.members.iter().filter(is_null).map(|(name, _)| name.as_ref()).collect();
        match nulls.as_slice() {
            [] => self.raw.to_owned(),
            nulls => self.without(nulls),
        }
    }

    /// Where a member's value begins in the object's text, of which it is a slice.
    fn offset_of(&self, value: &RawValue) -> usize {
        value.get().as_ptr() as usize - self.raw.get().as_ptr() as usize
    }
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(16);
                while let Some((Key(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

pub(crate) fn decode<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Checked<T> {
    serde_json::from_str(raw.get()).map_err(|e| Flaw::from_serde(&e))
}

/// Reads each element of an array; a flaw names its index.
pub(crate) fn each<'a, T>(raw: &'a RawValue, read: impl Fn(&'a RawValue) -> Checked<T>) -> Checked<Vec<T>> {
    let elements: Vec<&RawValue> = decode(raw)?;
    let numbered = elements.into_iter().enumerate();
    numbered.map(|(i, element)| read(element).map_err(|f| f.under(format_args!("[{i}]")))).collect()
}

/// Refuses JSON text that is nested deeper than clients can read back. Text that is no JSON is not judged.
pub fn check_nesting(text: &str) -> Result<()> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING_MAX {
            return Err(Error::invalid(format!("JSON is nested deeper than {NESTING_MAX} levels")));
        }
    }
    Ok(())
}

/// Text that was put together from JSON values.
pub(crate) fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).expect("JSON put together from JSON values is JSON")
}

pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The same for equal values, whatever the order of their members: what many values are held against one by.
pub(crate) fn digest(mut value: Value) -> [u8; 32] {
    value.sort_all_objects();
    Sha256::digest(value.to_string()).into()
}

/// An array of values that are JSON already.
pub(crate) fn array<'a>(values: impl IntoIterator<Item = &'a RawValue>) -> String {
    let values: Vec<&str> = values.into_iter().map(RawValue::get).collect();
    format!("[{}]", values.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn an_edit_keeps_every_other_byte() {
        let text = given("{ \"a\" : 1 ,\n\"b\":{\"c\":[1, 2]} , \"d\":\"}\" }");
        let object = Object::parse(&text).unwrap();
        let edited = object.with(&[("b", "7".into()), ("new", "true".into())]);
        assert_eq!(edited.get(), "{ \"a\" : 1 ,\n\"b\":7 , \"d\":\"}\" ,\"new\":true}");
    }

    #[test]
    fn a_member_can_be_added_to_an_empty_object() {
        let text = given("{ }");
        assert_eq!(Object::parse(&text).unwrap().with(&[("a", "1".into())]).get(), "{ \"a\":1}");
    }

    #[test]
    fn an_escaped_key_is_found_and_a_doubled_key_means_its_last_value() {
        let text = given(r#"{"\u0061":1,"b":2,"b":3}"#);
        let object = Object::parse(&text).unwrap();
        assert_eq!(object.required::<i32>("a").unwrap(), 1);
        assert_eq!(object.required::<i32>("b").unwrap(), 3);
        assert_eq!(object.with(&[("b", "4".into())]).get(), r#"{"\u0061":1,"b":4,"b":4}"#);
    }

    #[test]
    fn members_that_are_left_out_leave_the_others_as_they_are() {
        let text = given(r#"{"a":1,"b":{"x": 1},"c":3}"#);
        assert_eq!(Object::parse(&text).unwrap().without(&["a", "c"]).get(), r#"{"b":{"x": 1}}"#);
    }

    #[test]
    fn null_members_go_only_where_they_are_asked_for() {
        for (text, without) in [
            (r#"{"a":null,"b": null,"c":1}"#, r#"{"b":null,"c":1}"#),
            (r#"{ "a" : 1, "b":null }"#, r#"{ "a" : 1, "b":null }"#),
        ] {
            assert_eq!(Object::parse(&given(text)).unwrap().without_null(&["a", "c"]).get(), without);
        }
    }

    #[test]
    fn nesting_is_counted_outside_of_strings_only() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check_nesting(&nested(NESTING_MAX)).is_ok());
        assert!(check_nesting(&nested(NESTING_MAX + 1)).is_err());
        assert!(check_nesting(&format!("[{}]", vec!["{\"a\":[]}"; 300].join(","))).is_ok());
        assert!(check_nesting(&format!(r#"["\"{}"]"#, "[".repeat(300))).is_ok());
    }

    #[test]
    fn a_digest_is_of_the_value_and_not_of_its_writing() {
        let of = |text: &str| digest(serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"a":{"b":1,"c":[2]},"d":3}"#), of(r#"{ "d":3, "a":{"c":[2],"b":1} }"#));
        assert_ne!(of(r#"{"a":[1,2]}"#), of(r#"{"a":[2,1]}"#));
    }

    #[test]
    fn a_flaw_tells_the_type_of_a_value_and_not_the_value() {
        for (value, found) in [
            (r#""a \"secret\", expected at line 5""#, "invalid type: string"),
            ("1.5", "invalid type: floating point"),
            ("true", "invalid type: boolean"),
            ("3000000000", "invalid value: integer"),
            ("[7]", "invalid type: sequence"),
        ] {
            let error = Error::from(decode::<i32>(&given(value)).unwrap_err());
            assert_eq!(error.message(), format!("{found}, expected i32"));
        }
    }

    #[test]
    fn a_flaw_names_its_path() {
        let flaw = Flaw::new("is required").under("id").under("[2]").under("fields").under("schema");
        assert_eq!(Error::from(flaw).message(), "schema.fields[2].id: is required");
        let text = given(r#"{"a":"x"}"#);
        let flaw = Object::parse(&text).unwrap().required::<i64>("a").unwrap_err();
        assert_eq!(Error::from(flaw).message(), "a: invalid type: string, expected i64");
    }
}
