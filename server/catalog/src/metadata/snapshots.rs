//! Snapshots: the few numbers that commits ask for, over the JSON as it was received.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::json::{self, Checked, Flaw, Object};

/// Members that some clients cannot read when they are null.
const NEVER_NULL: [&str; 9] = [
    "parent-snapshot-id",
    "sequence-number",
    "schema-id",
    "manifest-list",
    "manifests",
    "summary",
    "first-row-id",
    "added-rows",
    "key-id",
];

/// One snapshot of a table.
#[derive(Debug, Clone)]
pub struct Snapshot {
    id: i64,
    parent_id: Option<i64>,
    sequence_number: Option<i64>,
    timestamp_ms: i64,
    schema_id: Option<i32>,
    manifest_list: Option<String>,
    first_row_id: Option<i64>,
    added_rows: Option<i64>,
    raw: Box<RawValue>,
}

/// Where a snapshot is put, and what becomes of it there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    pub parent_id: Option<i64>,
    /// From format version 2 on.
    pub sequence_number: Option<i64>,
    pub schema_id: i32,
    pub manifest_list: String,
    /// The first row id and the number of rows that take ids; from format version 3 on.
    pub rows: Option<(i64, i64)>,
    /// Entries of the summary; `None` takes one away.
    pub totals: Vec<(&'static str, Option<i64>)>,
}

