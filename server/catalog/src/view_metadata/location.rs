//! Where a view's metadata files go.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::ViewMetadata;
use crate::error::{Error, Result};

const METADATA_PATH: &str = "write.metadata.path";
const METADATA_CODEC: &str = "write.metadata.compression-codec";

/// The name of the next metadata file: `<location>/metadata/<number>-<file_id>[.gz].metadata.json`.
///
/// The number follows that of `previous`, the view's current metadata location; without one it is 0. The property
/// `write.metadata.path` names another folder, `write.metadata.compression-codec` is `gzip` unless set to `none`.
pub fn next_metadata_location(metadata: &ViewMetadata, previous: Option<&str>, file_id: Uuid) -> String {
    let number = previous.and_then(file_number).map_or(0, |number| number.saturating_add(1));
    let suffix = if is_gzip(metadata.property(METADATA_CODEC)) { ".gz.metadata.json" } else { ".metadata.json" };
    let folder = match metadata.property(METADATA_PATH) {
        Some(path) => strip_trailing_slash(path).to_owned(),
        None => format!("{}/metadata", strip_trailing_slash(metadata.location())),
    };
    format!("{folder}/{number:05}-{file_id}{suffix}")
}

/// The number at the start of a metadata file's name; `None` when the name has another form.
fn file_number(location: &str) -> Option<u32> {
    let name = location.rsplit('/').next()?;
    name.split_once('-')?.0.parse().ok()
}

fn is_gzip(codec: Option<&str>) -> bool {
    codec.is_none_or(|codec| codec.eq_ignore_ascii_case("gzip"))
}

/// Refuses a codec that no metadata file can have.
pub(super) fn check_codec(properties: &BTreeMap<String, String>) -> Result<()> {
    match properties.get(METADATA_CODEC) {
        Some(codec) if !is_gzip(Some(codec)) && !codec.eq_ignore_ascii_case("none") => {
            Err(Error::invalid(format!("{METADATA_CODEC} must be 'gzip' or 'none' but was '{codec}'")))
        }
        _ => Ok(()),
    }
}

/// A view location as it is stored: without slashes at the end, and not empty.
pub(super) fn check_location(location: &str) -> Result<String> {
    match strip_trailing_slash(location) {
        "" => Err(Error::invalid("view location must not be empty")),
        stripped => Ok(stripped.to_owned()),
    }
}

/// Takes the slashes off the end, but not those of a bare scheme such as `s3://`.
fn strip_trailing_slash(mut path: &str) -> &str {
    while let Some(shorter) = path.strip_suffix('/').filter(|_| !path.ends_with("://")) {
        path = shorter;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_at_the_end_are_taken_off() {
        let cases =
            [("s3://b/v", "s3://b/v"), ("s3://b/v/", "s3://b/v"), ("s3://b/v//", "s3://b/v"), ("s3://", "s3://")];
        for (given, stored) in cases {
            assert_eq!(check_location(given).unwrap(), stored);
        }
        assert!(check_location("").is_err());
        assert!(check_location("/").is_err());
    }

    #[test]
    fn the_number_is_read_from_the_file_name_alone() {
        let cases = [
            ("s3://b/7-v/metadata/00012-0b9c.gz.metadata.json", Some(12)),
            ("s3://b/v/metadata/100000-0b9c.metadata.json", Some(100_000)),
            ("s3://b/v/metadata/v3.metadata.json", None),
            ("s3://b/v/metadata/x-1.metadata.json", None),
        ];
        for (location, number) in cases {
            assert_eq!(file_number(location), number, "{location}");
        }
    }
}
