//! Branches and tags.

use serde_json::value::RawValue;

use super::json::{self, Checked, Flaw, Object};

/// The branch that readers see unless they name another ref.
pub const MAIN_BRANCH: &str = "main";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    Branch,
    Tag,
}

impl RefKind {
    pub fn as_str(self) -> &'static str {
        match self {
            RefKind::Branch => "branch",
            RefKind::Tag => "tag",
        }
    }
}

/// A named snapshot and how long it is to be kept.
#[derive(Debug, Clone)]
pub struct SnapshotRef {
    pub snapshot_id: i64,
    pub kind: RefKind,
    pub min_snapshots_to_keep: Option<i32>,
    pub max_snapshot_age_ms: Option<i64>,
    pub max_ref_age_ms: Option<i64>,
    raw: Box<RawValue>,
}

impl SnapshotRef {
    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let kind: String = object.required("type")?;
        let kind = match kind.to_ascii_lowercase().as_str() {
            "branch" => RefKind::Branch,
            "tag" => RefKind::Tag,
            _ => return Err(Flaw::new(format!("'{kind}' is neither branch nor tag")).under("type")),
        };
        Ok(Self {
            snapshot_id: object.required("snapshot-id")?,
            kind,
            min_snapshots_to_keep: object.optional("min-snapshots-to-keep")?,
            max_snapshot_age_ms: object.optional("max-snapshot-age-ms")?,
            max_ref_age_ms: object.optional("max-ref-age-ms")?,
            raw: raw.to_owned(),
        })
    }

    /// Reads a ref that is to be set. Its kind is kept in lower case, which is all that some clients read.
    pub(crate) fn read_new(raw: &RawValue) -> Checked<Self> {
        let target = Self::read(raw)?;
        target.check_retention()?;
        let object = Object::parse(raw)?;
        let kind = target.kind.as_str();
        if object.required::<String>("type")? == kind {
            return Ok(target);
        }
        Ok(Self { raw: object.with(&[("type", json::quoted(kind))]), ..target })
    }

    /// The branch `main` of a document that names its current snapshot but no refs.
    pub(crate) fn main_at(snapshot_id: i64) -> Self {
        let raw = json::raw(format!(r#"{{"snapshot-id":{snapshot_id},"type":"branch"}}"#));
        Self {
            snapshot_id,
            kind: RefKind::Branch,
            min_snapshots_to_keep: None,
            max_snapshot_age_ms: None,
            max_ref_age_ms: None,
            raw,
        }
    }

    pub fn is_branch(&self) -> bool {
        self.kind == RefKind::Branch
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// Retention must be positive, and only a branch has snapshots of its own to keep.
    fn check_retention(&self) -> Checked<()> {
        let positive = |field: &str, value: Option<i64>| match value {
            Some(value) if value <= 0 => Err(Flaw::new("must be greater than 0").under(field)),
            Some(_) | None => Ok(()),
        };
        let min_snapshots = self.min_snapshots_to_keep.map(i64::from);
        positive("min-snapshots-to-keep", min_snapshots)?;
        positive("max-snapshot-age-ms", self.max_snapshot_age_ms)?;
        positive("max-ref-age-ms", self.max_ref_age_ms)?;
        if !self.is_branch() && (min_snapshots.is_some() || self.max_snapshot_age_ms.is_some()) {
            return Err(Flaw::new("tags do not support min-snapshots-to-keep and max-snapshot-age-ms"));
        }
        Ok(())
    }

    /// Same target, kind and retention.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let key = |r: &Self| (r.snapshot_id, r.kind, r.min_snapshots_to_keep, r.max_snapshot_age_ms, r.max_ref_age_ms);
        key(self) == key(other)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.raw.get().len()
    }
}
