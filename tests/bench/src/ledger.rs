//! What writers were told of their files, and whether a table bears it out.

use std::collections::{BTreeMap, BTreeSet};

use faults::writer::{DataFile, Table};

use crate::report::Result;
use crate::rest::{Catalog, Name};
use crate::store::Store;
use crate::writer::{Commit, Ended, live_files};

/// The files of one table by what their writers were told.
#[derive(Debug, Default)]
pub struct Ledger {
    acknowledged: BTreeSet<String>,
    refused: BTreeSet<String>,
    /// These may be there or not.
    unknown: BTreeSet<String>,
    /// Removed by acknowledged compactions.
    replaced: BTreeSet<String>,
}

impl Ledger {
    pub fn enter(&mut self, commit: &Commit) {
        match commit.ended {
            Ended::Landed => {
                self.acknowledged.extend(commit.added.iter().cloned());
                self.replaced.extend(commit.removed.iter().cloned());
            }
            Ended::Conflicted | Ended::Refused(_) => self.refused.extend(commit.added.iter().cloned()),
            Ended::Unknown(_) => {
                self.unknown.extend(commit.added.iter().cloned());
                // A compaction that may have landed leaves open what became of the files under it.
                self.unknown.extend(commit.removed.iter().cloned());
            }
        }
    }

    pub fn merge(&mut self, other: Ledger) {
        self.acknowledged.extend(other.acknowledged);
        self.refused.extend(other.refused);
        self.unknown.extend(other.unknown);
        self.replaced.extend(other.replaced);
    }

    /// Everything that a head with these live files and this summary has wrong. Files of nobody's are not.
    pub fn faults(&self, live: &[DataFile], summary: &serde_json::Value) -> Vec<String> {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for file in live {
            *times.entry(&file.path).or_default() += 1;
        }
        let is_live = |path: &&String| times.contains_key(path.as_str());
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let expected = self.acknowledged.difference(&self.replaced).filter(|path| !self.unknown.contains(*path));
        let lost = expected.filter(|path| !is_live(path)).map(|path| format!("acknowledged and lost: {}", name(path)));
        let refused =
            self.refused.iter().filter(is_live).map(|path| format!("refused and there all the same: {}", name(path)));
        let back = self.replaced.iter().filter(is_live).map(|path| format!("compacted and back: {}", name(path)));
        let doubled = times.iter().filter(|(_, times)| **times > 1);
        let doubled = doubled.map(|(path, times)| format!("there {times} times: {}", name(path)));
        lost.chain(refused).chain(back).chain(doubled).chain(wrong_totals(live, summary)).collect()
    }
}

/// Totals of a summary that the files do not come to. A summary may leave them out.
fn wrong_totals(live: &[DataFile], summary: &serde_json::Value) -> Vec<String> {
    let records = live.iter().map(|file| file.records).sum();
    let totals = [("total-data-files", live.len() as i64), ("total-records", records)];
    let told = |key: &str| summary[key].as_str()?.parse::<i64>().ok();
    let wrong = totals.into_iter().filter_map(|(key, found)| Some((key, found, told(key).filter(|n| *n != found)?)));
    wrong.map(|(key, found, told)| format!("{key} is {told}, found {found}")).collect()
}

/// Reads the head of a table and holds it against the ledger.
pub async fn verify(catalog: &Catalog, store: &Store, name: &Name, ledger: &Ledger) -> Result<Vec<String>> {
    let table = Table::of(catalog.load(name).await?.metadata, "main");
    let live = live_files(store, &table).await?;
    let summary = table.head().map_or(serde_json::Value::Null, |head| table.snapshot(head)["summary"].clone());
    Ok(ledger.faults(&live, &summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(name: &str) -> DataFile {
        DataFile::data("file:///t/data", &[name], "1")
    }

    fn paths(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| file(name).path).collect()
    }

    fn summary(files: usize) -> serde_json::Value {
        json!({"total-data-files": files.to_string(), "total-records": files.to_string()})
    }

    #[test]
    fn what_was_acknowledged_must_be_there_once() {
        let ledger = Ledger { acknowledged: paths(&["a", "b"]), ..Ledger::default() };
        assert_eq!(ledger.faults(&[file("a"), file("b")], &summary(2)), Vec::<String>::new());
        assert_eq!(ledger.faults(&[file("a")], &summary(1)).len(), 1);
        assert_eq!(ledger.faults(&[file("a"), file("b"), file("b")], &summary(3)).len(), 1);
    }

    #[test]
    fn what_was_refused_must_not_be_there_and_the_unknown_may() {
        let ledger = Ledger { refused: paths(&["a"]), unknown: paths(&["b"]), ..Ledger::default() };
        assert_eq!(ledger.faults(&[file("b")], &summary(1)), Vec::<String>::new());
        assert_eq!(ledger.faults(&[], &summary(0)), Vec::<String>::new());
        assert_eq!(ledger.faults(&[file("a")], &summary(1)).len(), 1);
    }

    #[test]
    fn a_compacted_file_is_not_lost_but_must_not_come_back() {
        let ledger = Ledger { acknowledged: paths(&["a", "new"]), replaced: paths(&["a"]), ..Ledger::default() };
        assert_eq!(ledger.faults(&[file("new")], &summary(1)), Vec::<String>::new());
        assert_eq!(ledger.faults(&[file("new"), file("a")], &summary(2)).len(), 1);
    }

    #[test]
    fn totals_must_be_what_the_files_come_to() {
        let ledger = Ledger { acknowledged: paths(&["a"]), ..Ledger::default() };
        assert_eq!(ledger.faults(&[file("a")], &summary(2)).len(), 2);
        assert_eq!(ledger.faults(&[file("a")], &json!({})), Vec::<String>::new());
    }
}
