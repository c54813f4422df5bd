//! What a new schema may be: fit for the format version, and readable over the files that are there.

use super::columns::{Column, Columns, Kind};
use super::{Schema, types};
use crate::metadata::json::{Checked, Flaw};

/// The first format version with default values.
const DEFAULTS_FORMAT_VERSION: u8 = 3;

/// Refuses types and default values that came with a later format version; names every column that has one.
pub(crate) fn check_format_version(columns: &Columns, format_version: u8) -> Checked<()> {
    let problems: Vec<String> = columns
        .iter()
        .filter_map(|(_, column)| too_new(column, format_version))
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Flaw::new(format!(
        "Invalid schema for v{format_version}:\n- {}",
        problems.join("\n- ")
    )))
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
    Some(format!(
        "Invalid type for {name}: {type_} is not supported until v{first}"
    ))
}

/// Refuses a field id that comes back with a type which files written under `earlier` cannot be read as.
///
/// Each id is compared with the newest of the earlier schemas that has it; `earlier` is in the order of age, the newest last.
pub(crate) fn check_evolution<'a>(
    columns: &Columns,
    earlier: impl DoubleEndedIterator<Item = &'a Schema> + Clone,
    format_version: u8,
) -> Checked<()> {
    for (id, column) in columns.iter() {
        // A schema that cannot be read says nothing about its columns, so there is nothing to hold them against.
        let before = earlier.clone().rev().find_map(|schema| schema.columns().ok()?.get(id));
        if let Some(before) = before.filter(|before| !may_become(before, column, format_version)) {
            let (from, to) = (before.kind.as_str(), column.kind.as_str());
            return Err(Flaw::new(format!(
                "cannot change column {} (field id {id}) from {from} to {to}: give the new column a new field id",
                column.name
            )));
        }
    }
    Ok(())
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
        let earlier = [&first, &second];
        let judge = |fields: &str| check_evolution(schema(fields).columns().unwrap(), earlier.into_iter(), 2);
        assert_eq!(
            judge(r#"[{"id":1,"name":"renamed","required":false,"type":"long"}]"#),
            Ok(())
        );
        assert_eq!(judge(r#"[{"id":3,"name":"b","required":true,"type":"int"}]"#), Ok(()));
        assert!(
            judge(r#"[{"id":1,"name":"a","required":true,"type":"int"}]"#).is_err(),
            "long to int"
        );
        assert!(
            judge(r#"[{"id":2,"name":"b","required":true,"type":"int"}]"#).is_err(),
            "a dropped string as int"
        );
        assert!(
            judge(r#"[{"id":1,"name":"a","required":true,"type":{"type":"struct","fields":[]}}]"#).is_err(),
            "a long as struct"
        );
    }
}
