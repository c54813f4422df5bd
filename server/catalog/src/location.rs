//! Locations as values: one normal form for the many ways to write the same place, so that places can be compared.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::error::{Error, Result};

/// The longest location that is taken, in bytes: what a database can index, and more than the key limit of S3.
pub const MAX_LOCATION_BYTES: usize = 2048;

/// How much of a refused location is shown in a message, in characters.
const SHOWN_CHARS: usize = 300;

/// The kinds of stores that a location can lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreKind {
    File,
    S3,
    Gcs,
    Adls,
}

/// Every scheme that is known, with the kind of its store.
const SCHEMES: [(&str, StoreKind); 9] = [
    ("file", StoreKind::File),
    ("s3", StoreKind::S3),
    ("s3a", StoreKind::S3),
    ("s3n", StoreKind::S3),
    ("gs", StoreKind::Gcs),
    ("abfss", StoreKind::Adls),
    ("abfs", StoreKind::Adls),
    ("wasbs", StoreKind::Adls),
    ("wasb", StoreKind::Adls),
];

/// A place in a store, in normal form, without a slash at the end: `file:///path`, `s3://bucket/key`, `gs://bucket/key`
/// or `abfss://container@account.dfs.core.windows.net/key`.
///
/// `file:/x`, `file:///x` and `file://localhost/x` are the same place. `s3a` and `s3n` keep their spelling and compare
/// equal to `s3`; `abfs`, `wasbs` and `wasb` to `abfss`, and the host `account.blob.…` to `account.dfs.…`. Everything
/// after bucket or host is taken as it stands: percent signs and blanks are part of the name.
#[derive(Debug, Clone)]
pub struct Location {
    text: String,
    scheme_bytes: usize,
    /// Of the bucket, or of container and host; 0 in a local location.
    authority_bytes: usize,
}

impl Location {
    /// Refuses, with a message that names the location, whatever is not an absolute place in a known kind of store.
    pub fn parse(text: &str) -> Result<Self> {
        check_characters(text)?;
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| refuse(text, "has no scheme: write it like 'file:///path' or 's3://bucket/key'"))?;
        let scheme = scheme.to_ascii_lowercase();
        let Some(kind) = kind_of(&scheme) else {
            let known = SCHEMES.map(|(scheme, _)| scheme).join(", ");
            return Err(refuse(text, &format!("has an unknown scheme: known are {known}")));
        };
        let (authority, path) = match kind {
            StoreKind::File => (String::new(), file_path(text, rest)?),
            StoreKind::S3 | StoreKind::Gcs => bucket_and_path(text, &scheme, rest)?,
            StoreKind::Adls => container_host_and_path(text, &scheme, rest)?,
        };
        check_segments(text, path, kind == StoreKind::File)?;
        let (scheme_bytes, authority_bytes) = (scheme.len(), authority.len());
        Ok(Self { text: format!("{scheme}://{authority}{path}"), scheme_bytes, authority_bytes })
    }

    /// The normal form, with the scheme as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Lower case, as it was given: `s3a` for `s3a://bucket/key`.
    pub fn scheme(&self) -> &str {
        &self.text[..self.scheme_bytes]
    }

    pub fn kind(&self) -> StoreKind {
        kind_of(self.scheme()).expect("a location was parsed with a known scheme")
    }

    /// The bucket or the container; empty for a local location.
    pub fn bucket(&self) -> &str {
        self.authority().split_once('@').map_or(self.authority(), |(container, _)| container)
    }

    /// The storage account, first part of the host's name; empty in all stores but ADLS.
    pub fn account(&self) -> &str {
        self.host().split_once('.').map_or("", |(account, _)| account)
    }

    /// What follows `dfs` or `blob` in the host's name, as in `core.windows.net`; empty in all stores but ADLS.
    pub fn account_suffix(&self) -> &str {
        self.host().splitn(3, '.').nth(2).unwrap_or_default()
    }

    /// The key in the bucket, or the absolute path of a local file without its first slash; not decoded.
    pub fn key(&self) -> &str {
        self.path().strip_prefix('/').unwrap_or_default()
    }

    /// Is `other` this place or below it? `/aab` does not contain `/aabb`.
    pub fn contains(&self, other: &Location) -> bool {
        self.store() == other.store()
            && other.path().strip_prefix(self.path()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The place itself and every place above it up to the root of its store, longest first, with one spelling for all
    /// aliases. Two places overlap if one of them is among the ancestors of the other.
    pub fn ancestors(&self) -> Vec<String> {
        let ((scheme, authority), path) = (self.store(), self.path());
        let above = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
        std::iter::once(path).chain(above).map(|part| format!("{scheme}://{authority}{part}")).collect()
    }

    /// The same text for all spellings of this place: the first of [`Self::ancestors`].
    pub fn canonical(&self) -> String {
        let (scheme, authority) = self.store();
        format!("{scheme}://{authority}{}", self.path())
    }

    /// A place below this one. `child` is a name or a relative path of names that need no check.
    pub fn join(&self, child: &str) -> Location {
        Self { text: format!("{}/{}", self.text, child.trim_matches('/')), ..*self }
    }

    /// One spelling of scheme and authority for all that mean the same bucket or container.
    fn store(&self) -> (&'static str, Cow<'_, str>) {
        let authority = self.authority();
        match self.kind() {
            StoreKind::File => ("file", authority.into()),
            StoreKind::S3 => ("s3", authority.into()),
            StoreKind::Gcs => ("gs", authority.into()),
            StoreKind::Adls => ("abfss", dfs_host(authority)),
        }
    }

    /// Of an ADLS location; empty in all others.
    fn host(&self) -> &str {
        self.authority().split_once('@').map_or("", |(_, host)| host)
    }

    fn authority(&self) -> &str {
        &self.text[self.authority_begin()..][..self.authority_bytes]
    }

    /// Empty, or from the first slash after the authority.
    fn path(&self) -> &str {
        &self.text[self.authority_begin() + self.authority_bytes..]
    }

    fn authority_begin(&self) -> usize {
        self.scheme_bytes + "://".len()
    }
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.store() == other.store() && self.path() == other.path()
    }
}

