//! The server under load, as a file tells of it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::report::Result;

/// A server, where its tables lie, and what is special of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Target {
    pub name: String,
    /// What `/v1/config` hangs on.
    pub uri: String,
    /// Further replicas of the server.
    #[serde(default)]
    pub also: Vec<String>,
    pub warehouse: Option<String>,
    pub token: Option<String>,
    pub store: StoreOptions,
    #[serde(default)]
    pub pids: Vec<u32>,
    /// Where the server's counters can be read, in Prometheus' text format.
    pub metrics: Option<String>,
    /// A database for the floor.
    pub floor_postgres: Option<String>,
    #[serde(default)]
    pub traits: Traits,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StoreOptions {
    pub kind: StoreKind,
    /// Below it the generator may put tables of its own.
    pub root: String,
    #[serde(default)]
    pub endpoint: Option<String>,
    #[serde(default)]
    pub region: Option<String>,
    #[serde(default)]
    pub access_key_id: Option<String>,
    #[serde(default)]
    pub secret_access_key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    File,
    S3,
}

impl StoreKind {
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::File => "file",
            StoreKind::S3 => "s3",
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Traits {
    /// The body of a create must say `stage-create`.
    pub always_stage_create: bool,
    /// A table's metadata keeps the snapshots before the head.
    pub keeps_history: bool,
    /// A metadata file can become a table.
    pub registers: bool,
    /// Properties of every table.
    pub create_properties: BTreeMap<String, String>,
    /// The server says where a table lies.
    pub chooses_location: bool,
}

impl Default for Traits {
    fn default() -> Self {
        Self {
            always_stage_create: false,
            keeps_history: true,
            registers: true,
            create_properties: BTreeMap::new(),
            chooses_location: true,
        }
    }
}

impl Target {
    pub fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))?)
    }

    /// All replicas, the first first.
    pub fn uris(&self) -> Vec<&str> {
        std::iter::once(&self.uri).chain(&self.also).map(String::as_str).collect()
    }

    /// Where each replica's counters are: all have them at the same path.
    pub fn metrics(&self) -> Vec<String> {
        let Some(first) = &self.metrics else { return Vec::new() };
        let path = first.strip_prefix(&self.uri);
        let others = path.into_iter().flat_map(|path| self.also.iter().map(move |uri| format!("{uri}{path}")));
        std::iter::once(first.clone()).chain(others).collect()
    }
}
