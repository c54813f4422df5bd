//! From one document to the next: the updates of one request, in their order, on a draft.

mod head;
mod settle;
mod shape;
mod snapshots;

use std::sync::Arc;

use super::schema::NewestColumns;
use super::sort_order::complete_orders;
use super::{FORMAT_VERSION_MAX, MetadataLogEntry, PartitionSpec, TableMetadata, TableUpdate, properties};
use crate::error::{Error, Result};
use settle::Added;

/// How many schemas, partition specs and sort orders one commit may add, all together.
const SHAPES_ADDED_MAX: usize = 1000;

/// When and onto what updates are applied.
#[derive(Debug, Clone, Copy)]
pub struct ApplyAt<'a> {
    pub now_ms: i64,
    /// The metadata file of the base, which goes into the metadata log. `None` where the base was never written: a new
    /// table, or a member of a group after the first.
    pub previous_location: Option<&'a str>,
}

/// What became of a document.
#[derive(Debug, Clone)]
pub struct Applied {
    pub metadata: TableMetadata,
    /// False where the updates asked for what was there already: then the document is the base itself.
    pub changed: bool,
    /// Metadata files that fell out of the log and are to be deleted once this document is the table's own; empty
    /// unless the table asks for that.
    pub dropped_metadata_files: Vec<String>,
    /// How many of the added snapshots were put at another time than their writer's clock said.
    pub moved_timestamps: usize,
}

/// Applies updates in their order.
///
/// Errors: `Invalid` where an update breaks a rule of the format, `CommitFailed` where it was built on an older base,
/// `Unprocessable` where it would put a live manifest list at risk.
pub fn apply(base: &TableMetadata, updates: &[TableUpdate], at: &ApplyAt<'_>) -> Result<Applied> {
    check_count(updates)?;
    let mut draft = Draft::new(base.clone(), at.now_ms);
    draft.table.uuid = Some(base.uuid());
    for update in updates {
        draft.update(update)?;
    }
    if !draft.changed {
        return Ok(Applied {
            metadata: base.clone(),
            changed: false,
            dropped_metadata_files: Vec::new(),
            moved_timestamps: 0,
        });
    }
    let moved_timestamps = draft.finish()?;
    let dropped = draft.log_previous(base, at.previous_location);
    let dropped_metadata_files = if properties::deletes_old_metadata(&draft.table) { dropped } else { Vec::new() };
    Ok(Applied { metadata: draft.table, changed: true, dropped_metadata_files, moved_timestamps })
}

/// Makes a whole table out of its first updates, as the commit of a staged create sends them.
///
/// The format version is that of the first `upgrade-format-version`, or else 2. A table without a partition spec or a
/// sort order is unpartitioned or unsorted. Errors are `Invalid`; uuid, schema and location must be among the updates.
pub fn assemble(updates: &[TableUpdate], now_ms: i64) -> Result<TableMetadata> {
    check_count(updates)?;
    let first_version = updates.iter().find_map(|update| match update {
        TableUpdate::UpgradeFormatVersion { format_version } => Some(*format_version),
        _ => None,
    });
    let mut draft = Draft::new(TableMetadata::empty(checked_version(first_version.unwrap_or(2))?), now_ms);
    draft.is_new = true;
    draft.reshaped = true;
    for update in updates {
        draft.update(update)?;
    }
    draft.complete()?;
    draft.finish()?;
    Ok(draft.table)
}

/// A document under way.
struct Draft {
    table: TableMetadata,
    now_ms: i64,
    is_new: bool,
    changed: bool,
    /// A schema, spec or order was chosen, so that they must be held against each other again.
    reshaped: bool,
    /// The columns of all schemas, once an update asks for them.
    newest_columns: Option<NewestColumns>,
    last_added_schema: Option<i32>,
    last_added_spec: Option<i32>,
    last_added_order: Option<i32>,
    added: Added,
    /// Where `main` was moved to, in order.
    main_moves: Vec<i64>,
    removed_snapshots: bool,
}

impl Draft {
    fn new(table: TableMetadata, now_ms: i64) -> Self {
        Self {
            table,
            now_ms,
            is_new: false,
            changed: false,
            reshaped: false,
            newest_columns: None,
            last_added_schema: None,
            last_added_spec: None,
            last_added_order: None,
            added: Added::default(),
            main_moves: Vec::new(),
            removed_snapshots: false,
        }
    }

