//! Manifest lists, read with whatever schema they were written with and written with the schema of the table's version.

use apache_avro::types::Value;

use crate::avro::{Fields, File, Unreadable, type_of};

mod write;

pub use write::{Head, Written, write};

/// A manifest list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct List {
    /// As its header says, or else as its schema looks.
    pub format_version: u8,
    pub manifests: Vec<ManifestFile>,
    /// Its file, where it was written here.
    pub written: Option<Written>,
}

/// One manifest, as its list describes it (table spec, "Manifest Lists").
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ManifestFile {
    pub path: String,
    pub length_bytes: i64,
    pub spec_id: i32,
    pub content: Content,
    /// 0 in format version 1, as is `min_sequence_number`.
    pub sequence_number: i64,
    pub min_sequence_number: i64,
    pub added_snapshot_id: i64,
    pub added_files: i32,
    pub existing_files: i32,
    pub deleted_files: i32,
    pub added_rows: i64,
    pub existing_rows: i64,
    pub deleted_rows: i64,
    pub partitions: Option<Vec<FieldSummary>>,
    pub key_metadata: Option<Vec<u8>>,
    /// From format version 3 on, and only for data.
    pub first_row_id: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Content {
    #[default]
    Data,
    Deletes,
}

/// What a manifest's entries have in one field of the partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSummary {
    pub contains_null: bool,
    pub contains_nan: Option<bool>,
    pub lower_bound: Option<Vec<u8>>,
    pub upper_bound: Option<Vec<u8>>,
}

impl List {
    pub fn memory_bytes(&self) -> usize {
        let manifests = self.manifests.iter().map(|manifest| {
            let summaries = manifest.partitions.iter().flatten().map(|summary| {
                let bounds = [&summary.lower_bound, &summary.upper_bound];
                size_of::<FieldSummary>() + bounds.into_iter().flatten().map(Vec::len).sum::<usize>()
            });
            size_of::<ManifestFile>() + manifest.path.len() + summaries.sum::<usize>()
        });
        let file = self.written.as_ref().map_or(0, |written| written.bytes.len());
        size_of::<Self>() + manifests.sum::<usize>() + file
    }
}

impl ManifestFile {
    /// Whether a reader finds anything in it.
    pub fn is_live(&self) -> bool {
        self.live_files() > 0
    }

    pub fn live_files(&self) -> i64 {
        i64::from(self.added_files) + i64::from(self.existing_files)
    }
}

/// Field ids of the table spec.
mod id {
    pub const PATH: i64 = 500;
    pub const LENGTH: i64 = 501;
    pub const SPEC: i64 = 502;
    pub const ADDED_SNAPSHOT: i64 = 503;
    pub const ADDED_FILES: i64 = 504;
    pub const EXISTING_FILES: i64 = 505;
    pub const DELETED_FILES: i64 = 506;
    pub const PARTITIONS: i64 = 507;
    pub const SUMMARY: i64 = 508;
    pub const CONTAINS_NULL: i64 = 509;
    pub const LOWER_BOUND: i64 = 510;
    pub const UPPER_BOUND: i64 = 511;
    pub const ADDED_ROWS: i64 = 512;
    pub const EXISTING_ROWS: i64 = 513;
    pub const DELETED_ROWS: i64 = 514;
    pub const SEQUENCE_NUMBER: i64 = 515;
    pub const MIN_SEQUENCE_NUMBER: i64 = 516;
    pub const CONTENT: i64 = 517;
    pub const CONTAINS_NAN: i64 = 518;
    pub const KEY_METADATA: i64 = 519;
    pub const FIRST_ROW_ID: i64 = 520;
}

/// Reads a list of any format version. Fields are found by their ids, for writers have given them several names.
pub fn read(bytes: &[u8]) -> Result<List, Unreadable> {
    let file = File::open(bytes)?;
    let fields = Fields::of(file.schema());
    let summaries = Fields::of(&type_of(file.schema(), id::PARTITIONS)["items"]);
    let told = file.header("format-version").and_then(|version| version.parse().ok());
    let looks = match (fields.contains(id::FIRST_ROW_ID), fields.contains(id::CONTENT)) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) => 1,
    };
    let mut manifests = Vec::new();
    file.for_each(|record, _| {
        manifests.push(manifest_file(&fields, &summaries, &record)?);
        Ok(())
    })?;
    Ok(List { format_version: told.unwrap_or(looks), manifests, written: None })
}

fn manifest_file(fields: &Fields, summaries: &Fields, record: &Value) -> Result<ManifestFile, Unreadable> {
    let long = |id, name| fields.long(record, id).ok_or(Unreadable::NoField(name));
    let count = |id, name| fields.long(record, id).filter(|count| *count >= 0).ok_or(Unreadable::NoField(name));
    let files = |id, name| i32::try_from(count(id, name)?).map_err(|_| Unreadable::NoField(name));
    let partitions = fields.array(record, id::PARTITIONS);
    Ok(ManifestFile {
        path: fields.string(record, id::PATH).ok_or(Unreadable::NoField("manifest_path"))?.to_owned(),
        length_bytes: long(id::LENGTH, "manifest_length")?,
        spec_id: fields.int(record, id::SPEC).ok_or(Unreadable::NoField("partition_spec_id"))?,
        content: match fields.long(record, id::CONTENT) {
            None | Some(0) => Content::Data,
            Some(1) => Content::Deletes,
            Some(_) => return Err(Unreadable::NoField("content of a kind that is known")),
        },
        sequence_number: fields.long(record, id::SEQUENCE_NUMBER).unwrap_or(0),
        min_sequence_number: fields.long(record, id::MIN_SEQUENCE_NUMBER).unwrap_or(0),
        added_snapshot_id: long(id::ADDED_SNAPSHOT, "added_snapshot_id")?,
        added_files: files(id::ADDED_FILES, "added_files_count")?,
        existing_files: files(id::EXISTING_FILES, "existing_files_count")?,
        deleted_files: files(id::DELETED_FILES, "deleted_files_count")?,
        added_rows: count(id::ADDED_ROWS, "added_rows_count")?,
        existing_rows: count(id::EXISTING_ROWS, "existing_rows_count")?,
        deleted_rows: count(id::DELETED_ROWS, "deleted_rows_count")?,
        partitions: partitions.map(|items| items.iter().map(|item| field_summary(summaries, item)).collect()),
        key_metadata: fields.bytes(record, id::KEY_METADATA),
        first_row_id: fields.long(record, id::FIRST_ROW_ID),
    })
}

fn field_summary(fields: &Fields, record: &Value) -> FieldSummary {
    FieldSummary {
        // A reader that is not told must look.
        contains_null: fields.boolean(record, id::CONTAINS_NULL).unwrap_or(true),
        contains_nan: fields.boolean(record, id::CONTAINS_NAN),
        lower_bound: fields.bytes(record, id::LOWER_BOUND),
        upper_bound: fields.bytes(record, id::UPPER_BOUND),
    }
}
