//! How a store finds the tables whose places overlap with a location.

use crate::location::Location;

/// The places that overlap with one, as texts to compare by bytes with the canonical locations of other tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The place itself: one spelling for all aliases of its scheme.
    pub canonical: String,
    /// The place itself and all that lie above it.
    pub at_or_above: Vec<String>,
    /// All that lie below it: from here on …
    pub below_from: String,
    /// … and before this.
    pub below_until: String,
}

impl Overlap {
    pub fn of(location: &Location) -> Self {
        Self::around(location.canonical(), location.ancestors())
    }

    /// Of a location as a pointer has it. One in no form known here overlaps by its text alone.
    pub fn of_text(location: &str) -> Self {
        match Location::parse(location) {
            Ok(location) => Self::of(&location),
            Err(_) => Self::around(location.to_owned(), vec![location.to_owned()]),
        }
    }

    fn around(canonical: String, at_or_above: Vec<String>) -> Self {
        // '0' is the character that follows '/'.
        let (below_from, below_until) = (format!("{canonical}/"), format!("{canonical}0"));
        Self { canonical, at_or_above, below_from, below_until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaps(one: &str, other: &str) -> bool {
        let (around, other) = (Overlap::of_text(one), Overlap::of_text(other).canonical);
        around.at_or_above.contains(&other) || (around.below_from <= other && other < around.below_until)
    }

    #[test]
    fn a_place_overlaps_with_itself_and_with_what_lies_above_and_below() {
        let overlapping = [
            ("s3://b/a/t", "s3://b/a/t"),
            ("s3://b/a/t", "s3a://b/a/t"),
            ("s3://b/a/t", "s3n://b/a"),
            ("s3://b/a/t", "s3://b"),
            ("s3://b/a/t", "s3://b/a/t/data"),
            ("file:/w/t", "file:///w/t/x/y"),
            ("odd", "odd"),
        ];
        for (one, other) in overlapping {
            assert!(overlaps(one, other) && overlaps(other, one), "{one} {other}");
        }
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let apart = [
            ("s3://b/a/t", "s3://b/a/t0"),
            ("s3://b/a/t", "s3://b/a/t-1"),
            ("s3://b/a/t", "s3://b/a/tt"),
            ("s3://b/a/t", "s3://c/a/t"),
            ("file:/w/t", "file:/w/u"),
        ];
        for (one, other) in apart {
            assert!(!overlaps(one, other) && !overlaps(other, one), "{one} {other}");
        }
    }
}
