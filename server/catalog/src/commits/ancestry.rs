//! Walks back over a branch: through the document as far as it goes, then through the lineage.

use std::sync::Arc;

use crate::commits::judge::Judge;
use crate::commits::lineage::{Landed, LineageStore, Walk};
use crate::commits::rebase::Candidate;
use crate::error::Result;
use crate::ident::WarehouseId;
use crate::metadata::{Snapshot, TableMetadata};

/// How far back the lineage is walked, in snapshots. There is one walk to a question, for a commit must end.
const WALK_MAX: u32 = 10_000;

/// The snapshots of a table behind any head: those of the document, then those of the lineage.
pub struct History<'a> {
    pub lineage: &'a dyn LineageStore,
    pub warehouse: WarehouseId,
    /// The table as it is now.
    pub metadata: &'a TableMetadata,
}

/// A snapshot that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sought {
    pub snapshot_id: i64,
    pub sequence_number: i64,
}

/// What a walk back from a head says of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It is the head, or an ancestor of it.
    Ancestor,
    /// The root, or a snapshot with a lower sequence number, came first.
    Missing,
    /// A snapshot that is neither in the metadata nor remembered came first: what lies behind it cannot be known.
    Gap,
}

impl From<&Landed> for Sought {
    fn from(landed: &Landed) -> Self {
        Self { snapshot_id: landed.snapshot_id, sequence_number: landed.sequence_number }
    }
}

impl History<'_> {
    /// What is met of the wanted snapshots on the way back from the head, in their order. `None` is a head of nothing.
    pub async fn meets(&self, head: Option<i64>, wanted: &[Sought]) -> Result<Vec<Met>> {
        let mut search = Search::new(wanted);
        if let Some(expired) = search.through_document(self.metadata, head) {
            let (until, sequence_number_min) = (search.only_open(), search.lowest_open());
            let walk = Walk { from: expired, until, sequence_number_min, limit: WALK_MAX };
            let steps = self.lineage.walk(self.warehouse, self.metadata.uuid(), walk).await?;
            search.through_lineage(&steps);
        }
        Ok(search.met())
    }

    /// The same, of one snapshot.
    pub async fn meets_one(&self, head: Option<i64>, wanted: Sought) -> Result<Met> {
        Ok(self.meets(head, &[wanted]).await?.pop().unwrap_or(Met::Gap))
    }
}

/// A walk in progress: what was found out so far of each snapshot that is looked for.
struct Search {
    found: Vec<(Sought, Option<Met>)>,
}

impl Search {
    fn new(wanted: &[Sought]) -> Self {
        Self { found: wanted.iter().map(|sought| (*sought, None)).collect() }
    }

    /// The first ancestor that the document does not have any more, should there still be anything to find.
    fn through_document(&mut self, metadata: &TableMetadata, head: Option<i64>) -> Option<i64> {
        let mut next = head;
        // No history is longer than the list of snapshots.
        for _ in 0..=metadata.snapshots().len() {
            let Some(id) = next else {
                self.reaches_root();
                return None;
            };
            let Some(snapshot) = metadata.snapshot(id) else {
                // One that is looked for was met, even if it has expired.
                self.settle(|sought| (sought.snapshot_id == id).then_some(Met::Ancestor));
                return (!self.is_settled()).then_some(id);
            };
            self.steps_on(id, snapshot.sequence_number());
            if self.is_settled() {
                return None;
            }
            next = snapshot.parent_id();
        }
        None
    }

    fn through_lineage(&mut self, steps: &[Landed]) {
        for step in steps {
            self.steps_on(step.snapshot_id, step.sequence_number);
        }
        if steps.last().is_some_and(|last| last.parent_id.is_none()) {
            self.reaches_root();
        }
    }

    fn steps_on(&mut self, snapshot_id: i64, sequence_number: i64) {
        self.settle(|sought| match sought.snapshot_id == snapshot_id {
            true => Some(Met::Ancestor),
            false => (sequence_number < sought.sequence_number).then_some(Met::Missing),
        });
    }

    fn reaches_root(&mut self) {
        self.settle(|_| Some(Met::Missing));
    }

    fn settle(&mut self, judge: impl Fn(&Sought) -> Option<Met>) {
        for (sought, met) in self.found.iter_mut().filter(|(_, met)| met.is_none()) {
            *met = judge(sought);
        }
    }

    fn open(&self) -> impl Iterator<Item = &Sought> {
        self.found.iter().filter(|(_, met)| met.is_none()).map(|(sought, _)| sought)
    }

    fn is_settled(&self) -> bool {
        self.open().next().is_none()
    }

