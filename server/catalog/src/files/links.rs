//! Symbolic links on the local file system: none leads an operation out of the places of its warehouse.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::error::FileError;
use super::local;
use super::place::Place;
use crate::location::Location;

/// What an operation does with a file that is a link itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// It reaches what the link leads to, as reading does.
    Followed,
    /// It takes the link for the file, as deleting does.
    Kept,
}

/// The local places of a warehouse. All its methods block.
#[derive(Debug)]
pub struct Fence {
    places: Vec<PathBuf>,
}

impl Fence {
    pub fn of(place: &Place) -> Self {
        let places = place.places().filter(|place| place.scheme() == "file");
        Self { places: places.map(local::path).collect() }
    }

    /// Refuses a location that a link leads out of the places. Where a place is a link itself, it is what that leads to.
    pub fn check(&self, location: &Location, last: Last) -> Result<(), FileError> {
        let path = local::path(location);
        let reached = match (last, path.parent()) {
            (Last::Kept, Some(folder)) => folder,
            _ => &path,
        };
        match self.holds(reached) {
            Ok(true) => Ok(()),
            Ok(false) => Err(FileError::LeadsOut { location: location.to_string() }),
            Err(error) => Err(FileError::from_io(location.as_str(), error)),
        }
    }

    fn holds(&self, path: &Path) -> io::Result<bool> {
        let Some(real) = resolve(path)? else {
            return Ok(false);
        };
        // Without a link on the way the path is where the text says, which was checked before.
        if real == path {
            return Ok(true);
        }
        for place in &self.places {
            if resolve(place)?.is_some_and(|place| real.starts_with(place)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The path with every link followed, as far as it exists; `None` where a link leads nowhere.
fn resolve(path: &Path) -> io::Result<Option<PathBuf>> {
    for above in path.ancestors() {
        match above.canonicalize() {
            Ok(real) => {
                let missing = path.strip_prefix(above).expect("a path begins with its ancestors");
                return Ok(Some(if missing.as_os_str().is_empty() { real } else { real.join(missing) }));
            }
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Err(error),
            Err(_) if above.is_symlink() => return Ok(None),
            Err(_) => {}
        }
    }
    Ok(Some(path.to_owned()))
}
