//! A schema as a flat list of its columns, nested ones too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::value::RawValue;

use super::{defaults, types};
use crate::metadata::json::{self, Checked, Flaw, Object};

/// Nested types beyond this depth are refused; no engine writes them.
const DEPTH_MAX: usize = 64;

/// Ids above are those of metadata columns such as `_file`.
const FIELD_ID_MAX: i32 = i32::MAX - 200;

/// What a column is; the columns inside of it are listed on their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By name, which may be one that nobody here knows.
    Primitive(String),
    Struct,
    List,
    Map,
}

impl Kind {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Kind::Primitive(name) => name,
            Kind::Struct => "struct",
            Kind::List => "list",
            Kind::Map => "map",
        }
    }
}

/// A field, or the element, key or value of a collection.
#[derive(Debug)]
pub(crate) struct Column {
    /// From the top, joined by dots.
    pub name: String,
    pub kind: Kind,
    pub required: bool,
    pub parent_id: Option<i32>,
    pub initial_default: Option<String>,
    /// What a client could not read back: taken where it is stored, refused where it is added.
    unfit: Option<String>,
}

/// All columns of one schema.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    by_id: BTreeMap<i32, Column>,
    by_name: HashMap<String, i32>,
    identifiers: Vec<i32>,
    is_struct: bool,
}

impl Columns {
    pub(crate) fn read(schema: &RawValue) -> Checked<Self> {
        let object = Object::parse(schema)?;
        let mut columns = Self::default();
        columns.read_struct(&object, &Place::top())?;
        columns.is_struct = object.optional::<String>("type")?.as_deref() == Some("struct");
        columns.identifiers = object.optional("identifier-field-ids")?.unwrap_or_default();
        Ok(columns)
    }

    pub(crate) fn get(&self, id: i32) -> Option<&Column> {
        self.by_id.get(&id)
    }

    pub(crate) fn id_of(&self, name: &str) -> Option<i32> {
        self.by_name.get(name).copied()
    }

