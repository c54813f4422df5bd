//! What the ledger knows of a request's writer: whether it has committed the same before.

use std::cmp::Reverse;

use metrics::counter;

use crate::commits::ancestry::{Met, Sought};
use crate::commits::identity::WriterKind;
use crate::commits::judge::{Asking, Judge, Verdict};
use crate::commits::ledger::{self, Decision, Evidence};
use crate::commits::lineage::{Landed, Mark, WriterRow};
use crate::commits::settings::Settings;
use crate::error::Result;
use crate::metadata::Snapshot;

/// Writers that began anew under their old name.
pub const INCARNATIONS_TOTAL: &str = "frazil_writer_incarnations_total";

impl Judge<'_> {
    /// The snapshot that has already what the request brings, by the ledger.
    pub(super) async fn duplicate(&mut self, asking: &Asking<'_>, settings: Settings) -> Result<Option<Verdict>> {
        let intent = &asking.change.intent;
        let (Some(mark), Some(ref_name), Some(snapshot)) = (&intent.mark, &intent.ref_name, &intent.snapshot) else {
            return Ok(None);
        };
        let identity = &mark.identity;
        let row = self.row(ref_name, mark).cloned();
        // A row without a position says only that the writer is known, or that it is to begin anew.
        let Some(row) =
            row.as_ref().filter(|row| identity.position.is_some() && (row.position.is_some() || row.epoch.is_some()))
        else {
            return Ok(None);
        };
        let mut evidence = Evidence {
            identity,
            row: Some(row),
            same: self.same(row, (mark, snapshot), asking.ctx.now_ms()).await?,
            is_void: false,
            builds_on_row: false,
            stale: settings.stale,
        };
        if ledger::asks_for_ancestry(&evidence) {
            let (history, head) = (self.history(), self.head(ref_name));
            if let Some(sought) = of_row(row) {
                evidence.is_void = history.meets_one(head, sought).await? == Met::Missing;
                evidence.builds_on_row = history.meets_one(intent.asserted, sought).await? == Met::Ancestor;
            }
        }
        match ledger::decide(&evidence) {
            Decision::GoesOn => Ok(None),
            Decision::NewIncarnation => {
                counter!(INCARNATIONS_TOTAL, "kind" => identity.writer.kind.as_str()).increment(1);
                tracing::warn!(table = %self.part.ident, writer = %identity.writer, position = %identity.told_position(),
                    before = ?row.position, "a writer began anew under its old name");
                Ok(None)
            }
            Decision::Duplicate { of } => {
                if identity.epoch > row.epoch {
                    self.part.put_row(WriterRow { epoch: identity.epoch, ..row.clone() });
                }
                Ok(Some(Verdict::Duplicate { of: of.unwrap_or(snapshot.id()) }))
            }
            Decision::Clash { with: Some(with) } if self.part.has_landed(with) => Ok(Some(Verdict::Waits)),
            refused => Err(ledger::refusal(&refused, identity, snapshot.id(), &self.part.ident)),
        }
    }

    pub(super) fn row(&self, ref_name: &str, mark: &Mark) -> Option<&WriterRow> {
        let is_its = |row: &WriterRow| row.is_of(ref_name, &mark.identity.writer);
        self.part.row(is_its).or_else(|| self.ledger.rows.iter().find(|row| is_its(row)))
    }

    /// A landed snapshot of this writer at this position with the same content.
    async fn same(&self, row: &WriterRow, (mark, snapshot): (&Mark, &Snapshot), at_ms: i64) -> Result<Option<i64>> {
        let ref_name = row.ref_name.as_str();
        let is_its = |name: Option<&str>, landed: &Landed| {
            let other = landed.writer.as_ref().map(|other| &other.identity);
            name == Some(ref_name)
                && other.is_some_and(|other| {
                    other.writer == mark.identity.writer && other.position == mark.identity.position
                })
        };
        let in_chain = self.part.lineage().iter().filter(|landed| is_its(landed.ref_name.as_deref(), landed));
        let before = self.ledger.same.iter().filter(|(name, landed)| is_its(Some(name), landed));
        let mut candidates: Vec<Landed> = in_chain.chain(before.map(|(_, landed)| landed)).cloned().collect();
        candidates.sort_by_key(|landed| Reverse((landed.sequence_number, landed.at_ms)));
        candidates.retain(|candidate| !is_undone(row, mark, candidate) && !self.is_forgotten(mark, candidate, at_ms));
        let sought: Vec<_> = candidates.iter().map(Sought::from).collect();
        let met = self.history().meets(self.head(ref_name), &sought).await?;
        for (candidate, met) in candidates.iter().zip(met) {
            // Behind a gap nobody can tell, and a row that is doubled is worse than one that is asked for again.
            if met != Met::Missing && self.has_same_content(mark, snapshot, candidate).await {
                return Ok(Some(candidate.snapshot_id));
            }
        }
        Ok(None)
    }

    /// A mark that only equals or not is kept for a while, for nothing else ever takes its place.
    fn is_forgotten(&self, mark: &Mark, candidate: &Landed, at_ms: i64) -> bool {
        let kept = self.commits.options.equality_retention.as_millis();
        let age = u128::try_from(at_ms - candidate.at_ms).unwrap_or(0);
        mark.identity.writer.kind == WriterKind::Arroyo && age > kept
    }

    /// Whether two snapshots at one position bring the same. Where files are sent again their paths tell it; the counts
    /// do where a list cannot be read. Spark and Arroyo go by the position alone: they write a batch again.
    async fn has_same_content(&self, mark: &Mark, snapshot: &Snapshot, before: &Landed) -> bool {
        if mark.identity.writer.kind.goes_by_position() {
            return true;
        }
        if let Some(before) = self.part.metadata().snapshot(before.snapshot_id) {
            let (lists, home) = (&self.commits.lists, self.warehouse.as_ref());
            let mine = lists.added_paths(home, snapshot).await;
            let theirs = lists.added_paths(home, before).await;
            if let (Ok(mine), Ok(theirs)) = (mine, theirs) {
                return mine == theirs;
            }
        }
        before.writer.as_ref().is_some_and(|other| other.counts == mark.counts)
    }
}

