//! The files of a table as values. The names of data and delete files tell the keys in them, so that rows can be counted
//! without any Parquet.

/// What a file holds; the number is the format's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    Data = 0,
    PositionDeletes = 1,
    EqualityDeletes = 2,
}

/// What a manifest says of a file; the number is the format's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Existing = 0,
    Added = 1,
    Deleted = 2,
}

/// A data or delete file. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    pub content: Content,
    pub path: String,
    pub records: i64,
    pub bytes: i64,
    /// The only data file that its position deletes are for.
    pub references: Option<String>,
}

impl DataFile {
    fn holding(content: Content, folder: &str, keys: &[&str], unique: &str) -> Self {
        let kind = match content {
            Content::Data => "data",
            Content::PositionDeletes => "positions",
            Content::EqualityDeletes => "equality",
        };
        let path = format!("{folder}/{kind}~{}~{unique}.parquet", keys.join("+"));
        Self { content, path, records: keys.len() as i64, bytes: 1000 + keys.len() as i64, references: None }
    }

    /// A row for each key. `unique` keeps the file apart from others with the same keys.
    pub fn data(folder: &str, keys: &[&str], unique: &str) -> Self {
        Self::holding(Content::Data, folder, keys, unique)
    }

    /// Deletes the rows of these keys from all files with a lower sequence number.
    pub fn equality_deletes(folder: &str, keys: &[&str], unique: &str) -> Self {
        Self::holding(Content::EqualityDeletes, folder, keys, unique)
    }

    /// Deletes the rows of these keys from one file.
    pub fn position_deletes(folder: &str, keys: &[&str], unique: &str, of: &DataFile) -> Self {
        let file = Self::holding(Content::PositionDeletes, folder, keys, unique);
        Self { references: Some(of.path.clone()), ..file }
    }

    pub fn keys(&self) -> Vec<&str> {
        let keys = self.path.rsplit('/').next().and_then(|name| name.split('~').nth(1)).unwrap_or_default();
        keys.split('+').filter(|key| !key.is_empty()).collect()
    }
}

/// What one manifest says of one file. A number that is `None` is inherited from the manifest's place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub status: Status,
    pub snapshot_id: Option<i64>,
    pub sequence_number: Option<i64>,
    pub file_sequence_number: Option<i64>,
    pub file: DataFile,
}

impl Entry {
    pub fn is_live(&self) -> bool {
        self.status != Status::Deleted
    }

    /// As it stands where it was inherited from this manifest.
    pub fn resolved(mut self, manifest: &ManifestFile) -> Self {
        self.snapshot_id = self.snapshot_id.or(Some(manifest.added_snapshot_id));
        self.sequence_number = self.sequence_number.or(Some(manifest.sequence_number));
        self.file_sequence_number = self.file_sequence_number.or(Some(manifest.sequence_number));
        self
    }
}

/// A manifest as its list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    pub path: String,
    pub length: i64,
    pub spec_id: i64,
    /// Data, or deletes of any kind.
    pub content: Content,
    pub sequence_number: i64,
    pub min_sequence_number: i64,
    pub added_snapshot_id: i64,
    /// Files and rows by [`Status`].
    pub files: [i64; 3],
    pub rows: [i64; 3],
    pub first_row_id: Option<i64>,
}

impl ManifestFile {
    pub fn live_files(&self) -> i64 {
        self.files[Status::Existing as usize] + self.files[Status::Added as usize]
    }
}

/// The path on this machine of a `file:` location.
pub fn local(location: &str) -> &str {
    location.strip_prefix("file://").or_else(|| location.strip_prefix("file:")).unwrap_or(location)
}
