use super::*;
use crate::error::Kind;

const UUID: &str = "9c12d441-03fe-4693-9a96-a0705ddf69c1";

/// A table whose branch `main` is at snapshot 2, a child of 1, with a branch `b` at 1 and a tag `t`.
fn table(format_version: u8) -> TableMetadata {
    let snapshot = |id: i64, parent: &str| {
        format!(
            r#"{{"snapshot-id":{id},{parent}"sequence-number":{id},"timestamp-ms":{id},"manifest-list":"s3://b/t/{id}.avro",
                "first-row-id":0,"added-rows":20,"schema-id":0,"summary":{{"operation":"append"}}}}"#
        )
    };
    let text = format!(
        r#"{{"format-version":{format_version},"table-uuid":"{UUID}","location":"s3://b/t",
            "last-sequence-number":2,"last-updated-ms":2,"last-column-id":1,"current-schema-id":0,
            "schemas":[{{"type":"struct","schema-id":0,"fields":[{{"id":1,"name":"a","required":false,"type":"long"}}]}}],
            "default-spec-id":0,"partition-specs":[{{"spec-id":0,"fields":[]}}],"last-partition-id":999,
            "default-sort-order-id":0,"sort-orders":[{{"order-id":0,"fields":[]}}],"next-row-id":40,
            "current-snapshot-id":2,"snapshots":[{},{}],
            "refs":{{"main":{{"snapshot-id":2,"type":"branch"}},"b":{{"snapshot-id":1,"type":"branch"}},
                "t":{{"snapshot-id":2,"type":"tag"}}}}}}"#,
        snapshot(1, ""),
        snapshot(2, r#""parent-snapshot-id":1,"#)
    );
    TableMetadata::parse(text.as_bytes()).unwrap()
}

/// The parts of a request. The usual one was built on snapshot 1 and is put on `main`.
#[derive(Clone, Copy)]
struct Parts {
    requirements: &'static str,
    parent: &'static str,
    numbers: &'static str,
    updates: &'static str,
    on: &'static str,
}

const USUAL: Parts = Parts {
    requirements: r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":1}"#,
    parent: r#""parent-snapshot-id":1,"#,
    numbers: r#""sequence-number":3,"first-row-id":40,"added-rows":1"#,
    updates: "",
    on: r#""ref-name":"main","type":"branch","snapshot-id":7"#,
};

const ON_HEAD: Parts = Parts {
    requirements: r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":2}"#,
    parent: r#""parent-snapshot-id":2,"#,
    ..USUAL
};

fn request(parts: Parts) -> CommitRequest {
    let Parts { requirements, parent, numbers, updates, on } = parts;
    let text = format!(
        r#"{{"requirements":[{{"type":"assert-table-uuid","uuid":"{UUID}"}},{requirements}],"updates":[
            {{"action":"add-snapshot","snapshot":{{"snapshot-id":7,{parent}{numbers},"timestamp-ms":3,
                "manifest-list":"s3://b/t/7.avro","schema-id":0,"summary":{{"operation":"append"}}}}}},
            {updates}{{"action":"set-snapshot-ref",{on}}}]}}"#
    );
    let mut request = CommitRequest::parse(text.as_bytes()).unwrap();
    assert!(request.take_fault().is_none(), "{text}");
    request
}

fn candidate(ref_name: &str, asserted: Option<i64>) -> Candidate {
    Candidate { snapshot_id: 7, ref_name: ref_name.to_owned(), asserted }
}

#[test]
fn a_snapshot_whose_ref_moved_on_may_be_rebased() {
    let need = need(&request(USUAL), &table(2)).unwrap();
    assert_eq!(need, Need::Rebase(candidate("main", Some(1))));
}

#[test]
fn a_first_snapshot_may_be_rebased_on_a_branch_that_came_to_be() {
    let parts = Parts {
        requirements: r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}"#,
        parent: "",
        ..USUAL
    };
    assert_eq!(need(&request(parts), &table(2)).unwrap(), Need::Rebase(candidate("main", None)));
}

#[test]
fn statistics_of_the_snapshot_may_come_along() {
    let statistics = |id| {
        format!(
            r#"{{"action":"set-statistics","statistics":{{"snapshot-id":{id},"statistics-path":"p","file-size-in-bytes":1,
                "file-footer-size-in-bytes":1,"blob-metadata":[]}}}},"#
        )
    };
    for (id, expected) in [(7, true), (1, false)] {
        let parts = Parts { updates: statistics(id).leak(), ..USUAL };
        assert_eq!(need(&request(parts), &table(2)).is_ok(), expected, "of {id}");
    }
}

