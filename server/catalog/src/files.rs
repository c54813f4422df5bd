//! The only door to object storage.
use crate::location::Location;
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Storage {}
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub root: Location,
    pub allowed: Vec<Location>,
    pub storage: Storage,
}
