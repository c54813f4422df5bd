use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::error::Kind;
use crate::metadata::{NewTable, SortOrder, create};

const NOW_MS: i64 = 1_700_000_000_000;

fn raw(value: Value) -> Box<serde_json::value::RawValue> {
    serde_json::value::to_raw_value(&value).unwrap()
}

fn table(version: u8) -> TableMetadata {
    let schema = raw(json!({"type": "struct", "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {"id": 2, "name": "ts", "required": false, "type": "timestamp"},
        {"id": 3, "name": "s", "required": false, "type": "string"}]}));
    create(NewTable {
        uuid: Uuid::from_u128(1),
        location: "s3://b/t".into(),
        schema: &schema,
        partition_spec: None,
        sort_order: None,
        properties: [("format-version".to_owned(), version.to_string())].into(),
        now_ms: NOW_MS,
    })
    .unwrap()
}

fn at(now_ms: i64) -> ApplyAt<'static> {
    ApplyAt { now_ms, previous_location: None }
}

fn updates(list: Value) -> Vec<TableUpdate> {
    serde_json::from_value::<Vec<Value>>(list)
        .unwrap()
        .into_iter()
        .map(|update| TableUpdate::parse(&raw(update)).unwrap())
        .collect()
}

fn try_apply(base: &TableMetadata, list: Value) -> Result<Applied> {
    apply(base, &updates(list), &at(NOW_MS + 1000))
}

fn applied(base: &TableMetadata, list: Value) -> TableMetadata {
    try_apply(base, list).unwrap().metadata
}

fn refused(base: &TableMetadata, list: Value) -> (Kind, String) {
    let error = try_apply(base, list).unwrap_err();
    (error.kind(), error.message().to_owned())
}

fn snapshot(id: i64, parent: Option<i64>, sequence: i64, timestamp_ms: i64) -> Value {
    let mut snapshot = json!({"snapshot-id": id, "sequence-number": sequence, "timestamp-ms": timestamp_ms,
        "manifest-list": format!("s3://b/t/metadata/snap-{id}.avro"), "summary": {"operation": "append"}, "schema-id": 0});
    if let Some(parent) = parent {
        snapshot["parent-snapshot-id"] = parent.into();
    }
    snapshot
}

fn add(snapshot: Value) -> Value {
    json!({"action": "add-snapshot", "snapshot": snapshot})
}

