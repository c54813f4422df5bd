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
            Self::AssertLastAssignedFieldId {
                last_assigned_field_id: id,
            } => same("last assigned field id", *id, base.last_column_id()),
            Self::AssertCurrentSchemaId { current_schema_id: id } => {
                same("current schema", *id, base.current_schema_id())
            }
            Self::AssertLastAssignedPartitionId {
                last_assigned_partition_id: id,
            } => same("last assigned partition id", *id, base.last_partition_id()),
            Self::AssertDefaultSpecId { default_spec_id: id } => {
                same("default partition spec", *id, base.default_spec_id())
            }
            Self::AssertDefaultSortOrderId {
                default_sort_order_id: id,
            } => same("default sort order", *id, base.default_sort_order_id()),
        }
    }

    fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let kind = object.required::<String>("type")?.to_ascii_lowercase();
        let id = |key: &str| object.required(key).map_err(|flaw| flaw.under(&kind));
        Ok(match kind.as_str() {
            "assert-create" => Self::AssertCreate,
            "assert-table-uuid" => Self::AssertTableUuid {
                uuid: object.required("uuid").map_err(|flaw| flaw.under(&kind))?,
            },
            "assert-ref-snapshot-id" => Self::AssertRefSnapshotId {
                ref_name: object.required("ref").map_err(|flaw| flaw.under(&kind))?,
                snapshot_id: object.optional("snapshot-id").map_err(|flaw| flaw.under(&kind))?,
            },
            "assert-last-assigned-field-id" => Self::AssertLastAssignedFieldId {
                last_assigned_field_id: id("last-assigned-field-id")?,
            },
            "assert-current-schema-id" => Self::AssertCurrentSchemaId {
                current_schema_id: id("current-schema-id")?,
            },
            "assert-last-assigned-partition-id" => Self::AssertLastAssignedPartitionId {
                last_assigned_partition_id: id("last-assigned-partition-id")?,
            },
            "assert-default-spec-id" => Self::AssertDefaultSpecId {
                default_spec_id: id("default-spec-id")?,
            },
            "assert-default-sort-order-id" => Self::AssertDefaultSortOrderId {
                default_sort_order_id: id("default-sort-order-id")?,
            },
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
