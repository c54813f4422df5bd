//! The table metadata document: a small typed head over segments of JSON that stay as they were received.
//!
//! Nothing that is not understood is lost, the same document gives the same bytes, and a commit encodes only what it
//! adds.

mod apply;
mod attachments;
mod create;
mod decode;
mod encode;
mod foreign;
mod json;
mod logs;
pub mod naming;
mod partition;
mod properties;
mod refs;
mod schema;
mod snapshots;
mod sort_order;
mod update;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::Result;

pub use apply::{Applied, ApplyAt, apply, assemble};
pub use attachments::{EncryptionKey, StatisticsFile};
pub use create::{NewTable, create};
pub use json::check_nesting;
pub use logs::{MetadataLogEntry, SnapshotLogEntry};
pub use naming::{is_gzipped_name, next_metadata_location};
pub use partition::{PartitionField, PartitionSpec};
pub use refs::{MAIN_BRANCH, RefKind, SnapshotRef};
pub use schema::Schema;
pub use snapshots::Snapshot;
pub use sort_order::{SortField, SortOrder};
pub use update::TableUpdate;

pub(crate) use json::{Checked, Flaw, Object, digest};
pub(crate) use naming::metadata_folder;
pub(crate) use snapshots::Seat;

/// The newest format version that is read and written here.
pub const FORMAT_VERSION_MAX: u8 = 3;

/// The state of a table as one immutable document. Clones share their segments.
#[derive(Debug, Clone)]
pub struct TableMetadata {
    format_version: u8,
    uuid: Option<Uuid>,
    location: String,
    last_sequence_number: i64,
    last_updated_ms: i64,
    last_column_id: i32,
    current_schema_id: i32,
    schemas: Vec<Arc<Schema>>,
    default_spec_id: i32,
    specs: Vec<Arc<PartitionSpec>>,
    last_partition_id: i32,
    default_sort_order_id: i32,
    sort_orders: Vec<Arc<SortOrder>>,
    properties: Arc<BTreeMap<String, String>>,
    current_snapshot_id: Option<i64>,
    next_row_id: Option<i64>,
    encryption_keys: Vec<Arc<EncryptionKey>>,
    refs: Arc<BTreeMap<String, SnapshotRef>>,
    snapshots: snapshots::Snapshots,
    statistics: Arc<Vec<StatisticsFile>>,
    partition_statistics: Arc<Vec<StatisticsFile>>,
    snapshot_log: Arc<Vec<SnapshotLogEntry>>,
    metadata_log: Arc<Vec<MetadataLogEntry>>,
    /// Whether parts were added to the document as it was read.
    was_completed: bool,
    /// Members of the document that nobody here knows, in their order.
    unknown: Arc<Vec<(String, Box<RawValue>)>>,
}

