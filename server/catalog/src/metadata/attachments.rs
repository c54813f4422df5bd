//! What hangs on a table or on one of its snapshots and is only carried along: statistics files and encryption keys.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::json::{self, Checked, Flaw, Object};

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

    /// Statistics of the table: refuses a file that no client could read back.
    pub(crate) fn check_of_table(&self) -> Checked<()> {
        let object = Object::parse(&self.raw)?;
        object.required::<i64>("file-size-in-bytes")?;
        object.required::<i64>("file-footer-size-in-bytes")?;
        let blobs = json::each(object.required_raw("blob-metadata")?, check_blob);
        blobs.map(drop).map_err(|f| f.under("blob-metadata"))
    }

    /// Statistics of the partitions: as [`Self::check_of_table`].
    pub(crate) fn check_of_partitions(&self) -> Checked<()> {
        Object::parse(&self.raw)?.required::<i64>("file-size-in-bytes").map(drop)
    }
}

fn check_blob(raw: &RawValue) -> Checked<()> {
    let blob = Object::parse(raw)?;
    blob.required::<String>("type")?;
    blob.required::<i64>("snapshot-id")?;
    blob.required::<i64>("sequence-number")?;
    blob.required::<Vec<i32>>("fields")?;
    blob.optional::<BTreeMap<String, String>>("properties").map(drop)
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
        Ok(Self { key_id: object.required("key-id")?, raw: raw.to_owned() })
    }

    /// Reads a key that is to be added.
    pub(crate) fn read_new(raw: &RawValue) -> Checked<Self> {
        let key = Self::read(&Object::parse(raw)?.without_null(&["encrypted-by-id", "properties"]))?;
        key.check()?;
        Ok(key)
    }

    /// Refuses a key that no client could read back.
    pub(crate) fn check(&self) -> Checked<()> {
        let object = Object::parse(&self.raw)?;
        if !is_base64(&object.required::<String>("encrypted-key-metadata")?) {
            return Err(Flaw::new("is not base64").under("encrypted-key-metadata"));
        }
        object.optional::<String>("encrypted-by-id")?;
        object.optional::<BTreeMap<String, String>>("properties").map(drop)
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.raw
    }
}

/// The standard alphabet, padded or not.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let is_whole = match padding {
        0 => digits.len() % 4 != 1,
        1 | 2 => text.len().is_multiple_of(4),
        _ => false,
    };
    is_whole && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_metadata_is_base64() {
        for (text, is_one) in [
            ("", true),
            ("AA==", true),
            ("AAE=", true),
            ("A+/9", true),
            ("AA", true),
            ("AA=", false),
            ("A", false),
            ("A===", false),
            ("A-_9", false),
            ("A A=", false),
        ] {
            assert_eq!(is_base64(text), is_one, "'{text}'");
        }
    }
}
