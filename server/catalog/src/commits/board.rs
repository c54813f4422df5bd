//! What is shown of single tables: those that are committed to most, and all others together. Pure.

use std::collections::HashMap;

use crate::commits::log::Outcome;
use crate::metadata::{MAIN_BRANCH, TableMetadata};

/// Upper bounds of the buckets of a table's durations, in seconds.
pub const BUCKETS_SECS: [f64; 10] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// How often it is decided anew which tables are shown.
const REVIEW_EVERY_MS: i64 = 60_000;

/// A table that nobody committed to for so long is not shown any more.
const SHOWN_FOR_MS: i64 = 24 * 60 * 60 * 1000;

/// How many tables are counted for each that is shown, to find those that are to be.
const COUNTED_FOR_SHOWN: usize = 20;

/// A table takes another's place when it has this many times its commits, so that two of a kind do not take turns.
const TAKES_PLACE: u64 = 2;

/// A table by the names of its warehouse and its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    pub warehouse: String,
    pub table: String,
}

/// Durations, in buckets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Durations {
    /// By [`BUCKETS_SECS`], each without those below it; longer ones are in `count` alone.
    pub buckets: [u64; BUCKETS_SECS.len()],
    pub sum_secs: f64,
    pub count: u64,
}

/// How a request went.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub outcome: Outcome,
    /// From its arrival to its answer.
    pub took_secs: f64,
    /// Until its group was first taken.
    pub waited_secs: f64,
}

/// A table as its last commit left it. What the summary of the main branch does not tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableState {
    pub at_ms: i64,
    pub snapshots: usize,
    pub metadata_bytes: usize,
    pub data_files: Option<u64>,
    pub delete_files: Option<u64>,
    pub files_bytes: Option<u64>,
}

/// What is shown of a table, or of all others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    pub outcomes: [u64; Outcome::ALL.len()],
    pub took: Durations,
    pub waited: Durations,
    /// Nothing where this process has not changed it.
    pub state: Option<TableState>,
}

/// Counts for a bounded number of tables.
#[derive(Debug, Clone)]
pub struct Board {
    tables_max: usize,
    shown: HashMap<TableName, Shown>,
    others: Shown,
    /// Requests of late; halved at each review.
    recent: HashMap<TableName, u64>,
    reviewed_at_ms: i64,
}

impl Board {
    pub fn new(tables_max: usize) -> Self {
        let (shown, recent) = (HashMap::new(), HashMap::new());
        Self { tables_max, shown, others: Shown::default(), recent, reviewed_at_ms: 0 }
    }

    /// A request for the table has its answer.
    pub fn passed(&mut self, table: &TableName, passed: Passed, now_ms: i64) {
        self.review(now_ms);
        if let Some(count) = self.recent.get_mut(table) {
            *count += 1;
        } else if self.recent.len() < self.tables_max * COUNTED_FOR_SHOWN {
            self.recent.insert(table.clone(), 1);
        }
        self.let_in_if_free(table);
        self.shown.get_mut(table).unwrap_or(&mut self.others).passed(passed);
    }

    /// The table was changed; one that is not shown is passed over.
    pub fn changed(&mut self, table: &TableName, state: TableState) {
        self.let_in_if_free(table);
        if let Some(shown) = self.shown.get_mut(table) {
            shown.state = Some(state);
        }
    }

    fn let_in_if_free(&mut self, table: &TableName) {
        if self.shown.len() < self.tables_max && !self.shown.contains_key(table) {
            self.shown.insert(table.clone(), Shown::default());
        }
    }

    /// The name means no table any more, or another one.
    pub fn forget(&mut self, table: &TableName) {
        self.recent.remove(table);
        if let Some(gone) = self.shown.remove(table) {
            self.others.add(&gone);
        }
    }

    /// The tables that are shown, in the order of their names, then the others as one.
    pub fn show(&mut self, now_ms: i64) -> (Vec<(TableName, Shown)>, Shown) {
        self.review(now_ms);
        let mut shown: Vec<_> = self.shown.iter().map(|(name, shown)| (name.clone(), shown.clone())).collect();
        shown.sort_by(|(one, _), (other, _)| one.cmp(other));
        (shown, self.others.clone())
    }

    fn review(&mut self, now_ms: i64) {
        if now_ms - self.reviewed_at_ms < REVIEW_EVERY_MS {
            return;
        }
        self.reviewed_at_ms = now_ms;
        let is_old = |name: &TableName, shown: &Shown| match shown.state {
            Some(state) => now_ms - state.at_ms > SHOWN_FOR_MS,
            None => !self.recent.contains_key(name),
        };
        let old = self.shown.iter().filter(|(name, shown)| is_old(name, shown)).map(|(name, _)| name.clone());
        old.collect::<Vec<_>>().iter().for_each(|name| self.forget(name));
        self.let_in();
        self.recent.values_mut().for_each(|count| *count /= 2);
        self.recent.retain(|_, count| *count > 0);
    }

    /// Lets the busiest of those outside take the places of the idlest of those inside.
    fn let_in(&mut self) {
        let of_late = |name: &TableName| self.recent.get(name).copied().unwrap_or(0);
        let mut inside: Vec<_> = self.shown.keys().map(|name| (of_late(name), name.clone())).collect();
        inside.sort();
        let outside = self.recent.iter().filter(|(name, _)| !self.shown.contains_key(*name));
        let mut outside: Vec<_> = outside.map(|(name, count)| (*count, name.clone())).collect();
        outside.sort_by(|one, other| other.cmp(one));
        for ((few, idle), (many, busy)) in inside.into_iter().zip(outside) {
            if many <= few * TAKES_PLACE {
                break;
            }
            if let Some(gone) = self.shown.remove(&idle) {
                self.others.add(&gone);
            }
            self.shown.insert(busy, Shown::default());
        }
    }
}

