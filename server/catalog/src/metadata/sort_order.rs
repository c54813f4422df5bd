//! Sort orders.

use std::sync::Arc;

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
        Self { id: UNSORTED_ID, fields: Vec::new(), raw: json::raw(r#"{"order-id":0,"fields":[]}"#.to_owned()) }
    }

    pub(crate) fn read(raw: &RawValue) -> Checked<Self> {
        let object = Object::parse(raw)?;
        Ok(Self { id: object.required("order-id")?, fields: read_fields(&object)?, raw: raw.to_owned() })
    }

    /// Reads an order of a request, whose own id means nothing.
    pub(crate) fn read_with_id(raw: &RawValue, id: i32) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let mut changes = vec![("order-id", id.to_string())];
        let fields = json::each(object.required_raw("fields")?, Object::parse).map_err(|f| f.under("fields"))?;
        let words: Vec<_> = fields.iter().map(in_lower_case).collect();
        if words.iter().any(|words| !words.is_empty()) {
            let fields: Vec<_> = fields.iter().zip(&words).map(|(field, words)| field.with(words)).collect();
            changes.push(("fields", json::array(fields.iter().map(|field| &**field))));
        }
        Ok(Self { id, fields: read_fields(&object)?, raw: object.with(&changes) })
    }

    /// Reads the order of a new table: sources follow the new column ids; order 1, or 0 when it sorts by nothing.
    pub(crate) fn read_with_fresh_ids(raw: &RawValue, ids: &FreshIds) -> Checked<Self> {
        let object = Object::parse(raw)?;
        let mut renumbered = Vec::new();
        for field in json::each(object.required_raw("fields")?, Object::parse).map_err(|f| f.under("fields"))? {
            let mut changes = fresh_sources(&field, &source_ids(&field)?, ids)
                .ok_or_else(|| Flaw::new("Cannot find source column for sort field"))?;
            changes.extend(in_lower_case(&field));
            renumbered.push(field.with(&changes));
        }
        let id = if renumbered.is_empty() { UNSORTED_ID } else { 1 };
        let fields = json::array(renumbered.iter().map(|field| &**field));
        Self::read(&object.with(&[("order-id", id.to_string()), ("fields", fields)]))
    }

    pub(crate) fn is_unsorted(&self) -> bool {
        self.fields.is_empty()
    }

    /// What a new order must hold on its own: every field has a source and, where it needs one, a width.
    pub(crate) fn check_fields(&self) -> Checked<()> {
        for field in &self.fields {
            if field.source_ids.is_empty() {
                return Err(Flaw::new(format!("{} has no source column", field.transform)).under("fields"));
            }
            check_width(&field.transform)?;
        }
        Ok(())
    }

    /// Every source column must be there and be something the transform can be computed from.
    pub(crate) fn check_sources(&self, columns: &Columns) -> Checked<()> {
        for field in &self.fields {
            let SortField { transform, source_ids, .. } = field;
            for source in source_ids {
                let Some(column) = columns.get(*source) else {
                    return Err(Flaw::new(format!("Cannot find source column for sort field: {transform}({source})")));
                };
                let Kind::Primitive(type_) = &column.kind else {
                    return Err(Flaw::new(format!("Cannot sort by non-primitive source field: {}", column.name)));
                };
                if !accepts(transform, type_) {
                    return Err(Flaw::new(format!("Invalid source type {type_} for transform: {transform}")));
                }
            }
        }
        Ok(())
    }
}

/// Adds the order that sorts by nothing where it is the default and is not written down, as some writers leave it out.
/// Returns whether it did.
pub(crate) fn complete_orders(orders: &mut Vec<Arc<SortOrder>>, default_id: i32) -> bool {
    let is_missing = default_id == UNSORTED_ID && orders.iter().all(|order| order.id != UNSORTED_ID);
    if is_missing {
        orders.insert(0, Arc::new(SortOrder::unsorted()));
    }
    is_missing
}

/// The edits that bring a field's direction and null order to the one spelling that every client reads.
fn in_lower_case(field: &Object<'_>) -> Vec<(&'static str, String)> {
    let edit = |key: &'static str| {
        let word: String = field.optional(key).ok()??;
        let lower = word.to_ascii_lowercase();
        (lower != word).then(|| (key, json::quoted(&lower)))
    };
    ["direction", "null-order"].into_iter().filter_map(edit).collect()
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
