//! How far a value reaches, told before it is decoded: the decoder takes a schema and its counts at their word, and sets
//! aside whatever they ask for.

use apache_avro::Schema;
use apache_avro::schema::{Name, NamesRef, Namespace, ResolvedSchema};

use super::{Result, Unreadable};

/// How deeply values may lie in each other; those of manifests do so to five levels.
const DEPTH_MAX: usize = 64;

/// What one record may cost, where a value costs 1: more than the bounds of a hundred thousand columns.
const RECORD_COST_MAX: usize = 1_000_000;

/// Names of fields and symbols are kept with every value; so many bytes of one cost 1 more.
const NAME_BYTES: usize = 64;

/// A layout, with the types that it names.
pub struct Extent<'s> {
    layout: &'s Schema,
    names: NamesRef<'s>,
}

impl<'s> Extent<'s> {
    pub fn of(layout: &'s Schema) -> Result<Self> {
        let resolved = ResolvedSchema::try_from(layout)?;
        Ok(Self { layout, names: resolved.get_names().clone() })
    }

    /// How many of the bytes the next value takes. It costs of `left`, and must not cost more than there is.
    pub fn measure(&self, bytes: &[u8], left: &mut usize) -> Result<usize> {
        let bound = RECORD_COST_MAX.min(*left);
        let mut walk = Walk { names: &self.names, rest: bytes, left: bound };
        walk.value(self.layout, &None, 0)?;
        *left -= bound - walk.left;
        Ok(bytes.len() - walk.rest.len())
    }
}

/// A way through the bytes of one value.
struct Walk<'w> {
    names: &'w NamesRef<'w>,
    rest: &'w [u8],
    /// What may still be spent.
    left: usize,
}

impl Walk<'_> {
    fn value(&mut self, schema: &Schema, namespace: &Namespace, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(Unreadable::TooComplex);
        }
        self.spend(1)?;
        match schema {
            Schema::Null => Ok(()),
            Schema::Boolean => self.skip(1),
            Schema::Int | Schema::Long => self.long().map(|_| ()),
            Schema::Float => self.skip(size_of::<f32>()),
            Schema::Double => self.skip(size_of::<f64>()),
            Schema::Bytes | Schema::String => self.text(),
            Schema::Fixed(fixed) => self.skip(fixed.size),
            Schema::Enum(of) => {
                let symbol = chosen(self.long()?, &of.symbols)?;
                self.spend(symbol.len() / NAME_BYTES)
            }
            Schema::Union(union) => {
                let variant = chosen(self.long()?, union.variants())?;
                self.value(variant, namespace, depth + 1)
            }
            Schema::Array(array) => self.each(|walk| walk.value(&array.items, namespace, depth + 1)),
            Schema::Map(map) => self.each(|walk| {
                walk.text()?;
                walk.value(&map.types, namespace, depth + 1)
            }),
            Schema::Record(record) => {
                let namespace = record.name.fully_qualified_name(namespace).namespace;
                record.fields.iter().try_for_each(|field| {
                    self.spend(field.name.len() / NAME_BYTES)?;
                    self.value(&field.schema, &namespace, depth + 1)
                })
            }
            Schema::Ref { name } => self.named(&name.fully_qualified_name(namespace), depth),
            // Logical types, which are taken from a layout.
            _ => Err(Unreadable::Broken),
        }
    }

    fn named(&mut self, name: &Name, depth: usize) -> Result<()> {
        let schema = *self.names.get(name).ok_or(Unreadable::Broken)?;
        self.value(schema, &name.namespace, depth + 1)
    }

    /// The items of an array or a map, which come in blocks of a count each; one below 0 has their size behind it.
    fn each(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                self.long()?;
            }
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
        }
    }

    fn text(&mut self) -> Result<()> {
        let size = usize::try_from(self.long()?).map_err(|_| Unreadable::Broken)?;
        self.skip(size)
    }

    /// Zigzag, seven bits in a byte, the lowest first.
    fn long(&mut self) -> Result<i64> {
        let mut zigzag = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(Unreadable::Broken)?;
            self.rest = rest;
            zigzag |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed());
            }
        }
        Err(Unreadable::Broken)
    }

    fn skip(&mut self, count: usize) -> Result<()> {
        self.rest = self.rest.get(count..).ok_or(Unreadable::Broken)?;
        Ok(())
    }

    fn spend(&mut self, cost: usize) -> Result<()> {
        self.left = self.left.checked_sub(cost).ok_or(Unreadable::TooComplex)?;
        Ok(())
    }
}

fn chosen<T>(index: i64, choices: &[T]) -> Result<&T> {
    usize::try_from(index).ok().and_then(|index| choices.get(index)).ok_or(Unreadable::Broken)
}

#[cfg(test)]
mod tests {
    use apache_avro::to_avro_datum;
    use apache_avro::types::Value;
    use serde_json::{Value as Json, json};