impl Eq for Location {}

impl Hash for Location {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.store().hash(state);
        self.path().hash(state);
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for StoreKind {
    /// As settings name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StoreKind::File => "file",
            StoreKind::S3 => "s3",
            StoreKind::Gcs => "gcs",
            StoreKind::Adls => "adls",
        })
    }
}

/// The text without slashes at its end; those of `scheme://` stay.
pub fn strip_trailing_slashes(text: &str) -> &str {
    let stripped = text.trim_end_matches('/');
    if stripped.ends_with(':') { &text[..text.len().min(stripped.len() + 2)] } else { stripped }
}

fn refuse(text: &str, why: &str) -> Error {
    let shown: String = text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    Error::invalid(format!("location '{shown}' {why}"))
}

fn check_characters(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(refuse(text, "is empty"));
    }
    if text.len() > MAX_LOCATION_BYTES {
        return Err(refuse(text, &format!("is longer than {MAX_LOCATION_BYTES} bytes")));
    }
    if text.contains(char::is_control) {
        return Err(refuse(text, "contains a control character"));
    }
    if text.contains(['?', '#']) {
        return Err(refuse(text, "contains '?' or '#', which begin a query or a fragment"));
    }
    Ok(())
}

/// The absolute path without slashes at its end: empty for the root of the file system.
fn file_path<'a>(text: &str, rest: &'a str) -> Result<&'a str> {
    // The normal form of the root folder, which is read back as it was printed.
    if rest == "//" {
        return Ok("");
    }
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(after) => {
            let slash = after.find('/').unwrap_or(after.len());
            let (host, path) = after.split_at(slash);
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err(refuse(text, "names a host: a file location is local, like 'file:///path'"));
            }
            path
        }
    };
    if !path.starts_with('/') {
        return Err(refuse(text, "is not absolute: write it like 'file:///path'"));
    }
    Ok(path.trim_end_matches('/'))
}

