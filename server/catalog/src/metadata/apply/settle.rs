//! Time, once all updates are applied: snapshots on a branch follow their parents, and the log tells what stayed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Draft;
use crate::metadata::snapshots::Snapshots;
use crate::metadata::{Snapshot, SnapshotLogEntry};

/// How far a writer's clock may be ahead of ours.
const CLOCK_TOLERANCE_MS: i64 = 30_000;

/// The snapshots that the request has added, and which of them it has put on a branch.
#[derive(Default)]
pub(super) struct Added {
    on_main: HashMap<i64, bool>,
    /// Those on a branch, parents before children.
    on_branch: Vec<i64>,
    seen: HashSet<i64>,
}

impl Added {
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        self.on_main.insert(snapshot.id(), false);
    }

    fn contains(&self, id: i64) -> bool {
        self.on_main.contains_key(&id)
    }

    /// Marks the added snapshots that lie on the chain from `head` back. Every one of them is walked over once.
    pub(super) fn put_on_branch(&mut self, snapshots: &Snapshots, head: i64, is_main: bool) {
        let mut chain = Vec::new();
        let mut next = Some(head);
        while let Some(id) = next.filter(|id| self.is_news(*id, is_main)) {
            if is_main {
                self.on_main.insert(id, true);
            }
            if self.seen.insert(id) {
                chain.push(id);
            }
            next = snapshots.get(id).and_then(|snapshot| snapshot.parent_id());
        }
        self.on_branch.extend(chain.into_iter().rev());
    }

    fn is_news(&self, id: i64, is_main: bool) -> bool {
        self.on_main.get(&id).is_some_and(|on_main| !self.seen.contains(&id) || (is_main && !on_main))
    }
}

impl Draft {
    /// Moves added snapshots of branches to where their times do not fall along the chain, nor lie far ahead.
    /// Returns how many were moved.
    pub(super) fn settle_timestamps(&mut self) -> usize {
        let last_logged = self.table.snapshot_log.last().map(|entry| entry.timestamp_ms);
        let latest = self.now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        let mut moved = 0;
        for id in &self.added.on_branch {
            let Some(snapshot) = self.table.snapshots.get(*id) else {
                continue;
            };
            let parent = snapshot.parent_id().and_then(|id| self.table.snapshots.get(id));
            let after_parent = parent.map(|parent| parent.timestamp_ms());
            let after_log = last_logged.filter(|_| self.added.on_main[id]);
            let earliest = after_parent.max(after_log).map(|ms| ms.saturating_add(1));
            let settled = snapshot.timestamp_ms().min(latest).max(earliest.unwrap_or(i64::MIN));
            if settled != snapshot.timestamp_ms() {
                let at = snapshot.at(settled);
                self.table.snapshots.replace(at);
                moved += 1;
            }
        }
        moved
    }

    pub(super) fn newest_settled_ms(&self) -> i64 {
        let settled = self.added.on_branch.iter().filter_map(|id| self.table.snapshots.get(*id));
        settled.map(|snapshot| snapshot.timestamp_ms()).max().unwrap_or(i64::MIN)
    }

    /// Logs where `main` went. Added snapshots that `main` only passed through are left out, and history before a
    /// removed snapshot is cut: with a gap it would tell wrong what was current in between.
    pub(super) fn settle_snapshot_log(&mut self) {
        let current = self.table.current_snapshot_id;
        let stayed = |id: &i64| !self.added.contains(*id) || current == Some(*id);
        let moves: Vec<i64> = self.main_moves.iter().copied().filter(stayed).collect();
        if moves.is_empty() && !self.removed_snapshots {
            return;
        }
        let log = Arc::make_mut(&mut self.table.snapshot_log);
        for id in moves {
            let last = log.last().map_or(i64::MIN, |entry| entry.timestamp_ms);
            let added = self.added.contains(id).then(|| self.table.snapshots.get(id)).flatten();
            let at = added.map_or(self.now_ms, |snapshot| snapshot.timestamp_ms());
            log.push(SnapshotLogEntry::new(at.max(last), id));
        }
        if self.removed_snapshots {
            let snapshots = &self.table.snapshots;
            let kept = log.iter().rposition(|entry| !snapshots.contains(entry.snapshot_id)).map_or(0, |at| at + 1);
            log.drain(..kept);
        }
        // A log that never knew the current snapshot, or lost it in the cut, starts anew with it.
        if let Some(id) = current.filter(|id| log.last().is_none_or(|entry| entry.snapshot_id != *id)) {
            let last = log.last().map_or(i64::MIN, |entry| entry.timestamp_ms);
            log.push(SnapshotLogEntry::new(self.now_ms.max(last), id));
        }
    }
}