/// The snapshot that the row was left with.
fn of_row(row: &WriterRow) -> Option<Sought> {
    row.snapshot_id.map(|snapshot_id| Sought { snapshot_id, sequence_number: row.sequence_number })
}

/// Whether a reset says that the snapshot no longer speaks for its writer. At the position that the row has now it
/// does: either it was reset to that, or it got there since.
fn is_undone(row: &WriterRow, mark: &Mark, candidate: &Landed) -> bool {
    row.position != mark.identity.position
        && row.since_sequence_number.is_some_and(|since| candidate.sequence_number <= since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::identity::{Counts, Identity, Position, Writer};

    fn mark(position: i64) -> Mark {
        let writer = Writer { kind: WriterKind::SparkStreaming, id: "q".to_owned(), part: String::new() };
        let identity = Identity { writer, position: Some(Position::Number(position)), epoch: None };
        Mark { identity, counts: Counts::of(&std::collections::BTreeMap::new()) }
    }

    fn landed(sequence_number: i64, position: i64) -> Landed {
        let bare = Landed::bare(sequence_number, None, sequence_number, 0);
        Landed { ref_name: Some("main".to_owned()), writer: Some(mark(position)), ..bare }
    }

    #[test]
    fn what_landed_before_a_reset_is_nobodys_duplicate_beyond_the_position_that_it_names() {
        let writer = mark(5).identity.writer;
        let reset = WriterRow {
            position: Some(Position::Number(5)),
            since_sequence_number: Some(10),
            ..WriterRow::blank("main", writer, 0)
        };
        for (position, sequence_number, undone) in [(6, 10, true), (6, 11, false), (5, 5, false), (4, 4, true)] {
            assert_eq!(is_undone(&reset, &mark(position), &landed(sequence_number, position)), undone, "{position}");
        }
        let never = WriterRow { since_sequence_number: None, ..reset };
        assert!(!is_undone(&never, &mark(6), &landed(10, 6)));
    }
}
