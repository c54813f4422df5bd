//! Walks back over a branch: through the document as far as it goes, then through the lineage.

use std::sync::Arc;

use crate::commits::judge::Judge;
use crate::commits::lineage::{Landed, Walk};
use crate::commits::rebase::Candidate;
use crate::error::Result;
use crate::metadata::{Snapshot, TableMetadata};

/// How far back the lineage is walked, in snapshots.
pub const WALK_MAX: u32 = 10_000;

impl Judge<'_> {
    pub(super) async fn is_ancestor(
        &self,
        from: Option<i64>,
        wanted: Option<i64>,
        sequence_number: i64,
    ) -> Result<bool> {
        Ok(self.ancestry(from, wanted, sequence_number).await? == Ancestry::Found)
    }

    /// Whether the history of `from` is known to be without the snapshot. A gap does not tell.
    pub(super) async fn is_gone(&self, from: Option<i64>, wanted: Option<i64>, sequence_number: i64) -> Result<bool> {
        Ok(self.ancestry(from, wanted, sequence_number).await? == Ancestry::Missing)
    }

    async fn ancestry(&self, from: Option<i64>, wanted: Option<i64>, sequence_number: i64) -> Result<Ancestry> {
        let Some(wanted) = wanted else { return Ok(Ancestry::Gap) };
        let next = match walk_document(self.part.metadata(), from, wanted, sequence_number) {
            Walked::Ended(ancestry) => return Ok(ancestry),
            Walked::Expired(next) => next,
        };
        let walk = Walk { from: next, until: Some(wanted), sequence_number_min: sequence_number, limit: WALK_MAX };
        let uuid = self.part.metadata().uuid();
        let rows = self.commits.lineage.walk(self.warehouse.id, uuid, walk).await?;
        Ok(ancestry_of(&rows, wanted, sequence_number))
    }

    /// What lies between the head that the request was built on and the present one, head first; `None` at a gap.
    pub(super) async fn between(&mut self, candidate: &Candidate) -> Result<Option<Vec<Landed>>> {
        let mut between = Vec::new();
        let mut next = self.head(&candidate.ref_name);
        while let Some(id) = next.filter(|id| Some(*id) != candidate.asserted) {
            let Some(landed) = self.part.lineage().iter().find(|landed| landed.snapshot_id == id) else { break };
            between.push(landed.clone());
            next = landed.parent_id;
        }
        if next == candidate.asserted {
            return Ok(Some(between));
        }
        let Some(from) = next else { return Ok(None) };
        let rows = self.walk(from, candidate.asserted).await?;
        Ok(rows_after(&rows, candidate.asserted).map(|rows| {
            between.extend(rows.iter().cloned());
            between
        }))
    }

    async fn walk(&mut self, from: i64, until: Option<i64>) -> Result<Arc<Vec<Landed>>> {
        if let Some(rows) = self.walks.get(&(from, until)) {
            return Ok(rows.clone());
        }
        let metadata = self.part.metadata();
        let asserted = until.and_then(|id| metadata.snapshot(id));
        let sequence_number_min = asserted.map_or(i64::MIN, Snapshot::sequence_number);
        let walk = Walk { from, until, sequence_number_min, limit: WALK_MAX };
        let rows = Arc::new(self.commits.lineage.walk(self.warehouse.id, metadata.uuid(), walk).await?);
        self.walks.insert((from, until), rows.clone());
        Ok(rows)
    }
}

/// The rows of a walk before its end; `None` where it did not get there.
pub(super) fn rows_after(rows: &[Landed], until: Option<i64>) -> Option<&[Landed]> {
    match (rows.split_last(), until) {
        (Some((last, rest)), Some(until)) if last.snapshot_id == until => Some(rest),
        (Some((last, _)), None) if last.parent_id.is_none() => Some(rows),
        _ => None,
    }
}

/// What a walk back over a history found out about a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ancestry {
    Found,
    /// The walk met the root, or a lower sequence number, first.
    Missing,
    /// The history has a gap, so that nobody can tell.
    Gap,
}

enum Walked {
    Ended(Ancestry),
    /// The document does not have this ancestor any more.
    Expired(i64),
}

fn walk_document(metadata: &TableMetadata, from: Option<i64>, wanted: i64, sequence_number: i64) -> Walked {
    let mut next = from;
    // No history is longer than the list of snapshots.
    for _ in 0..=metadata.snapshots().len() {
        let Some(id) = next else { return Walked::Ended(Ancestry::Missing) };
        if id == wanted {
            return Walked::Ended(Ancestry::Found);
        }
        let Some(snapshot) = metadata.snapshot(id) else { return Walked::Expired(id) };
        if snapshot.sequence_number() < sequence_number {
            return Walked::Ended(Ancestry::Missing);
        }
        next = snapshot.parent_id();
    }
    Walked::Ended(Ancestry::Gap)
}

/// What a walk with these bounds says.
fn ancestry_of(rows: &[Landed], wanted: i64, sequence_number: i64) -> Ancestry {
    match rows.last() {
        Some(last) if last.snapshot_id == wanted => Ancestry::Found,
        Some(last) if last.parent_id.is_none() || last.sequence_number < sequence_number => Ancestry::Missing,
        _ => Ancestry::Gap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn landed(snapshot_id: i64, parent_id: Option<i64>) -> Landed {
        Landed {
            snapshot_id,
            parent_id,
            sequence_number: snapshot_id,
            ref_name: None,
            class: None,
            writer: None,
            is_first: false,
            rebased: false,
            at_ms: 0,
        }
    }

    #[test]
    fn a_walk_says_what_its_last_row_says() {
        let to_root = [landed(3, Some(2)), landed(2, Some(1)), landed(1, None)];
        assert_eq!(ancestry_of(&to_root, 1, 1), Ancestry::Found);
        assert_eq!(ancestry_of(&to_root, 7, 0), Ancestry::Missing);
        assert_eq!(ancestry_of(&to_root[..2], 7, 3), Ancestry::Missing, "what comes before is older still");
        assert_eq!(ancestry_of(&to_root[..2], 7, 2), Ancestry::Gap);
        assert_eq!(ancestry_of(&[], 7, 0), Ancestry::Gap);
    }

    #[test]
    fn the_rows_in_between_end_where_they_should_or_are_none() {
        let rows = [landed(3, Some(2)), landed(2, Some(1)), landed(1, None)];
        assert_eq!(rows_after(&rows, Some(1)).map(<[Landed]>::len), Some(2));
        assert_eq!(rows_after(&rows, None).map(<[Landed]>::len), Some(3));
        assert_eq!(rows_after(&rows[..2], None), None);
        assert_eq!(rows_after(&rows, Some(2)), None);
        assert_eq!(rows_after(&[], Some(2)), None);
    }
}
