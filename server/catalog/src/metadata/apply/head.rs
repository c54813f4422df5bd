//! Uuid, format version, location, properties and what the table only carries along.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::{Draft, checked_version};
use crate::error::{Error, Result};
use crate::metadata::naming::without_trailing_slash;
use crate::metadata::{EncryptionKey, StatisticsFile, properties};

/// The first format version with encryption keys.
const ENCRYPTION_FORMAT_VERSION: u8 = 3;

impl Draft {
    pub(super) fn assign_uuid(&mut self, uuid: Uuid) -> Result<()> {
        match self.table.uuid {
            Some(own) if own != uuid => {
                Err(Error::invalid(format!("assign-uuid.uuid: the table has uuid {own}, which never changes")))
            }
            Some(_) => Ok(()),
            None => {
                self.table.uuid = Some(uuid);
                self.changed = true;
                Ok(())
            }
        }
    }

    pub(super) fn upgrade_format_version(&mut self, format_version: i64) -> Result<()> {
        let (old, new) = (self.table.format_version, checked_version(format_version)?);
        if new < old {
            return Err(Error::invalid(format!("Cannot downgrade v{old} table to v{new}")));
        }
        if new == old {
            return Ok(());
        }
        self.table.format_version = new;
        if old == 1 {
            self.table.snapshots.number_all();
        }
        if new >= 3 {
            self.table.next_row_id.get_or_insert(0);
        }
        self.changed = true;
        Ok(())
    }

    pub(super) fn set_location(&mut self, location: &str) -> Result<()> {
        let location = without_trailing_slash(location);
        if location.is_empty() {
            return Err(Error::invalid("set-location.location: must not be empty"));
        }
        if self.table.location != location {
            self.table.location = location.to_owned();
            self.changed = true;
        }
        Ok(())
    }

    /// Reserved keys steer the creation of a table and are never stored: there they are skipped, later refused.
    pub(super) fn set_properties(&mut self, updates: &BTreeMap<String, String>) -> Result<()> {
        for (key, value) in updates {
            if properties::is_reserved(key) {
                if self.is_new {
                    continue;
                }
                return Err(Error::invalid(format!(
                    "set-properties.updates: '{key}' is a reserved property and cannot be set on a table"
                )));
            }
            if self.table.property(key) != Some(value) {
                Arc::make_mut(&mut self.table.properties).insert(key.clone(), value.clone());
                self.changed = true;
            }
        }
        Ok(())
    }

    pub(super) fn remove_properties(&mut self, removals: &[String]) {
        for key in removals {
            if self.table.properties.contains_key(key) {
                Arc::make_mut(&mut self.table.properties).remove(key);
                self.changed = true;
            }
        }
    }

    pub(super) fn set_statistics(&mut self, file: &StatisticsFile) {
        self.changed |= set_file(&mut self.table.statistics, file);
    }

    pub(super) fn remove_statistics(&mut self, snapshot_id: i64) {
        self.changed |= remove_files(&mut self.table.statistics, |id| id == snapshot_id);
    }

    pub(super) fn set_partition_statistics(&mut self, file: &StatisticsFile) {
        self.changed |= set_file(&mut self.table.partition_statistics, file);
    }

    pub(super) fn remove_partition_statistics(&mut self, snapshot_id: i64) {
        self.changed |= remove_files(&mut self.table.partition_statistics, |id| id == snapshot_id);
    }

    /// A key that is there already stays as it is.
    pub(super) fn add_encryption_key(&mut self, key: &Arc<EncryptionKey>) -> Result<()> {
        if self.table.encryption_keys().any(|known| known.key_id == key.key_id) {
            return Ok(());
        }
        if self.table.format_version < ENCRYPTION_FORMAT_VERSION {
            return Err(Error::invalid(format!(
                "add-encryption-key: v{} tables have no encryption keys: upgrade to v{ENCRYPTION_FORMAT_VERSION} first",
                self.table.format_version
            )));
        }
        self.table.encryption_keys.push(key.clone());
        self.changed = true;
        Ok(())
    }

    pub(super) fn remove_encryption_key(&mut self, key_id: &str) {
        let before = self.table.encryption_keys.len();
        self.table.encryption_keys.retain(|key| key.key_id != key_id);
        self.changed |= self.table.encryption_keys.len() != before;
    }
}

/// One file for each snapshot: the new one takes the place of what was there. Says whether that changed anything.
fn set_file(files: &mut Arc<Vec<StatisticsFile>>, new: &StatisticsFile) -> bool {
    let mut same = files.iter().filter(|file| file.snapshot_id == new.snapshot_id);
    let (first, second) = (same.next(), same.next());
    if second.is_none() && first.is_some_and(|file| file.raw().get() == new.raw().get()) {
        return false;
    }
    let files = Arc::make_mut(files);
    let at = files.iter().position(|file| file.snapshot_id == new.snapshot_id).unwrap_or(files.len());
    files.retain(|file| file.snapshot_id != new.snapshot_id);
    files.insert(at, new.clone());
    true
}

/// Says whether there was a file to remove.
pub(super) fn remove_files(files: &mut Arc<Vec<StatisticsFile>>, removes: impl Fn(i64) -> bool) -> bool {
    let any = files.iter().any(|file| removes(file.snapshot_id));
    if any {
        Arc::make_mut(files).retain(|file| !removes(file.snapshot_id));
    }
    any
}
