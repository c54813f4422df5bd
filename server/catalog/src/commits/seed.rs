//! Lineage and ledger of a table that comes from elsewhere, told by its own snapshots.

use std::collections::{HashMap, HashSet};

use crate::commits::lineage::{Landed, Mark, WriterRow};
use crate::commits::store::News;
use crate::metadata::{Snapshot, TableMetadata};

/// What is to be remembered of a registered document. `known` are those of its snapshots that landed here before: where
/// there are any, the table comes back, and its ledger is kept as it is.
pub fn news(metadata: &TableMetadata, known: &HashSet<i64>, at_ms: i64) -> News {
    let marks: HashMap<i64, Mark> =
        metadata.snapshots().filter_map(|snapshot| Some((snapshot.id(), Mark::of(snapshot)?))).collect();
    let new = metadata.snapshots().filter(|snapshot| !known.contains(&snapshot.id()));
    let lineage = new.map(|snapshot| landed(snapshot, marks.get(&snapshot.id()), at_ms)).collect();
    if !known.is_empty() {
        return News { lineage, ..News::default() };
    }
    let (mut carried, mut writers) = (Vec::new(), Vec::new());
    for (ref_name, reference) in metadata.refs().iter().filter(|(_, reference)| reference.is_branch()) {
        let mut rows: Vec<WriterRow> = Vec::new();
        for snapshot in history(metadata, reference.snapshot_id) {
            let Some(mark) = marks.get(&snapshot.id()) else { continue };
            carried.push((ref_name.clone(), snapshot.id()));
            match rows.iter_mut().find(|row| row.writer == mark.identity.writer) {
                // Newest first: this one is older.
                Some(row) => {
                    row.first_snapshot_id = Some(snapshot.id());
                    row.epoch = row.epoch.max(mark.identity.epoch);
                }
                None => rows.push(row(ref_name, snapshot, mark, at_ms)),
            }
        }
        writers.extend(rows);
    }
    News { lineage, carried, writers }
}

/// The snapshots of a branch, head first.
fn history(metadata: &TableMetadata, head: i64) -> impl Iterator<Item = &Snapshot> {
    let parent = |snapshot: &&Snapshot| snapshot.parent_id().and_then(|id| metadata.snapshot(id));
    // A document whose history runs in a circle must not be followed for ever.
    std::iter::successors(metadata.snapshot(head), parent).take(metadata.snapshots().len())
}

fn landed(snapshot: &Snapshot, mark: Option<&Mark>, at_ms: i64) -> Landed {
    Landed {
        snapshot_id: snapshot.id(),
        parent_id: snapshot.parent_id(),
        sequence_number: snapshot.sequence_number(),
        ref_name: None,
        class: None,
        writer: mark.cloned(),
        is_first: false,
        rebased: false,
        at_ms,
    }
}

fn row(ref_name: &str, snapshot: &Snapshot, mark: &Mark, at_ms: i64) -> WriterRow {
    WriterRow {
        ref_name: ref_name.to_owned(),
        writer: mark.identity.writer.clone(),
        position: mark.identity.position.clone(),
        snapshot_id: Some(snapshot.id()),
        sequence_number: snapshot.sequence_number(),
        first_snapshot_id: Some(snapshot.id()),
        epoch: mark.identity.epoch,
        retired: false,
        at_ms,
    }
}
