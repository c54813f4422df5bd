//! docs/engines/rust.md against the files of this suite.

use crate::report::version;

const PAGE: &str = include_str!("../../../../../docs/engines/rust.md");

#[test]
fn the_page_has_the_dependencies_of_this_suite() {
    let (_, manifest) = include_str!("../../Cargo.toml").split_once("[dependencies]\n").unwrap();
    let (dependencies, _) = manifest.split_once("\n\n").unwrap();
    assert!(PAGE.contains(&format!("```toml\n[dependencies]\n{dependencies}\n```")));
}

#[test]
fn the_page_names_the_versions_of_this_suite() {
    let tested = format!("iceberg-rust {} and DataFusion {},", version("iceberg"), version("datafusion"));
    assert!(PAGE.contains(&tested), "the page lacks {tested:?}");
}
