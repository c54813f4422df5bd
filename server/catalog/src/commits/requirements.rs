//! Requirements: what must hold in the base for a commit to be applied to it.

use serde::de::{self, Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::metadata::{Checked, Flaw, Object, TableMetadata};

/// One table requirement of the REST spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// The table does not exist.
    AssertCreate,
    AssertTableUuid {
        uuid: String,
    },
    /// `None`: the ref does not exist.
    AssertRefSnapshotId {
        ref_name: String,
        snapshot_id: Option<i64>,
    },
    AssertLastAssignedFieldId {
        last_assigned_field_id: i32,
    },
    AssertCurrentSchemaId {
        current_schema_id: i32,
    },
    AssertLastAssignedPartitionId {
        last_assigned_partition_id: i32,
    },
    AssertDefaultSpecId {
        default_spec_id: i32,
    },
    AssertDefaultSortOrderId {
        default_sort_order_id: i32,
    },
}

impl Requirement {
    /// Reads one element of `requirements`; an unknown type is `Invalid`.
    pub fn parse(raw: &RawValue) -> Result<Self> {
        Ok(Self::read(raw)?)
    }

    /// Holds the requirement against the base, `None` where there is no such table. A failure is `CommitFailed`.
    pub fn check(&self, base: Option<&TableMetadata>) -> Result<()> {
        match (self, base) {
            (Self::AssertCreate, None) => Ok(()),
            (Self::AssertCreate, Some(_)) => failed("table already exists"),
            (_, Some(base)) => self.check_table(base),
            // What nothing was assigned from yet cannot have changed.
            (Self::AssertLastAssignedFieldId { .. } | Self::AssertLastAssignedPartitionId { .. }, None)
            | (Self::AssertRefSnapshotId { snapshot_id: None, .. }, None) => Ok(()),
            (_, None) => failed("table does not exist"),
        }
    }

    fn check_table(&self, base: &TableMetadata) -> Result<()> {
        match self {
            Self::AssertCreate => failed("table already exists"),
            Self::AssertTableUuid { uuid } => {
                let own = base.uuid().to_string();
                if uuid.eq_ignore_ascii_case(&own) {
                    return Ok(());
                }
                failed(format!("UUID does not match: expected {own} != {uuid}"))
            }
            Self::AssertRefSnapshotId { ref_name, snapshot_id } => check_ref(base, ref_name, *snapshot_id),
            Self::AssertLastAssignedFieldId { last_assigned_field_id: id } => {
                same("last assigned field id", *id, base.last_column_id())
            }
            Self::AssertCurrentSchemaId { current_schema_id: id } => {
                same("current schema", *id, base.current_schema_id())
            }
            Self::AssertLastAssignedPartitionId { last_assigned_partition_id: id } => {
                same("last assigned partition id", *id, base.last_partition_id())
            }
            Self::AssertDefaultSpecId { default_spec_id: id } => {
                same("default partition spec", *id, base.default_spec_id())
            }
            Self::AssertDefaultSortOrderId { default_sort_order_id: id } => {
                same("default sort order", *id, base.default_sort_order_id())
            }
        }
    }

    fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let kind = object.required::<String>("type")?.to_ascii_lowercase();
        let id = |key: &str| object.required(key).map_err(|flaw| flaw.under(&kind));
        Ok(match kind.as_str() {
            "assert-create" => Self::AssertCreate,
            "assert-table-uuid" => {
                Self::AssertTableUuid { uuid: object.required("uuid").map_err(|flaw| flaw.under(&kind))? }
            }
            "assert-ref-snapshot-id" => Self::AssertRefSnapshotId {
                ref_name: object.required("ref").map_err(|flaw| flaw.under(&kind))?,
                snapshot_id: object.optional("snapshot-id").map_err(|flaw| flaw.under(&kind))?,
            },
            "assert-last-assigned-field-id" => {
                Self::AssertLastAssignedFieldId { last_assigned_field_id: id("last-assigned-field-id")? }
            }
            "assert-current-schema-id" => Self::AssertCurrentSchemaId { current_schema_id: id("current-schema-id")? },
            "assert-last-assigned-partition-id" => {
                Self::AssertLastAssignedPartitionId { last_assigned_partition_id: id("last-assigned-partition-id")? }
            }
            "assert-default-spec-id" => Self::AssertDefaultSpecId { default_spec_id: id("default-spec-id")? },
            "assert-default-sort-order-id" => {
                Self::AssertDefaultSortOrderId { default_sort_order_id: id("default-sort-order-id")? }
            }
            _ => return Err(Flaw::new(format!("unknown table requirement '{kind}'")).under("type")),
        })
    }
}

impl<'de> Deserialize<'de> for Requirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(&raw).map_err(|error| de::Error::custom(error.message()))
    }
}