impl TableMetadata {
    /// Reads a document of format version 1, 2 or 3 (plain JSON). Errors are `Invalid` and name the path of the field.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        decode::document(bytes).map_err(|flaw| flaw.under("table metadata").into())
    }

    pub fn format_version(&self) -> u8 {
        self.format_version
    }

    /// Format version 1 may have none in the document: then it follows from the location, and every commit writes it.
    pub fn uuid(&self) -> Uuid {
        self.uuid.unwrap_or_else(|| named_uuid(&self.location))
    }

    /// Whether the document that was read lacks what clients ask for: its UUID, or its default sort order.
    pub(crate) fn was_completed(&self) -> bool {
        self.was_completed
    }

    pub fn location(&self) -> &str {
        &self.location
    }

    pub fn last_sequence_number(&self) -> i64 {
        self.last_sequence_number
    }

    pub fn last_updated_ms(&self) -> i64 {
        self.last_updated_ms
    }

    pub fn last_column_id(&self) -> i32 {
        self.last_column_id
    }

    pub fn current_schema_id(&self) -> i32 {
        self.current_schema_id
    }

    pub fn schemas(&self) -> impl ExactSizeIterator<Item = &Schema> {
        self.schemas.iter().map(|schema| &**schema)
    }

    pub fn schema(&self, id: i32) -> Option<&Schema> {
        self.schemas().find(|schema| schema.id() == id)
    }

    pub fn default_spec_id(&self) -> i32 {
        self.default_spec_id
    }

    pub fn specs(&self) -> impl ExactSizeIterator<Item = &PartitionSpec> {
        self.specs.iter().map(|spec| &**spec)
    }

    pub fn spec(&self, id: i32) -> Option<&PartitionSpec> {
        self.specs().find(|spec| spec.id() == id)
    }

    /// The highest id that a partition field ever had.
    pub fn last_partition_id(&self) -> i32 {
        self.last_partition_id
    }

    pub fn default_sort_order_id(&self) -> i32 {
        self.default_sort_order_id
    }

    pub fn sort_orders(&self) -> impl ExactSizeIterator<Item = &SortOrder> {
        self.sort_orders.iter().map(|order| &**order)
    }

    pub fn sort_order(&self, id: i32) -> Option<&SortOrder> {
        self.sort_orders().find(|order| order.id() == id)
    }

    pub fn properties(&self) -> &BTreeMap<String, String> {
        &self.properties
    }

    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    /// The snapshot of the branch `main`.
    pub fn current_snapshot_id(&self) -> Option<i64> {
        self.current_snapshot_id
    }

    /// The row id that the next snapshot starts with; only from format version 3 on.
    pub fn next_row_id(&self) -> Option<i64> {
        self.next_row_id.filter(|_| self.format_version >= 3)
    }

    pub fn encryption_keys(&self) -> impl ExactSizeIterator<Item = &EncryptionKey> {
        self.encryption_keys.iter().map(|key| &**key)
    }

    pub fn refs(&self) -> &BTreeMap<String, SnapshotRef> {
        &self.refs
    }

    /// The snapshot that a branch or tag points to.
    pub fn head(&self, ref_name: &str) -> Option<i64> {
        self.refs.get(ref_name).map(|target| target.snapshot_id)
    }

    /// In the order of the document, which is the order in which they were added.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = &Snapshot> {
        self.snapshots.iter().map(|snapshot| &**snapshot)
    }

    pub fn snapshot(&self, id: i64) -> Option<&Snapshot> {
        self.snapshots.get(id).map(|snapshot| &**snapshot)
    }

    pub fn statistics(&self) -> &[StatisticsFile] {
        &self.statistics
    }

    pub fn partition_statistics(&self) -> &[StatisticsFile] {
        &self.partition_statistics
    }

    pub fn snapshot_log(&self) -> &[SnapshotLogEntry] {
        &self.snapshot_log
    }

    pub fn metadata_log(&self) -> &[MetadataLogEntry] {
        &self.metadata_log
    }

    /// About how much memory the document takes, for a cache that is bounded in bytes. Walks over all snapshots.
    pub fn memory_bytes(&self) -> usize {
        let schemas = self.schemas.iter().map(|schema| 2 * schema.raw().get().len());
        let properties = self.properties.iter().map(|(key, value)| key.len() + value.len() + 64);
        let refs = self.refs.iter().map(|(name, r)| name.len() + r.memory_bytes() + 64);
        let files = self.statistics.iter().chain(self.partition_statistics.iter());
        let statistics = files.map(|file| 2 * file.path.len() + file.raw().get().len());
        let entries = self.metadata_log.iter().map(|entry| entry.metadata_file.len() + 64);
        let parts = schemas.chain(properties).chain(refs).chain(statistics).chain(entries);
        let log = self.snapshot_log.len() * size_of::<SnapshotLogEntry>();
        size_of::<Self>() + parts.sum::<usize>() + log + self.snapshots.memory_bytes()
    }
}

/// The same for the same location, however it ends: version 8, from the first bytes of a SHA-256.
fn named_uuid(location: &str) -> Uuid {
    let digest: [u8; 32] = Sha256::digest(naming::without_trailing_slash(location)).into();
    let (first, _) = digest.split_at(16);
    let bytes: [u8; 16] = first.try_into().expect("half of 32 bytes are 16");
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