    /// In the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &Column)> {
        self.by_id.iter().map(|(id, column)| (*id, column))
    }

    pub(crate) fn highest_id(&self) -> i32 {
        self.by_id.last_key_value().map_or(0, |(id, _)| *id)
    }

    /// The columns around this one, the innermost first.
    pub(crate) fn parents(&self, id: i32) -> impl Iterator<Item = &Column> {
        let parent = |column: &Column| column.parent_id.and_then(|id| self.get(id));
        std::iter::successors(self.get(id).and_then(parent), move |column| parent(column))
    }

    /// Identifier fields are required primitives that compare exactly, inside of required structs only.
    pub(crate) fn check_identifiers(&self) -> Checked<()> {
        let unique: BTreeSet<i32> = self.identifiers.iter().copied().collect();
        for id in unique {
            if let Some(problem) = self.identifier_problem(id) {
                let message = format!("field {id} cannot be an identifier field: {problem}");
                return Err(Flaw::new(message).under("identifier-field-ids"));
            }
        }
        Ok(())
    }

    /// For a schema that is to be added: clients can read it. A column that was so `before` may stay.
    pub(crate) fn check_new<'a>(&self, before: impl Fn(i32) -> Option<&'a Column>) -> Checked<()> {
        self.check_readable(|id, column| {
            before(id).is_some_and(|old| old.kind == column.kind && old.unfit == column.unfit)
        })
    }

    /// For a schema that somebody else wrote: clients can read it, but for types that only newer writers know.
    pub(crate) fn check_foreign(&self) -> Checked<()> {
        self.check_readable(|_, column| matches!(&column.kind, Kind::Primitive(name) if !types::is_known(name)))
    }

    fn check_readable(&self, may_stay: impl Fn(i32, &Column) -> bool) -> Checked<()> {
        if !self.is_struct {
            return Err(Flaw::new("must be 'struct'").under("type"));
        }
        for (id, column) in self.iter() {
            if let Some(problem) = column.unfit.as_ref().filter(|_| !may_stay(id, column)) {
                return Err(Flaw::new(format!("column {}: {problem}", column.name)).under("fields"));
            }
        }
        Ok(())
    }

    fn identifier_problem(&self, id: i32) -> Option<&'static str> {
        let Some(column) = self.get(id) else {
            return Some("it does not exist");
        };
        match &column.kind {
            Kind::Primitive(name) if name == "float" || name == "double" => Some("it is a float or double"),
            Kind::Primitive(_) if !column.required => Some("it is not required"),
            Kind::Primitive(_) if self.parents(id).any(|parent| parent.kind != Kind::Struct) => {
                Some("it lies in a list or map")
            }
            Kind::Primitive(_) if self.parents(id).any(|parent| !parent.required) => {
                Some("it lies in an optional struct")
            }
            Kind::Primitive(_) => None,
            Kind::Struct | Kind::List | Kind::Map => Some("it is not of a primitive type"),
        }
    }

    fn read_struct(&mut self, object: &Object<'_>, place: &Place) -> Checked<()> {
        let fields = json::each(object.required_raw("fields")?, Object::parse).map_err(|f| f.under("fields"))?;
        for (at, field) in fields.iter().enumerate() {
            let here = |f: Flaw| f.under(format_args!("fields[{at}]"));
            self.read_field(field, place).map_err(here)?;
        }
        Ok(())
    }

    fn read_field(&mut self, field: &Object<'_>, place: &Place) -> Checked<()> {
        let name: String = field.required("name")?;
        let id = field.required("id")?;
        let required = field.required("required")?;
        let default = |key: &str| field.get(key).map(|raw| raw.get().to_owned());
        let doc = field.optional::<String>("doc");
        let new = NewColumn {
            id,
            name,
            required,
            initial_default: default("initial-default"),
            write_default: default("write-default"),
            unfit: doc.err().map(|_| "doc must be a string".to_owned()),
        };
        self.read_type(field.required_raw("type")?, new, place).map_err(|f| f.under("type"))
    }

    /// Adds a column and all that is inside of its type.
    fn read_type(&mut self, type_: &RawValue, mut new: NewColumn, place: &Place) -> Checked<()> {
        let nested = if type_.get().starts_with('"') { None } else { Some(Object::parse(type_)?) };
        let kind = match &nested {
            None => {
                let name: String = json::decode(type_)?;
                new.unfit = new.unfit.take().or_else(|| new.misfit(&name));
                Kind::Primitive(types::normal(&name))
            }
            Some(object) => match object.required::<String>("type")?.as_str() {
                "struct" => Kind::Struct,
                "list" => Kind::List,
                "map" => Kind::Map,
                other => return Err(Flaw::new(format!("'{other}' is no nested type")).under("type")),
            },
        };
        let inside = self.add(new, kind.clone(), place)?;
        let Some(object) = nested else { return Ok(()) };
        match kind {
            Kind::Primitive(_) => Ok(()),
            Kind::Struct => self.read_struct(&object, &inside),
            Kind::List => self.read_part(&object, "element", &inside),
            Kind::Map => {
                self.read_part(&object, "key", &inside).and_then(|()| self.read_part(&object, "value", &inside))
            }
        }
    }

    /// The element, key or value of a collection; keys are always required.
    fn read_part(&mut self, object: &Object<'_>, part: &str, place: &Place) -> Checked<()> {
        let id = object.required(&format!("{part}-id"))?;
        let required = part == "key" || object.required(&format!("{part}-required"))?;
        let new =
            NewColumn { id, name: part.to_owned(), required, initial_default: None, write_default: None, unfit: None };
        self.read_type(object.required_raw(part)?, new, place).map_err(|f| f.under(part))
    }

    fn add(&mut self, new: NewColumn, kind: Kind, place: &Place) -> Checked<Place> {
        if place.depth == DEPTH_MAX {
            return Err(Flaw::new(format!("types are nested deeper than {DEPTH_MAX} levels")));
        }
        let NewColumn { id, name, required, initial_default, mut unfit, .. } = new;
        if !(0..=FIELD_ID_MAX).contains(&id) {
            unfit.get_or_insert_with(|| format!("field id {id} is not between 0 and {FIELD_ID_MAX}"));
        }
        let name = place.name_of(&name);
        if let Some(taken) = self.by_id.get(&id) {
            return Err(Flaw::new(format!("field id {id} is used by both {} and {name}", taken.name)));
        }
        if self.by_name.insert(name.clone(), id).is_some() {
            return Err(Flaw::new(format!("column name {name} comes twice")));
        }
        let inside = Place { parent_id: Some(id), prefix: name.clone(), depth: place.depth + 1 };
        self.by_id.insert(id, Column { name, kind, required, parent_id: place.parent_id, initial_default, unfit });
        Ok(inside)
    }
}