fn kind_of(scheme: &str) -> Option<StoreKind> {
    SCHEMES.iter().find(|(known, _)| *known == scheme).map(|(_, kind)| *kind)
}

fn bucket_and_path<'a>(text: &str, scheme: &str, rest: &'a str) -> Result<(String, &'a str)> {
    let (bucket, path) = authority_and_path(text, rest, &format!("{scheme}://bucket/key"))?;
    if bucket.is_empty() {
        return Err(refuse(text, "names no bucket"));
    }
    if bucket.contains('@') {
        return Err(refuse(text, "contains user information: credentials do not belong into a location"));
    }
    check_bucket(text, bucket)?;
    Ok((bucket.to_owned(), path))
}

/// Host names have no case; containers do.
fn container_host_and_path<'a>(text: &str, scheme: &str, rest: &'a str) -> Result<(String, &'a str)> {
    let example = format!("{scheme}://container@account.dfs.core.windows.net/key");
    let unlike = || refuse(text, &format!("names no container and account: write it like '{example}'"));
    let (authority, path) = authority_and_path(text, rest, &example)?;
    let (container, host) = authority.split_once('@').ok_or_else(unlike)?;
    let host = host.to_ascii_lowercase();
    let parts: Vec<&str> = host.split('.').collect();
    let host_like = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let service_like = parts.len() > 2 && matches!(parts[1], "dfs" | "blob");
    if container.is_empty() || !service_like || !parts.iter().all(host_like) {
        return Err(unlike());
    }
    check_bucket(text, container)?;
    Ok((format!("{container}@{host}"), path))
}

/// The path begins with a slash or is empty, and has none at its end.
fn authority_and_path<'a>(text: &str, rest: &'a str, example: &str) -> Result<(&'a str, &'a str)> {
    let body =
        rest.strip_prefix("//").ok_or_else(|| refuse(text, &format!("is not absolute: write it like '{example}'")))?;
    let (authority, path) = body.split_at(body.find('/').unwrap_or(body.len()));
    Ok((authority, path.trim_end_matches('/')))
}

fn check_bucket(text: &str, bucket: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !bucket.chars().all(plain) || bucket.chars().all(|c| c == '.') {
        return Err(refuse(text, "names a bucket that cannot be: letters, digits, '.', '-' and '_' are allowed"));
    }
    Ok(())
}

/// `account.dfs.…` for `account.blob.…`: two faces of one container.
fn dfs_host(authority: &str) -> Cow<'_, str> {
    let (container, host) = authority.split_once('@').unwrap_or_default();
    match host.split_once('.').and_then(|(account, rest)| Some((account, rest.strip_prefix("blob.")?))) {
        Some((account, suffix)) => format!("{container}@{account}.dfs.{suffix}").into(),
        None => authority.into(),
    }
}

/// No segment may be empty, `.` or `..`; in a file location not even encoded, as some clients decode.
fn check_segments(text: &str, body: &str, encoded_too: bool) -> Result<()> {
    let names = body.strip_prefix('/').unwrap_or(body);
    if !names.is_empty() && names.split('/').any(str::is_empty) {
        return Err(refuse(text, "contains an empty segment ('//')"));
    }
    let decoded = if encoded_too { decode_dots_and_slashes(names) } else { names.to_owned() };
    if decoded.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(refuse(text, "contains a '.' or '..' segment"));
    }
    Ok(())
}

