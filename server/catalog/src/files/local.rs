//! Durable folders on the local file system: a folder that was made is still there after a power failure.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::location::Location;

/// The path of a file location, taken as it stands: Hadoop and the engines do not decode percent signs in it either.
pub fn path(location: &Location) -> PathBuf {
    Path::new("/").join(location.key())
}

/// Makes the folder with all that are missing above it, and flushes every folder that got a new entry.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|above| !above.exists()).collect();
    std::fs::create_dir_all(folder)?;
    missing.iter().filter_map(|made| made.parent()).try_for_each(flush_folder)
}

fn flush_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_with_those_above_it_and_again_without_harm() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a b/c%20d");
        create_folder(&folder).unwrap();
        create_folder(&folder).unwrap();
        assert!(folder.is_dir());
    }

    #[test]
    fn a_file_in_the_way_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), "x").unwrap();
        assert!(create_folder(&root.path().join("a/b")).is_err());
    }
}
