//! Partition specs.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::value::RawValue;

use super::json::{self, Checked, Flaw, Object};
use super::schema::{Columns, FreshIds, Kind, accepts, check_width};

/// The first id of a partition field; the last one of a table without any is one less.
pub(crate) const FIRST_FIELD_ID: i32 = 1000;

/// One way in which files of a table are, or were, partitioned.
#[derive(Debug, Clone)]
pub struct PartitionSpec {
    id: i32,
    fields: Vec<PartitionField>,
    raw: Box<RawValue>,
}

/// A value that files are partitioned by. Only format version 3 has fields of several sources.
#[derive(Debug, Clone)]
pub struct PartitionField {
    pub source_ids: Vec<i32>,
    pub field_id: i32,
    pub name: String,
    pub transform: String,
}

impl PartitionSpec {
    pub fn id(&self) -> i32 {
        self.id
    }

    pub fn fields(&self) -> &[PartitionField] {
        &self.fields
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.raw
    }

    /// The array of fields alone, as format version 1 writes the default spec a second time.
    pub(crate) fn raw_fields(&self) -> Option<&RawValue> {
        Object::parse(&self.raw).ok()?.get("fields")
    }

    pub(crate) fn unpartitioned() -> Self {
        Self { id: 0, fields: Vec::new(), raw: json::raw(r#"{"spec-id":0,"fields":[]}"#.to_owned()) }
    }

    /// Reads a spec of a document. Fields without ids (format version 1) get them in order from 1000.
    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let id = Object::parse(raw)?.required("spec-id")?;
        let mut in_order = FIRST_FIELD_ID..=i32::MAX;
        UnboundSpec::read(raw)?.bind(id, |_| in_order.next().ok_or_else(no_id_left))
    }

    /// Reads the `partition-spec` of format version 1: the fields alone, of spec 0.
    pub(crate) fn read_fields(raw: &RawValue) -> Checked<Self> {
        json::decode::<Vec<&RawValue>>(raw)?;
        Self::read(&json::raw(format!(r#"{{"spec-id":0,"fields":{raw}}}"#)))
    }

    /// The highest field id; 999 where there is no field.
    pub(crate) fn last_field_id(&self) -> i32 {
        self.fields.iter().map(|field| field.field_id).fold(FIRST_FIELD_ID - 1, i32::max)
    }

    /// Refuses a field whose id means something else among the fields of earlier specs: the partitions of all specs are
    /// read as one type. Where the id has several meanings already, each of them may stay.
    pub(crate) fn check_meanings<'a>(&self, earlier: impl Iterator<Item = &'a PartitionField>) -> Checked<()> {
        let mut unsettled: HashMap<i32, &PartitionField> =
            self.fields.iter().map(|field| (field.field_id, field)).collect();
        let mut conflicts = BTreeMap::new();
        for old in earlier {
            match unsettled.get(&old.field_id) {
                Some(new) if new.means_the_same_as(old) => {
                    unsettled.remove(&old.field_id);
                    conflicts.remove(&old.field_id);
                }
                Some(new) if !new.is_compatible_with(old) => {
                    conflicts.insert(old.field_id, (*new, old));
                }
                _ => {}
            }
        }
        match conflicts.into_iter().next() {
            None => Ok(()),
            Some((id, (new, old))) => Err(Flaw::new(format!(
                "partition field id {id} of {} belongs to {} ({} of another spec): leave field-id out, or take a new one",
                new.name, old.name, old.transform
            ))),
        }
    }

    /// Format version 1 has no field ids in its manifests, so they must follow from the order.
    pub(crate) fn has_sequential_ids(&self) -> bool {
        self.fields.iter().zip(FIRST_FIELD_ID..).all(|(field, id)| field.field_id == id)
    }

    /// Every source column must be there and be something the transform can be computed from; `void` asks for nothing.
    pub(crate) fn check_sources(&self, columns: &Columns) -> Checked<()> {
        for field in self.fields.iter().filter(|field| field.transform != "void") {
            field.check_sources(columns)?;
        }
        Ok(())
    }

    /// Fields have sources; names are unique and do not hide a column that they are not made from; ids are unique; widths are positive.
    pub(crate) fn check_fields(&self, columns: &Columns) -> Checked<()> {
        let (mut names, mut ids) = (HashSet::new(), HashSet::new());
        for field in &self.fields {
            let name = field.name.as_str();
            let problem = if name.is_empty() {
                Some("a partition field needs a name".to_owned())
            } else if !names.insert(name) {
                Some(format!("partition name {name} comes twice"))
            } else if field.source_ids.is_empty() {
                Some(format!("partition field {name} has no source column"))
            } else if field.field_id < 0 {
                Some(format!("partition field id {} must not be negative", field.field_id))
            } else if !ids.insert(field.field_id) {
                Some(format!("partition field id {} comes twice", field.field_id))
            } else if field.hides_a_column(columns) {
                Some(format!("partition name {name} is the name of another column of the schema"))
            } else {
                None
            };
            problem.map_or(Ok(()), |text| Err(Flaw::new(text)))?;
            check_width(&field.transform)?;
        }
        Ok(())
    }
}

impl PartitionField {
    pub(crate) fn check_sources(&self, columns: &Columns) -> Checked<()> {
        let Self { field_id, name, transform, .. } = self;
        for source in &self.source_ids {
            let Some(column) = columns.get(*source) else {
                return Err(Flaw::new(format!(
                    "Cannot find source column for partition field: {field_id}: {name}: {transform}({source})"
                )));
            };
            let Kind::Primitive(type_) = &column.kind else {
                return Err(Flaw::new(format!("Cannot partition by non-primitive source field: {}", column.name)));
            };
            if !accepts(transform, type_) {
                return Err(Flaw::new(format!("Invalid source type {type_} for transform: {transform}")));
            }
            if columns.parents(*source).any(|parent| parent.kind != Kind::Struct) {
                return Err(Flaw::new(format!("Cannot partition by {}: it lies in a list or map", column.name)));
            }
        }
        Ok(())
    }

    fn means_the_same_as(&self, other: &Self) -> bool {
        self.source_ids == other.source_ids && self.transform.eq_ignore_ascii_case(&other.transform)
    }

    /// As the readers of all specs together have it: `void`, a field that was dropped, goes with every transform.
    fn is_compatible_with(&self, other: &Self) -> bool {
        let has_void = |field: &Self| field.transform.eq_ignore_ascii_case("void");
        self.means_the_same_as(other) || (self.source_ids == other.source_ids && (has_void(self) || has_void(other)))
    }

    fn hides_a_column(&self, columns: &Columns) -> bool {
        let source_exists = self.source_ids.iter().any(|id| columns.get(*id).is_some());
        source_exists && columns.id_of(&self.name).is_some_and(|id| !self.source_ids.contains(&id))
    }
}

/// A spec as a request has it: its id means nothing, and its fields may lack theirs.
pub(crate) struct UnboundSpec<'a> {
    object: Object<'a>,
    fields: Vec<UnboundField<'a>>,
}

pub(crate) struct UnboundField<'a> {
    object: Object<'a>,
    pub source_ids: Vec<i32>,
    pub field_id: Option<i32>,
    pub name: String,
    pub transform: String,
}

impl<'a> UnboundSpec<'a> {
    pub(crate) fn read(raw: &'a RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let fields = json::each(object.required_raw("fields")?, UnboundField::read).map_err(|f| f.under("fields"))?;
        Ok(Self { object, fields })
    }