fn check_ref(base: &TableMetadata, name: &str, expected: Option<i64>) -> Result<()> {
    match (base.refs().get(name), expected) {
        (None, None) => Ok(()),
        (None, Some(id)) => failed(format!("branch or tag {name} is missing, expected {id}")),
        (Some(found), None) => failed(format!("{} {name} was created concurrently", found.kind.as_str())),
        (Some(found), Some(id)) if found.snapshot_id == id => Ok(()),
        (Some(found), Some(id)) => {
            let (kind, actual) = (found.kind.as_str(), found.snapshot_id);
            failed(format!("{kind} {name} has changed: expected id {id} != {actual}"))
        }
    }
}

fn same(what: &str, expected: i32, actual: i32) -> Result<()> {
    if expected == actual {
        return Ok(());
    }
    failed(format!("{what} changed: expected id {expected} != {actual}"))
}

fn failed(what: impl std::fmt::Display) -> Result<()> {
    Err(Error::conflict(format!("Requirement failed: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn table() -> TableMetadata {
        let text = r#"{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t",
            "last-sequence-number":1,"last-updated-ms":1,"last-column-id":3,"current-schema-id":1,
            "schemas":[{"type":"struct","schema-id":1,"fields":[]}],"default-spec-id":2,
            "partition-specs":[{"spec-id":2,"fields":[]}],"last-partition-id":1004,"default-sort-order-id":5,
            "sort-orders":[{"order-id":5,"fields":[]}],"current-snapshot-id":9007199254740993,
            "refs":{"main":{"snapshot-id":9007199254740993,"type":"branch"},"t":{"snapshot-id":9007199254740993,"type":"tag"}},
            "snapshots":[{"snapshot-id":9007199254740993,"timestamp-ms":1,"sequence-number":1,"manifest-list":"l"}]}"#;
        TableMetadata::parse(text.as_bytes()).unwrap()
    }

    fn check(text: &str, base: Option<&TableMetadata>) -> Result<()> {
        serde_json::from_str::<Requirement>(text).unwrap().check(base)
    }

    #[test]
    fn a_requirement_that_holds_lets_the_commit_pass() {
        for text in [
            r#"{"type":"assert-table-uuid","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"}"#,
            r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":9007199254740993}"#,
            r#"{"type":"assert-ref-snapshot-id","ref":"none","snapshot-id":null}"#,
            r#"{"type":"assert-last-assigned-field-id","last-assigned-field-id":3}"#,
            r#"{"type":"assert-current-schema-id","current-schema-id":1}"#,
            r#"{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":1004}"#,
            r#"{"type":"assert-default-spec-id","default-spec-id":2}"#,
            r#"{"type":"assert-default-sort-order-id","default-sort-order-id":5}"#,
        ] {
            assert!(check(text, Some(&table())).is_ok(), "{text}");
        }
        assert!(check(r#"{"type":"ASSERT-CREATE"}"#, None).is_ok());
    }

    #[test]
    fn a_requirement_that_fails_says_what_changed() {
        for (text, message) in [
            (r#"{"type":"assert-create"}"#, "table already exists"),
            (
                r#"{"type":"assert-table-uuid","uuid":"00000000-0000-0000-0000-000000000000"}"#,
                "UUID does not match: expected 9c12d441-03fe-4693-9a96-a0705ddf69c1 != 00000000-0000-0000-0000-000000000000",
            ),
            (
                r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":9007199254740992}"#,
                "branch main has changed: expected id 9007199254740992 != 9007199254740993",
            ),
            (r#"{"type":"assert-ref-snapshot-id","ref":"t"}"#, "tag t was created concurrently"),
            (
                r#"{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":1}"#,
                "branch or tag b is missing, expected 1",
            ),
            (
                r#"{"type":"assert-last-assigned-field-id","last-assigned-field-id":4}"#,
                "last assigned field id changed: expected id 4 != 3",
            ),
            (
                r#"{"type":"assert-current-schema-id","current-schema-id":4}"#,
                "current schema changed: expected id 4 != 1",
            ),
            (
                r#"{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":4}"#,
                "last assigned partition id changed: expected id 4 != 1004",
            ),
            (
                r#"{"type":"assert-default-spec-id","default-spec-id":4}"#,
                "default partition spec changed: expected id 4 != 2",
            ),
            (
                r#"{"type":"assert-default-sort-order-id","default-sort-order-id":4}"#,
                "default sort order changed: expected id 4 != 5",
            ),
        ] {
            let error = check(text, Some(&table())).unwrap_err();
            assert_eq!(
                (error.kind(), error.message()),
                (Kind::CommitFailed, &*format!("Requirement failed: {message}"))
            );
        }
        assert!(check(r#"{"type":"assert-current-schema-id","current-schema-id":0}"#, None).is_err());
    }

    #[test]
    fn an_unknown_requirement_is_refused_by_name() {
        let raw = RawValue::from_string(r#"{"type":"assert-moon"}"#.to_owned()).unwrap();
        assert_eq!(Requirement::parse(&raw).unwrap_err().message(), "type: unknown table requirement 'assert-moon'");
    }
}
