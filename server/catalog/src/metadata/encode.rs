//! Writing a document: the head in the order of the spec, the segments as they were received.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{MetadataLogEntry, Snapshot, SnapshotLogEntry, TableMetadata};

impl TableMetadata {
    /// The document as JSON. The same document gives the same bytes.
    pub fn encode(&self) -> Bytes {
        self.encode_with(&self.snapshots.iter().collect::<Vec<_>>())
    }

    /// The document with those snapshots only that a ref names: what `snapshots=refs` asks for. All else is whole.
    pub fn encode_refs(&self) -> Bytes {
        self.encode_with(&self.snapshots.select(self.refs.values().map(|target| target.snapshot_id)))
    }

    fn encode_with(&self, snapshots: &[&Arc<Snapshot>]) -> Bytes {
        let segments: usize = snapshots.iter().map(|snapshot| snapshot.raw().get().len() + 1).sum();
        let log = self.snapshot_log.len() * 72;
        let mut out = Writer::with_capacity(segments + log + 16 * 1024);
        self.write_head(&mut out);
        self.write_shape(&mut out);
        self.write_snapshots(&mut out, snapshots);
        self.write_logs(&mut out);
        for (key, raw) in self.unknown.iter() {
            out.member(key, raw);
        }
        out.finish()
    }

    fn write_head(&self, out: &mut Writer) {
        out.member("format-version", &self.format_version);
        out.member("table-uuid", &self.uuid());
        out.member("location", &self.location);
        if self.format_version > 1 {
            out.member("last-sequence-number", &self.last_sequence_number);
        }
        out.member("last-updated-ms", &self.last_updated_ms);
        out.member("last-column-id", &self.last_column_id);
    }

    /// Schemas, partition specs and sort orders. Old readers of format version 1 look for the current ones alone.
    fn write_shape(&self, out: &mut Writer) {
        let old_readers = self.format_version == 1;
        if let Some(schema) = self.schema(self.current_schema_id).filter(|_| old_readers) {
            out.member("schema", schema.raw());
        }
        out.member("current-schema-id", &self.current_schema_id);
        out.array("schemas", self.schemas().map(|schema| schema.raw()));
        if let Some(fields) = self.spec(self.default_spec_id).filter(|_| old_readers).and_then(|s| s.raw_fields()) {
            out.member("partition-spec", fields);
        }
        out.member("default-spec-id", &self.default_spec_id);
        out.array("partition-specs", self.specs().map(|spec| spec.raw()));
        out.member("last-partition-id", &self.last_partition_id);
        out.member("default-sort-order-id", &self.default_sort_order_id);
        out.array("sort-orders", self.sort_orders().map(|order| order.raw()));
        out.member("properties", &*self.properties);
    }

    fn write_snapshots(&self, out: &mut Writer, snapshots: &[&Arc<Snapshot>]) {
        // Left out where there is none: every reader takes that, while -1 and null each have one that does not.
        if let Some(id) = self.current_snapshot_id {
            out.member("current-snapshot-id", &id);
        }
        if let Some(next_row_id) = self.next_row_id {
            out.member("next-row-id", &next_row_id);
        }
        if !self.encryption_keys.is_empty() {
            out.array("encryption-keys", self.encryption_keys().map(|key| key.raw()));
        }
        out.object("refs", self.refs.iter().map(|(name, target)| (name.as_str(), target.raw())));
        out.array("snapshots", snapshots.iter().map(|snapshot| snapshot.raw()));
        out.array("statistics", self.statistics.iter().map(|file| file.raw()));
        out.array("partition-statistics", self.partition_statistics.iter().map(|file| file.raw()));
    }

    fn write_logs(&self, out: &mut Writer) {
        out.key("snapshot-log");
        out.sequence(b"[]", self.snapshot_log.iter(), |out, entry| match entry.raw() {
            Some(raw) => out.raw(raw),
            None => out.snapshot_log_entry(entry),
        });
        out.key("metadata-log");
        out.sequence(b"[]", self.metadata_log.iter(), |out, entry| match entry.raw() {
            Some(raw) => out.raw(raw),
            None => out.metadata_log_entry(entry),
        });
    }
}

/// JSON on its way into a buffer. Nothing here can fail: keys are strings and the buffer grows.
struct Writer {
    out: Vec<u8>,
}

impl Writer {
    fn with_capacity(bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        Self { out }
    }

