//! What a request wants with its table: the branch that it moves, the snapshot that it puts there, and who wrote that.

use std::sync::Arc;

use crate::commits::identity::{Counts, Identity};
use crate::commits::lineage::Mark;
use crate::commits::request::CommitRequest;
use crate::commits::requirements::Requirement;
use crate::metadata::{Snapshot, TableUpdate};

/// Of several snapshots in one request, the last one that is put on a branch speaks for all.
#[derive(Debug, Clone, Default)]
pub struct Intent {
    /// The branch that the request moves last, be it to a new snapshot or to one that is there.
    pub ref_name: Option<String>,
    /// The snapshot that it moves that branch to; clients keep it through their retries.
    pub moved_to: Option<i64>,
    /// The same, where it is a new one.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Who wrote that snapshot; `None` for the anonymous.
    pub mark: Option<Mark>,
    /// The snapshot that it requires to be there before.
    pub asserted: Option<i64>,
    /// It gives the table another location, which no other request may depend on before it is settled.
    pub moves_table: bool,
}

impl Intent {
    pub fn of(request: &CommitRequest) -> Self {
        let moves_table = request.updates.iter().any(|update| matches!(update, TableUpdate::SetLocation { .. }));
        let Some((ref_name, moved_to, snapshot)) = last_move(&request.updates) else {
            return Self { moves_table, ..Self::default() };
        };
        let asserted = request.requirements.iter().find_map(|requirement| match requirement {
            Requirement::AssertRefSnapshotId { ref_name: name, snapshot_id } if name == ref_name => *snapshot_id,
            _ => None,
        });
        Self {
            ref_name: Some(ref_name.to_owned()),
            moved_to: Some(moved_to),
            mark: snapshot.and_then(|snapshot| Mark::of(snapshot)),
            snapshot: snapshot.cloned(),
            asserted,
            moves_table,
        }
    }

    pub fn identity(&self) -> Option<&Identity> {
        self.mark.as_ref().map(|mark| &mark.identity)
    }

    /// What the new snapshot calls itself.
    pub fn operation(&self) -> Option<String> {
        self.snapshot.as_ref()?.operation()
    }
}

impl Mark {
    /// What the summary of a snapshot tells of its writer, if anything.
    pub fn of(snapshot: &Snapshot) -> Option<Self> {
        let summary = snapshot.summary();
        Identity::of(&summary).map(|identity| Self { identity, counts: Counts::of(&summary) })
    }
}

/// The snapshots that updates add.
pub fn added(updates: &[TableUpdate]) -> impl Iterator<Item = &Arc<Snapshot>> {
    updates.iter().filter_map(|update| match update {
        TableUpdate::AddSnapshot { snapshot } => Some(snapshot),
        _ => None,
    })
}

/// The last branch that is moved to a new snapshot; else the last one that is moved at all.
fn last_move(updates: &[TableUpdate]) -> Option<(&str, i64, Option<&Arc<Snapshot>>)> {
    let moves = updates.iter().rev().filter_map(|update| match update {
        TableUpdate::SetSnapshotRef { ref_name, target } if target.is_branch() => {
            let id = target.snapshot_id;
            Some((ref_name.as_str(), id, added(updates).find(|snapshot| snapshot.id() == id)))
        }
        _ => None,
    });
    let moves: Vec<_> = moves.collect();
    moves.iter().find(|(_, _, snapshot)| snapshot.is_some()).or(moves.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(updates: &str) -> Intent {
        let body = format!(
            r#"{{"requirements":[{{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":1}}],"updates":[{updates}]}}"#
        );
        let mut request = CommitRequest::parse(body.as_bytes()).unwrap();
        assert!(request.take_fault().is_none(), "{updates}");
        Intent::of(&request)
    }

    fn add(id: i64, writer: &str) -> String {
        format!(
            r#"{{"action":"add-snapshot","snapshot":{{"snapshot-id":{id},"sequence-number":9,"timestamp-ms":9,
                "manifest-list":"s3://b/t/{id}.avro","summary":{{"operation":"append","frazil.writer-id":"{writer}"}}}}}}"#
        )
    }

    fn put(id: i64, name: &str) -> String {
        format!(r#"{{"action":"set-snapshot-ref","ref-name":"{name}","type":"branch","snapshot-id":{id}}}"#)
    }

    #[test]
    fn the_last_snapshot_put_on_a_branch_speaks_for_the_request() {
        let said = intent(&[add(2, "a"), add(3, "b"), put(3, "main")].join(","));
        assert_eq!(said.ref_name.as_deref(), Some("main"));
        assert_eq!(said.snapshot.as_ref().map(|snapshot| snapshot.id()), Some(3));
        assert_eq!(said.identity().map(|identity| identity.writer.id.as_str()), Some("b"));
        assert_eq!(said.asserted, Some(1));
    }

    #[test]
    fn a_staged_snapshot_is_put_nowhere() {
        let said = intent(&add(2, "a"));
        assert!(said.ref_name.is_none() && said.mark.is_none());
    }

    #[test]
    fn a_branch_moved_to_what_is_there_brings_no_writer() {
        let said = intent(&put(7, "audit"));
        assert_eq!((said.ref_name.as_deref(), said.moved_to), (Some("audit"), Some(7)));
        assert!(said.snapshot.is_none() && said.mark.is_none() && said.asserted.is_none());
    }

    #[test]
    fn a_new_location_is_noticed() {
        assert!(intent(r#"{"action":"set-location","location":"s3://b/elsewhere"}"#).moves_table);
        assert!(!intent(&put(7, "main")).moves_table);
    }
}
