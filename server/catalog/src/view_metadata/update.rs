//! What a commit asks of a view: its requirements and its updates.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::ViewMetadata;
use super::raw_object::RawObject;
use crate::error::{Error, Result};

/// One change to a view, named by its `action`. The id -1 means "the one added last in this request".
///
/// Raw members are kept as sent, so a `ViewUpdate` is read from JSON text, not from a parsed value.
#[derive(Debug, Clone)]
pub enum ViewUpdate {
    AssignUuid { uuid: Uuid },
    UpgradeFormatVersion { format_version: i32 },
    AddSchema { schema: Box<RawValue> },
    SetLocation { location: String },
    SetProperties { updates: BTreeMap<String, String> },
    RemoveProperties { removals: Vec<String> },
    AddViewVersion { view_version: Box<RawValue> },
    SetCurrentViewVersion { view_version_id: i32 },
}

impl ViewUpdate {
    fn parse(json: &RawValue) -> Result<Self> {
        let update = RawObject::from_raw("view update", json)?;
        let action: String = update.get("action")?;
        Ok(match action.to_ascii_lowercase().as_str() {
            "assign-uuid" => Self::AssignUuid { uuid: update.get("uuid")? },
            "upgrade-format-version" => Self::UpgradeFormatVersion { format_version: update.get("format-version")? },
            "add-schema" => Self::AddSchema { schema: update.get("schema")? },
            "set-location" => Self::SetLocation { location: update.get("location")? },
            "set-properties" => Self::SetProperties { updates: update.get_aliased("updates", "updated")? },
            "remove-properties" => Self::RemoveProperties { removals: update.get_aliased("removals", "removed")? },
            "add-view-version" => Self::AddViewVersion { view_version: update.get("view-version")? },
            "set-current-view-version" => {
                Self::SetCurrentViewVersion { view_version_id: update.get("view-version-id")? }
            }
            _ => {
                return Err(Error::invalid(format!("view update: action '{action}' is not known for views")));
            }
        })
    }
}

impl<'de> Deserialize<'de> for ViewUpdate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(&json).map_err(D::Error::custom)
    }
}

/// What must hold of the view for a commit to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewRequirement {
    AssertViewUuid { uuid: String },
}

impl ViewRequirement {
    fn parse(json: &RawValue) -> Result<Self> {
        let requirement = RawObject::from_raw("view requirement", json)?;
        let kind: String = requirement.get("type")?;
        match kind.to_ascii_lowercase().as_str() {
            "assert-view-uuid" => Ok(Self::AssertViewUuid { uuid: requirement.get("uuid")? }),
            _ => Err(Error::invalid(format!("view requirement: type '{kind}' is not known for views"))),
        }
    }

    /// Fails with `CommitFailed` when the requirement does not hold.
    pub fn check(&self, view: &ViewMetadata) -> Result<()> {
        let Self::AssertViewUuid { uuid } = self;
        let actual = view.uuid().to_string();
        if uuid.eq_ignore_ascii_case(&actual) {
            return Ok(());
        }
        Err(Error::conflict(format!("Requirement failed: view UUID does not match: expected {actual} != {uuid}")))
    }
}

impl<'de> Deserialize<'de> for ViewRequirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(&json).map_err(D::Error::custom)
    }
}
