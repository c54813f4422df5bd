//! Durable folders on the local file system: a folder that was made is still there after a power failure.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::location::Location;

/// How much of a file goes to the kernel at once. A single call with ten megabytes took it six times the processor time
/// on ext4.
const STEP_BYTES: usize = 512 << 10;

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

/// The content of a file in the pieces in which it is written.
pub fn in_steps(bytes: &Bytes) -> impl Iterator<Item = Bytes> {
    let starts = (0..bytes.len()).step_by(STEP_BYTES);
    starts.map(|start| bytes.slice(start..bytes.len().min(start + STEP_BYTES)))
}

fn flush_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_file_are_all_of_it_in_order() {
        for length in [0, 1, STEP_BYTES, STEP_BYTES + 1, 3 * STEP_BYTES] {
            let bytes: Bytes = (0..length).map(|at| (at % 251) as u8).collect();
            let steps: Vec<Bytes> = in_steps(&bytes).collect();
            assert!(steps.iter().all(|step| !step.is_empty() && step.len() <= STEP_BYTES));
            assert_eq!(steps.concat(), bytes);
        }
    }

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