    fn finish(mut self) -> Bytes {
        self.out.push(b'}');
        // It is kept for long, and most documents are far smaller than what was set aside for them.
        self.out.shrink_to_fit();
        Bytes::from(self.out)
    }

    fn key(&mut self, key: &str) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        self.value(key);
        self.out.push(b':');
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.key(key);
        self.value(value);
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) {
        serde_json::to_writer(&mut self.out, value).expect("numbers, strings and string maps can be written to memory");
    }

    fn raw(&mut self, raw: &RawValue) {
        self.out.extend_from_slice(raw.get().as_bytes());
    }

    fn array<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a RawValue>) {
        self.key(key);
        self.sequence(b"[]", values, |out, raw| out.raw(raw));
    }

    fn object<'a>(&mut self, key: &str, members: impl Iterator<Item = (&'a str, &'a RawValue)>) {
        self.key(key);
        self.sequence(b"{}", members, |out, (name, raw)| {
            out.value(name);
            out.out.push(b':');
            out.raw(raw);
        });
    }

    fn sequence<T>(&mut self, ends: &[u8; 2], items: impl Iterator<Item = T>, write: impl Fn(&mut Self, T)) {
        self.out.push(ends[0]);
        for (at, item) in items.enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            write(self, item);
        }
        self.out.push(ends[1]);
    }

    fn snapshot_log_entry(&mut self, entry: &SnapshotLogEntry) {
        let (at, id) = (entry.timestamp_ms, entry.snapshot_id);
        write!(self.out, r#"{{"timestamp-ms":{at},"snapshot-id":{id}}}"#).expect("memory takes all that is written");
    }

    fn metadata_log_entry(&mut self, entry: &MetadataLogEntry) {
        write!(self.out, r#"{{"timestamp-ms":{},"metadata-file":"#, entry.timestamp_ms)
            .expect("memory takes all that is written");
        self.value(&entry.metadata_file);
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"format-version":3,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/\u0074","last-sequence-number":3,"last-updated-ms":1,"last-column-id":0,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[],"s":1}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[],"p":1}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[],"o":1}],"properties":{"a":"\"","b":"2"},"current-snapshot-id":3,"next-row-id":7,"encryption-keys":[{"key-id":"k","e":1}],"refs":{"main":{"snapshot-id":3,"type":"branch","r":1},"t":{"snapshot-id":1,"type":"tag"}},"snapshots":[{"snapshot-id":1,"timestamp-ms":1,"sequence-number":1,"manifest-list":"l1"},{"snapshot-id":2,"timestamp-ms":2,"sequence-number":2,"manifest-list":"l2"},{"snapshot-id":3,"timestamp-ms":3,"sequence-number":3,"manifest-list":"l3","x": 1.10}],"statistics":[{"snapshot-id":1,"statistics-path":"p","y":1}],"partition-statistics":[{"snapshot-id":1,"statistics-path":"q"}],"snapshot-log":[{"timestamp-ms":1,"snapshot-id":1},{"timestamp-ms":3,"snapshot-id":3,"l":1}],"metadata-log":[{"timestamp-ms":1,"metadata-file":"m\"1"},{"timestamp-ms":2,"metadata-file":"m2","m":1}],"future":{"z": [1,  2]},"more":0.10}"#;

    #[test]
    fn a_document_comes_back_byte_for_byte() {
        let text = DOCUMENT.replace("\\u0074", "t");
        let table = TableMetadata::parse(text.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(table.encode().to_vec()).unwrap(), text);
        assert_eq!(TableMetadata::parse(DOCUMENT.as_bytes()).unwrap().location(), "s3://b/t");
    }

    #[test]
    fn the_refs_view_leaves_out_only_snapshots_that_no_ref_names() {
        let text = DOCUMENT.replace("\\u0074", "t");
        let table = TableMetadata::parse(text.as_bytes()).unwrap();
        let expected =
            text.replace(r#"{"snapshot-id":2,"timestamp-ms":2,"sequence-number":2,"manifest-list":"l2"},"#, "");
        assert_ne!(expected, text);
        assert_eq!(String::from_utf8(table.encode_refs().to_vec()).unwrap(), expected);
        assert_eq!(table.snapshots().len(), 3);
    }

    #[test]
    fn memory_grows_with_the_document() {
        let table = TableMetadata::parse(DOCUMENT.as_bytes()).unwrap();
        assert!(table.memory_bytes() > DOCUMENT.len() / 2);
    }
}