    /// Same sources, transforms and names in the same order; ids do not count.
    pub(crate) fn is_same_as(&self, spec: &PartitionSpec) -> bool {
        let same = |(a, b): (&UnboundField<'_>, &PartitionField)| {
            a.source_ids == b.source_ids && a.transform == b.transform && a.name == b.name
        };
        self.fields.len() == spec.fields.len() && self.fields.iter().zip(&spec.fields).all(same)
    }

    /// The ids that the request itself gives to fields.
    pub(crate) fn field_ids(&self) -> HashSet<i32> {
        self.fields.iter().filter_map(|field| field.field_id).collect()
    }

    /// Before format version 3 a field has one source, in the member that older clients read.
    pub(crate) fn check_format_version(&self, format_version: u8) -> Checked<()> {
        let lacks_source = |field: &&UnboundField<'_>| field.object.get("source-id").is_none();
        match self.fields.iter().find(lacks_source).filter(|_| format_version < 3) {
            None => Ok(()),
            Some(field) => Err(Flaw::new(format!(
                "partition field {} needs source-id: source-ids are not supported until v3",
                field.name
            ))),
        }
    }

    /// Gives the spec its id, and ids to the fields that have none.
    pub(crate) fn bind(
        &self,
        id: i32,
        mut missing_id: impl FnMut(&UnboundField<'a>) -> Checked<i32>,
    ) -> Checked<PartitionSpec> {
        let ids = self.fields.iter().map(|f| f.field_id.map_or_else(|| missing_id(f), Ok));
        let ids: Vec<i32> = ids.collect::<Checked<_>>()?;
        let bound = self.fields.iter().zip(ids).map(|(field, field_id)| {
            let text = match field.field_id {
                Some(_) => None,
                None => Some(field.object.with(&[("field-id", field_id.to_string())])),
            };
            (PartitionField { field_id, ..field.as_bound() }, text)
        });
        let (fields, texts): (Vec<_>, Vec<_>) = bound.unzip();
        let mut changes = vec![("spec-id", id.to_string())];
        if texts.iter().any(Option::is_some) {
            let fields = self.fields.iter().zip(&texts);
            let texts = fields.map(|(field, text)| text.as_deref().unwrap_or(field.object.raw()));
            changes.push(("fields", json::array(texts)));
        }
        Ok(PartitionSpec { id, fields, raw: self.object.with(&changes) })
    }

    /// The spec of a new table: sources follow the new column ids, fields are numbered from 1000.
    pub(crate) fn with_fresh_ids(&self, ids: &FreshIds) -> Checked<Box<RawValue>> {
        let mut renumbered = Vec::with_capacity(self.fields.len());
        for (field, field_id) in self.fields.iter().zip(FIRST_FIELD_ID..) {
            let mut changes = fresh_sources(&field.object, &field.source_ids, ids)
                .ok_or_else(|| Flaw::new(format!("Cannot find source column for partition field: {}", field.name)))?;
            changes.push(("field-id", field_id.to_string()));
            renumbered.push(field.object.with(&changes));
        }
        let fields = json::array(renumbered.iter().map(|field| &**field));
        Ok(self.object.with(&[("spec-id", "0".to_owned()), ("fields", fields)]))
    }
}

impl<'a> UnboundField<'a> {
    fn read(raw: &'a RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        Ok(Self {
            source_ids: source_ids(&object)?,
            field_id: object.optional("field-id")?,
            name: object.required("name")?,
            transform: object.required("transform")?,
            object,
        })
    }

