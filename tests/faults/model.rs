//! What must be in a table after a run: each writer notes what it wanted and what it was told, and the table is held
//! against that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::writer::Table;

/// What a commit came to, as far as its writer was told in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Acknowledged: its rows are there.
    Landed,
    /// Refused for good: its rows are not there, unless another commit brought them.
    Refused,
    /// Never told: its rows are there or not.
    Unknown,
}

/// The words of all writers of one table.
#[derive(Debug, Default)]
pub struct Model(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By snapshot id.
    commits: BTreeMap<i64, Word>,
    /// Rows of keys that are written once, by their last word.
    rows: BTreeMap<String, Word>,
    /// Keys that are written again and again: one row each, once one landed.
    upserted: BTreeSet<String>,
    /// The largest sequence number that a load has shown.
    seen: i64,
}

impl Model {
    pub fn landed(&self, snapshot_id: i64, keys: &[&str]) {
        self.say(snapshot_id, keys, Word::Landed);
    }

    pub fn refused(&self, snapshot_id: i64, keys: &[&str]) {
        self.say(snapshot_id, keys, Word::Refused);
    }

    pub fn unknown(&self, snapshot_id: i64, keys: &[&str]) {
        self.say(snapshot_id, keys, Word::Unknown);
    }

    /// A key that is to have one row from now on.
    pub fn upserted(&self, snapshot_id: i64, key: &str) {
        let mut state = self.0.lock().unwrap();
        state.commits.insert(snapshot_id, Word::Landed);
        state.upserted.insert(key.to_owned());
    }

    fn say(&self, snapshot_id: i64, keys: &[&str], word: Word) {
        let mut state = self.0.lock().unwrap();
        state.commits.insert(snapshot_id, word);
        for key in keys {
            // What landed once stays, whatever becomes of other attempts at it.
            let told = state.rows.entry((*key).to_owned()).or_insert(word);
            *told = if *told == Word::Landed { Word::Landed } else { word };
        }
    }

    /// What a load must at least show, if it begins now.
    pub fn seen(&self) -> i64 {
        self.0.lock().unwrap().seen
    }

    /// A load that began when `at_least` had been seen.
    pub fn loaded(&self, at_least: i64, table: &Table) {
        let now = table.last_sequence_number();
        assert!(now >= at_least, "a load shows sequence number {now}, and one before it showed {at_least}");
        let mut state = self.0.lock().unwrap();
        state.seen = state.seen.max(now);
    }

    pub fn acknowledged(&self) -> usize {
        self.0.lock().unwrap().commits.values().filter(|word| **word == Word::Landed).count()
    }

    /// The snapshots that must have landed.
    pub fn landed_ids(&self) -> BTreeSet<i64> {
        let state = self.0.lock().unwrap();
        state.commits.iter().filter(|(_, word)| **word == Word::Landed).map(|(id, _)| *id).collect()
    }

    /// Fails where the rows of the table are not what the writers were told.
    pub fn check(&self, table: &Table) {
        let state = self.0.lock().unwrap();
        let rows = table.rows();
        for (key, count) in &rows {
            assert_eq!(*count, 1, "{key} is there {count} times");
        }
        for (key, word) in &state.rows {
            match word {
                Word::Landed => assert!(rows.contains_key(key), "{key} was acknowledged and is missing"),
                Word::Refused => assert!(!rows.contains_key(key), "{key} was refused and is there"),
                Word::Unknown => {}
            }
        }
        for key in &state.upserted {
            assert!(rows.contains_key(key), "{key} was acknowledged and is missing");
        }
        for (id, _) in state.commits.iter().filter(|(_, word)| **word == Word::Refused) {
            assert!(!table.has(*id), "snapshot {id} was refused and is there");
        }
    }
}
