use serde_json::{Value, json};

use super::*;
use crate::error::Kind;

const UUID: &str = "6b1f4c52-0f0e-4b33-9d3a-3f5a3c9a7f10";
const NOW_MS: i64 = 5_000;

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn schema(columns: &[&str]) -> Value {
    let field = |(at, name): (usize, &&str)| json!({"id": at + 1, "name": name, "required": false, "type": "int"});
    json!({"type": "struct", "schema-id": 0, "fields": columns.iter().enumerate().map(field).collect::<Vec<_>>()})
}

/// A version made at 1000 times its id, with the dialect and the SQL of each pair.
fn version(id: i32, schema_id: i32, queries: &[(&str, &str)]) -> Value {
    let sql = |(dialect, sql): &(&str, &str)| json!({"type": "sql", "sql": sql, "dialect": dialect});
    json!({
        "version-id": id, "schema-id": schema_id, "timestamp-ms": 1_000 * i64::from(id), "summary": {},
        "default-namespace": ["ns"], "representations": queries.iter().map(sql).collect::<Vec<_>>(),
    })
}

fn new_view(schema: &Value, version: &Value, properties: &[(&str, &str)]) -> Result<ViewMetadata> {
    create(NewView {
        uuid: UUID.parse().unwrap(),
        location: "s3://b/v/",
        schema: &raw(schema),
        view_version: &raw(version),
        properties: properties.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        now_ms: NOW_MS,
    })
}

/// A view with version 1, `SELECT 1` for Spark, over one column.
fn view(properties: &[(&str, &str)]) -> ViewMetadata {
    new_view(&schema(&["a"]), &version(1, 0, &[("spark", "SELECT 1")]), properties).unwrap()
}

fn updates(updates: Value) -> Vec<ViewUpdate> {
    serde_json::from_str(&updates.to_string()).unwrap()
}

fn commit(base: &ViewMetadata, changes: Value) -> Result<AppliedView> {
    apply(base, &updates(changes), NOW_MS)
}

fn changed(base: &ViewMetadata, changes: Value) -> ViewMetadata {
    let applied = commit(base, changes).unwrap();
    assert!(applied.changed);
    applied.metadata
}

fn refusal(base: &ViewMetadata, changes: Value) -> String {
    let error = commit(base, changes).unwrap_err();
    assert!(matches!(error.kind(), Kind::Invalid | Kind::IllegalArgument));
    error.to_string()
}

fn document(view: &ViewMetadata) -> Value {
    serde_json::from_slice(&view.encode()).unwrap()
}

fn add(version: Value) -> Value {
    json!({"action": "add-view-version", "view-version": version})
}

fn set_current(id: i32) -> Value {
    json!({"action": "set-current-view-version", "view-version-id": id})
}

fn set_properties(properties: Value) -> Value {
    json!({"action": "set-properties", "updates": properties})
}

/// Replaces the view's query for Spark, as an engine does.
fn replace(base: &ViewMetadata, id: i32) -> ViewMetadata {
    let next = version(id, 0, &[("spark", &format!("SELECT {id}"))]);
    changed(base, json!([add(next), set_current(-1)]))
}

fn version_ids(view: &ViewMetadata) -> Vec<i32> {
    view.versions.iter().map(|version| version.id).collect()
}

fn logged(view: &ViewMetadata) -> Value {
    let log = document(view)["version-log"].take();
    log.as_array().unwrap().iter().map(|entry| json!([entry["version-id"], entry["timestamp-ms"]])).collect()
}

mod document {
    use super::*;

    const SPARK: &str = include_str!("../../tests/metadata/view-spark.json");
    const PYICEBERG: &str = include_str!("../../tests/metadata/view-pyiceberg.json");

    #[test]
    fn a_document_of_spark_comes_back_byte_for_byte() {
        let view = ViewMetadata::parse(SPARK.as_bytes()).unwrap();
        assert_eq!(view.encode(), SPARK.trim_end());
        assert_eq!(view.property("owner"), Some("etl"));
        assert_eq!(view.current_version_id(), 2);
    }

