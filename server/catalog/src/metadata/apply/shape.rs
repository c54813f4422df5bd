//! Schemas, partition specs and sort orders: equal ones are reused, chosen ones must fit each other.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::Draft;
use crate::error::{Error, Result};
use crate::metadata::partition::{FIRST_FIELD_ID, UnboundField, UnboundSpec, no_id_left};
use crate::metadata::schema::{Columns, NewestColumns, check_evolution, check_format_version};
use crate::metadata::sort_order::UNSORTED_ID;
use crate::metadata::{Checked, Flaw, PartitionSpec, Schema, SortOrder};

/// Stands for what the request added last.
const LAST_ADDED: i32 = -1;

impl Draft {
    pub(super) fn add_schema(&mut self, raw: &RawValue) -> Result<()> {
        let schema = Schema::with_id(raw, 0).map_err(under_schema)?;
        let same = self.table.schemas().find(|known| known.is_same_as(&schema)).map(Schema::id);
        let columns = schema.columns().map_err(under_schema)?;
        check_format_version(columns, self.table.format_version)?;
        let highest = columns.highest_id();
        let id = match same {
            Some(id) => id,
            None => {
                self.check_new_schema(columns).map_err(under_schema)?;
                let next = next_id(self.table.schemas().map(Schema::id), 0, "schema")?;
                let schema = Arc::new(Schema::with_id(raw, next).map_err(under_schema)?);
                if let Some(newest) = &mut self.newest_columns {
                    newest.add(&schema);
                }
                self.table.schemas.push(schema);
                self.changed = true;
                next
            }
        };
        if highest > self.table.last_column_id {
            self.table.last_column_id = highest;
            self.changed = true;
        }
        self.last_added_schema = Some(id);
        Ok(())
    }

    /// A table without current data may reuse its field ids for other types: that is how engines replace tables.
    fn check_new_schema(&mut self, columns: &Columns) -> Checked<()> {
        columns.check_identifiers()?;
        let table = &self.table;
        let newest = self.newest_columns.get_or_insert_with(|| NewestColumns::of(&table.schemas));
        let current = table.schema(table.current_schema_id);
        let current = current.and_then(|schema| schema.columns().ok());
        // The current schema speaks first: a revert may have made it older than others.
        let before = |id| current.and_then(|current| current.get(id)).or_else(|| newest.get(id));
        columns.check_new(before)?;
        if table.current_snapshot_id.is_none() {
            return Ok(());
        }
        check_evolution(columns, before, table.format_version)
    }

    pub(super) fn set_current_schema(&mut self, schema_id: i32) -> Result<()> {
        let id = resolve(schema_id, self.last_added_schema, "schema")?;
        if self.table.schema(id).is_none() {
            return Err(Error::invalid(format!("Cannot set current schema to unknown schema: {id}")));
        }
        if self.table.current_schema_id != id {
            self.table.current_schema_id = id;
            self.changed = true;
            self.reshaped = true;
        }
        Ok(())
    }

    /// Schemas that a ref's snapshot was written with stay.
    pub(super) fn remove_schemas(&mut self, schema_ids: &[i32]) -> Result<()> {
        if schema_ids.contains(&self.table.current_schema_id) {
            return Err(Error::invalid("Cannot remove the current schema"));
        }
        let heads = self.table.refs.values().filter_map(|target| self.table.snapshot(target.snapshot_id));
        let needed: HashSet<i32> = heads.filter_map(|snapshot| snapshot.schema_id()).collect();
        let before = self.table.schemas.len();
        self.table.schemas.retain(|schema| needed.contains(&schema.id()) || !schema_ids.contains(&schema.id()));
        if self.table.schemas.len() != before {
            self.newest_columns = None;
            self.changed = true;
        }
        Ok(())
    }

    pub(super) fn add_spec(&mut self, raw: &RawValue) -> Result<()> {
        let unbound = UnboundSpec::read(raw).map_err(under_spec)?;
        let same = self.table.specs().find(|spec| unbound.is_same_as(spec)).map(PartitionSpec::id);
        if let Some(id) = same {
            self.last_added_spec = Some(id);
            return Ok(());
        }
        unbound.check_format_version(self.table.format_version).map_err(under_spec)?;
        let id = next_id(self.table.specs().map(PartitionSpec::id), 0, "partition spec")?;
        let spec = self.bind(&unbound, id).map_err(under_spec)?;
        self.check_new_spec(&spec).map_err(under_spec)?;
        self.table.last_partition_id = self.table.last_partition_id.max(spec.last_field_id());
        self.table.specs.push(Arc::new(spec));
        self.last_added_spec = Some(id);
        self.changed = true;
        Ok(())
    }

    /// Fields without ids get that of the same source and transform in an earlier spec, or the next free one.
    fn bind(&self, unbound: &UnboundSpec<'_>, id: i32) -> Checked<PartitionSpec> {
        if self.table.format_version == 1 {
            let mut in_order = FIRST_FIELD_ID..=i32::MAX;
            return unbound.bind(id, |_| in_order.next().ok_or_else(no_id_left));
        }
        let asked = unbound.field_ids();
        let last = self.table.last_partition_id.max(FIRST_FIELD_ID - 1);
        let mut free = (last..=i32::MAX).skip(1).filter(|id| !asked.contains(id));
        unbound.bind(id, |field| match self.field_id_of(field) {
            Some(known) if !asked.contains(&known) => Ok(known),
            _ => free.next().ok_or_else(no_id_left),
        })
    }

