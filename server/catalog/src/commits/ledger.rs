//! What the ledger says about a commit whose writer is known: new, a duplicate, or not to be let through.

use std::cmp::Ordering;

use crate::commits::identity::{END_OF_INPUT, Identity, Position};
use crate::commits::lineage::WriterRow;
use crate::error::Error;
use crate::ident::TableIdent;

/// `frazil.writer.stale`: what becomes of a position behind the ledger's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stale {
    /// A new incarnation of the writer: a stateless restart counts from 1 again, and loses nothing.
    #[default]
    GoesOn,
    Reject,
    Acknowledge,
}

/// What is known of a commit when the ledger is asked.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub identity: &'a Identity,
    pub row: Option<&'a WriterRow>,
    /// A landed snapshot of this identity at this position with the same content.
    pub same: Option<i64>,
    /// The row's snapshot is no ancestor of head any more: the walk met the root, or a lower sequence number, first.
    pub is_void: bool,
    /// The asserted snapshot is the row's, or descends from it.
    pub builds_on_row: bool,
    pub stale: Stale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    GoesOn,
    /// Goes on, and is told of: the writer has begun anew under its old name.
    NewIncarnation,
    /// Nothing is added. The answer names the snapshot that has it already.
    Duplicate {
        of: Option<i64>,
    },
    /// A later incarnation of the writer has taken over.
    StaleEpoch {
        highest: i64,
    },
    /// One position, two contents.
    Clash {
        with: Option<i64>,
    },
    /// Behind the ledger, where the table wants that refused.
    StalePosition,
}

/// Judges top down; the first row of the table that applies decides.
pub fn decide(evidence: &Evidence<'_>) -> Decision {
    let (Some(position), Some(row)) = (&evidence.identity.position, evidence.row) else {
        return Decision::GoesOn;
    };
    if let (Some(own), Some(highest)) = (evidence.identity.epoch, row.epoch)
        && own < highest
    {
        return Decision::StaleEpoch { highest };
    }
    // Registered, or reset: whatever comes next is new.
    let Some(reached) = &row.position else {
        return Decision::GoesOn;
    };
    if let Some(same) = evidence.same {
        return Decision::Duplicate { of: Some(same) };
    }
    // A mark has no order: another one says nothing of staleness.
    if evidence.is_void || matches!(position, Position::Mark(_)) {
        return Decision::GoesOn;
    }
    match position.compare(reached) {
        Some(Ordering::Greater) => Decision::GoesOn,
        Some(Ordering::Equal) if evidence.builds_on_row || *position == Position::Number(END_OF_INPUT) => {
            Decision::NewIncarnation
        }
        Some(Ordering::Equal) => Decision::Clash { with: row.snapshot_id },
        Some(Ordering::Less) | None => match evidence.stale {
            Stale::GoesOn => Decision::NewIncarnation,
            Stale::Reject => Decision::StalePosition,
            Stale::Acknowledge => Decision::Duplicate { of: row.snapshot_id },
        },
    }
}

/// Whether the decision depends on where the row's snapshot lies; walking back over a history is not free.
pub fn asks_for_ancestry(evidence: &Evidence<'_>) -> bool {
    let (Some(position), Some(row)) = (&evidence.identity.position, evidence.row) else { return false };
    let is_ahead = |reached: &Position| position.compare(reached) == Some(Ordering::Greater);
    evidence.same.is_none() && row.position.as_ref().is_some_and(|reached| !is_ahead(reached))
}