#[test]
fn any_other_shape_fails_by_its_requirement() {
    let main_at_1 = USUAL.requirements;
    let with = |rest: &str| -> &'static str { format!("{main_at_1},{rest}").leak() };
    for parts in [
        Parts { updates: r#"{"action":"set-properties","updates":{"a":"b"}},"#, ..USUAL },
        Parts { updates: r#"{"action":"remove-snapshots","snapshot-ids":[1]},"#, ..USUAL },
        Parts { updates: r#"{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":7},"#, ..USUAL },
        Parts { on: r#""ref-name":"main","type":"branch","snapshot-id":2"#, ..USUAL },
        Parts { on: r#""ref-name":"x","type":"tag","snapshot-id":7"#, ..USUAL },
        Parts { on: r#""ref-name":"b","type":"branch","snapshot-id":7"#, ..USUAL },
        Parts { parent: "", ..USUAL },
        Parts { parent: r#""parent-snapshot-id":2,"#, ..USUAL },
        Parts { requirements: with(r#"{"type":"assert-current-schema-id","current-schema-id":0}"#), ..USUAL },
        Parts { requirements: with(r#"{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":1}"#), ..USUAL },
        Parts { requirements: with(r#"{"type":"assert-default-spec-id","default-spec-id":5}"#), ..USUAL },
    ] {
        let error = need(&request(parts), &table(2)).unwrap_err();
        assert_eq!(error.kind(), Kind::CommitFailed);
        assert!(error.message().contains("main has changed: expected id 1 != 2"), "{error}");
    }
}

#[test]
fn a_ref_that_is_gone_or_is_a_tag_takes_no_rebase() {
    for (name, message) in [("gone", "branch or tag gone is missing"), ("t", "tag t has changed")] {
        let requirement = format!(r#"{{"type":"assert-ref-snapshot-id","ref":"{name}","snapshot-id":1}}"#);
        let on = format!(r#""ref-name":"{name}","type":"branch","snapshot-id":7"#);
        let parts = Parts { requirements: requirement.leak(), on: on.leak(), ..USUAL };
        let error = need(&request(parts), &table(2)).unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
}

#[test]
fn the_first_failing_requirement_is_the_answer() {
    let requirements = format!(r#"{{"type":"assert-current-schema-id","current-schema-id":9}},{}"#, USUAL.requirements);
    let error = need(&request(Parts { requirements: requirements.leak(), ..USUAL }), &table(2)).unwrap_err();
    assert!(error.message().contains("current schema changed"), "{error}");
}

#[test]
fn what_fits_needs_nothing() {
    for format_version in [2, 3] {
        assert_eq!(need(&request(ON_HEAD), &table(format_version)).unwrap(), Need::Nothing);
    }
}

#[test]
fn numbers_that_another_branch_took_are_stamped_anew() {
    let number = Parts { numbers: r#""sequence-number":2,"first-row-id":40,"added-rows":1"#, ..ON_HEAD };
    let rows = Parts { numbers: r#""sequence-number":3,"first-row-id":39,"added-rows":1"#, ..ON_HEAD };
    let expected = Need::Restamp(candidate("main", Some(2)));
    for (format_version, parts, stale) in
        [(2, number, true), (3, number, true), (2, rows, false), (3, rows, true), (1, number, false)]
    {
        let found = need(&request(parts), &table(format_version)).unwrap();
        assert_eq!(found == expected, stale, "format version {format_version}: {found:?}");
    }
}

#[test]
fn a_first_write_to_a_branch_is_stamped_anew_on_its_parent() {
    let parts = Parts {
        requirements: r#"{"type":"assert-ref-snapshot-id","ref":"new","snapshot-id":null}"#,
        numbers: r#""sequence-number":2"#,
        on: r#""ref-name":"new","type":"branch","snapshot-id":7"#,
        ..USUAL
    };
    assert_eq!(need(&request(parts), &table(2)).unwrap(), Need::Restamp(candidate("new", None)));
}

#[test]
fn what_is_no_single_snapshot_is_judged_as_it_came() {
    let stale = Parts { numbers: r#""sequence-number":2"#, ..ON_HEAD };
    for parts in [
        Parts { updates: r#"{"action":"set-properties","updates":{"a":"b"}},"#, ..stale },
        Parts { parent: r#""parent-snapshot-id":1,"#, ..stale },
        Parts { requirements: r#"{"type":"assert-default-spec-id","default-spec-id":0}"#, ..stale },
    ] {
        assert_eq!(need(&request(parts), &table(2)).unwrap(), Need::Nothing);
    }
}
