//! Names as clients encode them into paths and queries: split while they are still encoded, decoded once, read again only
//! where nothing has that name.

use percent_encoding::percent_decode_str;

use super::NamespaceIdent;
use crate::error::{Error, Result};

/// Between the levels of a namespace, as it is written before decoding. The bare control character is taken too.
const SEPARATORS: [&str; 3] = ["%1F", "%1f", "\u{1f}"];

/// How a client may have encoded a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// By the rules for URIs: a plus is a plus.
    Uri,
    /// As in a form, which Java's client does in paths too: a plus is a space.
    Form,
}

/// The readings of a path or query in which they differ; the second one counts where the first names nothing.
pub fn readings(raw: &[&str]) -> &'static [Reading] {
    match raw.iter().any(|part| part.contains('+')) {
        true => &[Reading::Uri, Reading::Form],
        false => &[Reading::Uri],
    }
}

/// One name out of its encoded form.
pub fn decode(raw: &str, reading: Reading) -> Result<String> {
    let spaced;
    let raw = match reading {
        Reading::Uri => raw,
        Reading::Form => {
            spaced = raw.replace('+', " ");
            &spaced
        }
    };
    let name = percent_decode_str(raw).decode_utf8();
    name.map(String::from)
        .map_err(|error| Error::invalid(format!("'{raw}' is not UTF-8 when decoded")).with_source(error))
}

/// A namespace out of its encoded form: its levels are told apart first and decoded after.
pub fn decode_namespace(raw: &str, reading: Reading) -> Result<NamespaceIdent> {
    let levels = split_levels(raw).into_iter().map(|level| decode(level, reading)).collect::<Result<_>>()?;
    NamespaceIdent::new(levels)
}

fn split_levels(raw: &str) -> Vec<&str> {
    let mut levels = vec![raw];
    for separator in SEPARATORS {
        levels = levels.into_iter().flat_map(|level| level.split(separator)).collect();
    }
    levels
}

/// What `?parent=` may mean, the likeliest first; `None` is the top.
///
/// PyIceberg encodes the parts twice, so that a name which is not there is read once more.
pub fn parents(query: &str) -> Result<Option<Vec<NamespaceIdent>>> {
    let raw = query.split('&').find_map(|pair| pair.strip_prefix("parent=")).unwrap_or_default();
    if raw.is_empty() {
        return Ok(None);
    }
    let mut parents = Vec::new();
    for reading in readings(&[raw]) {
        parents.push(decode_namespace(raw, *reading)?);
    }
    let twice = decode(raw, Reading::Form)?;
    if twice.contains('%') {
        parents.extend(decode_namespace(&twice, Reading::Uri));
    }
    Ok(Some(parents))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ident(levels: &[&str]) -> NamespaceIdent {
        NamespaceIdent::new(levels.iter().map(|level| (*level).to_owned()).collect()).unwrap()
    }

    #[test]
    fn levels_are_split_before_they_are_decoded() {
        for (raw, levels) in [
            ("a%1Fb%1fc", vec!["a", "b", "c"]),
            ("a\u{1f}b", vec!["a", "b"]),
            ("a.b", vec!["a.b"]),
            ("a%2Fb", vec!["a/b"]),
            ("a%251Fb", vec!["a%1Fb"]),
            ("%C3%A9t%C3%A9%1Fx%20y", vec!["été", "x y"]),
        ] {
            assert_eq!(decode_namespace(raw, Reading::Uri).unwrap(), ident(&levels), "{raw}");
        }
    }

    #[test]
    fn an_empty_level_is_refused() {
        for raw in ["", "%1F", "a%1F", "a%1F%1Fb"] {
            assert!(decode_namespace(raw, Reading::Uri).is_err(), "{raw}");
        }
    }

    #[test]
    fn a_plus_is_a_plus_first_and_a_space_second() {
        assert_eq!(readings(&["a+b", "t"]), [Reading::Uri, Reading::Form]);
        assert_eq!(decode("a+b%2Bc", Reading::Uri).unwrap(), "a+b+c");
        assert_eq!(decode("a+b%2Bc", Reading::Form).unwrap(), "a b+c");
        assert_eq!(readings(&["a%2Bb", "t"]), [Reading::Uri]);
    }

    #[test]
    fn a_parent_that_was_encoded_twice_is_read_twice_in_the_end() {
        assert_eq!(parents("pageSize=2").unwrap(), None);
        assert_eq!(parents("parent=&pageSize=2").unwrap(), None);
        assert_eq!(parents("parent=a%1Fb").unwrap(), Some(vec![ident(&["a", "b"])]));
        let twice = parents("x=1&parent=a%2520b%1Fc").unwrap().unwrap();
        assert_eq!(twice, [ident(&["a%20b", "c"]), ident(&["a b", "c"])]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        assert!(decode("%FF", Reading::Uri).is_err());
    }
}
