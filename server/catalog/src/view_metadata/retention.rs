//! How many old versions a view keeps.

use std::collections::BTreeSet;

use super::ViewMetadata;
use crate::error::{Error, Result};

const HISTORY_SIZE: &str = "version.history.num-entries";
const HISTORY_SIZE_DEFAULT: usize = 10;

/// Drops the oldest versions beyond `version.history.num-entries`; the current version and those in `added` stay.
///
/// The version log is cut behind its last entry for a version that is gone, so that it tells no story with gaps.
pub(super) fn expire_versions(view: &mut ViewMetadata, added: &BTreeSet<i32>) -> Result<()> {
    let mut kept = added.clone();
    kept.insert(view.current_version_id);
    let limit = history_size(view)?.max(kept.len());
    if view.versions.len() <= limit {
        return Ok(());
    }
    let newest_first: BTreeSet<_> = view.versions.iter().map(|version| std::cmp::Reverse(version.id)).collect();
    for id in newest_first {
        if kept.len() < limit {
            kept.insert(id.0);
        }
    }
    view.versions.retain(|version| kept.contains(&version.id));
    let gap = view.version_log.iter().rposition(|entry| !kept.contains(&entry.version_id));
    view.version_log.drain(..gap.map_or(0, |position| position + 1));
    Ok(())
}

fn history_size(view: &ViewMetadata) -> Result<usize> {
    let Some(value) = view.property(HISTORY_SIZE) else {
        return Ok(HISTORY_SIZE_DEFAULT);
    };
    let size = value.parse().ok().filter(|size| *size > 0);
    size.ok_or_else(|| Error::invalid(format!("{HISTORY_SIZE} must be positive but was {value}")))
}
