//! The view metadata document: a small typed head over raw JSON segments that are kept as received.

mod apply;
mod location;
mod raw_object;
mod retention;
mod schema;
#[cfg(test)]
mod tests;
mod update;
mod version;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use self::raw_object::RawObject;
use self::schema::ViewSchema;
use self::version::{LogEntry, ViewVersion};
use crate::error::{Error, Result};

pub use self::apply::{AppliedView, NewView, apply, create};
pub use self::location::next_metadata_location;
pub use self::update::{ViewRequirement, ViewUpdate};

/// The only version of the view format.
const FORMAT_VERSION: i32 = 1;

/// Members of the document that the head holds; every other member is carried along as it is.
const KNOWN_MEMBERS: [&str; 8] = [
    "view-uuid",
    "format-version",
    "location",
    "properties",
    "schemas",
    "current-version-id",
    "versions",
    "version-log",
];

/// A view's metadata, as the Iceberg view spec lays it out.
///
/// Unknown members survive every change that does not replace the object they sit in, and the same document always
/// encodes to the same bytes.
#[derive(Debug, Clone)]
pub struct ViewMetadata {
    uuid: Uuid,
    location: String,
    properties: BTreeMap<String, String>,
    schemas: Vec<ViewSchema>,
    current_version_id: i32,
    versions: Vec<ViewVersion>,
    version_log: Vec<LogEntry>,
    unknown: RawObject,
}

/// The document in the order it is written.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document<'a> {
    view_uuid: Uuid,
    format_version: i32,
    location: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    properties: &'a BTreeMap<String, String>,
    schemas: Vec<&'a RawValue>,
    current_version_id: i32,
    versions: Vec<&'a RawValue>,
    version_log: Vec<&'a RawValue>,
    #[serde(flatten)]
    unknown: &'a RawObject,
}

impl ViewMetadata {
    /// Reads a document, as a file holds it. A document whose current version or its schema is missing is refused.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let document = RawObject::parse("view metadata", json)?;
        let format_version: i32 = document.get("format-version")?;
        if format_version != FORMAT_VERSION {
            return Err(unsupported_format(format_version));
        }
        let view = Self {
            uuid: document.get("view-uuid")?,
            location: document.get("location")?,
            properties: document.get::<Option<_>>("properties")?.unwrap_or_default(),
            schemas: segments(&document, "schemas", ViewSchema::parse)?,
            current_version_id: document.get("current-version-id")?,
            versions: segments(&document, "versions", ViewVersion::parse)?,
            version_log: segments(&document, "version-log", LogEntry::parse)?,
            unknown: document.without(&KNOWN_MEMBERS),
        };
        view.check()?;
        Ok(view)
    }

    /// Writes the document as compact JSON; raw segments go out as they came in.
    pub fn encode(&self) -> Bytes {
        let document = Document {
            view_uuid: self.uuid,
            format_version: FORMAT_VERSION,
            location: &self.location,
            properties: &self.properties,
            schemas: self.schemas.iter().map(ViewSchema::raw).collect(),
            current_version_id: self.current_version_id,
            versions: self.versions.iter().map(ViewVersion::raw).collect(),
            version_log: self.version_log.iter().map(LogEntry::raw).collect(),
            unknown: &self.unknown,
        };
        serde_json::to_vec(&document).expect("strings, numbers and raw JSON always encode").into()
    }

    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The folder that the view's metadata files lie under.
    pub fn location(&self) -> &str {
        &self.location
    }

    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.properties
    }

    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    pub fn current_version_id(&self) -> i32 {
        self.current_version_id
    }

    /// About how much memory the document takes, for caches that are bounded in bytes.
    pub fn memory_bytes(&self) -> usize {
        let properties: usize = self.properties.iter().map(|(key, value)| key.len() + value.len() + 64).sum();
        let schemas: usize = self.schemas.iter().map(|schema| schema.raw().get().len() + size_of::<ViewSchema>()).sum();
        let versions: usize = self.versions.iter().map(ViewVersion::memory_bytes).sum();
        let log: usize = self.version_log.iter().map(|entry| entry.raw().get().len() + size_of::<LogEntry>()).sum();
        size_of::<Self>() + self.location.len() + properties + schemas + versions + log + self.unknown.memory_bytes()
    }

    fn version(&self, id: i32) -> Option<&ViewVersion> {
        self.versions.iter().find(|version| version.id == id)
    }

    fn has_schema(&self, id: i32) -> bool {
        self.schemas.iter().any(|schema| schema.id == id)
    }

    /// The version that queries see; `parse` and `apply` see to it that there is one.
    fn current_version(&self) -> Result<&ViewVersion> {
        self.version(self.current_version_id).ok_or_else(|| {
            let id = self.current_version_id;
            Error::invalid(format!("view metadata: current-version-id {id} is not among the versions"))
        })
    }

    fn check(&self) -> Result<()> {
        let current = self.current_version()?;
        if !self.has_schema(current.schema_id) {
            return Err(Error::invalid(format!(
                "view metadata: schema {} of current version {} is not among the schemas",
                current.schema_id, current.id
            )));
        }
        check_unique("version-id", self.versions.iter().map(|version| version.id))?;
        check_unique("schema-id", self.schemas.iter().map(|schema| schema.id))
    }
}

/// One parsed segment for each element of the array `member`.
fn segments<T>(document: &RawObject, member: &'static str, parse: fn(&RawValue) -> Result<T>) -> Result<Vec<T>> {
    let raw: Vec<Box<RawValue>> = document.get(member)?;
    raw.iter().map(|segment| parse(segment)).collect()
}

fn check_unique(field: &str, ids: impl Iterator<Item = i32>) -> Result<()> {
    let mut seen = BTreeSet::new();
    match { ids }.find(|id| !seen.insert(*id)) {
        Some(twice) => Err(Error::invalid(format!("view metadata: {field} {twice} is used twice"))),
        None => Ok(()),
    }
}

fn unsupported_format(format_version: i32) -> Error {
    Error::invalid(format!("Unsupported format version: {format_version}; views have format version {FORMAT_VERSION}"))
}
