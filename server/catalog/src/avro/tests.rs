use apache_avro::{DeflateSettings, ZstandardSettings};

use super::*;

/// A container file with the schema's very text, which the crate's own writer would put in order.
pub(crate) fn container(schema: &str, codec: Codec, records: &[Value]) -> Vec<u8> {
    const MARKER: [u8; MARKER_BYTES] = *b"sixteen bytes ok";
    let mut layout = serde_json::from_str(schema).unwrap();
    make_plain(&mut layout, &mut HashSet::new());
    let layout = Schema::parse(&layout).unwrap();
    let codec_name = <&str>::from(codec);
    let mut file = MAGIC.to_vec();
    file.extend(long(2));
    for (key, value) in [("avro.schema", schema), ("avro.codec", codec_name)] {
        file.extend([long(key.len()), key.into(), long(value.len()), value.into()].concat());
    }
    file.extend(long(0));
    file.extend(MARKER);
    let mut block: Vec<u8> =
        records.iter().flat_map(|record| to_avro_datum(&layout, record.clone()).unwrap()).collect();
    codec.compress(&mut block).unwrap();
    file.extend([long(records.len()), long(block.len()), block, MARKER.to_vec()].concat());
    file
}

fn long(value: usize) -> Vec<u8> {
    to_avro_datum(&Schema::Long, Value::Long(value as i64)).unwrap()
}

const SCHEMA: &str = r#"{"type": "record", "name": "r", "doc": "kept", "fields": [
    {"name": "a", "type": "long", "field-id": 7},
    {"name": "odd name", "type": ["null", {"type": "record", "name": "inner", "fields": [
        {"name": "b", "type": "string", "field-id": 9}]}], "default": null, "field-id": 8}]}"#;

fn row(a: i64, b: Option<&str>) -> Value {
    let inner = b.map(|b| Value::Record(vec![("b".to_owned(), Value::String(b.to_owned()))]));
    let inner = inner.map_or(Value::Union(0, Box::new(Value::Null)), |inner| Value::Union(1, Box::new(inner)));
    Value::Record(vec![("a".to_owned(), Value::Long(a)), ("field_at_1".to_owned(), inner)])
}

#[test]
fn values_are_found_by_the_ids_of_their_fields() {
    let bytes = container(SCHEMA, Codec::Null, &[row(1, Some("x")), row(2, None)]);
    let file = File::open(&bytes).unwrap();
    let (fields, inner) = (Fields::of(file.schema()), Fields::of(&type_of(file.schema(), 8)));
    let mut read = Vec::new();
    file.for_each(|record, _| {
        let b = fields.get(&record, 8).and_then(|value| inner.string(value, 9)).map(str::to_owned);
        read.push((fields.long(&record, 7), b, fields.int(&record, 5)));
        Ok(())
    })
    .unwrap();
    assert_eq!(read, [(Some(1), Some("x".to_owned()), None), (Some(2), None, None)]);
}

#[test]
fn a_filtered_file_keeps_its_header_and_the_bytes_of_what_it_keeps() {
    for codec in [Codec::Null, Codec::Snappy] {
        let rows = [row(1, Some("x")), row(2, None), row(3, Some("y"))];
        let whole = container(SCHEMA, codec, &rows);
        let file = File::open(&whole).unwrap();
        let even = file.filtered(|record| Ok(Fields::of(file.schema()).long(record, 7) != Some(2))).unwrap();
        let expected = container(SCHEMA, codec, &[rows[0].clone(), rows[2].clone()]);
        assert_eq!(File::open(&even).unwrap().header, File::open(&expected).unwrap().header);
        assert_eq!(even.len(), expected.len());
        let mut left = 0;
        let count = |_, _: &[u8]| {
            left += 1;
            Ok(())
        };
        File::open(&even).unwrap().for_each(count).unwrap();
        assert_eq!(left, 2);
    }
}

#[test]
fn a_file_that_is_broken_off_or_damaged_is_unreadable() {
    let whole = container(SCHEMA, Codec::Null, &[row(1, None)]);
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for bytes in [&whole[..whole.len() - 1], &damaged] {
        let read = File::open(bytes).unwrap().for_each(|_, _| Ok(()));
        assert!(matches!(read, Err(Unreadable::Broken)));
    }
}

