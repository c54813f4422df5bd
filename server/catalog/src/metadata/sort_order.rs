//! Sort orders.

use serde_json::value::RawValue;

use super::json::{self, Checked, Flaw, Object};
use super::partition::{fresh_sources, source_ids};
use super::schema::{Columns, FreshIds, Kind, accepts, check_width};

/// The id of the order that sorts by nothing; no other order may have it.
pub(crate) const UNSORTED_ID: i32 = 0;

/// One order in which files of a table are, or were, written.
#[derive(Debug, Clone)]
pub struct SortOrder {
    id: i32,
    fields: Vec<SortField>,
    raw: Box<RawValue>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    pub source_ids: Vec<i32>,
    pub transform: String,
    /// `asc` or `desc`.
    pub direction: String,
    /// `nulls-first` or `nulls-last`.
    pub null_order: String,
}

impl SortOrder {
    pub fn id(&self) -> i32 {
        self.id
    }

    pub fn fields(&self) -> &[SortField] {
        &self.fields
    }

    pub(crate) fn raw(&self) -> &RawValue {
        &self.raw
    }

    pub(crate) fn unsorted() -> Self {
        Self {
            id: UNSORTED_ID,
            fields: Vec::new(),
            raw: json::raw(r#"{"order-id":0,"fields":[]}"#.to_owned()),
        }
    }

    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        Ok(Self {
            id: object.required("order-id")?,
            fields: read_fields(&object)?,
            raw: raw.to_owned(),
        })
    }

    /// Reads an order of a request, whose own id means nothing.
    pub(crate) fn read_with_id(raw: &RawValue, id: i32) -> Checked<Self> {
        let object = Object::parse(raw)?;
        Ok(Self {
            id,
            fields: read_fields(&object)?,
            raw: object.with(&[("order-id", id.to_string())]),
        })
    }

    /// Reads the order of a new table: sources follow the new column ids; order 1, or 0 when it sorts by nothing.
    pub(crate) fn read_with_fresh_ids(raw: &RawValue, ids: &FreshIds) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let mut renumbered = Vec::new();
        for field in json::each(object.required_raw("fields")?, Object::parse).map_err(|f| f.under("fields"))? {
            let changes = fresh_sources(&field, &source_ids(&field)?, ids)
                .ok_or_else(|| Flaw::new("Cannot find source column for sort field"))?;
            renumbered.push(field.with(&changes));
        }
        let id = if renumbered.is_empty() { UNSORTED_ID } else { 1 };
        let fields = json::array(renumbered.iter().map(|field| &**field));
        Self::read(&object.with(&[("order-id", id.to_string()), ("fields", fields)]))
    }

    pub(crate) fn is_unsorted(&self) -> bool {
        self.fields.is_empty()
    }

    /// Every source column must be there and be something the transform can be computed from.
    pub(crate) fn check_sources(&self, columns: &Columns) -> Checked<()> {
        for field in &self.fields {
            let SortField {
                transform, source_ids, ..
            } = field;
            for source in source_ids {
                let Some(column) = columns.get(*source) else {
                    return Err(Flaw::new(format!(
                        "Cannot find source column for sort field: {transform}({source})"
                    )));
                };
                let Kind::Primitive(type_) = &column.kind else {
                    return Err(Flaw::new(format!(
                        "Cannot sort by non-primitive source field: {}",
                        column.name
                    )));
                };
                if !accepts(transform, type_) {
                    return Err(Flaw::new(format!(
                        "Invalid source type {type_} for transform: {transform}"
                    )));
                }
            }
            check_width(transform)?;
        }
        Ok(())
    }
}

fn read_fields(object: &Object<'_>) -> Checked<Vec<SortField>> {
    json::each(object.required_raw("fields")?, read_field).map_err(|f| f.under("fields"))
}

fn read_field(raw: &RawValue) -> Checked<SortField> {
    let object = Object::parse(raw)?;
    Ok(SortField {
        source_ids: source_ids(&object)?,
        transform: object.required("transform")?,
        direction: one_of(&object, "direction", ["asc", "desc"])?,
        null_order: one_of(&object, "null-order", ["nulls-first", "nulls-last"])?,
    })
}

fn one_of(object: &Object<'_>, key: &str, allowed: [&str; 2]) -> Checked<String> {
    let value = object.required::<String>(key)?.to_ascii_lowercase();
    if allowed.contains(&value.as_str()) {
        return Ok(value);
    }
    Err(Flaw::new(format!("'{value}' is neither {} nor {}", allowed[0], allowed[1])).under(key))
}
