//! How a view comes to be and how a commit changes it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use uuid::Uuid;

use super::raw_object::RawObject;
use super::schema::{self, ViewSchema};
use super::update::ViewUpdate;
use super::version::{LogEntry, ViewVersion};
use super::{FORMAT_VERSION, ViewMetadata, location, retention, unsupported_format};
use crate::error::{Error, Result};

/// Stands for the schema or the version that was added last in the same request.
const LAST_ADDED: i32 = -1;
const INITIAL_VERSION_ID: i32 = 1;
const DROP_DIALECT_ALLOWED: &str = "replace.drop-dialect.allowed";

/// What a view is made from.
#[derive(Debug, Clone)]
pub struct NewView<'a> {
    pub uuid: Uuid,
    pub location: &'a str,
    pub schema: &'a RawValue,
    /// Its `version-id` and `schema-id` are replaced by the ids that the view gives.
    pub view_version: &'a RawValue,
    pub properties: BTreeMap<String, String>,
    pub now_ms: i64,
}

/// What a commit made of a view.
#[derive(Debug, Clone)]
pub struct AppliedView {
    pub metadata: ViewMetadata,
    /// False when the updates ask for what is there already: nothing has to be written.
    pub changed: bool,
}

/// Makes a view with one schema and one version.
pub fn create(new: NewView<'_>) -> Result<ViewMetadata> {
    let view = ViewMetadata {
        uuid: new.uuid,
        location: location::check_location(new.location)?,
        properties: new.properties,
        schemas: Vec::new(),
        current_version_id: LAST_ADDED,
        versions: Vec::new(),
        version_log: Vec::new(),
        unknown: RawObject::default(),
    };
    let mut draft = Draft::new(view, new.now_ms);
    let mut version = ViewVersion::draft(new.view_version, new.now_ms)?;
    version.set("version-id", INITIAL_VERSION_ID);
    version.set("schema-id", draft.add_schema(new.schema)?);
    let version_id = draft.add_version(version)?;
    draft.set_current_version(version_id)?;
    draft.finish(None)
}

/// Applies the updates in order, all or none.
pub fn apply(base: &ViewMetadata, updates: &[ViewUpdate], now_ms: i64) -> Result<AppliedView> {
    let mut draft = Draft::new(base.clone(), now_ms);
    for update in updates {
        draft.update(update)?;
    }
    if draft.view.encode() == base.encode() {
        return Ok(AppliedView { metadata: draft.view, changed: false });
    }
    Ok(AppliedView { metadata: draft.finish(Some(base))?, changed: true })
}

/// A view in the middle of a change, and what the change has added so far.
struct Draft {
    view: ViewMetadata,
    now_ms: i64,
    last_added_schema: Option<i32>,
    last_added_version: Option<i32>,
    added_versions: BTreeSet<i32>,
}

impl Draft {
    fn new(view: ViewMetadata, now_ms: i64) -> Self {
        Self { view, now_ms, last_added_schema: None, last_added_version: None, added_versions: BTreeSet::new() }
    }

    fn update(&mut self, update: &ViewUpdate) -> Result<()> {
        match update {
            ViewUpdate::AssignUuid { uuid } => self.assign_uuid(*uuid),
            ViewUpdate::UpgradeFormatVersion { format_version } => upgrade_format_version(*format_version),
            ViewUpdate::AddSchema { schema } => self.add_schema(schema).map(drop),
            ViewUpdate::SetLocation { location } => self.set_location(location),
            ViewUpdate::SetProperties { updates } => {
                self.view.properties.extend(updates.clone());
                Ok(())
            }
            ViewUpdate::RemoveProperties { removals } => {
                self.view.properties.retain(|key, _| !removals.contains(key));
                Ok(())
            }
            ViewUpdate::AddViewVersion { view_version } => {
                self.add_version(ViewVersion::draft(view_version, self.now_ms)?).map(drop)
            }
            ViewUpdate::SetCurrentViewVersion { view_version_id } => self.set_current_version(*view_version_id),
        }
    }

    fn assign_uuid(&self, uuid: Uuid) -> Result<()> {
        if uuid == self.view.uuid {
            return Ok(());
        }
        Err(Error::invalid(format!("Cannot reassign uuid: the view's is {}, not {uuid}", self.view.uuid)))
    }

    fn set_location(&mut self, location: &str) -> Result<()> {
        self.view.location = location::check_location(location)?;
        Ok(())
    }

    /// Gives the schema an id: that of the same schema if the view has it, else the next one.
    fn add_schema(&mut self, raw: &RawValue) -> Result<i32> {
        schema::check(raw)?;
        let id = match self.same_schema(raw)? {
            Some(id) => id,
            None => {
                let id = next_id("schema-id", self.view.schemas.iter().map(|schema| schema.id), 0)?;
                self.view.schemas.push(ViewSchema::with_id(raw, id)?);
                id
            }
        };
        self.last_added_schema = Some(id);
        Ok(id)
    }

