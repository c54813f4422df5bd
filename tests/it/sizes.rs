//! No file of ours grows beyond what can be read in one sitting.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file, its tests not counted.
const LINES_MAX: usize = 600;

/// The Rust files below a folder.
pub fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn lines_without_tests(text: &str) -> usize {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |tests| &text[..tests]).lines().count()
}

#[test]
fn files_are_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    sources(&root.join("server"), &mut found);
    sources(&root.join("tests/it"), &mut found);
    assert!(found.len() > 50, "only {} files found", found.len());
    for path in found {
        let lines = lines_without_tests(&fs::read_to_string(&path).unwrap());
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        assert!(is_test || lines <= LINES_MAX, "{} has {lines} lines", path.display());
    }
}

#[test]
fn tests_at_the_end_of_a_file_are_not_counted() {
    assert_eq!(lines_without_tests("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
}
