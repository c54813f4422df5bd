//! One version of a view and one entry of its version log, each a small head over the raw JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::raw_object::{RawObject, without_nulls};
use crate::error::{Error, Kind, Result};
use crate::metadata::digest;

const WHAT: &str = "view version";

#[derive(Debug, Clone)]
pub(super) struct ViewVersion {
    pub id: i32,
    pub schema_id: i32,
    pub timestamp_ms: i64,
    representations: usize,
    /// The dialect of each SQL representation, in lower case and in order.
    dialects: Vec<String>,
    /// The first representation of a kind that readers do not know.
    unknown_kind: Option<String>,
    raw: Box<RawValue>,
    content: OnceLock<[u8; 32]>,
}

/// A representation as far as the rules ask; of kinds other than `sql` nothing is known.
struct Representation {
    kind: String,
    sql: Option<String>,
    dialect: Option<String>,
}

impl ViewVersion {
    pub fn parse(raw: &RawValue) -> Result<Self> {
        Self::from_object(&RawObject::from_raw(WHAT, raw)?, raw.to_owned())
    }

    /// A version as a client sends it, before it has its place in a view: `now_ms` stands in for a missing time.
    pub fn draft(raw: &RawValue, now_ms: i64) -> Result<RawObject> {
        let mut version = RawObject::from_raw(WHAT, raw)?;
        if version.get::<Option<i64>>("timestamp-ms")?.is_none() {
            version.set("timestamp-ms", now_ms);
        }
        let given: Vec<Box<RawValue>> = version.get("representations")?;
        let normal: Vec<_> = given.iter().map(|raw| in_lower_case(raw)).collect::<Result<_>>()?;
        if normal.iter().any(Option::is_some) {
            let all: Vec<_> = normal.into_iter().zip(given).map(|(new, old)| new.unwrap_or(old)).collect();
            version.set_raw("representations", &all);
        }
        Ok(version)
    }

    pub fn from_draft(version: &RawObject) -> Result<Self> {
        Self::from_object(version, version.to_raw())
    }

    fn from_object(version: &RawObject, raw: Box<RawValue>) -> Result<Self> {
        version.get::<BTreeMap<String, String>>("summary")?;
        version.get::<Option<String>>("default-catalog")?;
        version.get::<Vec<String>>("default-namespace")?;
        let representations: Vec<Box<RawValue>> = version.get("representations")?;
        let representations: Vec<Representation> =
            representations.iter().map(|raw| Representation::read(&representation(raw)?)).collect::<Result<_>>()?;
        let unknown = representations.iter().find(|representation| !representation.is_sql());
        let dialects = representations.iter().map(Representation::sql_dialect).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            id: version.get("version-id")?,
            schema_id: version.get("schema-id")?,
            timestamp_ms: version.get("timestamp-ms")?,
            representations: representations.len(),
            dialects: dialects.into_iter().flatten().collect(),
            unknown_kind: unknown.map(|representation| representation.kind.clone()),
            raw,
            content: OnceLock::new(),
        })
    }

    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    pub fn memory_bytes(&self) -> usize {
        let dialects: usize = self.dialects.iter().map(|dialect| dialect.len() + size_of::<String>()).sum();
        size_of::<Self>() + self.raw.get().len() + dialects
    }

    /// A digest of what makes two versions the same to a reader: everything but the id and the time. Computed once.
    pub fn content(&self) -> Result<[u8; 32]> {
        if let Some(known) = self.content.get() {
            return Ok(*known);
        }
        let value: Value =
            serde_json::from_str(self.raw.get()).map_err(|error| Error::invalid(format!("{WHAT}: {error}")))?;
        let mut value = without_nulls(value);
        if let Value::Object(members) = &mut value {
            members.remove("version-id");
            members.remove("timestamp-ms");
        }
        Ok(*self.content.get_or_init(|| digest(value)))
    }

    /// Checks what a version must hold to be added: something to read, and one query at most for each dialect.
    pub fn check_representations(&self) -> Result<()> {
        if self.representations == 0 {
            return Err(Error::invalid(format!("{WHAT}: 'representations' must hold at least one query")));
        }
        if let Some(kind) = &self.unknown_kind {
            return Err(Error::invalid(format!(
                "{WHAT}: a representation of type '{kind}' cannot be added: the view format has 'sql' alone"
            )));
        }
        let mut seen = BTreeSet::new();
        match self.dialects.iter().find(|dialect| !seen.insert(*dialect)) {
            Some(twice) => Err(Error::new(
                Kind::IllegalArgument,
                format!("Invalid view version: Cannot add multiple queries for dialect {twice}"),
            )),
            None => Ok(()),
        }
    }

    /// The dialects that this version has SQL for and `next` has not.
    pub fn dialects_missing_from<'a>(&'a self, next: &ViewVersion) -> Vec<&'a str> {
        let missing: BTreeSet<&str> =
            self.dialects.iter().filter(|dialect| !next.dialects.contains(dialect)).map(String::as_str).collect();
        missing.into_iter().collect()
    }
}

fn representation(raw: &RawValue) -> Result<RawObject> {
    RawObject::from_raw("view representation", raw)
}

/// The representation with its type in the one spelling that every reader knows; `None` where it is so already.
fn in_lower_case(raw: &RawValue) -> Result<Option<Box<RawValue>>> {
    let mut object = representation(raw)?;
    let kind = Representation::read(&object)?.kind;
    let lower = kind.to_ascii_lowercase();
    if lower == kind {
        return Ok(None);
    }
    object.set_raw("type", &lower);
    Ok(Some(object.to_raw()))
}

impl Representation {
    fn read(object: &RawObject) -> Result<Self> {
        Ok(Self { kind: object.get("type")?, sql: object.get("sql")?, dialect: object.get("dialect")? })
    }

    fn is_sql(&self) -> bool {
        self.kind.eq_ignore_ascii_case("sql")
    }

    /// The dialect in lower case; `None` for kinds other than `sql`.
    fn sql_dialect(&self) -> Result<Option<String>> {
        if !self.is_sql() {
            return Ok(None);
        }
        match (&self.sql, &self.dialect) {
            (Some(_), Some(dialect)) => Ok(Some(dialect.to_lowercase())),
            _ => Err(Error::invalid(format!("{WHAT}: a representation of type 'sql' needs 'sql' and 'dialect'"))),
        }
    }
}

/// When which version became the current one.
#[derive(Debug, Clone)]
pub(super) struct LogEntry {
    pub version_id: i32,
    raw: Box<RawValue>,
}

impl LogEntry {
    pub fn new(version_id: i32, timestamp_ms: i64) -> Self {
        let entry = BTreeMap::from([("timestamp-ms", timestamp_ms), ("version-id", i64::from(version_id))]);
        Self { version_id, raw: to_raw_value(&entry).expect("numbers always encode") }
    }

    pub fn parse(raw: &RawValue) -> Result<Self> {
        let entry = RawObject::from_raw("version-log entry", raw)?;
        entry.get::<i64>("timestamp-ms")?;
        Ok(Self { version_id: entry.get("version-id")?, raw: raw.to_owned() })
    }

    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}