impl Snapshot {
    /// Reads what commits ask for; all else, the summary included, stays unread until somebody wants it.
    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let parent_id: Option<i64> = object.optional("parent-snapshot-id")?;
        Ok(Self {
            id: object.required("snapshot-id")?,
            // Some old writers say -1 where there is no parent.
            parent_id: parent_id.filter(|id| *id != -1),
            sequence_number: object.optional("sequence-number")?,
            timestamp_ms: object.required("timestamp-ms")?,
            schema_id: object.optional("schema-id")?,
            manifest_list: object.optional("manifest-list")?,
            first_row_id: object.optional("first-row-id")?,
            added_rows: object.optional("added-rows")?,
            raw: raw.to_owned(),
        })
    }

    /// Reads a snapshot that is to be added: whatever a client could not read back is refused.
    pub(crate) fn read_new(raw: &RawValue) -> Checked<Self> {
        let snapshot = Self::read(&Object::parse(raw)?.without_null(&NEVER_NULL))?;
        snapshot.check()?;
        Ok(snapshot)
    }

    /// Refuses what a client could not read back, or would read without end. The summary's operation may be any text.
    pub(crate) fn check(&self) -> Checked<()> {
        let object = Object::parse(&self.raw)?;
        object.optional::<BTreeMap<String, String>>("summary")?;
        if self.id < 0 {
            return Err(Flaw::new("must not be negative").under("snapshot-id"));
        }
        if self.parent_id == Some(self.id) {
            return Err(Flaw::new("must not be the snapshot itself").under("parent-snapshot-id"));
        }
        match self.manifest_list() {
            Some("") => Err(Flaw::new("must not be empty").under("manifest-list")),
            None if object.optional::<Vec<String>>("manifests")?.is_none() => {
                Err(Flaw::new("is required").under("manifest-list"))
            }
            _ => Ok(()),
        }
    }

    pub fn id(&self) -> i64 {
        self.id
    }

    pub fn parent_id(&self) -> Option<i64> {
        self.parent_id
    }

    /// 0 where there is none: format version 1 has no sequence numbers.
    pub fn sequence_number(&self) -> i64 {
        self.sequence_number.unwrap_or(0)
    }

    pub(crate) fn has_sequence_number(&self) -> bool {
        self.sequence_number.is_some()
    }

    pub fn timestamp_ms(&self) -> i64 {
        self.timestamp_ms
    }

    pub fn schema_id(&self) -> Option<i32> {
        self.schema_id
    }

    /// Absent only in format version 1, where `manifests` may stand instead.
    pub fn manifest_list(&self) -> Option<&str> {
        self.manifest_list.as_deref()
    }

    /// The manifests of a snapshot that has no manifest list (format version 1).
    pub fn manifests(&self) -> Vec<String> {
        self.member("manifests").unwrap_or_default()
    }

    /// Whether its manifest list is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.member::<&RawValue>("key-id").is_some()
    }

    pub fn first_row_id(&self) -> Option<i64> {
        self.first_row_id
    }

    pub fn added_rows(&self) -> Option<i64> {
        self.added_rows
    }

    /// The summary's entries that are strings, read anew on every call.
    pub fn summary(&self) -> BTreeMap<String, String> {
        let entries: BTreeMap<String, &RawValue> = self.member("summary").unwrap_or_default();
        entries.into_iter().filter_map(|(key, value)| Some((key, json::decode(value).ok()?))).collect()
    }

    /// The summary's `operation`, read anew on every call.
    pub fn operation(&self) -> Option<String> {
        let summary: &RawValue = self.member("summary")?;
        Object::parse(summary).ok()?.optional("operation").ok()?
    }

    /// The snapshot as it was received.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The same snapshot at another time; every other byte of it stays.
    pub(crate) fn at(&self, timestamp_ms: i64) -> Self {
        let object = Object::parse(&self.raw).expect("a snapshot was read from an object");
        let raw = object.with(&[("timestamp-ms", timestamp_ms.to_string())]);
        Self { timestamp_ms, raw, ..self.clone() }
    }

    /// The same snapshot in another place; every other byte of it stays.
    pub(crate) fn seated(&self, seat: &Seat) -> Self {
        let object = Object::parse(&self.raw).expect("a snapshot was read from an object");
        let mut changes =
            vec![("manifest-list", json::quoted(&seat.manifest_list)), ("schema-id", seat.schema_id.to_string())];
        changes.extend(seat.parent_id.map(|id| ("parent-snapshot-id", id.to_string())));
        changes.extend(seat.sequence_number.map(|number| ("sequence-number", number.to_string())));
        if let Some((first, added)) = seat.rows {
            changes.extend([("first-row-id", first.to_string()), ("added-rows", added.to_string())]);
        }
        changes.extend(self.summary_with(&seat.totals).map(|summary| ("summary", summary.get().to_owned())));
        Self {
            parent_id: seat.parent_id,
            sequence_number: seat.sequence_number.or(self.sequence_number),
            schema_id: Some(seat.schema_id),
            manifest_list: Some(seat.manifest_list.clone()),
            first_row_id: seat.rows.map(|(first, _)| first),
            added_rows: seat.rows.map(|(_, added)| added),
            raw: object.with(&changes),
            ..self.clone()
        }
    }

    /// The summary with some of its numbers changed or taken away; `None` where it has none, or nothing changes.
    fn summary_with(&self, numbers: &[(&str, Option<i64>)]) -> Option<Box<RawValue>> {
        let summary = self.member::<&RawValue>("summary").filter(|_| !numbers.is_empty())?;
        let told = numbers.iter().filter_map(|(key, number)| Some((*key, json::quoted(&(*number)?.to_string()))));
        let changed = Object::parse(summary).ok()?.with(&told.collect::<Vec<_>>());
        let object = Object::parse(&changed).ok()?;
        let unknown = numbers.iter().filter(|(key, number)| number.is_none() && object.get(key).is_some());
        let unknown: Vec<&str> = unknown.map(|(key, _)| *key).collect();
        Some(if unknown.is_empty() { changed } else { object.without(&unknown) })
    }

    /// The same snapshot with the sequence number that format version 2 gives to those of version 1.
    fn numbered(&self) -> Self {
        let object = Object::parse(&self.raw).expect("a snapshot was read from an object");
        let raw = object.with(&[("sequence-number", "0".to_owned())]);
        Self { sequence_number: Some(0), raw, ..self.clone() }
    }

    fn member<'a, T: serde::Deserialize<'a>>(&'a self, key: &str) -> Option<T> {
        Object::parse(&self.raw).ok()?.optional(key).ok()?
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.raw.get().len() + self.manifest_list.as_ref().map_or(0, String::len)
    }
}

/// All snapshots of a table in the order of the document; cloning is free until one of the clones changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshots {
    list: Arc<Vec<Arc<Snapshot>>>,
    positions: Arc<HashMap<i64, usize>>,
}