/// A column before its type is read.
struct NewColumn {
    id: i32,
    name: String,
    required: bool,
    initial_default: Option<String>,
    write_default: Option<String>,
    unfit: Option<String>,
}

impl NewColumn {
    /// Why clients cannot read it as a column of the primitive type.
    fn misfit(&self, type_: &str) -> Option<String> {
        if !types::is_of_the_format(type_) {
            return Some(format!("unknown type '{type_}'"));
        }
        if type_ == "unknown" && self.required {
            return Some("a column of type unknown cannot be required".to_owned());
        }
        let defaults = [("initial-default", &self.initial_default), ("write-default", &self.write_default)];
        defaults.into_iter().find_map(|(key, default)| {
            let is_value = defaults::is_value(type_, default.as_deref()?);
            (!is_value).then(|| format!("{key} is not a value of type {type_}"))
        })
    }
}

/// Where in the schema a column lies.
struct Place {
    parent_id: Option<i32>,
    prefix: String,
    depth: usize,
}

impl Place {
    fn top() -> Self {
        Self { parent_id: None, prefix: String::new(), depth: 0 }
    }

    fn name_of(&self, leaf: &str) -> String {
        if self.prefix.is_empty() { leaf.to_owned() } else { format!("{}.{leaf}", self.prefix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(fields: &str) -> Checked<Columns> {
        Columns::read(&json::raw(format!(r#"{{"type":"struct","fields":{fields}}}"#)))
    }

    const NESTED: &str = r#"[
        {"id":1,"name":"p","required":true,"type":{"type":"struct","fields":[{"id":2,"name":"x","required":true,"type":"long"}]}},
        {"id":3,"name":"l","required":false,"type":{"type":"list","element-id":4,"element-required":true,"element":"decimal(9, 2)"}},
        {"id":5,"name":"m","required":false,"type":{"type":"map","key-id":6,"key":"string","value-id":7,"value-required":false,"value":"martian"}}]"#;

    #[test]
    fn nested_columns_are_listed_by_their_full_names() {
        let columns = columns(NESTED).unwrap();
        let names: Vec<_> = columns.iter().map(|(id, c)| (id, c.name.as_str(), c.kind.as_str())).collect();
        let expected = [
            (1, "p", "struct"),
            (2, "p.x", "long"),
            (3, "l", "list"),
            (4, "l.element", "decimal(9,2)"),
            (5, "m", "map"),
            (6, "m.key", "string"),
            (7, "m.value", "martian"),
        ];
        assert_eq!(names, expected);
        assert_eq!((columns.highest_id(), columns.id_of("p.x")), (7, Some(2)));
    }

    #[test]
    fn a_broken_structure_is_named_by_its_path() {
        let cases = [
            (r#"[{"id":1,"name":"a","required":true}]"#, "fields[0].type: is required"),
            (r#"[{"name":"a","required":true,"type":"int"}]"#, "fields[0].id: is required"),
            (
                r#"[{"id":1,"name":"a","required":true,"type":{"type":"set"}}]"#,
                "fields[0].type.type: 'set' is no nested type",
            ),
            (
                r#"[{"id":1,"name":"a","required":true,"type":"int"},{"id":1,"name":"b","required":true,"type":"int"}]"#,
                "fields[1].type: field id 1 is used by both a and b",
            ),
            (
                r#"[{"id":1,"name":"a","required":true,"type":"int"},{"id":2,"name":"a","required":true,"type":"int"}]"#,
                "fields[1].type: column name a comes twice",
            ),
        ];
        for (fields, message) in cases {
            assert_eq!(crate::error::Error::from(columns(fields).unwrap_err()).message(), message);
        }
    }

    #[test]
    fn what_clients_cannot_read_stays_where_it_is_and_is_not_added() {
        let field = |members: &str| {
            format!(r#"[{{"id":1,"name":"a","required":false,"type":"int"}},{{"required":false{members}}}]"#)
        };
        for (members, problem) in [
            (r#","id":2,"name":"b","type":"martian""#, "fields: column b: unknown type 'martian'"),
            (r#","id":2,"name":"b","type":"int","doc":5"#, "fields: column b: doc must be a string"),
            (r#","id":-5,"name":"b","type":"int""#, "fields: column b: field id -5 is not between 0 and 2147483447"),
            (
                r#","id":2147483647,"name":"b","type":"int""#,
                "fields: column b: field id 2147483647 is not between 0 and 2147483447",
            ),
            (
                r#","id":2,"name":"l","type":{"type":"list","element-id":3,"element-required":true,"element":"fixed[-1]"}"#,
                "fields: column l.element: unknown type 'fixed[-1]'",
            ),
            (
                r#","id":2,"name":"l","type":{"type":"list","element-id":3,"element-required":true,"element":"unknown"}"#,
                "fields: column l.element: a column of type unknown cannot be required",
            ),
            (
                r#","id":2,"name":"b","type":"int","initial-default":"x""#,
                "fields: column b: initial-default is not a value of type int",
            ),
            (
                r#","id":2,"name":"b","type":"decimal(9,2)","initial-default":"1.25","write-default":"1.255""#,
                "fields: column b: write-default is not a value of type decimal(9,2)",
            ),
        ] {
            let (old, new) = (columns("[]").unwrap(), columns(&field(members)).unwrap());
            let flaw = new.check_new(|id| old.get(id)).unwrap_err();
            assert_eq!(crate::error::Error::from(flaw).message(), problem);
            assert_eq!(new.check_new(|id| new.get(id)), Ok(()), "{members}");
        }
        for root in ["", r#""type":"list","#] {
            let root = Columns::read(&json::raw(format!(r#"{{{root}"fields":[]}}"#))).unwrap();
            assert!(root.check_new(|_| None).is_err());
        }
    }

    #[test]
    fn types_nested_without_end_are_refused() {
        let mut type_ = "\"int\"".to_owned();
        for id in 2..200 {
            type_ = format!(r#"{{"type":"list","element-id":{id},"element-required":true,"element":{type_}}}"#);
        }
        assert!(columns(&format!(r#"[{{"id":1,"name":"a","required":true,"type":{type_}}}]"#)).is_err());
    }

    #[test]
    fn identifier_fields_are_exact_required_primitives() {
        let with = |ids: &str| {
            let text = format!(r#"{{"type":"struct","fields":{NESTED},"identifier-field-ids":{ids}}}"#);
            Columns::read(&json::raw(text)).unwrap().check_identifiers()
        };
        assert_eq!(with("[2]"), Ok(()));
        for ids in ["[1]", "[4]", "[5]", "[7]", "[99]"] {
            assert!(with(ids).is_err(), "{ids}");
        }
    }
}
