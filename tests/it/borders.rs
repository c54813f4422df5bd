//! Who may depend on whom.

use std::collections::BTreeSet;
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// Each of our crates with those of ours that it may name.
const MAY_NAME: [(&str, &[&str]); 7] = [
    ("catalog", &[]),
    ("store-postgres", &["catalog"]),
    ("store-sqlite", &["catalog"]),
    ("frazil", &["catalog", "store-postgres", "store-sqlite"]),
    ("faults", &["frazil"]),
    // It measures servers of any make, and must know nothing of ours.
    ("bench", &["faults"]),
    ("tests", &["catalog", "frazil", "store-postgres", "store-sqlite"]),
];

/// Crates that only some of ours may name, tests aside.
const ONLY_IN: [(&str, &[&str]); 5] = [
    ("axum", &["frazil"]),
    ("hyper", &["frazil"]),
    ("utoipa", &["frazil"]),
    ("sqlx", &["store-postgres", "store-sqlite"]),
    ("object_store", &["catalog"]),
];

fn packages() -> Vec<Package> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
    metadata.packages
}

fn names<'a>(package: &'a Package, but: &'a [DependencyKind]) -> impl Iterator<Item = &'a str> {
    package.dependencies.iter().filter(|named| !but.contains(&named.kind)).map(|named| named.name.as_str())
}

#[test]
fn our_crates_name_each_other_only_downwards() {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(ours, MAY_NAME.iter().map(|(name, _)| *name).collect());
    for package in &packages {
        let (_, allowed) = MAY_NAME.iter().find(|(name, _)| *name == package.name.as_str()).unwrap();
        // A crate names itself in its tests to switch its own features on.
        for named in names(package, &[]).filter(|named| ours.contains(named) && *named != package.name.as_str()) {
            assert!(allowed.contains(&named), "{} names {named}", package.name);
        }
    }
}

#[test]
fn http_and_sql_stay_at_the_edges() {
    for package in packages().iter().filter(|package| !["bench", "faults", "tests"].contains(&package.name.as_str())) {
        for named in names(package, &[DependencyKind::Development]) {
            if let Some((_, owners)) = ONLY_IN.iter().find(|(name, _)| *name == named) {
                assert!(owners.contains(&package.name.as_str()), "{} names {named}", package.name);
            }
        }
    }
}