    #[test]
    fn a_document_of_pyiceberg_comes_back_with_its_nulls() {
        let view = ViewMetadata::parse(PYICEBERG.as_bytes()).unwrap();
        let mut stored: Value = serde_json::from_str(PYICEBERG).unwrap();
        stored.as_object_mut().unwrap().remove("properties");
        assert_eq!(super::document(&view), stored);
        assert!(view.properties().is_empty());
    }

    #[test]
    fn stored_documents_take_a_new_version() {
        for (stored, dialect) in [(SPARK, "spark"), (PYICEBERG, "trino")] {
            let base = ViewMetadata::parse(stored.as_bytes()).unwrap();
            let after = changed(&base, json!([add(version(1, 0, &[(dialect, "SELECT 9")])), set_current(-1)]));
            assert_eq!(after.current_version_id(), base.current_version_id() + 1);
            let reread = ViewMetadata::parse(&after.encode()).unwrap();
            assert_eq!(reread.encode(), after.encode());
        }
    }

    #[test]
    fn unknown_members_survive_a_commit_at_every_level() {
        let mut stored: Value = serde_json::from_str(SPARK).unwrap();
        stored["x-top"] = json!({"deep": [1.50, null]});
        stored["schemas"][0]["x-schema"] = json!(1);
        stored["versions"][1]["x-version"] = json!("two");
        stored["versions"][1]["representations"].as_array_mut().unwrap().push(json!({"type": "ir", "plan": "AAE="}));
        stored["version-log"][0]["x-entry"] = json!(true);
        let base = ViewMetadata::parse(stored.to_string().as_bytes()).unwrap();
        assert_eq!(super::document(&base), stored);

        let new = version(3, 1, &[("spark", "SELECT 3")]);
        let after = super::document(&changed(&base, json!([add(new), set_current(-1)])));
        for path in ["/x-top", "/schemas", "/versions/0", "/versions/1", "/version-log/0"] {
            assert_eq!(after.pointer(path), stored.pointer(path), "{path}");
        }
    }

    #[test]
    fn a_broken_document_is_refused_with_the_field_named() {
        let cases = [
            ("/format-version", json!(2), "Unsupported format version: 2"),
            ("/format-version", Value::Null, "'format-version' is missing"),
            ("/view-uuid", json!("x"), "'view-uuid'"),
            ("/location", Value::Null, "'location' is missing"),
            ("/properties", json!({"a": 1}), "'properties'"),
            ("/schemas", json!({}), "'schemas'"),
            ("/schemas/1/schema-id", json!(7), "schema 1 of current version 2 is not among the schemas"),
            ("/schemas/0/schema-id", json!(1), "schema-id 1 is used twice"),
            ("/current-version-id", json!(9), "current-version-id 9 is not among the versions"),
            ("/versions/0/version-id", json!(2), "version-id 2 is used twice"),
            ("/versions/0/default-namespace", Value::Null, "'default-namespace' is missing"),
            ("/versions/0/representations/0/dialect", Value::Null, "needs 'sql' and 'dialect'"),
            ("/version-log/0/version-id", Value::Null, "'version-id' is missing"),
        ];
        for (path, value, message) in cases {
            let mut stored: Value = serde_json::from_str(SPARK).unwrap();
            *stored.pointer_mut(path).unwrap() = value;
            let error = ViewMetadata::parse(stored.to_string().as_bytes()).unwrap_err();
            assert!(error.to_string().contains(message), "{path}: {error}");
        }
        assert!(ViewMetadata::parse(b"{").is_err());
        assert!(ViewMetadata::parse(b"[]").is_err());
    }

    #[test]
    fn memory_grows_with_the_document() {
        let small = view(&[]);
        let long = "x".repeat(10_000);
        let large = changed(&small, json!([set_properties(json!({"comment": long}))]));
        assert!(small.memory_bytes() > small.encode().len());
        assert!(large.memory_bytes() >= small.memory_bytes() + 10_000);
    }
}

mod creation {
    use super::*;

