//! A commit as it arrives: what is wrong with it is noted, and refused only after known snapshots are looked up.

use serde_json::value::RawValue;
use uuid::Uuid;

use crate::commits::requirements::Requirement;
use crate::error::{Error, Result};
use crate::ident::{NamespaceIdent, TableIdent};
use crate::metadata::{Checked, Flaw, Object, TableUpdate};

/// Requirements and updates for one table.
#[derive(Debug, Default)]
pub struct CommitRequest {
    pub requirements: Vec<Requirement>,
    pub updates: Vec<TableUpdate>,
    /// Every snapshot id that an `add-snapshot` names, readable or not.
    snapshot_ids: Vec<i64>,
    fault: Option<Error>,
}

impl CommitRequest {
    /// Fails only where the body is no JSON object.
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(Self::read(&object(body)?))
    }

    /// Adds something else that is wrong with the request; the first one speaks.
    pub fn note(&mut self, fault: Error) {
        self.fault.get_or_insert(fault);
    }

    /// What is wrong with the request, if anything.
    pub fn take_fault(&mut self) -> Option<Error> {
        self.fault.take()
    }

    pub fn snapshot_ids(&self) -> &[i64] {
        &self.snapshot_ids
    }

    /// The UUID of the table that the client believes it commits to.
    pub fn asserted_uuid(&self) -> Option<Uuid> {
        self.requirements.iter().find_map(|requirement| match requirement {
            Requirement::AssertTableUuid { uuid } => Uuid::parse_str(uuid).ok(),
            _ => None,
        })
    }

    /// Whether this is the first commit of a new table.
    pub fn asserts_create(&self) -> bool {
        self.requirements.iter().any(|requirement| matches!(requirement, Requirement::AssertCreate))
    }

    fn read(body: &Object<'_>) -> Self {
        let mut request = Self::default();
        // Clients may leave out the requirements of a first commit.
        for (index, raw) in request.list(body, "requirements").unwrap_or_default().iter().enumerate() {
            match Requirement::parse(raw) {
                Ok(requirement) => request.requirements.push(requirement),
                Err(error) => request.note(wrong(&format!("requirements[{index}]"), &error)),
            }
        }
        let updates = request.list(body, "updates");
        if updates.is_none() {
            request.note(Error::invalid("updates: the commit must have this list, which may be empty"));
        }
        for (index, raw) in updates.unwrap_or_default().iter().enumerate() {
            request.snapshot_ids.extend(added_snapshot(raw));
            match TableUpdate::parse(raw) {
                Ok(update) => request.updates.push(update),
                Err(error) => request.note(wrong(&format!("updates[{index}]"), &error)),
            }
        }
        request
    }

    fn list<'a>(&mut self, body: &Object<'a>, key: &str) -> Option<Vec<&'a RawValue>> {
        body.optional(key).unwrap_or_else(|flaw| {
            self.note(flaw.into());
            Some(Vec::new())
        })
    }
}

/// How many tables a transaction may change.
const TABLES_MAX: usize = 1_000;

/// Commits for several tables, to be applied together.
#[derive(Debug, Default)]
pub struct TransactionRequest {
    pub changes: Vec<(TableIdent, CommitRequest)>,
    /// What is wrong with the transaction as a whole; noted like the faults of its commits.
    pub fault: Option<Error>,
}

impl TransactionRequest {
    /// Fails only where the body is no JSON object with a list of changes that may be looked at.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let changes: Vec<&RawValue> = object(body)?.required("table-changes")?;
        let mut request = Self::default();
        if changes.is_empty() || changes.len() > TABLES_MAX {
            let message = format!("table-changes must name from 1 to {TABLES_MAX} tables, and names {}", changes.len());
            return Err(Error::invalid(message));
        }
        for (index, raw) in changes.into_iter().enumerate() {
            match change(raw) {
                Err(flaw) => request.note(flaw.under(format!("[{index}]")).under("table-changes").into()),
                Ok((ident, _)) if request.names(&ident) => {
                    request
                        .note(Error::invalid(format!("table-changes[{index}]: {ident} is in the transaction already")));
                }
                Ok(change) => request.changes.push(change),
            }
        }
        Ok(request)
    }

    /// Adds something else that is wrong with the request; the first one speaks.
    pub fn note(&mut self, fault: Error) {
        self.fault.get_or_insert(fault);
    }

    fn names(&self, ident: &TableIdent) -> bool {
        self.changes.iter().any(|(earlier, _)| earlier == ident)
    }
}

