//! Where the files of a warehouse may lie.

use super::storage::Storage;
use crate::error::{Error, Result};
use crate::location::Location;

/// What a warehouse says about its files: where they may lie, and how their store is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub root: Location,
    /// Further places, besides the root.
    pub allowed: Vec<Location>,
    pub storage: Storage,
}

impl Place {
    /// Refuses a location that is neither in the root nor in an allowed place, and says which those are.
    pub fn check(&self, location: &Location) -> Result<()> {
        if self.places().any(|place| place.contains(location)) {
            return Ok(());
        }
        let places: Vec<String> = self.places().map(|place| format!("'{place}'")).collect();
        Err(Error::invalid(format!(
            "location '{location}' lies outside of this warehouse, whose files are below {}; \
             to allow a further place, add it to the allowed locations of the warehouse (--allowed-location)",
            places.join(", ")
        )))
    }

    pub(super) fn places(&self) -> impl Iterator<Item = &Location> {
        std::iter::once(&self.root).chain(&self.allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(root: &str, allowed: &[&str]) -> Place {
        let parse = |text: &&str| Location::parse(text).unwrap();
        Place { root: parse(&root), allowed: allowed.iter().map(parse).collect(), storage: Storage::default() }
    }

    #[test]
    fn root_and_allowed_places_are_open_and_nothing_else() {
        let place = place("file:///w/root", &["file:/tmp", "s3a://b/x"]);
        for (location, open) in [
            ("file:///w/root", true),
            ("file:/w/root/ns/t", true),
            ("file:///tmp/t", true),
            ("s3://b/x/t", true),
            ("file:///w/rooted", false),
            ("file:///w", false),
            ("file:///etc/passwd", false),
            ("s3://b/xy", false),
            ("s3://other/x", false),
        ] {
            assert_eq!(place.check(&Location::parse(location).unwrap()).is_ok(), open, "{location}");
        }
    }

    #[test]
    fn a_refusal_names_the_location_the_places_and_the_way_to_allow_it() {
        let place = place("file:///w", &["file:///tmp"]);
        let error = place.check(&Location::parse("s3://foreign/x").unwrap()).unwrap_err();
        for part in ["'s3://foreign/x'", "'file:///w', 'file:///tmp'", "--allowed-location"] {
            assert!(error.message().contains(part), "{error}");
        }
    }
}
