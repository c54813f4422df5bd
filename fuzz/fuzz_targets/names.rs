//! Names in paths and queries, and locations. The input is text: its first line is read as everything, its second one is
//! another location.

#![no_main]

use catalog::ident::WarehouseName;
use catalog::ident::encoded::{Reading, decode, decode_namespace, parents, readings};
use catalog::location::{Location, MAX_LOCATION_BYTES, StoreKind, strip_trailing_slashes};
use libfuzzer_sys::fuzz_target;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// What a message about a refused text may have, in bytes, however long the text is.
const MESSAGE_MAX_BYTES: usize = 4096;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (one, other) = text.split_once('\n').unwrap_or((text, ""));
    for reading in readings(&[one, other]) {
        check_name(one, *reading);
        check_namespace(one, *reading);
    }
    check_parents(one);
    check_warehouse(one);
    let (one, other) = (location(one), location(other));
    if let (Some(one), Some(other)) = (one, other) {
        check_pair(&one, &other);
        check_pair(&other, &one);
    }
});

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// What was decoded can be encoded, and is the same name then.
fn check_name(raw: &str, reading: Reading) {
    let Ok(name) = decode(raw, reading) else { return };
    assert_eq!(decode(&encoded(&name), reading).expect("an encoded name"), name);
    assert!(name.len() <= raw.len());
}

fn check_namespace(raw: &str, reading: Reading) {
    let Ok(namespace) = decode_namespace(raw, reading) else { return };
    let levels: Vec<String> = namespace.levels().iter().map(|level| encoded(level)).collect();
    assert_eq!(decode_namespace(&levels.join("%1F"), reading).expect("encoded levels"), namespace);
}

fn check_parents(text: &str) {
    for query in [text.to_owned(), format!("parent={text}")] {
        if let Ok(Some(meant)) = parents(&query) {
            assert!((1..=3).contains(&meant.len()));
        }
    }
}

fn check_warehouse(text: &str) {
    if let Ok(name) = WarehouseName::parse(text) {
        // A prefix needs no encoding.
        assert_eq!(decode(name.as_str(), Reading::Uri).expect("plain letters"), text);
    }
}

fn location(text: &str) -> Option<Location> {
    assert!(text.starts_with(strip_trailing_slashes(text)));
    match Location::parse(text) {
        Ok(location) => {
            check_location(text, &location);
            Some(location)
        }
        Err(error) => {
            assert!(!error.message().contains(char::is_control), "{error}");
            assert!(error.message().len() <= MESSAGE_MAX_BYTES);
            None
        }
    }
}

fn check_location(text: &str, location: &Location) {
    let again = Location::parse(location.as_str()).expect("the normal form is a location");
    assert_eq!(again.as_str(), location.as_str());
    assert!(text.len() <= MAX_LOCATION_BYTES && location.as_str().len() <= text.len() + "//".len());
    assert_eq!(location.bucket().is_empty(), location.kind() == StoreKind::File);
    let names = || location.key().split('/');
    assert!(location.key().is_empty() || !names().any(|name| matches!(name, "" | "." | "..")));
    let ancestors = location.ancestors();
    assert_eq!(ancestors[0], location.canonical());
    for place in &ancestors {
        assert!(Location::parse(place).expect("what is above a location is one").contains(location), "{place}");
    }
    let below = location.join("metadata");
    assert!(location.contains(&below) && !below.contains(location));
}

fn check_pair(outer: &Location, inner: &Location) {
    assert_eq!(outer == inner, outer.canonical() == inner.canonical());
    assert_eq!(outer.contains(inner), inner.ancestors().contains(&outer.canonical()));
    assert!(!outer.contains(inner) || outer.is_in_store_of(inner));
}