    fn same_schema(&self, raw: &RawValue) -> Result<Option<i32>> {
        let content = schema::content(raw)?;
        for known in &self.view.schemas {
            if known.content()? == content {
                return Ok(Some(known.id));
            }
        }
        Ok(None)
    }

    /// Adds the version under its own id, or the next free one when that is taken. A version that says the same as
    /// one the view has is not added again: that one's id is returned.
    fn add_version(&mut self, mut draft: RawObject) -> Result<i32> {
        if draft.get::<i32>("schema-id")? == LAST_ADDED {
            draft.set("schema-id", self.last_added_schema()?);
        }
        let mut version = ViewVersion::from_draft(&draft)?;
        let id = match self.same_version(&version)? {
            Some(id) => id,
            None => {
                self.check_version(&version)?;
                let id = next_id("version-id", self.view.versions.iter().map(|version| version.id), version.id)?;
                if id != version.id {
                    draft.set("version-id", id);
                    version = ViewVersion::from_draft(&draft)?;
                }
                self.view.versions.push(version);
                self.added_versions.insert(id);
                id
            }
        };
        self.last_added_version = Some(id);
        Ok(id)
    }

    fn last_added_schema(&self) -> Result<i32> {
        self.last_added_schema
            .ok_or_else(|| Error::invalid("Cannot set last added schema: no schema has been added in this request"))
    }

    fn same_version(&self, version: &ViewVersion) -> Result<Option<i32>> {
        let content = version.content()?;
        for known in &self.view.versions {
            if known.content()? == content {
                return Ok(Some(known.id));
            }
        }
        Ok(None)
    }

    fn check_version(&self, version: &ViewVersion) -> Result<()> {
        if !self.view.has_schema(version.schema_id) {
            return Err(Error::invalid(format!("Cannot add version with unknown schema: {}", version.schema_id)));
        }
        version.check_representations()
    }

    fn set_current_version(&mut self, id: i32) -> Result<()> {
        let id = match id {
            LAST_ADDED => self.last_added_version.ok_or_else(|| {
                Error::invalid("Cannot set last version id: no version has been added in this request")
            })?,
            id => id,
        };
        if self.view.version(id).is_none() {
            return Err(Error::invalid(format!("Cannot set current version to unknown version: {id}")));
        }
        self.view.current_version_id = id;
        Ok(())
    }

    /// Checks the outcome as a whole, writes the version log and lets old versions go.
    fn finish(mut self, base: Option<&ViewMetadata>) -> Result<ViewMetadata> {
        location::check_codec(&self.view.properties)?;
        if let Some(base) = base {
            check_dialects_kept(base, &self.view)?;
        }
        if base.is_none_or(|base| base.current_version_id != self.view.current_version_id) {
            self.log_current_version()?;
        }
        retention::expire_versions(&mut self.view, &self.added_versions)?;
        Ok(self.view)
    }

    /// A version added just now became current when it was made, an older one becomes so now.
    fn log_current_version(&mut self) -> Result<()> {
        let current = self.view.current_version()?;
        let added = self.added_versions.contains(&current.id);
        let entry = LogEntry::new(current.id, if added { current.timestamp_ms } else { self.now_ms });
        self.view.version_log.push(entry);
        Ok(())
    }
}

fn upgrade_format_version(format_version: i32) -> Result<()> {
    match format_version {
        FORMAT_VERSION => Ok(()),
        lower if lower < FORMAT_VERSION => {
            Err(Error::invalid(format!("Cannot downgrade v{FORMAT_VERSION} view to v{lower}")))
        }
        higher => Err(unsupported_format(higher)),
    }
}

/// An engine that replaces a view must not silently take away what another engine reads.
fn check_dialects_kept(base: &ViewMetadata, view: &ViewMetadata) -> Result<()> {
    let allowed = view.property(DROP_DIALECT_ALLOWED).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let missing = base.current_version()?.dialects_missing_from(view.current_version()?);
    if allowed || missing.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "Cannot replace view due to loss of view dialects: {}; send their SQL too, or set {DROP_DIALECT_ALLOWED}=true",
        missing.join(", ")
    )))
}

/// `wanted` if it lies above all ids that are taken, else the id after the highest.
fn next_id(field: &str, taken: impl Iterator<Item = i32>, wanted: i32) -> Result<i32> {
    match taken.max() {
        Some(highest) if highest >= wanted => highest
            .checked_add(1)
            .ok_or_else(|| Error::invalid(format!("{field} {highest} is the highest there is: no id is left"))),
        _ => Ok(wanted),
    }
}
