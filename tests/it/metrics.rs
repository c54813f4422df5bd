//! What operators watch is what they are told of.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::server::TestServer;
use crate::sizes::sources;

/// The pieces between `mark`s that are names of metrics.
fn names(text: &str, mark: char) -> BTreeSet<String> {
    let is_name =
        |piece: &&str| piece.starts_with("frazil_") && piece.bytes().all(|b| b == b'_' || b.is_ascii_lowercase());
    text.split(mark).filter(is_name).map(str::to_owned).collect()
}

#[test]
fn every_metric_is_documented_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&root.join("server"), &mut files);
    let kept: BTreeSet<String> = files.iter().flat_map(|file| names(&fs::read_to_string(file).unwrap(), '"')).collect();
    assert!(kept.len() > 5, "only {kept:?} found");
    let told = fs::read_to_string(root.join("docs/observability.md")).unwrap();
    assert_eq!(names(&told, '`'), kept);
}

/// The names of the metrics of a page, each of which must be described.
fn families(page: &str) -> BTreeSet<&str> {
    let of = |mark: &'static str| page.lines().filter_map(move |line| line.strip_prefix(mark)?.split(' ').next());
    let (described, typed): (BTreeSet<_>, BTreeSet<_>) = (of("# HELP ").collect(), of("# TYPE ").collect());
    assert_eq!(described, typed);
    typed
}

#[tokio::test]
async fn what_a_server_really_shows_is_described_and_documented() {
    let server = TestServer::on_sqlite().await;
    server.create_namespace(&["n"]).await;
    server.create_table("n", "t").await;
    server.append("/namespaces/n/tables/t", 1).await.expect(200);
    let page = server.get("/metrics").await.expect(200).text;
    let shown = families(&page);
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/observability.md");
    let told = fs::read_to_string(documents).unwrap();
    for name in &shown {
        assert!(told.contains(&format!("`{name}`")), "{name} is not in docs/observability.md");
    }
    for name in ["frazil_table_snapshots", "frazil_database_connections", "process_resident_memory_bytes"] {
        assert!(shown.contains(name), "{name} is not in {shown:?}");
    }
    server.end().await;
}

#[test]
fn every_statement_of_a_store_is_counted_where_it_is_sent() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server");
    let mut files = Vec::new();
    ["store-postgres/src", "store-sqlite/src"].iter().for_each(|folder| sources(&root.join(folder), &mut files));
    // What is sent before a server serves, or by the commands beside it, is not counted.
    let beside = ["migrate.rs", "pooler.rs", "examine.rs", "transfer.rs", "backup.rs", "tests.rs"];
    files.retain(|file| {
        let inside = file.strip_prefix(&root).unwrap();
        !beside.iter().any(|name| file.ends_with(name)) && !inside.iter().any(|part| part == "tests")
    });
    let sends = [".fetch_one(", ".fetch_optional(", ".fetch_all(", ".execute(", ".begin(", ".begin_with(", ".ping()"];
    let mut counted = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().filter(|line| sends.iter().any(|send| line.contains(send)));
        for line in lines {
            assert!(line.contains("sent(\""), "{}: {line}", file.display());
            counted += 1;
        }
    }
    assert!(counted > 100, "only {counted} statements found");
}
