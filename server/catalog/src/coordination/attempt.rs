//! What became of a request, told by the lineage first and by the commit log where that says nothing.

use crate::commits::lineage::Landed;
use crate::commits::log::{LogEntry, Outcome, Wanted};

/// What is known of a request now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Landed,
    /// Another request had brought it: nothing was added.
    Duplicate,
    /// It asked for what was there already.
    Unchanged,
    Refused,
    Conflicted,
    Failed,
    /// Applied or not: it is not known yet.
    InDoubt,
    /// No trace of it.
    Unknown,
}

/// A request, and what is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub status: Status,
    /// Its snapshot; with a duplicate, the one that was there before.
    pub snapshot_id: Option<i64>,
    /// The ref that it landed on.
    pub ref_name: Option<String>,
    /// Whether the snapshot is still an ancestor of that ref's head, where it is known.
    pub on_ref: Option<bool>,
    /// The newest first.
    pub entries: Vec<LogEntry>,
}

impl Status {
    /// As the API has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Landed => "landed",
            Status::Duplicate => "duplicate",
            Status::Unchanged => "unchanged",
            Status::Refused => "refused",
            Status::Conflicted => "conflicted",
            Status::Failed => "failed",
            Status::InDoubt => "in-doubt",
            Status::Unknown => "unknown",
        }
    }

    fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Committed | Outcome::Rebased => Status::Landed,
            Outcome::Duplicate => Status::Duplicate,
            Outcome::Unchanged => Status::Unchanged,
            Outcome::Refused => Status::Refused,
            Outcome::Conflicted => Status::Conflicted,
            Outcome::Failed => Status::Failed,
            Outcome::InDoubt => Status::InDoubt,
        }
    }
}

impl Attempt {
    /// A snapshot of the lineage has landed, whatever the log says. Else the last word counts, unless an earlier one
    /// was that it landed.
    pub fn told(landed: Option<&Landed>, entries: Vec<LogEntry>) -> Self {
        if let Some(landed) = landed {
            let (snapshot_id, ref_name) = (Some(landed.snapshot_id), landed.ref_name.clone());
            return Self { status: Status::Landed, snapshot_id, ref_name, on_ref: None, entries };
        }
        let landed = entries.iter().find(|entry| Status::of(entry.outcome) == Status::Landed);
        let Some(told) = landed.or(entries.first()) else {
            return Self { status: Status::Unknown, snapshot_id: None, ref_name: None, on_ref: None, entries };
        };
        Self {
            status: Status::of(told.outcome),
            snapshot_id: told.duplicate_of.or(told.snapshot_id),
            ref_name: told.ref_name.clone(),
            on_ref: None,
            entries,
        }
    }
}

/// The snapshot to look for.
pub fn snapshot_id(wanted: Wanted, entries: &[LogEntry]) -> Option<i64> {
    match wanted {
        Wanted::Snapshot(id) => Some(id),
        Wanted::Key(_) => entries.iter().find_map(|entry| entry.snapshot_id),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ident::{NamespaceIdent, TableIdent, WarehouseId};

    fn entry(outcome: Outcome, snapshot_id: Option<i64>, duplicate_of: Option<i64>) -> LogEntry {
        LogEntry {
            id: Uuid::nil(),
            warehouse: WarehouseId(Uuid::nil()),
            table_uuid: Uuid::nil(),
            ident: TableIdent::new(NamespaceIdent::new(vec!["n".to_owned()]).unwrap(), "t"),
            at_ms: 0,
            request_id: String::new(),
            principal: String::new(),
            idempotency_key: None,
            snapshot_id,
            ref_name: None,
            writer: None,
            position: None,
            outcome,
            attempt: None,
            duplicate_of,
            detail: None,
            waited_ms: 0,
            group_size: 1,
            attempts: 1,
        }
    }

    fn told(entries: &[LogEntry]) -> (Status, Option<i64>) {
        let attempt = Attempt::told(None, entries.to_vec());
        (attempt.status, attempt.snapshot_id)
    }

    #[test]
    fn what_is_in_the_lineage_has_landed_whatever_the_log_says() {
        let landed = Landed { ref_name: Some("main".to_owned()), ..Landed::bare(7, None, 1, 0) };
        let attempt = Attempt::told(Some(&landed), vec![entry(Outcome::InDoubt, Some(7), None)]);
        assert_eq!((attempt.status, attempt.snapshot_id), (Status::Landed, Some(7)));
        assert_eq!(attempt.ref_name.as_deref(), Some("main"));
    }

    #[test]
    fn the_last_word_of_the_log_counts_unless_an_earlier_one_was_that_it_landed() {
        use Outcome::{Committed, Conflicted, Duplicate, Failed, InDoubt, Rebased, Refused};
        for (outcomes, expected) in [
            (vec![], Status::Unknown),
            (vec![Conflicted], Status::Conflicted),
            (vec![Refused, Failed], Status::Refused),
            (vec![Failed, Conflicted], Status::Failed),
            (vec![InDoubt, Conflicted], Status::InDoubt),
            (vec![InDoubt, Committed], Status::Landed),
            (vec![Duplicate, Rebased], Status::Landed),
            (vec![Duplicate, InDoubt], Status::Duplicate),
        ] {
            let entries: Vec<_> = outcomes.iter().map(|outcome| entry(*outcome, None, None)).collect();
            assert_eq!(told(&entries).0, expected, "{outcomes:?}");
        }
    }

    #[test]
    fn a_duplicate_is_told_with_the_snapshot_that_was_there_before() {
        assert_eq!(told(&[entry(Outcome::Duplicate, Some(8), Some(7))]), (Status::Duplicate, Some(7)));
        assert_eq!(told(&[entry(Outcome::Conflicted, Some(8), None)]), (Status::Conflicted, Some(8)));
    }

    #[test]
    fn the_snapshot_of_a_key_is_the_one_that_was_sent_with_it_last() {
        let entries = [entry(Outcome::Failed, None, None), entry(Outcome::InDoubt, Some(8), None)];
        assert_eq!(snapshot_id(Wanted::Key(Uuid::nil()), &entries), Some(8));
        assert_eq!(snapshot_id(Wanted::Snapshot(3), &entries), Some(3));
        assert_eq!(snapshot_id(Wanted::Key(Uuid::nil()), &[]), None);
    }
}
