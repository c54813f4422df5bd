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