    fn update(&mut self, update: &TableUpdate) -> Result<()> {
        match update {
            TableUpdate::AssignUuid { uuid } => self.assign_uuid(*uuid)?,
            TableUpdate::UpgradeFormatVersion { format_version } => self.upgrade_format_version(*format_version)?,
            TableUpdate::AddSchema { schema } => self.add_schema(schema)?,
            TableUpdate::SetCurrentSchema { schema_id } => self.set_current_schema(*schema_id)?,
            TableUpdate::RemoveSchemas { schema_ids } => self.remove_schemas(schema_ids)?,
            TableUpdate::AddSpec { spec } => self.add_spec(spec)?,
            TableUpdate::SetDefaultSpec { spec_id } => self.set_default_spec(*spec_id)?,
            TableUpdate::RemovePartitionSpecs { spec_ids } => self.remove_specs(spec_ids)?,
            TableUpdate::AddSortOrder { sort_order } => self.add_sort_order(sort_order)?,
            TableUpdate::SetDefaultSortOrder { sort_order_id } => self.set_default_sort_order(*sort_order_id)?,
            TableUpdate::AddSnapshot { snapshot } => self.add_snapshot(snapshot)?,
            TableUpdate::SetSnapshotRef { ref_name, target } => self.set_snapshot_ref(ref_name, target)?,
            TableUpdate::RemoveSnapshots { snapshot_ids } => self.remove_snapshots(snapshot_ids),
            TableUpdate::RemoveSnapshotRef { ref_name } => self.remove_snapshot_ref(ref_name),
            TableUpdate::SetLocation { location } => self.set_location(location)?,
            TableUpdate::SetProperties { updates } => self.set_properties(updates)?,
            TableUpdate::RemoveProperties { removals } => self.remove_properties(removals),
            TableUpdate::SetStatistics { statistics } => self.set_statistics(statistics),
            TableUpdate::RemoveStatistics { snapshot_id } => self.remove_statistics(*snapshot_id),
            TableUpdate::SetPartitionStatistics { partition_statistics } => {
                self.set_partition_statistics(partition_statistics);
            }
            TableUpdate::RemovePartitionStatistics { snapshot_id } => self.remove_partition_statistics(*snapshot_id),
            TableUpdate::AddEncryptionKey { encryption_key } => self.add_encryption_key(encryption_key)?,
            TableUpdate::RemoveEncryptionKey { key_id } => self.remove_encryption_key(key_id),
        }
        Ok(())
    }

    /// What a new table has without being told so, and what it cannot be without.
    fn complete(&mut self) -> Result<()> {
        let missing = |what: &str| Err(Error::invalid(format!("updates: a new table needs {what}")));
        if self.table.uuid.is_none() {
            return missing("assign-uuid");
        }
        if self.table.location.is_empty() {
            return missing("set-location");
        }
        if self.table.schema(self.table.current_schema_id).is_none() {
            return missing("add-schema and set-current-schema");
        }
        if self.table.specs.is_empty() {
            self.table.specs.push(Arc::new(PartitionSpec::unpartitioned()));
        }
        complete_orders(&mut self.table.sort_orders, self.table.default_sort_order_id);
        Ok(())
    }

    /// Holds the parts against each other, settles times and logs. Returns how many snapshots were moved in time.
    fn finish(&mut self) -> Result<usize> {
        if self.reshaped {
            self.check_shape()?;
        }
        let moved = self.settle_timestamps();
        self.settle_snapshot_log();
        let newest = self.table.snapshot_log.last().map_or(i64::MIN, |entry| entry.timestamp_ms);
        let settled = self.newest_settled_ms().max(newest);
        let forward = self.table.last_updated_ms.saturating_add(1);
        self.table.last_updated_ms = self.now_ms.max(settled).max(forward);
        Ok(moved)
    }

    /// Remembers the base's file in the metadata log. Returns the files that fell out of it.
    fn log_previous(&mut self, base: &TableMetadata, previous_location: Option<&str>) -> Vec<String> {
        let max = properties::previous_versions_max(&self.table);
        let Some(previous) = previous_location else {
            return Vec::new();
        };
        let log = Arc::make_mut(&mut self.table.metadata_log);
        log.push(MetadataLogEntry::new(base.last_updated_ms, previous.to_owned()));
        let surplus = log.len().saturating_sub(max);
        log.drain(..surplus).map(|entry| entry.metadata_file).collect()
    }
}

impl TableMetadata {
    /// A table of which nothing is known yet but its format version.
    pub(super) fn empty(format_version: u8) -> Self {
        Self {
            format_version,
            uuid: None,
            location: String::new(),
            last_sequence_number: 0,
            last_updated_ms: i64::MIN,
            last_column_id: 0,
            current_schema_id: -1,
            schemas: Vec::new(),
            default_spec_id: 0,
            specs: Vec::new(),
            last_partition_id: super::partition::FIRST_FIELD_ID - 1,
            default_sort_order_id: 0,
            sort_orders: Vec::new(),
            properties: Arc::default(),
            current_snapshot_id: None,
            next_row_id: (format_version >= 3).then_some(0),
            encryption_keys: Vec::new(),
            refs: Arc::default(),
            snapshots: super::snapshots::Snapshots::default(),
            statistics: Arc::default(),
            partition_statistics: Arc::default(),
            snapshot_log: Arc::default(),
            metadata_log: Arc::default(),
            was_completed: false,
            unknown: Arc::default(),
        }
    }
}

/// Every schema, spec and order is held against all that are there, so there is a bound to them. Other updates may come
/// in any number: expiry removes snapshots one by one.
fn check_count(updates: &[TableUpdate]) -> Result<()> {
    let adds_shape = |update: &&TableUpdate| {
        use TableUpdate::{AddSchema, AddSortOrder, AddSpec};
        matches!(update, AddSchema { .. } | AddSpec { .. } | AddSortOrder { .. })
    };
    match updates.iter().filter(adds_shape).count() {
        0..=SHAPES_ADDED_MAX => Ok(()),
        count => Err(Error::invalid(format!(
            "updates: {count} add schemas, partition specs or sort orders, more than the {SHAPES_ADDED_MAX} of one commit"
        ))),
    }
}

fn checked_version(format_version: i64) -> Result<u8> {
    match u8::try_from(format_version) {
        Ok(version @ 1..=FORMAT_VERSION_MAX) => Ok(version),
        _ => Err(Error::invalid(format!(
            "format version v{format_version} is not supported (supported: v1 to v{FORMAT_VERSION_MAX})"
        ))),
    }
}

#[cfg(test)]
mod tests;
