//! The two histories in the document: which snapshot was current when, and which metadata files came before.

use serde_json::value::RawValue;

use super::json::{Checked, Object};

/// From when on a snapshot was the current one.
#[derive(Debug, Clone)]
pub struct SnapshotLogEntry {
    pub timestamp_ms: i64,
    pub snapshot_id: i64,
    /// The text, kept only where it says more than the two numbers.
    raw: Option<Box<RawValue>>,
}

impl SnapshotLogEntry {
    pub(crate) fn new(timestamp_ms: i64, snapshot_id: i64) -> Self {
        Self { timestamp_ms, snapshot_id, raw: None }
    }

    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let has_more = object.members().count() > 2;
        Ok(Self {
            timestamp_ms: object.required("timestamp-ms")?,
            snapshot_id: object.required("snapshot-id")?,
            raw: has_more.then(|| raw.to_owned()),
        })
    }

    pub(crate) fn raw(&self) -> Option<&RawValue> {
        self.raw.as_deref()
    }
}

/// An earlier metadata file, and when it was last the table's own.
#[derive(Debug, Clone)]
pub struct MetadataLogEntry {
    pub timestamp_ms: i64,
    pub metadata_file: String,
    raw: Option<Box<RawValue>>,
}

impl MetadataLogEntry {
    pub(crate) fn new(timestamp_ms: i64, metadata_file: String) -> Self {
        Self { timestamp_ms, metadata_file, raw: None }
    }

    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let has_more = object.members().count() > 2;
        Ok(Self {
            timestamp_ms: object.required("timestamp-ms")?,
            metadata_file: object.required("metadata-file")?,
            raw: has_more.then(|| raw.to_owned()),
        })
    }

    pub(crate) fn raw(&self) -> Option<&RawValue> {
        self.raw.as_deref()
    }
}
