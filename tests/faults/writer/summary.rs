//! The counts in a snapshot's summary.

use serde_json::{Map, Value};

use super::files::{Content, DataFile};

/// What a change adds and removes.
pub struct Counts<'a> {
    pub added: Vec<&'a DataFile>,
    pub removed: Vec<&'a DataFile>,
}

/// The names of a count for what is added, removed and there in total, and what of a file it counts.
type Count = (&'static str, &'static str, &'static str, fn(&DataFile) -> i64);

const COUNTS: [Count; 6] = [
    ("added-data-files", "deleted-data-files", "total-data-files", |file| i64::from(is(file, Content::Data))),
    ("added-records", "deleted-records", "total-records", |file| records(file, Content::Data)),
    ("added-files-size", "removed-files-size", "total-files-size", |file| file.bytes),
    ("added-delete-files", "removed-delete-files", "total-delete-files", |file| i64::from(!is(file, Content::Data))),
    ("added-position-deletes", "removed-position-deletes", "total-position-deletes", |file| {
        records(file, Content::PositionDeletes)
    }),
    ("added-equality-deletes", "removed-equality-deletes", "total-equality-deletes", |file| {
        records(file, Content::EqualityDeletes)
    }),
];

fn is(file: &DataFile, content: Content) -> bool {
    file.content == content
}

fn records(file: &DataFile, content: Content) -> i64 {
    if is(file, content) { file.records } else { 0 }
}

/// The summary of a snapshot on top of one with the summary `before`. Counts that are 0 are left out, totals are not.
pub fn of(operation: &str, counts: &Counts<'_>, before: Option<&Value>) -> Value {
    let mut summary = Map::from_iter([("operation".to_owned(), operation.into())]);
    for (added, removed, total, count) in COUNTS {
        let sum = |files: &[&DataFile]| files.iter().map(|file| count(file)).sum::<i64>();
        let (plus, minus) = (sum(&counts.added), sum(&counts.removed));
        let so_far = before.and_then(|before| before[total].as_str()?.parse::<i64>().ok()).unwrap_or(0);
        for (name, number) in [(added, plus), (removed, minus)] {
            if number > 0 {
                summary.insert(name.to_owned(), number.to_string().into());
            }
        }
        summary.insert(total.to_owned(), (so_far + plus - minus).to_string().into());
    }
    summary.insert("changed-partition-count".to_owned(), "1".into());
    Value::Object(summary)
}
