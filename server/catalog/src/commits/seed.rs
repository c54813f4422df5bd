//! Lineage and ledger of a table that comes from elsewhere, told by its own snapshots.

use std::collections::{HashMap, HashSet};

use crate::commits::lineage::{Landed, go_on};
use crate::commits::store::News;
use crate::metadata::{Snapshot, TableMetadata};

/// What is to be remembered of a registered document. `known` are those of its snapshots that landed here before: the
/// ledger tells of them already, and only of the writers that it has no row of do the others tell.
pub fn news(metadata: &TableMetadata, known: &HashSet<i64>, at_ms: i64) -> News {
    let new = metadata.snapshots().filter(|snapshot| !known.contains(&snapshot.id()));
    let lineage: Vec<Landed> = new.map(|snapshot| Landed::of(snapshot, at_ms)).collect();
    let by_id: HashMap<i64, &Landed> = lineage.iter().map(|landed| (landed.snapshot_id, landed)).collect();
    let (mut carried, mut writers) = (Vec::new(), Vec::new());
    for (ref_name, reference) in metadata.refs().iter().filter(|(_, reference)| reference.is_branch()) {
        let mut told: Vec<&Landed> = history(metadata, reference.snapshot_id)
            .filter_map(|snapshot| by_id.get(&snapshot.id()).copied())
            .filter(|landed| landed.writer.is_some())
            .collect();
        told.reverse();
        let mut rows = Vec::new();
        for landed in told {
            carried.push((ref_name.clone(), landed.snapshot_id));
            go_on(&mut rows, ref_name, landed, at_ms);
        }
        writers.extend(rows);
    }
    News { lineage, carried, writers }
}

/// The snapshots of a branch, head first.
fn history(metadata: &TableMetadata, head: i64) -> impl Iterator<Item = &Snapshot> {
    let parent = |snapshot: &&Snapshot| snapshot.parent_id().and_then(|id| metadata.snapshot(id));
    // A document whose history runs in a circle must not be followed for ever.
    std::iter::successors(metadata.snapshot(head), parent).take(metadata.snapshots().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::identity::Position;

    /// Snapshots 1 to 3 of one writer at positions 10, 20 and none, one after another on main.
    fn document() -> TableMetadata {
        let snapshot = |id: i64, position: Option<i64>| {
            let mut summary = serde_json::json!({"operation": "append", "frazil.writer-id": "w"});
            if let Some(position) = position {
                summary["frazil.position"] = position.to_string().into();
            }
            let parent = (id > 1).then_some(id - 1);
            serde_json::json!({"snapshot-id": id, "parent-snapshot-id": parent, "sequence-number": id,
                "timestamp-ms": id, "schema-id": 0, "manifest-list": "s3://b/t/l.avro", "summary": summary})
        };
        let document = serde_json::json!({
            "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b/t",
            "last-sequence-number": 3, "last-updated-ms": 3, "last-column-id": 0, "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": []}], "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}], "current-snapshot-id": 3,
            "snapshots": [snapshot(1, Some(10)), snapshot(2, Some(20)), snapshot(3, None)],
            "refs": {"main": {"snapshot-id": 3, "type": "branch"}}
        });
        TableMetadata::parse(document.to_string().as_bytes()).unwrap()
    }

    fn carried(news: &News) -> Vec<i64> {
        news.carried.iter().map(|(_, snapshot_id)| *snapshot_id).collect()
    }

    #[test]
    fn a_table_that_was_never_here_tells_how_far_its_writers_are() {
        let news = news(&document(), &HashSet::new(), 7);
        assert_eq!((news.lineage.len(), carried(&news)), (3, vec![1, 2, 3]));
        let [row] = news.writers.as_slice() else { panic!("{news:?}") };
        assert_eq!((row.first_snapshot_id, row.snapshot_id), (Some(1), Some(3)));
        assert_eq!(row.position, Some(Position::Number(20)), "what a snapshot does not tell stays as it was");
    }

    #[test]
    fn a_table_that_comes_back_tells_of_what_landed_elsewhere_meanwhile() {
        let news = news(&document(), &HashSet::from([1]), 7);
        assert_eq!((news.lineage.len(), carried(&news)), (2, vec![2, 3]));
        assert_eq!(news.writers.len(), 1);
        let all = HashSet::from([1, 2, 3]);
        assert_eq!(super::news(&document(), &all, 7), News::default());
    }
}
