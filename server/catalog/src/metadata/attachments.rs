//! What hangs on a table or on one of its snapshots and is only carried along: statistics files and encryption keys.

use serde_json::value::RawValue;

use super::json::{Checked, Object};

/// A statistics file of one snapshot, of the table's or of the partitions' kind.
#[derive(Debug, Clone)]
pub struct StatisticsFile {
    pub snapshot_id: i64,
    pub path: String,
    raw: Box<RawValue>,
}

impl StatisticsFile {
    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        Ok(Self {
            snapshot_id: object.required("snapshot-id")?,
            path: object.required("statistics-path")?,
            raw: raw.to_owned(),
        })
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.raw
    }
}

/// A key of an encrypted table.
#[derive(Debug, Clone)]
pub struct EncryptionKey {
    pub key_id: String,
    raw: Box<RawValue>,
}

impl EncryptionKey {
    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        Ok(Self {
            key_id: object.required("key-id")?,
            raw: raw.to_owned(),
        })
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.raw
    }
}