    #[test]
    fn ids_sent_by_the_client_give_way_to_those_of_the_view() {
        for (schema_id, version_id) in [(7, 1), (-1, 1), (0, 12)] {
            let mut columns = schema(&["a"]);
            columns["schema-id"] = json!(5);
            let view = new_view(&columns, &version(version_id, schema_id, &[("spark", "SELECT 1")]), &[]).unwrap();
            let document = document(&view);
            assert_eq!(document["schemas"][0]["schema-id"], 0);
            assert_eq!(document["versions"][0]["schema-id"], 0);
            assert_eq!(document["versions"][0]["version-id"], 1);
            assert_eq!(document["current-version-id"], 1);
        }
    }

    #[test]
    fn a_new_view_holds_what_it_was_given() {
        let view = view(&[("owner", "me")]);
        assert_eq!(view.uuid().to_string(), UUID);
        assert_eq!(view.location(), "s3://b/v");
        assert_eq!(view.property("owner"), Some("me"));
        assert_eq!(logged(&view), json!([[1, 1_000]]));
        assert_eq!(ViewMetadata::parse(&view.encode()).unwrap().encode(), view.encode());
    }

    #[test]
    fn a_version_may_leave_out_its_catalog_its_time_and_its_ids() {
        let mut sparse = version(1, 0, &[("trino", "SELECT 1")]);
        sparse["default-catalog"] = Value::Null;
        for member in ["timestamp-ms", "version-id", "schema-id"] {
            sparse.as_object_mut().unwrap().remove(member);
        }
        let view = new_view(&schema(&["a"]), &sparse, &[]).unwrap();
        assert_eq!(logged(&view), json!([[1, NOW_MS]]));
    }

    #[test]
    fn a_representation_is_stored_with_its_type_in_lower_case() {
        let mut loud = version(1, 0, &[("Spark", "SELECT 1"), ("trino", "SELECT 1")]);
        loud["representations"][0]["type"] = json!("SQL");
        loud["representations"][0]["x"] = json!(1);
        let stored = document(&new_view(&schema(&["a"]), &loud, &[]).unwrap());
        loud["representations"][0]["type"] = json!("sql");
        assert_eq!(stored["versions"][0]["representations"], loud["representations"]);
    }