    fn as_bound(&self) -> PartitionField {
        PartitionField {
            source_ids: self.source_ids.clone(),
            field_id: self.field_id.unwrap_or_default(),
            name: self.name.clone(),
            transform: self.transform.clone(),
        }
    }
}

/// The ids that a table may give to its partition fields are used up.
pub(crate) fn no_id_left() -> Flaw {
    Flaw::new("no partition field id is left: ids up to the highest there is were given away")
}

/// `source-ids` of a transform with several arguments, else `source-id`.
pub(super) fn source_ids(object: &Object<'_>) -> Checked<Vec<i32>> {
    match object.optional("source-ids")? {
        Some(ids) => Ok(ids),
        None => Ok(vec![object.required("source-id")?]),
    }
}

/// The edits that bring the sources of a partition or sort field to the new ids; `None` where a source is unknown.
pub(super) fn fresh_sources(
    object: &Object<'_>,
    source_ids: &[i32],
    ids: &FreshIds,
) -> Option<Vec<(&'static str, String)>> {
    let fresh: Vec<String> = source_ids.iter().map(|id| Some(ids.get(*id)?.to_string())).collect::<Option<_>>()?;
    let mut changes = Vec::with_capacity(3);
    if object.get("source-ids").is_some() {
        changes.push(("source-ids", format!("[{}]", fresh.join(","))));
    }
    if object.get("source-id").is_some() {
        changes.push(("source-id", fresh.first().cloned()?));
    }
    Some(changes)
}
