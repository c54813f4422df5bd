//! A commit as it arrives: what is wrong with it is noted, and refused only after known snapshots are looked up.

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::commits::requirements::Requirement;
use crate::error::{Error, Result};
use crate::ident::{NamespaceIdent, TableIdent};
use crate::metadata::TableUpdate;

/// Requirements and updates for one table.
#[derive(Debug, Default)]
pub struct CommitRequest {
    pub requirements: Vec<Requirement>,
    pub updates: Vec<TableUpdate>,
    /// Every snapshot id that an `add-snapshot` names, readable or not.
    snapshot_ids: Vec<i64>,
    fault: Option<Error>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    identifier: Option<&'a RawValue>,
    #[serde(borrow, default)]
    requirements: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    updates: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TransactionBody<'a> {
    #[serde(borrow, default)]
    table_changes: Vec<Body<'a>>,
}

#[derive(Deserialize)]
struct Identifier {
    namespace: Vec<String>,
    name: String,
}

/// What can be told of an update that cannot be read as a whole.
#[derive(Deserialize)]
struct Glance {
    action: Option<String>,
    snapshot: Option<GlanceSnapshot>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct GlanceSnapshot {
    snapshot_id: i64,
}

impl CommitRequest {
    /// Fails only where the body is no JSON object of a commit's shape.
    pub fn parse(body: &[u8]) -> Result<Self> {
        let body: Body<'_> = serde_json::from_slice(body).map_err(not_json)?;
        Ok(Self::read(&body))
    }

    /// Adds something else that is wrong with the request; the first one speaks.
    pub fn note(&mut self, fault: Error) {
        self.fault.get_or_insert(fault);
    }

    /// What is wrong with the request, if anything.
    pub fn take_fault(&mut self) -> Result<()> {
        self.fault.take().map_or(Ok(()), Err)
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
        self.requirements
            .iter()
            .any(|requirement| matches!(requirement, Requirement::AssertCreate))
    }

    fn read(body: &Body<'_>) -> Self {
        let mut request = Self::default();
        for (index, raw) in body.requirements.iter().flatten().enumerate() {
            match serde_json::from_str(raw.get()) {
                Ok(requirement) => request.requirements.push(requirement),
                Err(error) => request.note(wrong(format!("requirements[{index}]"), error)),
            }
        }
        let Some(updates) = &body.updates else {
            request.note(Error::invalid(
                "updates: the commit must have this list, which may be empty",
            ));
            return request;
        };
        for (index, raw) in updates.iter().enumerate() {
            request.snapshot_ids.extend(added_snapshot(raw));
            match serde_json::from_str(raw.get()) {
                Ok(update) => request.updates.push(update),
                Err(error) => request.note(wrong(format!("updates[{index}]"), error)),
            }
        }
        request
    }
}

/// The tables of a transaction, each with its commit; an unreadable identifier or a table named twice is refused.
pub fn parse_transaction(body: &[u8]) -> Result<Vec<(TableIdent, CommitRequest)>> {
    let body: TransactionBody<'_> = serde_json::from_slice(body).map_err(not_json)?;
    if body.table_changes.is_empty() {
        return Err(Error::invalid("table-changes must name at least one table"));
    }
    let mut changes: Vec<(TableIdent, CommitRequest)> = Vec::with_capacity(body.table_changes.len());
    for (index, change) in body.table_changes.iter().enumerate() {
        let ident = identifier(change, index)?;
        if changes.iter().any(|(earlier, _)| *earlier == ident) {
            return Err(Error::invalid(format!(
                "table-changes[{index}]: {ident} is in the transaction already"
            )));
        }
        changes.push((ident, CommitRequest::read(change)));
    }
    Ok(changes)
}

fn identifier(change: &Body<'_>, index: usize) -> Result<TableIdent> {
    let missing = || Error::invalid(format!("table-changes[{index}].identifier must name a table"));
    let raw = change.identifier.ok_or_else(missing)?;
    let identifier: Identifier =
        serde_json::from_str(raw.get()).map_err(|error| wrong(format!("table-changes[{index}].identifier"), error))?;
    Ok(TableIdent::new(
        NamespaceIdent::new(identifier.namespace)?,
        identifier.name,
    ))
}

fn added_snapshot(raw: &RawValue) -> Option<i64> {
    let glance: Glance = serde_json::from_str(raw.get()).ok()?;
    glance
        .snapshot
        .filter(|_| glance.action.as_deref() == Some("add-snapshot"))
        .map(|snapshot| snapshot.snapshot_id)
}

fn not_json(error: serde_json::Error) -> Error {
    Error::invalid(format!("the body is not a commit: {error}")).with_source(error)
}

fn wrong(field: String, error: serde_json::Error) -> Error {
    Error::invalid(format!("{field}: {error}")).with_source(error)
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
        assert_eq!(request.take_fault().unwrap_err().kind(), Kind::Invalid);
    }

    #[test]
    fn an_unknown_update_is_noted_with_its_place() {
        let body = br#"{"updates":[{"action":"set-properties","updates":{}},{"action":"fly"}]}"#;
        let error = CommitRequest::parse(body).unwrap().take_fault().unwrap_err();
        assert!(error.message().starts_with("updates[1]: "), "{error}");
        assert!(error.message().contains("fly"), "{error}");
    }

    #[test]
    fn a_commit_without_requirements_is_read() {
        let mut request = CommitRequest::parse(br#"{"updates":[]}"#).unwrap();
        assert!(request.requirements.is_empty());
        assert!(request.take_fault().is_ok());
    }

    #[test]
    fn a_commit_without_updates_says_which_list_is_missing() {
        let error = CommitRequest::parse(br#"{"requirements":[]}"#)
            .unwrap()
            .take_fault()
            .unwrap_err();
        assert!(error.message().starts_with("updates"), "{error}");
    }

    #[test]
    fn a_table_named_twice_in_a_transaction_is_refused() {
        let change = r#"{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[]}"#;
        let body = format!(r#"{{"table-changes":[{change},{change}]}}"#);
        assert!(
            parse_transaction(body.as_bytes())
                .unwrap_err()
                .message()
                .contains("a.t")
        );
    }
}
