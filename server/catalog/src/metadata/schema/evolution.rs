//! What a new schema may be: fit for the format version, and readable over the files that are there.

use std::collections::HashMap;
use std::sync::Arc;

use super::columns::{Column, Columns, Kind};
use super::{Schema, defaults, types};
use crate::metadata::json::{Checked, Flaw};

/// The first format version with default values.
const DEFAULTS_FORMAT_VERSION: u8 = 3;

/// Refuses types and default values that came with a later format version; names every column that has one.
pub(crate) fn check_format_version(columns: &Columns, format_version: u8) -> Checked<()> {
    let problems: Vec<String> = columns.iter().filter_map(|(_, column)| too_new(column, format_version)).collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Flaw::new(format!("Invalid schema for v{format_version}:\n- {}", problems.join("\n- "))))
}

fn too_new(column: &Column, format_version: u8) -> Option<String> {
    let name = &column.name;
    if let (Kind::Primitive(type_), Some(default)) = (&column.kind, &column.initial_default)
        && types::first_format_version(type_).is_none()
        && format_version < DEFAULTS_FORMAT_VERSION
    {
        return Some(format!(
            "Invalid initial default for {name}: non-null default ({default}) is not supported until v3"
        ));
    }
    let Kind::Primitive(type_) = &column.kind else {
        return None;
    };
    let first = types::first_format_version(type_).filter(|first| format_version < *first)?;
    Some(format!("Invalid type for {name}: {type_} is not supported until v{first}"))
}

/// For each field id the newest schema that has it.
pub(crate) struct NewestColumns {
    by_id: HashMap<i32, Arc<Schema>>,
}

impl NewestColumns {
    /// Of schemas in the order of age, the newest last. One that cannot be read says nothing about its columns.
    pub(crate) fn of(schemas: &[Arc<Schema>]) -> Self {
        let mut by_id = HashMap::new();
        for schema in schemas.iter().rev() {
            for (id, _) in schema.columns().into_iter().flat_map(Columns::iter) {
                by_id.entry(id).or_insert_with(|| schema.clone());
            }
        }
        Self { by_id }
    }

    pub(crate) fn add(&mut self, schema: &Arc<Schema>) {
        let columns = schema.columns().into_iter().flat_map(Columns::iter);
        self.by_id.extend(columns.map(|(id, _)| (id, schema.clone())));
    }

    pub(crate) fn get(&self, id: i32) -> Option<&Column> {
        self.by_id.get(&id)?.columns().ok()?.get(id)
    }
}

/// Refuses a field id that comes back with a type or an initial default which files written `before` cannot be read with.
pub(crate) fn check_evolution<'a>(
    columns: &Columns,
    before: impl Fn(i32) -> Option<&'a Column>,
    format_version: u8,
) -> Checked<()> {
    for (id, column) in columns.iter() {
        let Some(before) = before(id) else { continue };
        let name = &column.name;
        if !may_become(before, column, format_version) {
            let (from, to) = (before.kind.as_str(), column.kind.as_str());
            return Err(Flaw::new(format!(
                "cannot change column {name} (field id {id}) from {from} to {to}: give the new column a new field id"
            )));
        }
        if format_version >= DEFAULTS_FORMAT_VERSION && !reads_alike(before, column) {
            return Err(Flaw::new(format!(
                "cannot change the initial-default of column {name} (field id {id}), which its old rows have: \
                 set write-default instead"
            )));
        }
    }
    Ok(())
}

/// Whether rows of files without the column keep their value. A default is written anew where the type grew.
fn reads_alike(before: &Column, after: &Column) -> bool {
    match (&before.initial_default, &after.initial_default) {
        (Some(old), Some(new)) => before.kind != after.kind || defaults::are_same(after.kind.as_str(), old, new),
        (old, new) => old == new,
    }
}