fn decode_dots_and_slashes(text: &str) -> String {
    text.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Kind;

    fn place(text: &str) -> Location {
        Location::parse(text).unwrap()
    }

    #[test]
    fn spellings_of_one_place_have_one_normal_form() {
        for (text, normal) in [
            ("file:/x/y", "file:///x/y"),
            ("file:///x/y", "file:///x/y"),
            ("file:///x/y/", "file:///x/y"),
            ("file:///x/y///", "file:///x/y"),
            ("FILE:///x/y", "file:///x/y"),
            ("file://localhost/x/y", "file:///x/y"),
            ("file://LocalHost/x/y", "file:///x/y"),
            ("file:///", "file://"),
            ("file://", "file://"),
            ("S3://Bucket/Key/", "s3://Bucket/Key"),
            ("s3a://bucket/key", "s3a://bucket/key"),
            ("s3://bucket/", "s3://bucket"),
            ("GS://Bucket/Key/", "gs://Bucket/Key"),
            ("abfss://c@Account.dfs.Core.windows.net/Key/", "abfss://c@account.dfs.core.windows.net/Key"),
            ("wasb://c@a.blob.core.windows.net", "wasb://c@a.blob.core.windows.net"),
        ] {
            assert_eq!(place(text).as_str(), normal, "{text}");
            assert_eq!(place(place(text).join("a").as_str()), place(text).join("a"), "{text}");
        }
    }

    #[test]
    fn names_are_kept_as_they_are_written() {
        for text in
            ["file:///a b/c%20d/e+f/ä", "s3://b/a b/c%20d/e+f/ä/%2e%2e/x=%2F", "file:///a..b/.c/...", "s3://b/~*[x]"]
        {
            assert_eq!(place(text).as_str(), text);
        }
    }

    #[test]
    fn s3_aliases_compare_equal_and_keep_their_spelling() {
        let (s3, s3a) = (place("s3://b/x"), place("s3a://b/x"));
        assert_eq!(s3, s3a);
        assert!(s3.contains(&place("s3n://b/x/y")));
        assert_eq!(s3a.ancestors(), ["s3://b/x", "s3://b"]);
        assert_eq!(s3a.canonical(), "s3://b/x");
        assert_eq!(s3a.join("y").as_str(), "s3a://b/x/y");
        assert_ne!(place("s3://b/x"), place("file:///b/x"));
    }

    #[test]
    fn the_faces_of_one_container_compare_equal_and_keep_their_spelling() {
        let (abfss, wasbs) =
            (place("abfss://c@a.dfs.core.windows.net/x"), place("wasbs://c@A.blob.core.windows.net/x"));
        assert_eq!(abfss, wasbs);
        assert!(wasbs.contains(&place("abfs://c@a.dfs.core.windows.net/x/y")));
        assert_eq!(wasbs.ancestors(), ["abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net"]);
        assert_eq!(wasbs.canonical(), abfss.canonical());
        assert_eq!(wasbs.join("y").as_str(), "wasbs://c@a.blob.core.windows.net/x/y");
        for other in ["abfss://d@a.dfs.core.windows.net/x", "abfss://c@b.dfs.core.windows.net/x", "gs://c/x"] {
            assert_ne!(abfss, place(other), "{other}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused_by_name() {
        let too_long = format!("s3://b/{}", "x".repeat(MAX_LOCATION_BYTES));
        for text in [
            "",
            "relative/path",
            "/tmp/x",
            "x",
            "file:x",
            "file:",
            "file://",
            "file://host/x",
            "file://..//x",
            "http://127.0.0.1:9/x",
            "hdfs://n/x",
            "s3",
            "s3:",
            "s3:/b/x",
            "s3://",
            "s3:///x",
            "s3://key:secret@b/x",
            "s3://b:9000/x",
            "s3://../x",
            "gs://",
            "gs:/b/x",
            "gs://user@b/x",
            "abfss://c/x",
            "abfss://@a.dfs.core.windows.net/x",
            "abfss://c@/x",
            "abfss://c@a/x",
            "abfss://c@a.example.com/x",
            "abfss://c@a.dfs.core..net/x",
            "abfss://c@a.dfs.core.windows.net:443/x",
            "abfss://c:d@a.dfs.core.windows.net/x",
            "abfss://c@a.dfs.core.windows.net/x/../y",
            "file:///a/../b",
            "file:///a/./b",
            "file:///..",
            "file:///a/..",
            "file:///a/%2e%2e/b",
            "file:///a/%2E./b",
            "file:///a/x%2f..%2Fb",
            "file:///a//b",
            "file:////a",
            "s3://b/../c",
            "s3://b//c",
            "s3://b/x?versionId=1",
            "s3://b/x#y",
            "file:///a\nb",
            "file:///a\0b",
            "s3://b/a\u{7f}",
            &too_long,
        ] {
            let error = Location::parse(text).expect_err(text);
            assert_eq!(error.kind(), Kind::Invalid, "{text}");
            assert!(error.message().starts_with("location '"), "{error}");
            assert!(!error.message().contains(char::is_control), "{error}");
        }
    }

    #[test]
    fn a_refusal_shows_the_location() {
        let error = Location::parse("s3://b/../c").unwrap_err();
        assert_eq!(error.message(), "location 's3://b/../c' contains a '.' or '..' segment");
    }

    #[test]
    fn containment_ends_at_a_path_boundary() {
        for (outer, inner, contained) in [
            ("file:///w/aab", "file:///w/aab", true),
            ("file:///w/aab", "file:///w/aab/", true),
            ("file:///w/aab", "file:///w/aab/c/d", true),
            ("file:///w/aab", "file:///w/aabb", false),
            ("file:///w/aab/c", "file:///w/aab", false),
            ("file:///", "file:///w", true),
            ("s3://b", "s3a://b/x", true),
            ("s3://b", "s3://bb/x", false),
            ("s3://b/x", "s3://b/X", false),
        ] {
            assert_eq!(place(outer).contains(&place(inner)), contained, "{outer} contains {inner}");
        }
    }

    #[test]
    fn ancestors_reach_up_to_the_root_of_the_store() {
        assert_eq!(place("file:/a/b c/d").ancestors(), ["file:///a/b c/d", "file:///a/b c", "file:///a", "file://"]);
        assert_eq!(place("s3://b/x/y").ancestors(), ["s3://b/x/y", "s3://b/x", "s3://b"]);
    }

    #[test]
    fn bucket_and_key_are_parts_of_the_place() {
        let s3 = place("s3://b/x y/%20");
        assert_eq!((s3.scheme(), s3.bucket(), s3.key()), ("s3", "b", "x y/%20"));
        let file = place("file:/x y/%20");
        assert_eq!((file.scheme(), file.bucket(), file.key()), ("file", "", "x y/%20"));
        assert_eq!((place("s3://b").bucket(), place("s3://b").key()), ("b", ""));
        let adls = place("wasbs://c@a.blob.core.windows.net/x y");
        assert_eq!((adls.bucket(), adls.account(), adls.account_suffix()), ("c", "a", "core.windows.net"));
        assert_eq!((adls.key(), s3.account(), s3.account_suffix()), ("x y", "", ""));
        let kinds = [&file, &s3, &place("gs://b"), &adls].map(Location::kind);
        assert_eq!(kinds.map(|kind| kind.to_string()), ["file", "s3", "gcs", "adls"]);
    }

    #[test]
    fn slashes_at_the_end_are_stripped_but_not_those_of_the_scheme() {
        for (text, stripped) in [
            ("s3://b/x///", "s3://b/x"),
            ("s3://b/x", "s3://b/x"),
            ("s3://", "s3://"),
            ("file:///", "file://"),
            ("file://", "file://"),
            ("", ""),
        ] {
            assert_eq!(strip_trailing_slashes(text), stripped);
        }
    }

    proptest! {
        #[test]
        fn the_normal_form_is_its_own_normal_form(text in "(file|s3|s3a|S3N):/{0,3}[a-z./%2eF +ä]{0,12}") {
            if let Ok(location) = Location::parse(&text) {
                let slash = if location.key().is_empty() { "/" } else { "" };
                let again = Location::parse(&format!("{location}{slash}")).unwrap();
                prop_assert_eq!(again.as_str(), location.as_str());
            }
        }

        #[test]
        fn a_place_contains_another_exactly_if_it_is_among_its_ancestors(
            outer in "s3://b(/[ab]{1,2}){0,3}", inner in "s3a://b(/[ab]{1,2}){0,4}",
        ) {
            let (outer, inner) = (place(&outer), place(&inner));
            prop_assert_eq!(outer.contains(&inner), inner.ancestors().contains(&outer.canonical()));
        }
    }
}