fn statistics(id: i64, path: &str) -> Value {
    json!({"action": "set-statistics", "statistics": {"snapshot-id": id, "statistics-path": path,
        "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}})
}

fn point(name: &str, kind: &str, id: i64) -> Value {
    json!({"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": id})
}

/// A table with the snapshots 1, 2, … on main, one second apart.
fn history(count: i64) -> TableMetadata {
    (1..=count).fold(table(2), |base, id| {
        let parent = (id > 1).then_some(id - 1);
        let time = NOW_MS + id * 1000;
        let list = json!([add(snapshot(id, parent, id, time)), point("main", "branch", id)]);
        apply(&base, &updates(list), &at(time)).unwrap().metadata
    })
}

fn ids(table: &TableMetadata) -> Vec<i64> {
    table.snapshots().map(|s| s.id()).collect()
}

fn log(table: &TableMetadata) -> Vec<(i64, i64)> {
    table.snapshot_log().iter().map(|e| (e.snapshot_id, e.timestamp_ms - NOW_MS)).collect()
}

#[test]
fn an_append_moves_main_and_the_log() {
    let table = history(2);
    assert_eq!(table.current_snapshot_id(), Some(2));
    assert_eq!(table.refs()["main"].snapshot_id, 2);
    assert_eq!(log(&table), [(1, 1000), (2, 2000)]);
    assert_eq!((table.last_sequence_number(), table.last_updated_ms()), (2, NOW_MS + 2000));
}

#[test]
fn what_is_there_already_changes_nothing() {
    let base = applied(
        &history(2),
        json!([
            {"action": "set-properties", "updates": {"a": "b"}},
            statistics(1, "p")]),
    );
    let no_ops = json!([
        {"action": "assign-uuid", "uuid": Uuid::from_u128(1)},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "set-current-schema", "schema-id": 0},
        {"action": "set-default-spec", "spec-id": 0},
        {"action": "set-default-sort-order", "sort-order-id": 0},
        {"action": "add-spec", "spec": {"spec-id": 9, "fields": []}},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-location", "location": "s3://b/t/"},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["none"]},
        point("main", "branch", 2),
        {"action": "remove-snapshot-ref", "ref-name": "none"},
        {"action": "remove-snapshots", "snapshot-ids": [99]},
        {"action": "remove-schemas", "schema-ids": [99]},
        {"action": "remove-partition-specs", "spec-ids": [99]},
        statistics(1, "p"),
        {"action": "remove-statistics", "snapshot-id": 99},
        {"action": "remove-partition-statistics", "snapshot-id": 99},
        {"action": "remove-encryption-key", "key-id": "none"}]);
    let at = ApplyAt { now_ms: NOW_MS + 9000, previous_location: Some("m") };
    let outcome = apply(&base, &updates(no_ops), &at).unwrap();
    assert!(!outcome.changed);
    assert_eq!(outcome.metadata.encode(), base.encode());
}

#[test]
fn the_head_moves_only_forward() {
    let base = history(1);
    for (update, message) in [
        (json!({"action": "assign-uuid", "uuid": Uuid::from_u128(2)}), "which never changes"),
        (json!({"action": "upgrade-format-version", "format-version": 1}), "Cannot downgrade v2 table to v1"),
        (json!({"action": "upgrade-format-version", "format-version": 99}), "v99 is not supported"),
        (json!({"action": "set-properties", "updates": {"format-version": "3"}}), "reserved property"),
        (json!({"action": "set-location", "location": "/"}), "must not be empty"),
    ] {
        let (kind, text) = refused(&base, json!([update]));
        assert!(kind == Kind::Invalid && text.contains(message), "{text}");
    }
    let later = apply(&base, &updates(json!([{"action": "set-properties", "updates": {"a": "b"}}])), &at(5)).unwrap();
    assert_eq!(later.metadata.last_updated_ms(), base.last_updated_ms() + 1);
}

#[test]
fn an_upgrade_to_v3_starts_row_ids_at_0_and_leaves_old_snapshots_alone() {
    let base = history(1);
    let v3 = applied(&base, json!([{"action": "upgrade-format-version", "format-version": 3}]));
    assert_eq!((v3.format_version(), v3.next_row_id()), (3, Some(0)));
    assert_eq!(v3.snapshot(1).unwrap().raw().get(), base.snapshot(1).unwrap().raw().get());
}

#[test]
fn snapshots_of_v1_get_the_sequence_number_that_v2_asks_for() {
    let old = json!({"snapshot-id": 1, "timestamp-ms": NOW_MS, "manifest-list": "l"});
    let list = json!([add(old), {"action": "upgrade-format-version", "format-version": 2}]);
    let snapshot = applied(&table(1), list).snapshot(1).unwrap().clone();
    assert_eq!(snapshot.sequence_number(), 0);
    assert!(snapshot.raw().get().contains(r#""sequence-number":0"#));
}

#[test]
fn row_ids_are_never_given_twice() {
    let base = table(3);
    let with = |first: Option<i64>, rows: Option<i64>| {
        let mut s = snapshot(1, None, 1, NOW_MS);
        s["first-row-id"] = first.into();
        s["added-rows"] = rows.into();
        json!([add(s)])
    };
    assert_eq!(refused(&base, with(None, None)).0, Kind::CommitFailed);
    assert_eq!(refused(&base, with(Some(0), None)).0, Kind::Invalid);
    assert_eq!(refused(&base, with(Some(0), Some(-1))).0, Kind::Invalid);
    assert_eq!(refused(&base, with(Some(i64::MAX), Some(1))).0, Kind::Invalid);
    let once = applied(&base, with(Some(0), Some(125)));
    assert_eq!(once.next_row_id(), Some(125));
    assert_eq!(applied(&base, with(Some(200), Some(5))).next_row_id(), Some(205), "a gap counts as taken");
    let mut stale = snapshot(2, Some(1), 2, NOW_MS);
    stale["first-row-id"] = 124.into();
    stale["added-rows"] = 1.into();
    assert_eq!(refused(&once, json!([add(stale)])).0, Kind::CommitFailed);
}

#[test]
fn a_snapshot_is_refused_with_the_kind_that_keeps_its_files_safe() {
    let base = history(2);
    let mut copy = snapshot(3, Some(2), 3, NOW_MS);
    copy["manifest-list"] = "s3://b/t/metadata/snap-1.avro".into();
    let mut unnumbered = snapshot(3, Some(2), 3, NOW_MS);
    unnumbered.as_object_mut().unwrap().remove("sequence-number");
    for (snapshot, kind) in [
        (snapshot(2, Some(1), 3, NOW_MS), Kind::Invalid),
        (snapshot(3, Some(2), 2, NOW_MS), Kind::CommitFailed),
        (copy, Kind::Unprocessable),
        (unnumbered, Kind::Invalid),
    ] {
        assert_eq!(refused(&base, json!([add(snapshot.clone())])).0, kind, "{snapshot}");
    }
    let orphan = applied(&base, json!([add(snapshot(3, None, 1, NOW_MS))]));
    assert_eq!(orphan.last_sequence_number(), 2, "the last sequence number never falls");
}

#[test]
fn format_version_1_has_no_sequence_numbers_and_may_list_manifests() {
    let one = json!({"snapshot-id": 1, "timestamp-ms": NOW_MS, "manifests": ["s3://b/m.avro"]});
    let two = json!({"snapshot-id": 2, "parent-snapshot-id": 1, "timestamp-ms": NOW_MS, "manifest-list": "l"});
    let list = json!([add(one.clone()), add(two), point("main", "branch", 2)]);
    let table = applied(&table(1), list);
    assert_eq!(table.snapshot(1).unwrap().manifests(), ["s3://b/m.avro"]);
    assert_eq!(table.last_sequence_number(), 0);
    assert_eq!(refused(&history(1), json!([add(one)])).0, Kind::Invalid);
}

#[test]
fn clocks_neither_turn_history_back_nor_freeze_the_table() {
    let base = history(2); // the last one at +2,000
    let moved = |own: i64, now: i64| {
        let list = json!([add(snapshot(3, Some(2), 3, NOW_MS + own)), point("main", "branch", 3)]);
        let outcome = apply(&base, &updates(list), &at(NOW_MS + now)).unwrap();
        let time = outcome.metadata.snapshot(3).unwrap().timestamp_ms() - NOW_MS;
        assert_eq!(outcome.metadata.snapshot_log().last().unwrap().timestamp_ms - NOW_MS, time);
        (time, outcome.metadata.last_updated_ms() - NOW_MS, outcome.moved_timestamps)
    };
    assert_eq!(moved(3000, 3500), (3000, 3500, 0), "a good clock");
    assert_eq!(moved(20_000, 3000), (20_000, 20_000, 0), "a little ahead");
    assert_eq!(moved(3_600_000, 3000), (33_000, 33_000, 1), "an hour ahead");
    assert_eq!(moved(-600_000, 3000), (2001, 3000, 1), "ten minutes behind");
}

#[test]
fn a_moved_snapshot_keeps_all_its_other_bytes() {
    let base = history(1);
    let text = r#"{ "snapshot-id": 2, "x" : {"timestamp-ms":7}, "timestamp-ms" : 5, "parent-snapshot-id":1, "sequence-number":2, "manifest-list":"l", "summary":{"operation":"append"} }"#;
    let update = format!(r#"{{"action":"add-snapshot","snapshot":{text}}}"#);
    let add = TableUpdate::parse(&crate::metadata::json::raw(update)).unwrap();
    let mut list = vec![add];
    list.extend(updates(json!([point("main", "branch", 2)])));
    let table = apply(&base, &list, &at(NOW_MS)).unwrap().metadata;
    let expected = text.replace("\"timestamp-ms\" : 5", &format!("\"timestamp-ms\" : {}", NOW_MS + 1001));
    assert_eq!(table.snapshot(2).unwrap().raw().get(), expected);
}

#[test]
fn a_chain_that_is_put_on_a_branch_is_in_order_and_a_staged_snapshot_is_left_alone() {
    let base = history(1);
    let list = json!([
        add(snapshot(2, Some(1), 2, 0)),
        add(snapshot(3, Some(2), 3, 0)),
        add(snapshot(4, Some(1), 4, 0)),
        point("b", "branch", 3),
        point("t", "tag", 4)
    ]);
    let outcome = try_apply(&base, list).unwrap();
    let times: Vec<i64> = outcome.metadata.snapshots().map(|s| s.timestamp_ms()).collect();
    assert_eq!(times, [NOW_MS + 1000, NOW_MS + 1001, NOW_MS + 1002, 0]);
    assert_eq!(outcome.moved_timestamps, 2);
}

#[test]
fn the_log_leaves_out_what_main_only_passed_through() {
    let list = json!([
        add(snapshot(2, Some(1), 2, NOW_MS + 1500)),
        point("main", "branch", 2),
        add(snapshot(3, Some(2), 3, NOW_MS + 1600)),
        point("main", "branch", 3)
    ]);
    let table = applied(&history(1), list);
    assert_eq!((ids(&table), log(&table)), (vec![1, 2, 3], vec![(1, 1000), (3, 1600)]));
}

#[test]
fn a_rollback_is_logged_at_the_time_of_the_commit() {
    let base = history(3);
    let back = apply(&base, &updates(json!([point("main", "branch", 1)])), &at(NOW_MS + 9000)).unwrap().metadata;
    assert_eq!(log(&back).last(), Some(&(1, 9000)));
    assert_eq!(back.snapshot(1).unwrap().timestamp_ms(), NOW_MS + 1000);
    let slow_clock = apply(&base, &updates(json!([point("main", "branch", 1)])), &at(5)).unwrap().metadata;
    assert_eq!(log(&slow_clock).last(), Some(&(1, 3000)), "the log never falls");
}

#[test]
fn refs_point_to_snapshots_and_main_is_a_branch() {
    let base = history(2);
    assert_eq!(refused(&base, json!([point("main", "tag", 1)])).0, Kind::Invalid);
    assert_eq!(refused(&base, json!([point("b", "branch", 9)])).0, Kind::Invalid);
    let mut aging = point("main", "branch", 1);
    aging["max-ref-age-ms"] = 5.into();
    assert_eq!(refused(&base, json!([aging])).0, Kind::Invalid);
    let tagged = applied(&base, json!([point("t", "tag", 1), point("b", "branch", 1)]));
    assert_eq!(tagged.refs().keys().collect::<Vec<_>>(), ["b", "main", "t"]);
    assert_eq!(tagged.snapshot_log().len(), base.snapshot_log().len());
}

#[test]
fn updates_are_applied_in_their_order() {
    let base = applied(&history(1), json!([point("old", "tag", 1), point("b", "branch", 1)]));
    let list = json!([
        add(snapshot(2, Some(1), 2, NOW_MS)),
        point("new", "tag", 2),
        {"action": "remove-snapshot-ref", "ref-name": "old"},
        point("main", "branch", 2),
        {"action": "remove-snapshot-ref", "ref-name": "b"},
        point("b", "branch", 2)]);
    let refs: Vec<_> = applied(&base, list).refs().iter().map(|(name, r)| (name.clone(), r.snapshot_id)).collect();
    assert_eq!(refs, [("b".to_owned(), 2), ("main".to_owned(), 2), ("new".to_owned(), 2)]);
}

#[test]
fn removing_main_empties_the_table_and_keeps_its_history() {
    let empty = applied(&history(2), json!([{"action": "remove-snapshot-ref", "ref-name": "main"}]));
    assert_eq!((empty.current_snapshot_id(), ids(&empty)), (None, vec![1, 2]));
    assert!(!String::from_utf8(empty.encode().to_vec()).unwrap().contains("current-snapshot-id"));
    let again = applied(&empty, json!([add(snapshot(3, None, 3, NOW_MS)), point("main", "branch", 3)]));
    assert_eq!(again.current_snapshot_id(), Some(3));
}

#[test]
fn with_a_snapshot_go_its_statistics_its_refs_and_the_history_before_it() {
    let base = applied(
        &history(4),
        json!([
            point("t", "tag", 2),
            statistics(2, "p2"),
            statistics(3, "p3"),
            {"action": "set-partition-statistics", "partition-statistics":
                {"snapshot-id": 2, "statistics-path": "q", "file-size-in-bytes": 1}}]),
    );
    let table = applied(&base, json!([{"action": "remove-snapshots", "snapshot-ids": [2, 99]}]));
    assert_eq!((ids(&table), log(&table)), (vec![1, 3, 4], vec![(3, 3000), (4, 4000)]));
    assert_eq!(table.statistics().iter().map(|s| s.snapshot_id).collect::<Vec<_>>(), [3]);
    assert!(table.partition_statistics().is_empty());
    assert_eq!(table.refs().keys().collect::<Vec<_>>(), ["main"]);
    let none = applied(&base, json!([{"action": "remove-snapshots", "snapshot-ids": [1, 2, 3, 4]}]));
    assert_eq!((none.current_snapshot_id(), log(&none)), (None, vec![]));
}

#[test]
fn statistics_are_replaced_for_their_own_snapshot_only() {
    let table = applied(&history(2), json!([statistics(1, "a"), statistics(2, "b"), statistics(1, "c")]));
    let files: Vec<_> = table.statistics().iter().map(|s| (s.snapshot_id, s.path.as_str())).collect();
    assert_eq!(files, [(1, "c"), (2, "b")]);
}

fn add_schema(fields: Value) -> Value {
    json!({"action": "add-schema", "schema": {"type": "struct", "schema-id": 77, "fields": fields}})
}

fn field(id: i32, name: &str, type_: &str) -> Value {
    json!({"id": id, "name": name, "required": id == 1, "type": type_})
}

fn set_schema(id: i32) -> Value {
    json!({"action": "set-current-schema", "schema-id": id})
}

#[test]
fn an_earlier_schema_is_reused_and_minus_one_finds_it() {
    let first = [field(1, "id", "long"), field(2, "ts", "timestamp"), field(3, "s", "string")];
    let mut more = first.to_vec();
    more.push(field(42, "n", "int"));
    let base = applied(&table(2), json!([add_schema(more.clone().into()), set_schema(-1)]));
    assert_eq!((base.current_schema_id(), base.last_column_id()), (1, 42));
    let back = applied(&base, json!([add_schema(first.to_vec().into()), set_schema(-1)]));
    assert_eq!((back.current_schema_id(), back.schemas().len(), back.last_column_id()), (0, 2, 42));
    let forward = applied(&back, json!([add_schema(more.into()), set_schema(-1)]));
    assert_eq!((forward.current_schema_id(), forward.schemas().len()), (1, 2));
}

#[test]
fn what_is_chosen_must_be_there() {
    let base = table(2);
    for update in [
        json!({"action": "set-current-schema", "schema-id": -1}),
        json!({"action": "set-current-schema", "schema-id": 5}),
        json!({"action": "set-default-spec", "spec-id": -1}),
        json!({"action": "set-default-spec", "spec-id": 5}),
        json!({"action": "set-default-sort-order", "sort-order-id": -1}),
        json!({"action": "set-default-sort-order", "sort-order-id": 5}),
        json!({"action": "remove-schemas", "schema-ids": [0]}),
        json!({"action": "remove-partition-specs", "spec-ids": [0]}),
    ] {
        assert_eq!(refused(&base, json!([update.clone()])).0, Kind::Invalid, "{update}");
    }
}

#[test]
fn a_field_id_with_data_keeps_its_type_but_a_replaced_table_may_reuse_it() {
    let string_ids = add_schema(json!([field(1, "id", "string")]));
    let base = history(1);
    let (kind, message) = refused(&base, json!([string_ids.clone()]));
    assert_eq!(kind, Kind::Invalid);
    assert!(message.contains("cannot change column id (field id 1) from long to string"), "{message}");
    let replace = json!([{"action": "remove-snapshot-ref", "ref-name": "main"}, string_ids.clone(), set_schema(-1)]);
    assert_eq!(applied(&base, replace).current_schema_id(), 1);
    assert_eq!(applied(&table(2), json!([string_ids, set_schema(-1)])).current_schema_id(), 1);
}

#[test]
fn engines_may_relax_require_and_add_columns_as_they_like() {
    let mut fields = vec![field(1, "id", "long"), field(2, "ts", "timestamp"), field(4, "added", "decimal(9, 2)")];
    fields[0]["required"] = false.into();
    fields[1]["required"] = true.into();
    fields[2]["required"] = true.into();
    assert_eq!(applied(&history(1), json!([add_schema(fields.into()), set_schema(-1)])).last_column_id(), 4);
}

#[test]
fn types_of_v3_are_refused_on_v2() {
    let variant = json!([add_schema(json!([field(1, "id", "long"), field(4, "v", "variant")]))]);
    let (kind, message) = refused(&table(2), variant.clone());
    assert_eq!(kind, Kind::Invalid);
    assert_eq!(message, "Invalid schema for v2:\n- Invalid type for v: variant is not supported until v3");
    assert_eq!(applied(&table(3), variant).schemas().len(), 2);
}

#[test]
fn a_schema_that_a_ref_still_needs_stays() {
    let mut list = vec![add_schema(json!([field(1, "id", "long")])), set_schema(-1)];
    list.push(add_schema(json!([field(1, "key", "long")])));
    let base = applied(&history(1), list.into());
    let table = applied(&base, json!([{"action": "remove-schemas", "schema-ids": [0, 2]}]));
    assert_eq!(table.schemas().map(|s| s.id()).collect::<Vec<_>>(), [0, 1], "snapshot 1 was written with schema 0");
}

fn add_spec(fields: Value) -> Value {
    json!({"action": "add-spec", "spec": {"spec-id": 7, "fields": fields}})
}

#[test]
fn specs_are_numbered_reused_and_bound_to_the_current_schema() {
    let bucket = json!({"source-id": 1, "name": "id_b", "transform": "bucket[16]"});
    let day = json!({"source-id": 2, "field-id": 1001, "name": "d", "transform": "day"});
    let set = json!({"action": "set-default-spec", "spec-id": -1});
    let one = applied(&table(2), json!([add_spec(json!([bucket])), set]));
    assert_eq!((one.default_spec_id(), one.last_partition_id()), (1, 1000));
    let two = applied(&one, json!([add_spec(json!([day, bucket])), set]));
    let fields: Vec<_> = two.spec(2).unwrap().fields().iter().map(|f| f.field_id).collect();
    assert_eq!((fields, two.last_partition_id()), (vec![1001, 1000], 1001), "a known field keeps its id");
    let again = applied(&two, json!([add_spec(json!([bucket])), set]));
    assert_eq!((again.default_spec_id(), again.specs().len(), again.last_partition_id()), (1, 3, 1001));
    for (fields, message) in [
        (json!([{"source-id": 9, "name": "x", "transform": "identity"}]), "Cannot find source column"),
        (json!([{"source-id": 3, "name": "x", "transform": "day"}]), "Invalid source type string for transform: day"),
        (json!([{"source-id": 1, "name": "s", "transform": "bucket[2]"}]), "another column"),
        (json!([{"source-id": 1, "name": "x", "transform": "bucket[0]"}]), "positive number"),
        (json!([{"source-id": 1, "name": "", "transform": "identity"}]), "needs a name"),
        (json!([bucket, bucket]), "comes twice"),
    ] {
        let (kind, text) = refused(&two, json!([add_spec(fields)]));
        assert!(kind == Kind::Invalid && text.contains(message), "{text}");
    }
}

#[test]
fn format_version_1_numbers_partition_fields_in_order() {
    let spec =
        |id: i32| json!([add_spec(json!([{"source-id": 1, "field-id": id, "name": "p", "transform": "identity"}]))]);
    assert_eq!(refused(&table(1), spec(1005)).0, Kind::Invalid);
    assert_eq!(applied(&table(1), spec(1000)).last_partition_id(), 1000);
}

#[test]
fn transforms_of_several_columns_pass_through() {
    let field = json!({"source-ids": [1, 3], "field-id": 1000, "name": "z", "transform": "zorder", "k": 1});
    let table = applied(&table(3), json!([add_spec(json!([field]))]));
    assert_eq!(table.spec(1).unwrap().fields()[0].source_ids, [1, 3]);
    assert!(table.spec(1).unwrap().raw().get().contains("\"k\":1"));
}

#[test]
fn a_column_that_the_default_spec_or_order_needs_cannot_go() {
    let day = json!({"source-id": 2, "name": "d", "transform": "day"});
    let order = json!({"order-id": 1, "fields": [{"source-id": 3, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]});
    let base = applied(
        &table(2),
        json!([
            add_spec(json!([day])),
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": order},
            {"action": "set-default-sort-order", "sort-order-id": -1}]),
    );
    let without = |keep: Value| json!([add_schema(keep), set_schema(-1)]);
    let (kind, message) = refused(&base, without(json!([field(1, "id", "long"), field(3, "s", "string")])));
    assert_eq!(kind, Kind::Invalid);
    assert!(message.contains("Cannot find source column for partition field: 1000: d: day(2)"), "{message}");
    let (_, message) = refused(&base, without(json!([field(1, "id", "long"), field(2, "ts", "timestamp")])));
    assert!(message.contains("Cannot find source column for sort field: identity(3)"), "{message}");
}

#[test]
fn sort_orders_are_reused_and_order_0_sorts_by_nothing() {
    let order = |id: i32| {
        json!({"action": "add-sort-order", "sort-order": {"order-id": id, "fields": [
        {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}})
    };
    let set = |id: i32| json!({"action": "set-default-sort-order", "sort-order-id": id});
    let base = applied(&table(2), json!([order(1), set(-1)]));
    assert_eq!((base.default_sort_order_id(), base.sort_orders().len()), (1, 2));
    assert_eq!(applied(&base, json!([order(9), set(0)])).sort_orders().len(), 2);
    assert_eq!(applied(&base, json!([set(0)])).default_sort_order_id(), 0);
}

#[test]
fn the_metadata_log_is_bounded_and_tells_what_fell_out() {
    let mut table = applied(
        &table(2),
        json!([{"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "2"}}]),
    );
    let mut dropped = Vec::new();
    for i in 0..4 {
        if i == 3 {
            table = applied(
                &table,
                json!([{"action": "set-properties",
                "updates": {"write.metadata.delete-after-commit.enabled": "true"}}]),
            );
        }
        let location = format!("m{i}");
        let at = ApplyAt { now_ms: NOW_MS + 5000 + i, previous_location: Some(&location) };
        let base_ms = table.last_updated_ms();
        let outcome =
            apply(&table, &updates(json!([{"action": "set-properties", "updates": {"i": i.to_string()}}])), &at);
        let outcome = outcome.unwrap();
        dropped.push(outcome.dropped_metadata_files);
        table = outcome.metadata;
        assert_eq!(table.metadata_log().last().unwrap().timestamp_ms, base_ms);
    }
    let files: Vec<_> = table.metadata_log().iter().map(|e| e.metadata_file.as_str()).collect();
    assert_eq!(files, ["m2", "m3"]);
    assert_eq!(dropped, [vec![], vec![], vec![], vec!["m1".to_owned()]], "only once the table asks for it");
}

#[test]
fn a_staged_table_is_assembled_from_its_first_updates() {
    let list = json!([
        {"action": "assign-uuid", "uuid": Uuid::from_u128(5)},
        {"action": "upgrade-format-version", "format-version": 1},
        add_schema(json!([field(1, "id", "long")])),
        set_schema(-1),
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": [{"source-id": 1, "name": "b", "transform": "bucket[4]"}]}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": "s3://b/new/"},
        {"action": "set-properties", "updates": {"a": "b", "format-version": "1"}},
        add(snapshot(1, None, 1, NOW_MS)),
        point("main", "branch", 1)]);
    let table = assemble(&updates(list), NOW_MS).unwrap();
    assert_eq!((table.format_version(), table.uuid(), table.location()), (1, Uuid::from_u128(5), "s3://b/new"));
    assert_eq!((table.current_schema_id(), table.default_spec_id(), table.default_sort_order_id()), (0, 0, 0));
    assert_eq!((table.current_snapshot_id(), table.last_updated_ms()), (Some(1), NOW_MS));
    assert_eq!(table.properties().keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(TableMetadata::parse(&table.encode()).unwrap().encode(), table.encode());
}

#[test]
fn a_table_that_lacks_a_part_is_not_assembled() {
    let whole = [
        json!({"action": "assign-uuid", "uuid": Uuid::from_u128(5)}),
        add_schema(json!([field(1, "id", "long")])),
        set_schema(-1),
        json!({"action": "set-location", "location": "s3://b/new"}),
    ];
    let table = assemble(&updates(whole.to_vec().into()), NOW_MS).unwrap();
    assert_eq!((table.format_version(), table.specs().len(), table.sort_orders().len()), (2, 1, 1));
    for missing in [0, 1, 2, 3] {
        let mut list = whole.to_vec();
        list.remove(missing);
        assert_eq!(assemble(&updates(list.into()), NOW_MS).unwrap_err().kind(), Kind::Invalid);
    }
}

/// The same table, with some members of its document replaced.
fn altered(table: &TableMetadata, changes: &[(&str, Value)]) -> TableMetadata {
    let mut document: Value = serde_json::from_slice(&table.encode()).unwrap();
    for (pointer, value) in changes {
        *document.pointer_mut(pointer).unwrap() = value.clone();
    }
    TableMetadata::parse(document.to_string().as_bytes()).unwrap()
}

#[test]
fn ids_that_are_used_up_are_refused_and_nothing_overflows() {
    let identity = |id: i32| json!({"source-id": 1, "field-id": id, "name": "p", "transform": "identity"});
    let highest = applied(&table(2), json!([add_spec(json!([identity(i32::MAX)]))]));
    assert_eq!(highest.last_partition_id(), i32::MAX);
    let last_schema =
        altered(&table(2), &[("/schemas/0/schema-id", i32::MAX.into()), ("/current-schema-id", i32::MAX.into())]);
    let last_spec =
        altered(&table(2), &[("/partition-specs/0/spec-id", i32::MAX.into()), ("/default-spec-id", i32::MAX.into())]);
    let order = json!({"order-id": 1, "fields":
        [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]});
    let sorted = json!({"action": "add-sort-order", "sort-order": order});
    let last_order =
        altered(&applied(&table(2), json!([sorted.clone()])), &[("/sort-orders/1/order-id", i32::MAX.into())]);
    let bucket = json!({"source-id": 1, "name": "b", "transform": "bucket[2]"});
    let mut reversed = sorted.clone();
    reversed["sort-order"]["fields"][0]["direction"] = "desc".into();
    assert!(!try_apply(&last_order, json!([sorted])).unwrap().changed, "what is there needs no new id");
    for (base, update, message) in [
        (&highest, add_spec(json!([bucket])), "no partition field id is left"),
        (&last_schema, add_schema(json!([field(4, "n", "int")])), "no schema id is left"),
        (&last_spec, add_spec(json!([bucket])), "no partition spec id is left"),
        (&last_order, reversed, "no sort order id is left"),
        (&table(2), add_spec(json!([identity(-1)])), "must not be negative"),
        (&table(2), add_schema(json!([field(-5, "n", "int")])), "field id -5"),
    ] {
        let (kind, text) = refused(base, json!([update]));
        assert!(kind == Kind::Invalid && text.contains(message), "{text}");
    }
}

#[test]
fn what_no_client_could_read_back_is_not_added() {
    let whole = [field(1, "id", "long"), field(2, "ts", "timestamp")];
    let with = |more: Value| add_schema(json!([whole[0], whole[1], more]));
    let mut documented = field(4, "n", "int");
    documented["doc"] = 5.into();
    for (update, message) in [
        (with(field(4, "n", "martian")), "add-schema.schema.fields: column n: unknown type 'martian'"),
        (with(field(4, "n", "decimal(50,60)")), "unknown type 'decimal(50,60)'"),
        (with(documented), "column n: doc must be a string"),
        (json!({"action": "add-schema", "schema": {"type": "list", "fields": whole}}), "schema.type: must be 'struct'"),
        (json!({"action": "add-schema", "schema": {"fields": whole}}), "schema.type: must be 'struct'"),
        (add_spec(json!([{"source-id": 1, "name": "x", "transform": "bucket"}])), "'bucket' needs a positive number"),
        (add_spec(json!([{"source-ids": [1], "name": "x", "transform": "identity"}])), "not supported until v3"),
        (
            json!({"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AA=="}}),
            "v2 tables have no encryption keys",
        ),
    ] {
        let (kind, text) = refused(&history(1), json!([update]));
        assert!(kind == Kind::Invalid && text.contains(message), "{text}");
    }
    let no_sources = add_spec(json!([{"source-ids": [], "name": "x", "transform": "identity"}]));
    let (_, text) = refused(&table(3), json!([no_sources]));
    assert!(text.contains("partition field x has no source column"), "{text}");
}

#[test]
fn a_column_that_is_stranger_than_what_may_be_added_is_carried_on() {
    let strange = altered(&table(2), &[("/schemas/0/fields/2/type", json!("martian"))]);
    let mut fields = vec![field(1, "id", "long"), field(2, "ts", "timestamp"), field(3, "s", "martian")];
    fields.push(field(4, "n", "int"));
    let grown = applied(&strange, json!([add_schema(fields.clone().into()), set_schema(-1)]));
    assert_eq!((grown.schemas().len(), grown.last_column_id()), (2, 4));
    fields.push(field(5, "m", "martian"));
    assert_eq!(refused(&grown, json!([add_schema(fields.into())])).0, Kind::Invalid);
}

#[test]
fn spellings_that_some_clients_cannot_read_are_stored_in_their_normal_form() {
    let order = json!({"action": "add-sort-order", "sort-order": {"order-id": 1, "x": 1, "fields":
        [{"source-id": 1, "transform": "identity", "direction": "DESC", "null-order": "Nulls-Last"}]}});
    let schema = json!({"action": "add-schema", "schema":
        {"type": "struct", "identifier-field-ids": null, "fields": [field(1, "id", "long")]}});
    let table = applied(&table(2), json!([order, schema]));
    let stored = table.sort_order(1).unwrap().raw().get();
    assert!(stored.contains(r#""direction":"desc","null-order":"nulls-last""#), "{stored}");
    assert!(stored.contains(r#""x":1"#), "{stored}");
    assert!(!table.schema(1).unwrap().raw().get().contains("identifier-field-ids"));
}

#[test]
fn snapshots_that_would_be_their_own_ancestors_are_refused() {
    let child_first = json!([add(snapshot(8, Some(9), 2, NOW_MS)), add(snapshot(9, Some(1), 3, NOW_MS))]);
    assert_eq!(applied(&history(1), child_first).snapshots().len(), 3);
    let circle = json!([add(snapshot(8, Some(9), 2, NOW_MS)), add(snapshot(9, Some(8), 3, NOW_MS))]);
    let (kind, message) = refused(&history(1), circle);
    assert!(kind == Kind::Invalid && message.contains("snapshot 9 would be among its own ancestors"), "{message}");
    let expired = applied(&history(2), json!([{"action": "remove-snapshots", "snapshot-ids": [1]}]));
    let back = json!([add(snapshot(1, Some(2), 3, NOW_MS + 9000))]);
    assert_eq!(refused(&expired, back).0, Kind::Invalid, "2 still names 1 as its parent");
}

#[test]
fn encryption_keys_are_of_v3_and_a_known_one_stays_as_it_is() {
    let key = |metadata: &str| json!([{"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": metadata}}]);
    let base = applied(&table(3), key("AA=="));
    assert_eq!(base.encryption_keys().len(), 1);
    assert!(!try_apply(&base, key("BB==")).unwrap().changed);
}

#[test]
fn a_table_without_uuid_gets_its_own_with_the_next_commit() {
    let mut document: Value = serde_json::from_slice(&table(1).encode()).unwrap();
    document.as_object_mut().unwrap().remove("table-uuid");
    let base = TableMetadata::parse(document.to_string().as_bytes()).unwrap();
    let uuid = base.uuid();
    let moved = json!([
        {"action": "set-location", "location": "s3://b/elsewhere"},
        {"action": "upgrade-format-version", "format-version": 2}]);
    let next = applied(&base, moved);
    assert_eq!((next.uuid(), next.format_version()), (uuid, 2));
    assert_eq!(TableMetadata::parse(&next.encode()).unwrap().uuid(), uuid);
    assert!(!try_apply(&base, json!([{"action": "assign-uuid", "uuid": uuid}])).unwrap().changed);
    assert_eq!(refused(&base, json!([{"action": "assign-uuid", "uuid": Uuid::from_u128(9)}])).0, Kind::Invalid);
}

#[test]
fn a_staged_table_that_adds_an_order_and_does_not_choose_it_is_unsorted() {
    let order = json!({"order-id": 1, "fields":
        [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]});
    let mut list = vec![
        json!({"action": "assign-uuid", "uuid": Uuid::from_u128(5)}),
        add_schema(json!([field(1, "id", "long")])),
        set_schema(-1),
        json!({"action": "set-location", "location": "s3://b/new"}),
        json!({"action": "add-sort-order", "sort-order": order}),
    ];
    for (choice, default, ids) in [(None, 0, vec![0, 1]), (Some(-1), 1, vec![1])] {
        list.extend(choice.map(|id| json!({"action": "set-default-sort-order", "sort-order-id": id})));
        let table = assemble(&updates(list.clone().into()), NOW_MS).unwrap();
        assert_eq!(table.default_sort_order_id(), default);
        assert_eq!(table.sort_orders().map(SortOrder::id).collect::<Vec<_>>(), ids);
    }
}

#[test]
fn a_partition_field_id_keeps_its_meaning() {
    let partition = |source: i32, id: Option<i32>, name: &str, transform: &str| match id {
        Some(id) => json!({"source-id": source, "field-id": id, "name": name, "transform": transform}),
        None => json!({"source-id": source, "name": name, "transform": transform}),
    };
    let base = applied(&table(2), json!([add_spec(json!([partition(3, Some(1000), "s", "identity")]))]));
    for (field, is_taken) in [
        (partition(3, Some(1000), "renamed", "identity"), true),
        (partition(3, Some(1000), "renamed", "Identity"), true),
        (partition(3, Some(1000), "s", "void"), true),
        (partition(3, Some(1005), "s2", "bucket[9]"), true),
        (partition(3, Some(1000), "x", "bucket[9]"), false),
        (partition(2, Some(1000), "d", "day"), false),
        (partition(1, Some(1000), "id", "void"), false),
    ] {
        let result = try_apply(&base, json!([add_spec(json!([field.clone()]))]));
        assert_eq!(result.is_ok(), is_taken, "{field}");
    }
    let (_, text) = refused(&base, json!([add_spec(json!([partition(2, Some(1000), "d", "day")]))]));
    assert!(text.contains("partition field id 1000 of d belongs to s (identity of another spec)"), "{text}");

    let several = altered(
        &applied(&base, json!([add_spec(json!([partition(3, None, "b", "bucket[4]")]))])),
        &[("/partition-specs/2/fields/0/field-id", 1000.into())],
    );
    let both = [partition(3, Some(1000), "b2", "bucket[4]"), partition(3, Some(1000), "s2", "identity")];
    for field in both {
        assert!(try_apply(&several, json!([add_spec(json!([field.clone()]))])).is_ok(), "{field}");
    }
}

#[test]
fn an_id_that_the_request_uses_is_not_handed_out() {
    let asked = json!({"source-id": 2, "field-id": 1000, "name": "d", "transform": "day"});
    let more = json!({"source-id": 1, "field-id": 1002, "name": "b", "transform": "bucket[4]"});
    let without = |name: &str, transform: &str| json!({"source-id": 3, "name": name, "transform": transform});
    let fields = json!([without("s", "identity"), asked, without("t", "truncate[2]"), more]);
    let table = applied(&table(2), json!([add_spec(fields)]));
    let ids: Vec<_> = table.spec(1).unwrap().fields().iter().map(|f| f.field_id).collect();
    assert_eq!((ids, table.last_partition_id()), (vec![1001, 1000, 1003, 1002], 1003));
}

#[test]
fn old_rows_keep_the_default_that_they_have() {
    let with = |members: Value| {
        let mut column = field(3, "s", "string");
        column.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        json!([add_schema(json!([field(1, "id", "long"), field(2, "ts", "timestamp"), column])), set_schema(-1)])
    };
    let v3 = json!([{"action": "upgrade-format-version", "format-version": 3}]);
    let base = applied(&history(1), v3.clone());
    assert!(try_apply(&base, with(json!({"write-default": "x"}))).is_ok());
    let (kind, text) = refused(&base, with(json!({"initial-default": "x"})));
    assert!(
        kind == Kind::Invalid && text.contains("cannot change the initial-default of column s (field id 3)"),
        "{text}"
    );
    let empty = applied(&table(2), v3);
    assert!(try_apply(&empty, with(json!({"initial-default": "x"}))).is_ok(), "there are no rows");
    let (_, text) = refused(&empty, with(json!({"initial-default": 5})));
    assert!(text.contains("initial-default is not a value of type string"), "{text}");
}

#[test]
fn one_commit_adds_so_many_schemas_specs_and_orders_and_no_more() {
    let schema = |id: i32| add_schema(json!([field(1, "id", "long"), field(id + 4, "n", "int")]));
    let mut list: Vec<Value> = (0..1000).map(schema).collect();
    assert_eq!(applied(&history(1), list.clone().into()).schemas().len(), 1001);
    list.push(add_spec(json!([{"source-id": 1, "name": "b", "transform": "bucket[4]"}])));
    let (kind, text) = refused(&table(2), list.clone().into());
    assert!(kind == Kind::Invalid && text.contains("1001 add schemas"), "{text}");
    assert!(assemble(&updates(list.into()), NOW_MS).unwrap_err().message().contains("1001 add schemas"));
}

#[test]
fn a_schema_that_went_in_the_same_commit_binds_no_more() {
    let list = json!([
        add_schema(json!([field(1, "id", "long"), field(4, "n", "int")])),
        add_schema(json!([field(1, "id", "long"), field(5, "m", "int")])),
        {"action": "remove-schemas", "schema-ids": [1]},
        add_schema(json!([field(1, "id", "long"), field(4, "n", "string")]))]);
    assert_eq!(applied(&history(1), list).last_column_id(), 5);
    let kept = json!([
        add_schema(json!([field(1, "id", "long"), field(4, "n", "int")])),
        add_schema(json!([field(1, "id", "long"), field(4, "n", "string")]))
    ]);
    assert_eq!(refused(&history(1), kept).0, Kind::Invalid);
}
