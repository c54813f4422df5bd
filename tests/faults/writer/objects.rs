//! Files as values: what is to be written, and where files are read from.

use std::collections::BTreeMap;

use super::avro;
use super::files::{Entry, ManifestFile, local};

/// A file that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    pub location: String,
    pub bytes: Vec<u8>,
}

impl Object {
    /// To this machine's disk.
    pub fn write(&self) {
        std::fs::write(local(&self.location), &self.bytes).unwrap_or_else(|error| panic!("{}: {error}", self.location));
    }
}

/// Files that can be read. A file that is missing is a failure.
pub trait Objects {
    fn read(&self, location: &str) -> Vec<u8>;

    /// The entries of a manifest with what they inherit from it.
    fn entries(&self, manifest: &ManifestFile) -> Vec<Entry> {
        let entries = avro::read_manifest(&self.read(&manifest.path));
        entries.into_iter().map(|entry| entry.resolved(manifest)).collect()
    }
}

/// The files of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Disk;

impl Objects for Disk {
    fn read(&self, location: &str) -> Vec<u8> {
        std::fs::read(local(location)).unwrap_or_else(|error| panic!("{location}: {error}"))
    }
}

/// Files that somebody has fetched, by location.
impl Objects for BTreeMap<String, Vec<u8>> {
    fn read(&self, location: &str) -> Vec<u8> {
        self.get(location).unwrap_or_else(|| panic!("{location} was not fetched")).clone()
    }
}