    /// Where the walk may end at once.
    fn only_open(&self) -> Option<i64> {
        let mut open = self.open();
        open.next().filter(|_| open.next().is_none()).map(|sought| sought.snapshot_id)
    }

    fn lowest_open(&self) -> i64 {
        self.open().map(|sought| sought.sequence_number).min().unwrap_or(i64::MIN)
    }

    fn met(self) -> Vec<Met> {
        self.found.into_iter().map(|(_, met)| met.unwrap_or(Met::Gap)).collect()
    }
}

impl Judge<'_> {
    /// The history of the table with the chain so far.
    pub(super) fn history(&self) -> History<'_> {
        let (lineage, warehouse) = (&*self.commits.lineage, self.warehouse.id);
        History { lineage, warehouse, metadata: self.part.metadata() }
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

    /// The lineage from one snapshot back to another, or to the root; read once for a group.
    pub(super) async fn walk(&mut self, from: i64, until: Option<i64>) -> Result<Arc<Vec<Landed>>> {
        if let Some(rows) = self.walks.get(&(from, until)) {
            return Ok(rows.clone());
        }
        let metadata = self.part.metadata();
        let end = until.and_then(|id| metadata.snapshot(id));
        let sequence_number_min = end.map_or(i64::MIN, Snapshot::sequence_number);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn landed(snapshot_id: i64, parent_id: Option<i64>) -> Landed {
        Landed::bare(snapshot_id, parent_id, snapshot_id, 0)
    }

    fn sought(snapshot_id: i64, sequence_number: i64) -> Sought {
        Sought { snapshot_id, sequence_number }
    }

    fn met(wanted: &[Sought], steps: &[Landed]) -> Vec<Met> {
        let mut search = Search::new(wanted);
        search.through_lineage(steps);
        search.met()
    }

    #[test]
    fn each_snapshot_is_judged_by_what_the_walk_met_before_its_end() {
        let to_root = [landed(3, Some(2)), landed(2, Some(1)), landed(1, None)];
        let wanted = [sought(1, 1), sought(7, 0), sought(3, 3)];
        assert_eq!(met(&wanted, &to_root), [Met::Ancestor, Met::Missing, Met::Ancestor]);
        // What comes before a lower number is older still; behind a gap nobody can tell.
        assert_eq!(met(&[sought(7, 3), sought(7, 2)], &to_root[..2]), [Met::Missing, Met::Gap]);
        assert_eq!(met(&[sought(7, 0)], &[]), [Met::Gap]);
    }

    #[test]
    fn a_walk_goes_as_far_as_anything_is_still_looked_for() {
        let mut search = Search::new(&[sought(5, 5), sought(4, 4), sought(2, 2)]);
        assert_eq!((search.only_open(), search.lowest_open()), (None, 2));
        search.steps_on(5, 5);
        search.steps_on(3, 3);
        assert_eq!((search.only_open(), search.lowest_open()), (Some(2), 2));
        search.steps_on(2, 2);
        assert!(search.is_settled());
        assert_eq!(search.met(), [Met::Ancestor, Met::Missing, Met::Ancestor]);
    }

    /// Snapshots 1 to 5 one after another, of which 1 and 2 have expired.
    fn table() -> TableMetadata {
        let snapshot = |id: i64| {
            serde_json::json!({"snapshot-id": id, "parent-snapshot-id": id - 1, "sequence-number": id,
                "timestamp-ms": id, "schema-id": 0, "manifest-list": "s3://b/t/l.avro", "summary": {"operation": "append"}})
        };
        let document = serde_json::json!({
            "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b/t",
            "last-sequence-number": 5, "last-updated-ms": 5, "last-column-id": 0, "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": []}], "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}], "current-snapshot-id": 5,
            "snapshots": [snapshot(3), snapshot(4), snapshot(5)]
        });
        TableMetadata::parse(document.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_document_is_asked_first_and_names_where_the_lineage_is_to_go_on() {
        for (head, wanted, from, expected) in [
            (Some(5), sought(3, 3), None, Met::Ancestor),
            (Some(5), sought(9, 4), None, Met::Missing),
            (Some(5), sought(2, 2), None, Met::Ancestor),
            (Some(5), sought(1, 1), Some(2), Met::Gap),
            (Some(9), sought(1, 1), Some(9), Met::Gap),
            (None, sought(1, 1), None, Met::Missing),
        ] {
            let mut search = Search::new(&[wanted]);
            assert_eq!(search.through_document(&table(), head), from, "{wanted:?}");
            assert_eq!(search.met(), [expected], "{wanted:?}");
        }
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