fn may_become(before: &Column, after: &Column, format_version: u8) -> bool {
    match (&before.kind, &after.kind) {
        (Kind::Primitive(from), Kind::Primitive(to)) => types::can_promote(from, to, format_version),
        (Kind::Primitive(from), _) => from == "unknown",
        (from, to) => from == to,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::metadata::json;

    fn schema(fields: &str) -> Schema {
        Schema::read(&json::raw(format!(r#"{{"type":"struct","fields":{fields}}}"#))).unwrap()
    }

    #[test]
    fn what_came_with_v3_is_refused_before_and_all_of_it_is_named() {
        let schema = schema(
            r#"[{"id":1,"name":"v","required":false,"type":"variant"},
                {"id":2,"name":"d","required":false,"type":"int","initial-default":5},
                {"id":3,"name":"l","required":false,"type":{"type":"list","element-id":4,"element-required":true,"element":"timestamp_ns"}}]"#,
        );
        let columns = schema.columns().unwrap();
        let error = Error::from(check_format_version(columns, 2).unwrap_err());
        let expected = "Invalid schema for v2:\n\
            - Invalid type for v: variant is not supported until v3\n\
            - Invalid initial default for d: non-null default (5) is not supported until v3\n\
            - Invalid type for l.element: timestamp_ns is not supported until v3";
        assert_eq!(error.message(), expected);
        assert_eq!(check_format_version(columns, 3), Ok(()));
    }

    #[test]
    fn a_field_id_keeps_a_type_that_old_files_can_be_read_as() {
        let first = schema(
            r#"[{"id":1,"name":"a","required":true,"type":"int"},{"id":2,"name":"b","required":true,"type":"string"}]"#,
        );
        let second = schema(r#"[{"id":1,"name":"a","required":true,"type":"long"}]"#);
        let newest = NewestColumns::of(&[first.into(), second.into()]);
        let judge = |fields: &str| check_evolution(schema(fields).columns().unwrap(), |id| newest.get(id), 2);
        assert_eq!(judge(r#"[{"id":1,"name":"renamed","required":false,"type":"long"}]"#), Ok(()));
        assert_eq!(judge(r#"[{"id":3,"name":"b","required":true,"type":"int"}]"#), Ok(()));
        assert!(judge(r#"[{"id":1,"name":"a","required":true,"type":"int"}]"#).is_err(), "long to int");
        assert!(judge(r#"[{"id":2,"name":"b","required":true,"type":"int"}]"#).is_err(), "a dropped string as int");
        assert!(
            judge(r#"[{"id":1,"name":"a","required":true,"type":{"type":"struct","fields":[]}}]"#).is_err(),
            "a long as struct"
        );
    }

    #[test]
    fn the_initial_default_of_a_column_stays_for_good() {
        let column = |type_: &str, members: &str| {
            schema(&format!(r#"[{{"id":1,"name":"a","required":false,"type":"{type_}"{members}}}]"#))
        };
        let five = r#","initial-default":5"#;
        for (before, after, is_same) in [
            (column("int", five), column("int", five), true),
            (column("int", five), column("long", five), true),
            (column("int", five), column("int", r#","initial-default":5,"write-default":6"#), true),
            (column("int", ""), column("int", r#","write-default":6"#), true),
            (column("int", ""), column("int", r#","initial-default":null"#), true),
            (column("double", five), column("double", r#","initial-default":5.0"#), true),
            (column("int", ""), column("int", five), false),
            (column("int", five), column("int", ""), false),
            (column("int", five), column("int", r#","initial-default":6"#), false),
        ] {
            let (text, newest) = (after.raw().get().to_owned(), NewestColumns::of(&[before.into()]));
            let judged = check_evolution(after.columns().unwrap(), |id| newest.get(id), 3);
            assert_eq!(judged.is_ok(), is_same, "{text}");
        }
    }

    #[test]
    fn the_newest_schema_speaks_for_a_column() {
        let of =
            |type_: &str| Arc::new(schema(&format!(r#"[{{"id":1,"name":"a","required":true,"type":"{type_}"}}]"#)));
        let mut newest = NewestColumns::of(&[of("int"), of("long")]);
        assert_eq!(newest.get(1).unwrap().kind.as_str(), "long");
        newest.add(&of("string"));
        assert_eq!(newest.get(1).unwrap().kind.as_str(), "string");
        assert!(newest.get(2).is_none());
    }
}