impl Snapshots {
    /// Refuses an id that comes twice.
    pub(crate) fn new(list: Vec<Arc<Snapshot>>) -> Checked<Self> {
        let mut positions = HashMap::with_capacity(list.len());
        for (at, snapshot) in list.iter().enumerate() {
            if positions.insert(snapshot.id, at).is_some() {
                return Err(Flaw::new(format!("snapshot id {} comes twice", snapshot.id)));
            }
        }
        Ok(Self { list: Arc::new(list), positions: Arc::new(positions) })
    }

    pub(crate) fn get(&self, id: i64) -> Option<&Arc<Snapshot>> {
        self.positions.get(&id).map(|at| &self.list[*at])
    }

    pub(crate) fn contains(&self, id: i64) -> bool {
        self.positions.contains_key(&id)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Snapshot>> + Clone {
        self.list.iter()
    }

    /// Those that have one of `ids`, in the order of the document; costs nothing for the others.
    pub(crate) fn select(&self, ids: impl Iterator<Item = i64>) -> Vec<&Arc<Snapshot>> {
        let mut positions: Vec<usize> = ids.filter_map(|id| self.positions.get(&id).copied()).collect();
        positions.sort_unstable();
        positions.dedup();
        positions.into_iter().map(|at| &self.list[at]).collect()
    }

    /// The snapshot that has this manifest list; the newest ones are looked at first.
    pub(crate) fn with_manifest_list(&self, manifest_list: &str) -> Option<&Arc<Snapshot>> {
        self.list.iter().rev().find(|snapshot| snapshot.manifest_list() == Some(manifest_list))
    }

    /// Whether `new`, which is not in the list yet, would be among its own ancestors.
    pub(crate) fn would_be_circular(&self, new: &Snapshot) -> bool {
        let has_children = self.list.iter().any(|snapshot| snapshot.parent_id == Some(new.id));
        let parent = |id: &i64| self.get(*id)?.parent_id;
        // A list that is circular already must not keep the walk from ending.
        let mut ancestors = std::iter::successors(new.parent_id, parent).take(self.list.len() + 1);
        has_children && ancestors.any(|id| id == new.id)
    }

    /// A snapshot that is among its own ancestors.
    pub(crate) fn circular(&self) -> Option<i64> {
        let mut sound = HashSet::new();
        for snapshot in self.list.iter() {
            let mut chain = HashSet::new();
            let mut next = Some(snapshot.id);
            while let Some(id) = next.filter(|id| !sound.contains(id)) {
                if !chain.insert(id) {
                    return Some(id);
                }
                next = self.get(id).and_then(|snapshot| snapshot.parent_id);
            }
            sound.extend(chain);
        }
        None
    }

    pub(crate) fn push(&mut self, snapshot: Arc<Snapshot>) {
        Arc::make_mut(&mut self.positions).insert(snapshot.id, self.list.len());
        Arc::make_mut(&mut self.list).push(snapshot);
    }

    /// Puts another version of a snapshot in its place.
    pub(crate) fn replace(&mut self, snapshot: Snapshot) {
        if let Some(at) = self.positions.get(&snapshot.id) {
            Arc::make_mut(&mut self.list)[*at] = Arc::new(snapshot);
        }
    }

    /// Gives sequence number 0 to those that have none.
    pub(crate) fn number_all(&mut self) {
        let missing = |snapshot: &Arc<Snapshot>| snapshot.sequence_number.is_none();
        if self.list.iter().any(missing) {
            for snapshot in Arc::make_mut(&mut self.list).iter_mut().filter(|snapshot| missing(snapshot)) {
                *snapshot = Arc::new(snapshot.numbered());
            }
        }
    }

    /// Says whether anything was removed.
    pub(crate) fn remove(&mut self, ids: &HashSet<i64>) -> bool {
        let kept: Vec<_> = self.list.iter().filter(|snapshot| !ids.contains(&snapshot.id)).cloned().collect();
        let removed = kept.len() != self.list.len();
        if removed {
            *self = Self::new(kept).expect("ids were unique before some were removed");
        }
        removed
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let each = |snapshot: &Arc<Snapshot>| snapshot.memory_bytes() + 4 * size_of::<usize>();
        self.list.iter().map(each).sum()
    }
}