    use super::*;

    fn layout(schema: &Json) -> Schema {
        Schema::parse(schema).unwrap()
    }

    fn measured(schema: &Json, bytes: &[u8]) -> Result<usize> {
        let mut left = usize::MAX;
        Extent::of(&layout(schema)).unwrap().measure(bytes, &mut left)
    }

    fn long(value: i64) -> Vec<u8> {
        to_avro_datum(&Schema::Long, Value::Long(value)).unwrap()
    }

    #[test]
    fn a_value_takes_what_the_decoder_takes() {
        let text = || Value::String("some words".to_owned());
        let point =
            || Value::Record(vec![("x".to_owned(), Value::Double(0.5)), ("on".to_owned(), Value::Boolean(true))]);
        let fields = json!([{"name": "x", "type": "double"}, {"name": "on", "type": "boolean"}]);
        for (schema, value) in [
            (json!("null"), Value::Null),
            (json!("long"), Value::Long(i64::MIN)),
            (json!("int"), Value::Int(i32::MAX)),
            (json!("float"), Value::Float(1.5)),
            (json!("string"), text()),
            (json!({"type": "fixed", "name": "f", "size": 16}), Value::Fixed(16, vec![7; 16])),
            (json!({"type": "enum", "name": "e", "symbols": ["A", "B"]}), Value::Enum(1, "B".to_owned())),
            (json!(["null", "string"]), Value::Union(1, Box::new(text()))),
            (json!({"type": "array", "items": "string"}), Value::Array(vec![text(), text()])),
            (json!({"type": "map", "values": "long"}), Value::Map([("k".to_owned(), Value::Long(5))].into())),
            (json!({"type": "record", "name": "n.p", "fields": fields}), point()),
        ] {
            let bytes = to_avro_datum(&layout(&schema), value).unwrap();
            let longer = [bytes.as_slice(), b"more"].concat();
            assert_eq!(measured(&schema, &longer).unwrap(), bytes.len(), "{schema}");
            assert!(bytes.is_empty() || measured(&schema, &bytes[..bytes.len() - 1]).is_err(), "{schema}");
        }
    }

    #[test]
    fn an_array_that_tells_the_size_of_its_blocks_is_measured_too() {
        let bytes = [long(-2), long(2), long(1), long(2), long(0)].concat();
        assert_eq!(measured(&json!({"type": "array", "items": "long"}), &bytes).unwrap(), 5);
    }

    #[test]
    fn what_is_longer_than_the_file_is_broken() {
        let fixed = json!({"type": "fixed", "name": "f", "size": 1_u64 << 62});
        assert!(matches!(measured(&fixed, b"x"), Err(Unreadable::Broken)));
        for (schema, count) in [(json!("bytes"), 1 << 40), (json!({"type": "map", "values": "bytes"}), 1 << 28)] {
            assert!(matches!(measured(&schema, &long(count)), Err(Unreadable::Broken)), "{schema}");
        }
    }

    #[test]
    fn a_count_of_items_that_take_no_room_is_bounded() {
        let nulls = json!({"type": "array", "items": "null"});
        assert!(matches!(measured(&nulls, &long(1 << 28)), Err(Unreadable::TooComplex)));
        assert_eq!(measured(&nulls, &[long(1000), long(0)].concat()).unwrap(), 3);
    }

    #[test]
    fn a_type_that_holds_itself_ends_at_a_depth() {
        let fields = json!([{"name": "next", "type": ["null", "n.chain"]}]);
        let chain = json!({"type": "record", "name": "chain", "namespace": "n", "fields": fields});
        assert!(matches!(measured(&chain, &[2; 100_000]), Err(Unreadable::TooComplex)));
        assert_eq!(measured(&chain, &[2, 2, 0]).unwrap(), 3);
    }

    #[test]
    fn types_that_double_with_each_level_are_bounded() {
        let two_of = |of: Json| json!([{"name": "a", "type": of}, {"name": "b", "type": "null"}]);
        let mut schema = json!({"type": "record", "name": "r0", "fields": []});
        for level in 1..=30 {
            let mut fields = two_of(schema);
            fields[1]["type"] = json!(format!("r{}", level - 1));
            schema = json!({"type": "record", "name": format!("r{level}"), "fields": fields});
        }
        assert!(matches!(measured(&schema, b""), Err(Unreadable::TooComplex)));
    }

    #[test]
    fn long_names_count_for_what_they_take() {
        let item = json!({"type": "record", "name": "r", "fields": [{"name": "n".repeat(64_000), "type": "null"}]});
        let items = json!({"type": "array", "items": item});
        assert!(measured(&items, &[long(900), long(0)].concat()).is_ok());
        assert!(matches!(measured(&items, &[long(1_100), long(0)].concat()), Err(Unreadable::TooComplex)));
    }
}
