//! Reads a JSON body; a fault is told with the path of the field it was found at.

use std::fmt;
use std::marker::PhantomData;

use catalog::error::{Error, Result};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};

/// Less alike than this is another word, from 0 to 1.
const ALIKE: f64 = 0.7;

/// The value in `text`, or a refusal that names the field.
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| refusal(text, &error))
}

/// Refuses a body that is no object: an array would be read as the fields of a struct in their order.
/// Of an empty body the parser tells.
pub fn check_object(text: &[u8]) -> Result<()> {
    match text.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        Some(b'{') | None => Ok(()),
        Some(_) => Err(Error::invalid("the body must be a JSON object")),
    }
}

/// Refuses a body that is nested deeper than other readers of JSON bear, wherever in it that is.
pub fn check_nesting(text: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(text)
        .map_err(|error| Error::invalid("the body must be JSON in UTF-8").with_source(error))?;
    catalog::metadata::check_nesting(text)
}

/// Reads a struct within a body from an object only, for `deserialize_with`.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Only<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_map(Only(PhantomData))
}

fn refusal(text: &[u8], error: &serde_json::Error) -> Error {
    let place = match path_at(text, offset(text, error.line(), error.column())) {
        path if path.is_empty() => "the body".to_owned(),
        path => format!("'{path}'"),
    };
    let nearest = nearest(&error.to_string()).map_or_else(String::new, |name| format!("; the nearest one is '{name}'"));
    Error::invalid(format!("the body is not what this operation takes, at {place}: {error}{nearest}"))
}

/// The known field that an unknown one is most like. The parser's message names them all, each between grave accents.
fn nearest(message: &str) -> Option<String> {
    let mut named = message.strip_prefix("unknown field `")?.split('`').step_by(2);
    let unknown = named.next()?;
    let alike = |known: &&str| strsim::jaro_winkler(known, unknown);
    let nearest = named.max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(&nearest) >= ALIKE).then(|| nearest.to_owned())
}

/// Where serde_json stopped, in bytes; its lines and columns count from one.
fn offset(text: &[u8], line: usize, column: usize) -> usize {
    let begin =
        text.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum::<usize>();
    (begin + column).min(text.len())
}

/// A container that is open at some point of a text.
enum Open {
    Object { key: Option<String> },
    Array { index: usize },
}

/// The path of the value that holds the last of the first `end` bytes, as in `schema.fields[2].type`.
fn path_at(text: &[u8], end: usize) -> String {
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < end {
        match text[at] {
            b'{' => open.push(Open::Object { key: None }),
            b'[' => open.push(Open::Array { index: 0 }),
            // The container that the parser stopped at the end of is the one to name.
            b'}' | b']' if at + 1 < end => drop(open.pop()),
            b'}' => forget_key(open.last_mut()),
            b',' => next_entry(open.last_mut()),
            b'"' => {
                let close = string_end(text, at);
                take_key(open.last_mut(), &text[at..close]);
                at = close;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    render(&open)
}

fn forget_key(container: Option<&mut Open>) {
    if let Some(Open::Object { key }) = container {
        *key = None;
    }
}

fn next_entry(container: Option<&mut Open>) {
    match container {
        Some(Open::Object { key }) => *key = None,
        Some(Open::Array { index }) => *index += 1,
        None => {}
    }
}

/// A string in an object is its key where none is waiting for a value.
fn take_key(container: Option<&mut Open>, quoted: &[u8]) {
    if let Some(Open::Object { key: key @ None }) = container {
        *key = Some(serde_json::from_slice(quoted).unwrap_or_else(|_| String::from_utf8_lossy(quoted).into_owned()));
    }
}

/// One past the closing quote of the string that begins at `begin`.
fn string_end(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

fn render(open: &[Open]) -> String {
    open.iter().fold(String::new(), |path, container| match container {
        Open::Object { key: Some(key) } if path.is_empty() => key.clone(),
        Open::Object { key: Some(key) } => format!("{path}.{key}"),
        Open::Object { key: None } => path,
        Open::Array { index } => format!("{path}[{index}]"),
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read is asked")]
    struct Body {
        names: Vec<Name>,
        #[serde(default)]
        size: u32,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read is asked")]
    struct Holder {
        #[serde(deserialize_with = "object")]
        named: Name,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read is asked")]
    struct Name {
        name: String,
    }

    fn message(text: &str) -> String {
        parse::<Body>(text.as_bytes()).unwrap_err().message().to_owned()
    }

    #[test]
    fn a_wrong_type_is_told_with_its_path() {
        let text = message(r#"{"names": [{"name": "a"}, {"name": 7}]}"#);
        assert!(text.contains("at 'names[1].name'"), "{text}");
        let text = message("{\"names\": [],\n \"size\": \"big\"}");
        assert!(text.contains("at 'size'"), "{text}");
    }

    #[test]
    fn a_missing_field_is_told_with_the_path_of_its_object() {
        let text = message(r#"{"names": [{"name": "a"}, {"title": "b"}]}"#);
        assert!(text.contains("at 'names[1]'") && text.contains("missing field `name`"), "{text}");
        let text = message("{}");
        assert!(text.contains("at the body") && text.contains("missing field `names`"), "{text}");
    }

    #[test]
    fn an_array_is_no_object_at_any_place() {
        assert!(check_object(b" \r\n\t{}").is_ok());
        assert!(check_object(b"").is_ok());
        for text in ["[]", " [{}]", "7", "null", "\"{\""] {
            assert!(check_object(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse::<Holder>(br#"{"named": {"name": "a"}}"#).is_ok());
        let error = parse::<Holder>(br#"{"named": ["a"]}"#).unwrap_err();
        assert!(error.message().contains("expected an object"), "{error}");
    }

    #[test]
    fn a_missing_field_of_an_object_within_is_told_with_its_path() {
        let error = parse::<Holder>(br#"{"named": {"title": "a"}}"#).unwrap_err();
        assert!(error.message().contains("at 'named'"), "{error}");
    }

    #[test]
    fn an_unknown_field_is_told_with_the_nearest_one() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        #[expect(dead_code, reason = "only whether it can be read is asked")]
        struct Strict {
            allowed_locations: Option<String>,
            defaults: Option<String>,
        }
        for (field, nearest) in
            [("alowed-locations", Some("allowed-locations")), ("default", Some("defaults")), ("zzz", None)]
        {
            let error = parse::<Strict>(format!(r#"{{"{field}": "x"}}"#).as_bytes()).unwrap_err();
            assert!(error.message().contains(&format!("at '{field}': unknown field `{field}`")), "{error}");
            let told = nearest.map(|nearest| format!("; the nearest one is '{nearest}'"));
            assert_eq!(error.message().contains("nearest"), told.is_some(), "{error}");
            assert!(told.is_none_or(|told| error.message().ends_with(&told)), "{error}");
        }
    }

    #[test]
    fn quotes_and_braces_inside_strings_are_no_structure() {
        let text = message(r#"{"x": "a\"},[", "names": [{"na\u006de": "]}"}, {"name": null}]}"#);
        assert!(text.contains("at 'names[1].name'"), "{text}");
    }

    #[test]
    fn a_text_that_ends_early_is_told_where_it_ends() {
        for text in ["", "{", r#"{"names": [{"name": "a"#, r#"{"names": [{"name": "a\"#, "nul"] {
            assert!(message(text).contains("not what this operation takes"), "{text}");
        }
    }
}