    fn field_id_of(&self, wanted: &UnboundField<'_>) -> Option<i32> {
        let fields = self.table.specs().flat_map(PartitionSpec::fields);
        let same = fields.filter(|f| f.source_ids == wanted.source_ids && f.transform == wanted.transform);
        same.map(|field| field.field_id).max()
    }

    fn check_new_spec(&self, spec: &PartitionSpec) -> Checked<()> {
        let columns = self.current_columns()?;
        spec.check_fields(columns)?;
        spec.check_sources(columns)?;
        match self.table.format_version {
            1 if !spec.has_sequential_ids() => Err(Flaw::new("v1 requires partition field ids in order from 1000")),
            // There a place in the order is an id, so that fields of several specs share it.
            1 => Ok(()),
            _ => spec.check_meanings(self.table.specs().flat_map(PartitionSpec::fields)),
        }
    }

    pub(super) fn set_default_spec(&mut self, spec_id: i32) -> Result<()> {
        let id = resolve(spec_id, self.last_added_spec, "partition spec")?;
        if self.table.spec(id).is_none() {
            return Err(Error::invalid(format!("Cannot set default partition spec to unknown spec: {id}")));
        }
        if self.table.default_spec_id != id {
            self.table.default_spec_id = id;
            self.changed = true;
            self.reshaped = true;
        }
        Ok(())
    }

    pub(super) fn remove_specs(&mut self, spec_ids: &[i32]) -> Result<()> {
        if spec_ids.contains(&self.table.default_spec_id) {
            return Err(Error::invalid("Cannot remove the default partition spec"));
        }
        let before = self.table.specs.len();
        self.table.specs.retain(|spec| !spec_ids.contains(&spec.id()));
        self.changed |= self.table.specs.len() != before;
        Ok(())
    }

    pub(super) fn add_sort_order(&mut self, raw: &RawValue) -> Result<()> {
        let order = SortOrder::read_with_id(raw, UNSORTED_ID).map_err(under_order)?;
        let same = self.table.sort_orders().find(|known| known.fields() == order.fields()).map(SortOrder::id);
        if let Some(id) = same {
            self.last_added_order = Some(id);
            return Ok(());
        }
        let order = match order.is_unsorted() {
            true => order,
            false => {
                let next = next_id(self.table.sort_orders().map(SortOrder::id), UNSORTED_ID + 1, "sort order")?;
                SortOrder::read_with_id(raw, next).map_err(under_order)?
            }
        };
        let columns = self.current_columns().map_err(under_order)?;
        order.check_fields().map_err(under_order)?;
        order.check_sources(columns).map_err(under_order)?;
        self.last_added_order = Some(order.id());
        self.table.sort_orders.push(Arc::new(order));
        self.changed = true;
        Ok(())
    }

    pub(super) fn set_default_sort_order(&mut self, sort_order_id: i32) -> Result<()> {
        let id = resolve(sort_order_id, self.last_added_order, "sort order")?;
        if self.table.sort_order(id).is_none() {
            return Err(Error::invalid(format!("Cannot set default sort order to unknown order: {id}")));
        }
        if self.table.default_sort_order_id != id {
            self.table.default_sort_order_id = id;
            self.changed = true;
            self.reshaped = true;
        }
        Ok(())
    }

    /// The default spec and the default order must find their columns in the current schema.
    pub(super) fn check_shape(&self) -> Result<()> {
        let table = &self.table;
        let columns = self.current_columns()?;
        if let Some(spec) = table.spec(table.default_spec_id) {
            spec.check_sources(columns).map_err(|f| f.under("default partition spec"))?;
        }
        if let Some(order) = table.sort_order(table.default_sort_order_id) {
            order.check_sources(columns).map_err(|f| f.under("default sort order"))?;
        }
        Ok(())
    }

    /// A new table may name its current schema last, as DuckDB does: until then it is the one added last.
    fn current_columns(&self) -> Checked<&Columns> {
        let chosen = self.table.schema(self.table.current_schema_id);
        let current = chosen.or_else(|| self.table.schema(self.last_added_schema?));
        current.ok_or_else(|| Flaw::new("no current schema has been set"))?.columns()
    }
}

/// One more than the highest id, or `first` where there is none.
fn next_id(ids: impl Iterator<Item = i32>, first: i32, what: &str) -> Result<i32> {
    match ids.max() {
        None => Ok(first),
        Some(highest) => highest
            .checked_add(1)
            .map(|next| next.max(first))
            .ok_or_else(|| Error::invalid(format!("no {what} id is left: {highest} is the highest there is"))),
    }
}

fn resolve(id: i32, last_added: Option<i32>, what: &str) -> Result<i32> {
    match (id, last_added) {
        (LAST_ADDED, None) => {
            Err(Error::invalid(format!("Cannot set last added {what}: no {what} has been added in this request")))
        }
        (LAST_ADDED, Some(last)) => Ok(last),
        (id, _) => Ok(id),
    }
}

fn under_schema(flaw: Flaw) -> Flaw {
    flaw.under("add-schema.schema")
}

fn under_spec(flaw: Flaw) -> Flaw {
    flaw.under("add-spec.spec")
}

fn under_order(flaw: Flaw) -> Flaw {
    flaw.under("add-sort-order.sort-order")
}
