//! What a commit must fit besides its own requirements, so that no history is cut or grown sideways.

use std::collections::HashMap;

use crate::commits::requirements::Requirement;
use crate::error::{Error, Result};
use crate::metadata::{Snapshot, TableMetadata, TableUpdate};

/// Refuses (409) a snapshot that does not continue the branch it is put on.
///
/// Not asked of a first write to a branch, of staged snapshots, of create-or-replace (which removes the branch
/// first) and of format version 1.
pub fn check(base: &TableMetadata, requirements: &[Requirement], updates: &[TableUpdate]) -> Result<()> {
    if base.format_version() < 2 {
        return Ok(());
    }
    let mut added: HashMap<i64, &Snapshot> = HashMap::new();
    let mut heads: HashMap<&str, Option<i64>> =
        base.refs().iter().map(|(name, reference)| (name.as_str(), Some(reference.snapshot_id))).collect();
    for update in updates {
        match update {
            TableUpdate::AddSnapshot { snapshot } => {
                added.insert(snapshot.id(), snapshot);
            }
            TableUpdate::RemoveSnapshotRef { ref_name } => {
                heads.insert(ref_name, None);
            }
            TableUpdate::RemoveSnapshots { snapshot_ids } => {
                heads
                    .values_mut()
                    .filter(|head| head.is_some_and(|head| snapshot_ids.contains(&head)))
                    .for_each(|head| *head = None);
            }
            TableUpdate::SetSnapshotRef { ref_name, target } if target.is_branch() => {
                let head = heads.insert(ref_name, Some(target.snapshot_id)).flatten();
                if let (Some(snapshot), Some(head)) = (added.get(&target.snapshot_id), head) {
                    let first = first_of_chain(snapshot, head, &added);
                    continues(first, head, ref_name, asserts(requirements, ref_name))?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A request may put several snapshots on a branch with one move (DuckDB does): the first of them continues the head.
fn first_of_chain<'a>(last: &'a Snapshot, head: i64, added: &HashMap<i64, &'a Snapshot>) -> &'a Snapshot {
    let parent = |snapshot: &&'a Snapshot| {
        let parent = snapshot.parent_id().filter(|parent| *parent != head)?;
        added.get(&parent).copied()
    };
    // No parent names what was added after it, so a chain has at most as many links as snapshots were added.
    std::iter::successors(Some(last), parent).take(added.len()).last().unwrap_or(last)
}

/// With an assertion the parent must be the head. Without one, only an append that forgets its parent is refused.
fn continues(snapshot: &Snapshot, head: i64, ref_name: &str, asserted: bool) -> Result<()> {
    let fits = match snapshot.parent_id() {
        Some(parent) => !asserted || parent == head,
        None => !asserted && snapshot.operation().as_deref() != Some("append"),
    };
    match fits {
        true => Ok(()),
        false => Err(Error::conflict(format!(
            "snapshot {} does not continue branch {ref_name}: its parent is {}, the head is {head}; reload and build on the head",
            snapshot.id(),
            snapshot.parent_id().map_or("none".to_owned(), |parent| parent.to_string()),
        ))),
    }
}

fn asserts(requirements: &[Requirement], name: &str) -> bool {
    requirements.iter().any(|requirement| {
        matches!(requirement, Requirement::AssertRefSnapshotId { ref_name, snapshot_id: Some(_) } if ref_name == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::request::CommitRequest;

    /// A table whose branch `main` is at snapshot 2, a child of 1.
    fn table(format_version: u8) -> TableMetadata {
        let snapshot = |id: i64, parent: &str| {
            format!(
                r#"{{"snapshot-id":{id},{parent}"sequence-number":{id},"timestamp-ms":{id},"manifest-list":"s3://b/t/{id}.avro",
                    "schema-id":0,"summary":{{"operation":"append"}}}}"#
            )
        };
        let text = format!(
            r#"{{"format-version":{format_version},"table-uuid":"6f0d5d5c-0000-7000-8000-000000000001","location":"s3://b/t",
                "last-sequence-number":2,"last-updated-ms":2,"last-column-id":1,"current-schema-id":0,
                "schemas":[{{"type":"struct","schema-id":0,"fields":[{{"id":1,"name":"a","required":false,"type":"long"}}]}}],
                "schema":{{"type":"struct","schema-id":0,"fields":[{{"id":1,"name":"a","required":false,"type":"long"}}]}},
                "partition-spec":[],"default-spec-id":0,"partition-specs":[{{"spec-id":0,"fields":[]}}],"last-partition-id":999,
                "default-sort-order-id":0,"sort-orders":[{{"order-id":0,"fields":[]}}],
                "current-snapshot-id":2,"snapshots":[{},{}],"refs":{{"main":{{"snapshot-id":2,"type":"branch"}}}}}}"#,
            snapshot(1, ""),
            snapshot(2, r#""parent-snapshot-id":1,"#),
        );
        TableMetadata::parse(text.as_bytes()).unwrap()
    }

    fn add(id: i64, parent: Option<i64>, operation: &str) -> String {
        let parent = parent.map_or(String::new(), |parent| format!(r#""parent-snapshot-id":{parent},"#));
        format!(
            r#"{{"action":"add-snapshot","snapshot":{{"snapshot-id":{id},{parent}"sequence-number":9,"timestamp-ms":9,
                "manifest-list":"s3://b/t/{id}.avro","schema-id":0,"summary":{{"operation":"{operation}"}}}}}}"#
        )
    }

    fn put(id: i64, name: &str) -> String {
        format!(r#"{{"action":"set-snapshot-ref","ref-name":"{name}","type":"branch","snapshot-id":{id}}}"#)
    }

    fn remove(name: &str) -> String {
        format!(r#"{{"action":"remove-snapshot-ref","ref-name":"{name}"}}"#)
    }

    fn accepts(format_version: u8, asserted: bool, updates: &[String]) -> bool {
        let requirement = r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":2}"#;
        let body = format!(
            r#"{{"requirements":[{}],"updates":[{}]}}"#,
            if asserted { requirement } else { "" },
            updates.join(",")
        );
        let request = CommitRequest::parse(body.as_bytes()).unwrap();
        check(&table(format_version), &request.requirements, &request.updates).is_ok()
    }

    #[test]
    fn a_snapshot_put_on_an_asserted_branch_continues_its_head() {
        assert!(accepts(2, true, &[add(3, Some(2), "append"), put(3, "main")]));
        assert!(!accepts(2, true, &[add(3, Some(1), "append"), put(3, "main")]));
        assert!(!accepts(2, true, &[add(3, None, "overwrite"), put(3, "main")]));
    }

    #[test]
    fn several_snapshots_chain_on_each_other() {
        let (third, fourth) = (add(3, Some(2), "delete"), add(4, Some(3), "append"));
        assert!(accepts(2, true, &[third.clone(), put(3, "main"), fourth, put(4, "main")]));
        assert!(!accepts(2, true, &[third, put(3, "main"), add(4, Some(2), "append"), put(4, "main")]));
    }

    #[test]
    fn several_snapshots_may_come_with_one_move_of_the_branch() {
        let (third, fourth) = (add(3, Some(2), "delete"), add(4, Some(3), "append"));
        assert!(accepts(2, true, &[third, fourth.clone(), put(4, "main")]));
        assert!(!accepts(2, true, &[add(3, Some(1), "delete"), fourth.clone(), put(4, "main")]));
        assert!(!accepts(2, true, &[add(3, None, "overwrite"), fourth.clone(), put(4, "main")]));
        assert!(!accepts(2, true, &[add(3, Some(4), "append"), fourth, put(4, "main")]), "a circle");
    }

    #[test]
    fn an_append_without_parent_hides_no_history() {
        assert!(!accepts(2, false, &[add(3, None, "append"), put(3, "main")]));
        assert!(accepts(2, false, &[remove("main"), add(3, None, "append"), put(3, "main")]));
    }

    #[test]
    fn a_new_branch_a_staged_snapshot_and_format_version_1_are_not_asked() {
        assert!(accepts(2, true, &[add(3, Some(1), "append"), put(3, "audit")]));
        assert!(accepts(2, true, &[add(3, Some(1), "append")]));
        assert!(accepts(1, true, &[add(3, None, "append"), put(3, "main")]));
    }

    #[test]
    fn a_branch_may_go_back_to_a_snapshot_that_is_there() {
        assert!(accepts(2, true, &[put(1, "main")]));
    }
}