impl Shown {
    fn passed(&mut self, passed: Passed) {
        self.outcomes[passed.outcome as usize] += 1;
        self.took.add(passed.took_secs);
        self.waited.add(passed.waited_secs);
    }

    fn add(&mut self, other: &Self) {
        self.outcomes.iter_mut().zip(other.outcomes).for_each(|(sum, count)| *sum += count);
        self.took.add_all(&other.took);
        self.waited.add_all(&other.waited);
    }
}

impl Durations {
    fn add(&mut self, secs: f64) {
        if let Some(at) = BUCKETS_SECS.iter().position(|bound| secs <= *bound) {
            self.buckets[at] += 1;
        }
        self.sum_secs += secs;
        self.count += 1;
    }

    fn add_all(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(sum, count)| *sum += count);
        self.sum_secs += other.sum_secs;
        self.count += other.count;
    }
}

impl TableState {
    /// As a document of so many bytes has it.
    pub fn of(metadata: &TableMetadata, metadata_bytes: usize, at_ms: i64) -> Self {
        let head = metadata.head(MAIN_BRANCH).and_then(|id| metadata.snapshot(id));
        let summary = head.map(|head| head.summary()).unwrap_or_default();
        let total = |key: &str| summary.get(key).and_then(|total| total.parse().ok());
        Self {
            at_ms,
            snapshots: metadata.snapshots().len(),
            metadata_bytes,
            data_files: total("total-data-files"),
            delete_files: total("total-delete-files"),
            files_bytes: total("total-files-size"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> TableName {
        TableName { warehouse: "w".to_owned(), table: format!("n.{name}") }
    }

    const COMMITTED: Passed = Passed { outcome: Outcome::Committed, took_secs: 0.02, waited_secs: 0.0 };

    fn state(at_ms: i64) -> TableState {
        let unknown = None;
        TableState {
            at_ms,
            snapshots: 1,
            metadata_bytes: 1,
            data_files: unknown,
            delete_files: None,
            files_bytes: None,
        }
    }

    fn names(board: &mut Board, now_ms: i64) -> Vec<String> {
        board.show(now_ms).0.into_iter().map(|(name, _)| name.table).collect()
    }

    fn commits(shown: &Shown) -> u64 {
        shown.outcomes.iter().sum()
    }

    #[test]
    fn no_more_tables_are_shown_than_may_be_and_the_others_are_one() {
        let mut board = Board::new(2);
        ["a", "b", "c", "d"].iter().for_each(|name| board.passed(&table(name), COMMITTED, 1));
        let (shown, others) = board.show(1);
        assert_eq!(shown.iter().map(|(_, shown)| commits(shown)).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(commits(&others), 2);
    }

    #[test]
    fn a_busy_table_takes_the_place_of_an_idle_one_and_no_commit_is_lost() {
        let mut board = Board::new(2);
        ["a", "a", "b"].iter().for_each(|name| board.passed(&table(name), COMMITTED, 1));
        (0..5).for_each(|_| board.passed(&table("c"), COMMITTED, 1));
        assert_eq!(names(&mut board, 2), ["n.a", "n.b"]);
        board.passed(&table("c"), COMMITTED, 1 + REVIEW_EVERY_MS);
        let (shown, others) = board.show(2 + REVIEW_EVERY_MS);
        assert_eq!(shown.iter().map(|(name, _)| &name.table[..]).collect::<Vec<_>>(), ["n.a", "n.c"]);
        assert_eq!(commits(&others) + shown.iter().map(|(_, shown)| commits(shown)).sum::<u64>(), 9);
    }

    #[test]
    fn a_table_that_is_a_little_busier_does_not_take_a_place() {
        let mut board = Board::new(1);
        ["a", "a", "b", "b", "b"].iter().for_each(|name| board.passed(&table(name), COMMITTED, 1));
        assert_eq!(names(&mut board, 1 + REVIEW_EVERY_MS), ["n.a"]);
    }

    #[test]
    fn what_is_counted_of_tables_that_are_not_shown_has_a_bound() {
        let mut board = Board::new(1);
        (0..100).for_each(|number| board.passed(&table(&number.to_string()), COMMITTED, 1));
        assert_eq!(board.recent.len(), COUNTED_FOR_SHOWN);
        let mut nothing = Board::new(0);
        nothing.passed(&table("a"), COMMITTED, 1);
        assert_eq!((names(&mut nothing, 1).len(), commits(&nothing.others)), (0, 1));
    }

    #[test]
    fn a_table_is_shown_until_it_is_dropped_or_nobody_committed_for_a_day() {
        let mut board = Board::new(3);
        for name in ["a", "b"] {
            board.passed(&table(name), COMMITTED, 1);
            board.changed(&table(name), state(1));
        }
        board.forget(&table("b"));
        assert_eq!(names(&mut board, SHOWN_FOR_MS), ["n.a"]);
        assert_eq!(names(&mut board, 2 * SHOWN_FOR_MS).len(), 0);
        assert_eq!(commits(&board.others), 2);
    }

    #[test]
    fn a_duration_is_in_the_bucket_that_it_fits_in() {
        let mut durations = Durations::default();
        [0.01, 0.011, 31.0].iter().for_each(|secs| durations.add(*secs));
        assert_eq!((&durations.buckets[..3], durations.count), (&[1, 1, 0][..], 3));
    }
}
