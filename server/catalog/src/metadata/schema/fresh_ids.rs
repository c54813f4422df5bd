//! Numbering the columns of a new table from 1: those of one struct first, then what is inside of them.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::metadata::json::{self, Checked, Flaw, Object};

/// The new id of each old one.
#[derive(Debug, Default)]
pub(crate) struct FreshIds {
    new_by_old: HashMap<i32, i32>,
}

impl FreshIds {
    pub(crate) fn get(&self, old: i32) -> Option<i32> {
        self.new_by_old.get(&old).copied()
    }

    pub(crate) fn last(&self) -> i32 {
        i32::try_from(self.new_by_old.len()).unwrap_or(i32::MAX)
    }

    fn assign(&mut self, old: i32) -> i32 {
        let new = self.last() + 1;
        self.new_by_old.insert(old, new);
        new
    }
}

/// The schema with fresh ids, its identifier fields included. Its columns must have been read before: ids are unique.
pub(crate) fn with_fresh_ids(schema: &RawValue) -> Checked<(Box<RawValue>, FreshIds)> {
    let mut ids = FreshIds::default();
    let renumbered = json::raw(struct_type(&Object::parse(schema)?, &mut ids)?);
    let object = Object::parse(&renumbered)?;
    let identifiers: Option<Vec<i32>> = object.optional("identifier-field-ids")?;
    let Some(identifiers) = identifiers else {
        return Ok((renumbered, ids));
    };
    let fresh: Vec<String> = identifiers.iter().filter_map(|id| Some(ids.get(*id)?.to_string())).collect();
    Ok((object.with(&[("identifier-field-ids", format!("[{}]", fresh.join(",")))]), ids))
}

fn struct_type(object: &Object<'_>, ids: &mut FreshIds) -> Checked<String> {
    let fields = json::each(object.required_raw("fields")?, Object::parse)?;
    let own: Vec<i32> = fields.iter().map(|field| Ok(ids.assign(field.required("id")?))).collect::<Checked<_>>()?;
    let mut renumbered = Vec::with_capacity(fields.len());
    for (field, id) in fields.iter().zip(own) {
        let type_ = any_type(field.required_raw("type")?, ids)?;
        renumbered.push(field.with(&[("id", id.to_string()), ("type", type_)]));
    }
    let fields = json::array(renumbered.iter().map(|field| &**field));
    Ok(object.with(&[("fields", fields)]).get().to_owned())
}

fn any_type(raw: &RawValue, ids: &mut FreshIds) -> Checked<String> {
    if raw.get().starts_with('"') {
        return Ok(raw.get().to_owned());
    }
    let object = Object::parse(raw)?;
    match object.required::<String>("type")?.as_str() {
        "struct" => struct_type(&object, ids),
        "list" => collection(&object, &["element"], ids),
        "map" => collection(&object, &["key", "value"], ids),
        other => Err(Flaw::new(format!("'{other}' is no nested type"))),
    }
}

fn collection(object: &Object<'_>, parts: &[&str], ids: &mut FreshIds) -> Checked<String> {
    let id_keys: Vec<String> = parts.iter().map(|part| format!("{part}-id")).collect();
    let mut changes = Vec::with_capacity(4);
    for key in &id_keys {
        changes.push((key.as_str(), ids.assign(object.required(key)?).to_string()));
    }
    for part in parts {
        changes.push((part, any_type(object.required_raw(part)?, ids)?));
    }
    Ok(object.with(&changes).get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_numbered_level_by_level_and_all_else_stays() {
        let schema = json::raw(
            r#"{"type":"struct","x":1,"fields":[
            {"id":7,"name":"p","required":true,"type":{"type":"struct","fields":[{"id":20,"name":"x","required":true,"type":"long"}]}},
            {"id":3,"name":"m","required":false,"type":{"type":"map","key-id":9,"key":"string","value-id":8,"value-required":false,"value":{"type":"list","element-id":11,"element":"int","element-required":true}}},
            {"id":12,"name":"z","required":true,"type":"string","doc":"z"}],"identifier-field-ids":[12,20]}"#
                .to_owned(),
        );
        let (fresh, ids) = with_fresh_ids(&schema).unwrap();
        let expected = r#"{"type":"struct","x":1,"fields":[{"id":1,"name":"p","required":true,"type":{"type":"struct","fields":[{"id":4,"name":"x","required":true,"type":"long"}]}},{"id":2,"name":"m","required":false,"type":{"type":"map","key-id":5,"key":"string","value-id":6,"value-required":false,"value":{"type":"list","element-id":7,"element":"int","element-required":true}}},{"id":3,"name":"z","required":true,"type":"string","doc":"z"}],"identifier-field-ids":[3,4]}"#;
        assert_eq!(fresh.get(), expected);
        assert_eq!((ids.get(12), ids.get(8), ids.last()), (Some(3), Some(6), 7));
    }
}