    #[test]
    fn a_representation_that_no_reader_could_use_is_refused() {
        for (representation, message) in [
            (
                json!(["sql", "SELECT 1", "spark"]),
                "view representation: invalid type: sequence, expected a JSON object",
            ),
            (json!({"sql": "SELECT 1", "dialect": "spark"}), "view representation: 'type' is missing"),
            (json!({"type": "plan", "plan": "AAE="}), "a representation of type 'plan' cannot be added"),
        ] {
            let mut version = version(1, 0, &[]);
            version["representations"] = json!([representation]);
            let error = new_view(&schema(&["a"]), &version, &[]).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn what_no_reader_could_use_is_refused() {
        let columns = schema(&["a"]);
        let spark = version(1, 0, &[("spark", "SELECT 1")]);
        let with = |whole: &Value, path: &str, value: Value| {
            let mut whole = whole.clone();
            whole[path] = value;
            whole
        };
        let cases = [
            (with(&columns, "type", json!("list")), spark.clone(), "'type' must be 'struct'"),
            (with(&columns, "fields", Value::Null), spark.clone(), "'fields' is missing"),
            (with(&columns, "fields", json!([{"id": 1}])), spark.clone(), "view schema field: 'required' is missing"),
            (schema(&["a", "a"]), spark.clone(), "field name 'a' is used twice"),
            (columns.clone(), with(&spark, "representations", json!([])), "at least one query"),
            (columns.clone(), with(&spark, "summary", Value::Null), "'summary' is missing"),
            (columns.clone(), with(&spark, "default-namespace", json!("ns")), "'default-namespace'"),
            (
                columns.clone(),
                version(1, 0, &[("trino", "SELECT 1"), ("TriNo", "SELECT 2")]),
                "Invalid view version: Cannot add multiple queries for dialect trino",
            ),
        ];
        for (schema, version, message) in cases {
            let error = new_view(&schema, &version, &[]).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
        let properties = [("version.history.num-entries", "0"), ("write.metadata.compression-codec", "zstd")];
        for property in properties {
            let error = new_view(&columns, &spark, &[property]).unwrap_err();
            assert!(error.to_string().contains(property.0), "{error}");
        }
    }
}

mod changes {
    use super::*;

    #[test]
    fn a_replace_keeps_uuid_properties_and_location() {
        let base = view(&[("owner", "me")]);
        let after = replace(&replace(&base, 2), 3);
        assert_eq!(
            (after.uuid(), after.location(), after.properties()),
            (base.uuid(), base.location(), base.properties())
        );
        assert_eq!(version_ids(&after), [1, 2, 3]);
        assert_eq!(after.current_version_id(), 3);
        assert_eq!(logged(&after), json!([[1, 1_000], [2, 2_000], [3, 3_000]]));
    }

    #[test]
    fn location_schema_and_version_change_in_one_commit() {
        let after = changed(
            &view(&[]),
            json!([
                {"action": "set-location", "location": "s3://b/other/"},
                {"action": "add-schema", "schema": schema(&["a", "b"]), "last-column-id": 2},
                add(version(2, -1, &[("spark", "SELECT 1, 2")])),
                set_current(-1),
            ]),
        );
        assert_eq!(after.location(), "s3://b/other");
        assert_eq!(after.current_version_id(), 2);
        assert_eq!(document(&after)["versions"][1]["schema-id"], 1);
        assert_eq!(document(&after)["schemas"][1]["schema-id"], 1);
    }

    #[test]
    fn the_same_schema_keeps_its_id_and_counts_as_added() {
        let mut same = schema(&["a"]);
        same["schema-id"] = json!(9);
        same["identifier-field-ids"] = json!([]);
        same["fields"][0]["doc"] = Value::Null;
        let after = changed(
            &view(&[]),
            json!([
                {"action": "add-schema", "schema": same},
                add(version(2, -1, &[("spark", "SELECT 2")])),
            ]),
        );
        assert_eq!(after.schemas.len(), 1);
        assert_eq!(document(&after)["versions"][1]["schema-id"], 0);
    }

    #[test]
    fn schemas_that_differ_in_a_column_or_an_identifier_are_two() {
        let renamed = schema(&["b"]);
        let mut identified = schema(&["a"]);
        identified["identifier-field-ids"] = json!([1]);
        for other in [renamed, identified] {
            let after = changed(&view(&[]), json!([{"action": "add-schema", "schema": other}]));
            assert_eq!(document(&after)["schemas"][1]["schema-id"], 1);
        }
    }

    #[test]
    fn a_taken_version_id_becomes_the_next_free_one() {
        for (wanted, given) in [(1, 2), (0, 2), (-4, 2), (2, 2), (8, 8)] {
            let after =
                changed(&view(&[]), json!([add(version(wanted, 0, &[("spark", "SELECT 2")])), set_current(-1)]));
            assert_eq!(version_ids(&after), [1, given]);
            assert_eq!(after.current_version_id(), given);
            assert_eq!(document(&after)["versions"][1]["version-id"], given);
        }
    }

    #[test]
    fn no_version_follows_the_highest_id_there_is() {
        let mut last = version(2, 0, &[("spark", "SELECT 2")]);
        last["version-id"] = json!(i32::MAX);
        let full = changed(&view(&[]), json!([add(last)]));
        let message = refusal(&full, json!([add(version(2, 0, &[("spark", "SELECT 3")]))]));
        assert!(message.contains("no id is left"), "{message}");
    }

    #[test]
    fn a_version_that_says_the_same_is_not_added_again() {
        let base = replace(&view(&[]), 2);
        let mut same = version(7, 0, &[("spark", "SELECT 1")]);
        same["default-catalog"] = Value::Null;
        let after = changed(&base, json!([add(same), set_current(-1)]));
        assert_eq!(version_ids(&after), [1, 2]);
        assert_eq!(after.current_version_id(), 1);
        assert_eq!(logged(&after), json!([[1, 1_000], [2, 2_000], [1, NOW_MS]]));
    }

    #[test]
    fn a_version_with_another_summary_or_namespace_is_another_version() {
        for (member, value) in [("summary", json!({"a": "1"})), ("default-namespace", json!(["other"]))] {
            let mut other = version(1, 0, &[("spark", "SELECT 1")]);
            other[member] = value;
            assert_eq!(version_ids(&changed(&view(&[]), json!([add(other)]))), [1, 2]);
        }
    }

    #[test]
    fn only_the_last_current_version_of_a_commit_is_logged() {
        let base = replace(&view(&[]), 2);
        let third = add(version(3, 0, &[("spark", "SELECT 3")]));
        let after = changed(&base, json!([set_current(1), third, set_current(-1)]));
        assert_eq!(logged(&after), json!([[1, 1_000], [2, 2_000], [3, 3_000]]));
    }

    #[test]
    fn properties_are_set_and_removed_under_both_names() {
        let base = view(&[("a", "1"), ("b", "2")]);
        let cases = [
            json!([set_properties(json!({"c": "3"})), {"action": "remove-properties", "removals": ["a", "x"]}]),
            json!([{"action": "set-properties", "updated": {"c": "3"}}, {"action": "remove-properties", "removed": ["a"]}]),
        ];
        for changes in cases {
            assert_eq!(document(&changed(&base, changes))["properties"], json!({"b": "2", "c": "3"}));
        }
    }

    #[test]
    fn a_change_that_changes_nothing_says_so() {
        let base = replace(&view(&[("a", "1")]), 2);
        let cases = [
            json!([]),
            json!([{"action": "assign-uuid", "uuid": UUID.to_uppercase()}]),
            json!([{"action": "upgrade-format-version", "format-version": 1}]),
            json!([{"action": "add-schema", "schema": schema(&["a"])}]),
            json!([{"action": "set-location", "location": "s3://b/v/"}]),
            json!([set_properties(json!({"a": "1"}))]),
            json!([{"action": "remove-properties", "removals": ["b"]}]),
            json!([add(version(2, 0, &[("spark", "SELECT 2")])), set_current(-1)]),
            json!([set_current(1), set_current(2)]),
        ];
        for changes in cases {
            let applied = commit(&base, changes.clone()).unwrap();
            assert!(!applied.changed, "{changes}");
            assert_eq!(applied.metadata.encode(), base.encode(), "{changes}");
        }
    }

    #[test]
    fn a_change_that_breaks_a_rule_is_refused() {
        let twice = version(2, 0, &[("trino", "SELECT 1"), ("Trino", "SELECT 2"), ("spark", "SELECT 2")]);
        let cases = [
            (json!({"action": "assign-uuid", "uuid": Uuid::nil()}), "Cannot reassign uuid"),
            (json!({"action": "upgrade-format-version", "format-version": 0}), "Cannot downgrade v1 view to v0"),
            (json!({"action": "upgrade-format-version", "format-version": 2}), "Unsupported format version: 2"),
            (json!({"action": "add-schema", "schema": {"type": "struct"}}), "'fields' is missing"),
            (json!({"action": "set-location", "location": ""}), "location must not be empty"),
            (add(version(2, -1, &[("spark", "SELECT 2")])), "Cannot set last added schema"),
            (add(version(2, 5, &[("spark", "SELECT 2")])), "Cannot add version with unknown schema: 5"),
            (add(version(2, 0, &[])), "at least one query"),
            (add(twice), "Invalid view version: Cannot add multiple queries for dialect trino"),
            (set_current(-1), "Cannot set last version id"),
            (set_current(4), "Cannot set current version to unknown version: 4"),
            (
                set_properties(json!({"version.history.num-entries": "-1"})),
                "version.history.num-entries must be positive",
            ),
            (set_properties(json!({"write.metadata.compression-codec": "zstd"})), "must be 'gzip' or 'none'"),
        ];
        for (change, message) in cases {
            let refused = refusal(&view(&[]), json!([change]));
            assert!(refused.contains(message), "{refused}");
        }
    }

    #[test]
    fn an_update_that_cannot_be_read_is_refused_by_name() {
        let cases = [
            (json!({"action": "add-snapshot"}), "action 'add-snapshot' is not known for views"),
            (json!({"location": "s3://b"}), "'action' is missing"),
            (json!({"action": "set-location"}), "'location' is missing"),
            (json!({"action": "set-properties"}), "'updates' is missing"),
            (json!({"action": "set-properties", "updates": {"a": null}}), "'updates': invalid type: null"),
            (json!({"action": "set-current-view-version", "view-version-id": "1"}), "'view-version-id': invalid type"),
        ];
        for (update, message) in cases {
            let error = serde_json::from_str::<ViewUpdate>(&update.to_string()).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
        let update: ViewUpdate = serde_json::from_str(r#"{"action": "Set-Location", "location": "x"}"#).unwrap();
        assert!(matches!(update, ViewUpdate::SetLocation { location } if location == "x"));
    }
}

mod dialects {
    use super::*;

    const ALLOWED: &str = "replace.drop-dialect.allowed";

    fn bilingual(properties: &[(&str, &str)]) -> ViewMetadata {
        let both = version(1, 0, &[("Spark", "SELECT 1"), ("trino", "SELECT 1")]);
        new_view(&schema(&["a"]), &both, properties).unwrap()
    }

    #[test]
    fn a_replace_that_loses_a_dialect_is_refused() {
        let spark_only = add(version(2, 0, &[("spark", "SELECT 2")]));
        let refused = refusal(&bilingual(&[]), json!([spark_only, set_current(-1)]));
        assert!(refused.starts_with("Cannot replace view due to loss of view dialects: trino;"), "{refused}");
        assert!(refused.contains(ALLOWED));
    }

    #[test]
    fn a_replace_may_lose_a_dialect_where_the_property_allows_it() {
        let spark_only = add(version(2, 0, &[("spark", "SELECT 2")]));
        let replace = json!([spark_only, set_current(-1)]);
        assert_eq!(changed(&bilingual(&[(ALLOWED, "TRUE")]), replace.clone()).current_version_id(), 2);
        let allowing = json!([set_properties(json!({ALLOWED: "true"})), spark_only, set_current(-1)]);
        assert_eq!(changed(&bilingual(&[]), allowing).current_version_id(), 2);
    }

    #[test]
    fn dialects_are_compared_without_case_and_more_of_them_are_welcome() {
        let three = add(version(2, 0, &[("SPARK", "SELECT 2"), ("TRINO", "SELECT 2"), ("flink", "SELECT 2")]));
        assert_eq!(changed(&bilingual(&[]), json!([three, set_current(-1)])).current_version_id(), 2);
    }

    #[test]
    fn going_back_to_a_version_without_the_dialect_is_a_loss_too() {
        let wider = add(version(2, 0, &[("spark", "SELECT 2"), ("trino", "SELECT 2")]));
        let base = changed(&view(&[]), json!([wider, set_current(-1)]));
        assert!(refusal(&base, json!([set_current(1)])).contains("trino"));
    }
}

mod history {
    use super::*;

    const ENTRIES: &str = "version.history.num-entries";

    #[test]
    fn ten_versions_are_kept_unless_a_property_says_otherwise() {
        for (properties, kept) in [(vec![], 10), (vec![(ENTRIES, "3")], 3), (vec![(ENTRIES, "1")], 1)] {
            let last = (2..=12).fold(view(&properties), |base, id| replace(&base, id));
            let expected: Vec<i32> = (13 - kept..=12).collect();
            assert_eq!(version_ids(&last), expected);
            let entries: Value = expected.iter().map(|id| json!([id, id * 1_000])).collect();
            assert_eq!(logged(&last), entries);
        }
    }

    #[test]
    fn versions_added_in_the_same_commit_all_stay() {
        let base = view(&[(ENTRIES, "2")]);
        let [two, three] = [2, 3].map(|id| add(version(id, 0, &[("spark", &format!("SELECT {id}"))])));
        let after = changed(&base, json!([two, three]));
        assert_eq!(version_ids(&after), [1, 2, 3]);
        let later = changed(&after, json!([set_properties(json!({"a": "1"}))]));
        assert_eq!(version_ids(&later), [1, 3]);
    }

    #[test]
    fn the_current_version_stays_however_old_it_is() {
        let base = changed(&replace(&replace(&view(&[]), 2), 3), json!([set_current(1)]));
        let after = changed(&base, json!([set_properties(json!({ENTRIES: "1"}))]));
        assert_eq!(version_ids(&after), [1]);
        assert_eq!(logged(&after), json!([[1, NOW_MS]]));
    }

    #[test]
    fn the_log_is_cut_behind_a_version_that_is_gone() {
        let base = replace(&view(&[(ENTRIES, "2")]), 2);
        let back = changed(&base, json!([set_current(1)]));
        let after = replace(&back, 3);
        assert_eq!(version_ids(&after), [2, 3]);
        assert_eq!(logged(&after), json!([[3, 3_000]]));
    }
}

mod requirements {
    use super::*;

    fn read(requirement: Value) -> serde_json::Result<ViewRequirement> {
        serde_json::from_str(&requirement.to_string())
    }

    fn requires(uuid: &str) -> ViewRequirement {
        read(json!({"type": "assert-view-uuid", "uuid": uuid})).unwrap()
    }

    #[test]
    fn the_uuid_is_compared_without_case() {
        for uuid in [UUID.to_owned(), UUID.to_uppercase()] {
            assert!(requires(&uuid).check(&view(&[])).is_ok());
        }
    }

    #[test]
    fn another_uuid_fails_the_commit() {
        let error = requires("x").check(&view(&[])).unwrap_err();
        assert_eq!(error.kind(), Kind::CommitFailed);
        let message = format!("Requirement failed: view UUID does not match: expected {UUID} != x");
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn a_requirement_of_tables_is_not_known() {
        let error = read(json!({"type": "assert-create"})).unwrap_err();
        assert!(error.to_string().contains("'assert-create' is not known"), "{error}");
    }

    #[test]
    fn the_type_is_read_in_any_case() {
        let loud = read(json!({"type": "ASSERT-VIEW-UUID", "uuid": UUID})).unwrap();
        assert_eq!(loud, requires(UUID));
    }
}

mod file_names {
    use super::*;

    #[test]
    fn names_count_up_from_the_file_before() {
        let cases = [
            (None, "00000"),
            (Some("s3://b/v/metadata/00000-0b9c.metadata.json"), "00001"),
            (Some("s3://b/v/metadata/00041-0b9c.gz.metadata.json"), "00042"),
            (Some("s3://b/v/metadata/99999-0b9c.gz.metadata.json"), "100000"),
            (Some("s3://b/v/metadata/v3.metadata.json"), "00000"),
        ];
        for (previous, number) in cases {
            let name = next_metadata_location(&view(&[]), previous, Uuid::nil());
            assert_eq!(name, format!("s3://b/v/metadata/{number}-{}.gz.metadata.json", Uuid::nil()));
        }
    }

    #[test]
    fn properties_choose_the_folder_and_the_codec() {
        let (path, codec) = ("write.metadata.path", "write.metadata.compression-codec");
        let cases = [
            (vec![], "s3://b/v/metadata", ".gz.metadata.json"),
            (vec![(codec, "GZIP")], "s3://b/v/metadata", ".gz.metadata.json"),
            (vec![(codec, "none")], "s3://b/v/metadata", ".metadata.json"),
            (vec![(path, "s3://b/meta/")], "s3://b/meta", ".gz.metadata.json"),
        ];
        for (properties, folder, suffix) in cases {
            let name = next_metadata_location(&view(&properties), None, Uuid::nil());
            assert_eq!(name, format!("{folder}/00000-{}{suffix}", Uuid::nil()));
        }
    }
}