fn change(raw: &RawValue) -> Checked<(TableIdent, CommitRequest)> {
    let change = Object::parse(raw)?;
    let identifier = Object::parse(change.required_raw("identifier")?).map_err(|flaw| flaw.under("identifier"))?;
    let levels = identifier.required("namespace").map_err(|flaw| flaw.under("identifier"))?;
    let name: String = identifier.required("name").map_err(|flaw| flaw.under("identifier"))?;
    let namespace = NamespaceIdent::new(levels).map_err(|error| Flaw::new(error.message()).under("identifier"))?;
    Ok((TableIdent::new(namespace, name), CommitRequest::read(&change)))
}

fn object(body: &[u8]) -> Result<Object<'_>> {
    let raw: &RawValue = serde_json::from_slice(body)
        .map_err(|error| Error::invalid(format!("the body is not JSON: {error}")).with_source(error))?;
    Ok(Object::parse(raw)?)
}

/// The id of the snapshot that an update adds, even where the update cannot be read as a whole.
fn added_snapshot(raw: &RawValue) -> Option<i64> {
    let update = Object::parse(raw).ok()?;
    let action: String = update.optional("action").ok()??;
    let snapshot = Object::parse(update.get("snapshot")?).ok()?;
    snapshot.optional("snapshot-id").ok()?.filter(|_| action.eq_ignore_ascii_case("add-snapshot"))
}

fn wrong(field: &str, error: &Error) -> Error {
    Error::invalid(format!("{field}: {}", error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn a_snapshot_id_is_known_even_where_its_update_is_not_readable() {
        let body = br#"{"requirements":[],"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":7}}]}"#;
        let mut request = CommitRequest::parse(body).unwrap();
        assert_eq!(request.snapshot_ids(), [7]);
        assert_eq!(request.take_fault().unwrap().kind(), Kind::Invalid);
    }

    #[test]
    fn a_snapshot_id_is_known_however_the_update_is_spelled() {
        for update in [
            r#"{"action":"Add-Snapshot","snapshot":{"snapshot-id":7}}"#,
            r#"{"action":"add-snapshot","action":"add-snapshot","snapshot":{"snapshot-id":1,"snapshot-id":7}}"#,
        ] {
            let request = CommitRequest::parse(format!(r#"{{"updates":[],"updates":[{update}]}}"#).as_bytes()).unwrap();
            assert_eq!(request.snapshot_ids(), [7], "{update}");
        }
    }

    #[test]
    fn an_unknown_update_is_noted_with_its_place() {
        let body = br#"{"updates":[{"action":"set-properties","updates":{}},{"action":"fly"}]}"#;
        let error = CommitRequest::parse(body).unwrap().take_fault().unwrap();
        assert!(error.message().starts_with("updates[1]: "), "{error}");
        assert!(error.message().contains("fly"), "{error}");
    }

    #[test]
    fn a_commit_without_requirements_is_read() {
        let mut request = CommitRequest::parse(br#"{"updates":[]}"#).unwrap();
        assert!(request.requirements.is_empty());
        assert!(request.take_fault().is_none());
    }

    #[test]
    fn a_commit_without_updates_says_which_list_is_missing() {
        let error = CommitRequest::parse(br#"{"requirements":[]}"#).unwrap().take_fault().unwrap();
        assert!(error.message().starts_with("updates"), "{error}");
    }

    #[test]
    fn a_table_named_twice_in_a_transaction_is_refused() {
        let change = r#"{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[]}"#;
        let body = format!(r#"{{"table-changes":[{change},{change}]}}"#);
        let request = TransactionRequest::parse(body.as_bytes()).unwrap();
        assert!(request.fault.unwrap().message().contains("a.t"));
    }

    #[test]
    fn a_change_without_a_name_leaves_the_others_readable() {
        let good = r#"{"identifier":{"namespace":["a"],"name":"t"},"updates":[]}"#;
        let bad = r#"{"identifier":{"namespace":[],"name":"t"},"updates":[]}"#;
        let request = TransactionRequest::parse(format!(r#"{{"table-changes":[{bad},{good}]}}"#).as_bytes()).unwrap();
        assert_eq!(request.changes.len(), 1);
        assert!(request.fault.unwrap().message().starts_with("table-changes[0].identifier"));
    }
}
