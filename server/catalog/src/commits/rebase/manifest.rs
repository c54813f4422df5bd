//! The entries of manifests: what a snapshot did to which file, as far as a rebase asks.

use apache_avro::types::Value;

use crate::avro::{Fields, File, Unreadable, type_of};

/// Field ids of the table spec.
mod id {
    pub const STATUS: i64 = 0;
    pub const SNAPSHOT: i64 = 1;
    pub const DATA_FILE: i64 = 2;
    pub const SEQUENCE_NUMBER: i64 = 3;
    pub const FILE_PATH: i64 = 100;
    pub const FILE_FORMAT: i64 = 101;
    pub const RECORD_COUNT: i64 = 103;
    pub const LOWER_BOUNDS: i64 = 125;
    pub const LOWER_KEY: i64 = 126;
    pub const LOWER_VALUE: i64 = 127;
    pub const UPPER_BOUNDS: i64 = 128;
    pub const UPPER_KEY: i64 = 129;
    pub const UPPER_VALUE: i64 = 130;
    pub const CONTENT: i64 = 134;
    pub const REFERENCED_DATA_FILE: i64 = 143;
    /// The reserved column of a position delete file that names the data file.
    pub const DELETE_FILE_PATH: i64 = 2_147_483_546;
}

/// What became of a file in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Existing,
    Added,
    Deleted,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileContent {
    Data,
    PositionDeletes,
    EqualityDeletes,
}

/// One entry of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub status: Status,
    /// `None` where it is inherited from the manifest list.
    pub snapshot_id: Option<i64>,
    /// The data sequence number; `None` where it is inherited.
    pub sequence_number: Option<i64>,
    pub content: FileContent,
    pub path: String,
    pub record_count: i64,
    /// The one data file that a file of position deletes is about; `None` where it may be about several.
    pub referenced: Option<String>,
    /// Whether it is a deletion vector.
    pub is_vector: bool,
}

impl Entry {
    /// Whether the entry is of that snapshot, and not carried over from an earlier one.
    pub fn is_of(&self, snapshot_id: i64) -> bool {
        self.snapshot_id.is_none_or(|id| id == snapshot_id)
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.path.len() + self.referenced.as_ref().map_or(0, String::len)
    }
}

/// Where the fields of entries stand in a manifest.
pub struct Layout {
    entry: Fields,
    file: Fields,
    lower: Fields,
    upper: Fields,
}

impl Layout {
    pub fn of(file: &File<'_>) -> Self {
        let data_file = type_of(file.schema(), id::DATA_FILE);
        Self {
            entry: Fields::of(file.schema()),
            file: Fields::of(&data_file),
            lower: Fields::of(&type_of(&data_file, id::LOWER_BOUNDS)["items"]),
            upper: Fields::of(&type_of(&data_file, id::UPPER_BOUNDS)["items"]),
        }
    }

    pub fn read(&self, record: &Value) -> Result<Entry, Unreadable> {
        let file = self.entry.get(record, id::DATA_FILE).ok_or(Unreadable::NoField("data_file"))?;
        let status = match self.entry.long(record, id::STATUS) {
            Some(0) => Status::Existing,
            Some(1) => Status::Added,
            Some(2) => Status::Deleted,
            _ => return Err(Unreadable::NoField("status of a kind that is known")),
        };
        let content = match self.file.long(file, id::CONTENT) {
            None | Some(0) => FileContent::Data,
            Some(1) => FileContent::PositionDeletes,
            Some(2) => FileContent::EqualityDeletes,
            Some(_) => return Err(Unreadable::NoField("data_file.content of a kind that is known")),
        };
        let format = self.file.string(file, id::FILE_FORMAT).unwrap_or_default();
        Ok(Entry {
            status,
            snapshot_id: self.entry.long(record, id::SNAPSHOT),
            sequence_number: self.entry.long(record, id::SEQUENCE_NUMBER),
            content,
            path: self.file.string(file, id::FILE_PATH).ok_or(Unreadable::NoField("data_file.file_path"))?.to_owned(),
            record_count: self
                .file
                .long(file, id::RECORD_COUNT)
                .filter(|rows| *rows >= 0)
                .ok_or(Unreadable::NoField("data_file.record_count"))?,
            referenced: if content == FileContent::PositionDeletes { self.referenced(file) } else { None },
            is_vector: content == FileContent::PositionDeletes && format.eq_ignore_ascii_case("puffin"),
        })
    }

    fn referenced(&self, file: &Value) -> Option<String> {
        if let Some(path) = self.file.string(file, id::REFERENCED_DATA_FILE) {
            return Some(path.to_owned());
        }
        let lower = bound(self.file.array(file, id::LOWER_BOUNDS)?, &self.lower, (id::LOWER_KEY, id::LOWER_VALUE))?;
        let upper = bound(self.file.array(file, id::UPPER_BOUNDS)?, &self.upper, (id::UPPER_KEY, id::UPPER_VALUE))?;
        // Bounds may be shortened: only two that are equal name a path, for an upper one is rounded up.
        if lower == upper { String::from_utf8(lower).ok() } else { None }
    }
}

/// The bound of the column that names the data file.
fn bound(bounds: &[Value], fields: &Fields, (key, value): (i64, i64)) -> Option<Vec<u8>> {
    let found = bounds.iter().find(|bound| fields.long(bound, key) == Some(id::DELETE_FILE_PATH))?;
    fields.bytes(found, value)
}

/// The entries of a manifest, in its order.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>, Unreadable> {
    let file = File::open(bytes)?;
    let layout = Layout::of(&file);
    let mut entries = Vec::new();
    file.for_each(|record, _| {
        entries.push(layout.read(&record)?);
        Ok(())
    })?;
    Ok(entries)
}

#[cfg(test)]
pub(crate) mod tests;