#[test]
fn records_that_take_no_room_do_not_count_for_ever() {
    let mut endless = container(r#"{"type": "record", "name": "r", "fields": []}"#, Codec::Null, &[]);
    let marker = endless.len() - MARKER_BYTES - 2;
    endless.splice(marker..marker + 1, to_avro_datum(&Schema::Long, Value::Long(i64::MAX)).unwrap());
    let read = File::open(&endless).unwrap().for_each(|_, _| Ok(()));
    assert!(matches!(read, Err(Unreadable::Broken)));
}

#[test]
fn types_with_names_that_are_no_avro_names_are_read() {
    let schema = SCHEMA.replace("inner", "in/ner").replace(r#""r""#, r#""""#);
    let mut read = Vec::new();
    let whole = container(&schema, Codec::Null, &[row(1, Some("x"))]);
    let note = |record: Value, _: &[u8]| {
        read.push(record);
        Ok(())
    };
    File::open(&whole).unwrap().for_each(note).unwrap();
    assert_eq!(read, [row(1, Some("x"))]);
}

#[test]
fn a_schema_that_is_none_is_unreadable() {
    let whole = container(SCHEMA, Codec::Null, &[]);
    let field = r#"{"name": "a", "type": "long", "field-id": 7}"#;
    for (part, other) in [(field, r#""name""#), (r#""long""#, r#""lo""#), (r#""long""#, r#""l/""#), (r#""inner""#, "7")]
    {
        let at = whole.windows(part.len()).position(|window| window == part.as_bytes()).unwrap();
        let mut damaged = whole.clone();
        let padded = format!("{other:width$}", width = part.len());
        damaged[at..at + part.len()].copy_from_slice(padded.as_bytes());
        assert!(File::open(&damaged).is_err(), "{other}");
    }
}

#[test]
fn a_codec_that_nobody_knows_is_told() {
    let whole = container(SCHEMA, Codec::Null, &[]);
    let at = whole.windows(4).rposition(|window| window == b"null").unwrap();
    let mut other = whole.clone();
    other[at..at + 4].copy_from_slice(b"lzma");
    assert!(matches!(File::open(&other), Err(Unreadable::UnknownCodec)));
}

#[test]
fn a_file_is_inflated_no_further_than_its_bound_however_many_blocks_it_has() {
    const BLOCK_BYTES: usize = 16 << 20;
    let blocks_max = INFLATED_MAX_BYTES / BLOCK_BYTES;
    for codec in [Codec::Deflate(DeflateSettings::default()), Codec::Zstandard(ZstandardSettings::default())] {
        let mut zeros = vec![0; BLOCK_BYTES];
        codec.compress(&mut zeros).unwrap();
        let bomb = |blocks: usize| {
            let empty = container(SCHEMA, codec, &[]);
            let file = File::open(&empty).unwrap();
            let block = [long(0), long(zeros.len()), zeros.clone(), file.marker.to_vec()].concat();
            [file.preamble, &block.repeat(blocks)].concat()
        };
        let read = |bytes: &[u8]| File::open(bytes).unwrap().for_each(|_, _| Ok(()));
        read(&bomb(blocks_max)).unwrap();
        assert!(matches!(read(&bomb(blocks_max + 1)), Err(Unreadable::TooLong)));
    }
}

#[test]
fn a_header_that_promises_more_than_there_is_sets_nothing_aside() {
    let promising = [MAGIC, &long(1 << 28)].concat();
    assert!(matches!(File::open(&promising), Err(Unreadable::Broken)));
    let many = [MAGIC, &long(2_000), &[0; 4_000], &long(0)].concat();
    assert!(matches!(File::open(&many), Err(Unreadable::TooComplex)));
}

#[test]
fn a_schema_that_is_longer_than_any_is_refused() {
    let doc = "x".repeat(SCHEMA_MAX_BYTES);
    let whole =
        container(&format!(r#"{{"type": "record", "name": "r", "doc": "{doc}", "fields": []}}"#), Codec::Null, &[]);
    assert!(matches!(File::open(&whole), Err(Unreadable::TooComplex)));
}

#[test]
fn records_that_cost_more_than_their_bytes_allow_are_given_up() {
    let names: Vec<String> = (0..200).map(|n| format!(r#"{{"name": "n{n}", "type": "null"}}"#)).collect();
    let schema = format!(
        r#"{{"type": "record", "name": "r", "fields": [{{"name": "b", "type": "boolean"}}, {}]}}"#,
        names.join(",")
    );
    let record = |_| {
        let nulls = (0..200).map(|n| (format!("n{n}"), Value::Null));
        Value::Record([("b".to_owned(), Value::Boolean(true))].into_iter().chain(nulls).collect())
    };
    let read = |count: usize| {
        let records: Vec<Value> = (0..count).map(record).collect();
        File::open(&container(&schema, Codec::Null, &records)).unwrap().for_each(|_, _| Ok(()))
    };
    read(1_000).unwrap();
    assert!(matches!(read(3_000), Err(Unreadable::TooComplex)));
}