/// What a decision that refuses says to the client. A silent 200 would lose data, and a 409 would make it retry and
/// delete its files.
pub fn refusal(decision: &Decision, identity: &Identity, snapshot_id: i64, table: &TableIdent) -> Error {
    let (writer, position) = (&identity.writer, identity.told_position());
    let reset = "reset its position (PUT …/writers/{id}/position under /coordination/v1) if it is to begin anew";
    Error::unprocessable(match decision {
        Decision::StaleEpoch { highest } => format!(
            "writer {writer} commits to {table} with epoch {}, but epoch {highest} has taken over: stop this one",
            identity.epoch.unwrap_or_default()
        ),
        Decision::StalePosition => format!(
            "writer {writer} is past position {position} in {table}, and frazil.writer.stale is reject: {reset}"
        ),
        Decision::Clash { with } => format!(
            "writer {writer} committed other files to {table} at position {position} with snapshot {}, and now snapshot \
             {snapshot_id}: two writers may share one name; nothing was changed. {reset}",
            with.map_or("unknown".to_owned(), |id| id.to_string())
        ),
        Decision::GoesOn | Decision::NewIncarnation | Decision::Duplicate { .. } => {
            "a decision that was no refusal was taken for one".to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::identity::{Writer, WriterKind};

    fn writer() -> Writer {
        Writer { kind: WriterKind::Named, id: "w".to_owned(), part: String::new() }
    }

    fn identity(position: Option<i64>, epoch: Option<i64>) -> Identity {
        Identity { writer: writer(), position: position.map(Position::Number), epoch }
    }

    fn row(position: Option<i64>, epoch: Option<i64>) -> WriterRow {
        let position = position.map(Position::Number);
        WriterRow {
            ref_name: "main".to_owned(),
            writer: writer(),
            position,
            snapshot_id: Some(70),
            sequence_number: 7,
            first_snapshot_id: None,
            since_sequence_number: None,
            epoch,
            retired: false,
            at_ms: 0,
        }
    }

    /// The decision on `identity` at a ledger that says `row`, with the rest of the evidence changed by `change`.
    fn decided(identity: &Identity, row: &WriterRow, change: fn(&mut Evidence<'_>)) -> Decision {
        let mut evidence = Evidence {
            identity,
            row: Some(row),
            same: None,
            is_void: false,
            builds_on_row: false,
            stale: Stale::default(),
        };
        change(&mut evidence);
        decide(&evidence)
    }

    #[test]
    fn nothing_to_compare_with_goes_on() {
        assert_eq!(decided(&identity(Some(1), None), &row(Some(7), None), |e| e.row = None), Decision::GoesOn);
        assert_eq!(decided(&identity(None, None), &row(Some(7), None), |_| {}), Decision::GoesOn);
        assert_eq!(decided(&identity(Some(1), None), &row(None, None), |_| {}), Decision::GoesOn);
        assert_eq!(decided(&identity(Some(1), None), &row(None, None), |e| e.same = Some(70)), Decision::GoesOn);
    }

    #[test]
    fn a_lower_epoch_is_refused_whatever_the_position() {
        for position in [6, 7, 8] {
            let late = identity(Some(position), Some(1));
            let refused = Decision::StaleEpoch { highest: 2 };
            assert_eq!(decided(&late, &row(Some(7), Some(2)), |e| e.same = Some(70)), refused);
        }
        assert_eq!(decided(&identity(Some(8), None), &row(Some(7), Some(2)), |_| {}), Decision::GoesOn);
        assert_eq!(decided(&identity(Some(8), Some(3)), &row(Some(7), Some(2)), |_| {}), Decision::GoesOn);
    }

    #[test]
    fn the_same_content_at_the_same_position_is_a_duplicate_however_old() {
        for position in [3, 7] {
            let again = identity(Some(position), None);
            let duplicate = Decision::Duplicate { of: Some(33) };
            assert_eq!(decided(&again, &row(Some(7), None), |e| e.same = Some(33)), duplicate);
        }
    }

    #[test]
    fn after_a_rollback_everything_is_new() {
        for position in [3, 7, 8] {
            let again = identity(Some(position), None);
            assert_eq!(decided(&again, &row(Some(7), None), |e| e.is_void = true), Decision::GoesOn);
        }
    }

    #[test]
    fn other_content_at_the_ledgers_position_clashes_unless_it_builds_on_it() {
        let other = identity(Some(7), None);
        assert_eq!(decided(&other, &row(Some(7), None), |_| {}), Decision::Clash { with: Some(70) });
        assert_eq!(decided(&other, &row(Some(7), None), |e| e.builds_on_row = true), Decision::NewIncarnation);
        let end = (identity(Some(END_OF_INPUT), None), row(Some(END_OF_INPUT), None));
        assert_eq!(decided(&end.0, &end.1, |_| {}), Decision::NewIncarnation);
    }

    #[test]
    fn a_position_behind_goes_on_unless_the_table_says_otherwise() {
        let behind = identity(Some(3), None);
        assert_eq!(decided(&behind, &row(Some(7), None), |_| {}), Decision::NewIncarnation);
        assert_eq!(decided(&behind, &row(Some(7), None), |e| e.stale = Stale::Reject), Decision::StalePosition);
        let acknowledged = Decision::Duplicate { of: Some(70) };
        assert_eq!(decided(&behind, &row(Some(7), None), |e| e.stale = Stale::Acknowledge), acknowledged);
    }

    #[test]
    fn a_position_ahead_goes_on() {
        assert_eq!(decided(&identity(Some(8), None), &row(Some(7), None), |_| {}), Decision::GoesOn);
    }
}
