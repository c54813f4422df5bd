//! What a warehouse may be, as pure functions.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::files::{Place, Storage};
use crate::ident::WarehouseId;
use crate::location::Location;
use crate::warehouses::{Warehouse, settings};

/// Further places of one warehouse, at most.
const ALLOWED_MAX: usize = 100;

/// What may be changed of a warehouse: all but its name and its root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WarehouseSettings {
    /// `None`: the kind of store that the root's scheme names, with everything else out of the environment.
    pub storage: Option<Storage>,
    /// Where files may lie besides the root.
    pub allowed: Vec<Location>,
    /// What clients are told, unless they know better themselves.
    pub defaults: BTreeMap<String, String>,
    /// What clients are told, whatever they were configured with.
    pub overrides: BTreeMap<String, String>,
}

/// A change of a warehouse: its new settings, and what the one who asks believes it to be. `None` believes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WarehouseChange {
    pub id: Option<WarehouseId>,
    pub name: Option<String>,
    pub location: Option<Location>,
    /// The version that was looked at.
    pub version: Option<i64>,
    pub settings: WarehouseSettings,
}

/// Refuses a change that means another warehouse, or what this one was before.
pub fn check_meant(change: &WarehouseChange, now: &Warehouse) -> Result<()> {
    let kept = [
        ("id", change.id.is_none_or(|id| id == now.id)),
        ("name", change.name.as_deref().is_none_or(|name| name == now.name.as_str())),
        ("location", change.location.as_ref().is_none_or(|location| *location == now.place.root)),
    ];
    if let Some((field, _)) = kept.into_iter().find(|(_, same)| !same) {
        return Err(Error::invalid(format!(
            "{field} of warehouse {} never changes: leave it out, or make another warehouse",
            now.name
        )));
    }
    match change.version {
        Some(version) if version != now.version => Err(changed(now)),
        _ => Ok(()),
    }
}

/// Another change was quicker.
pub fn changed(warehouse: &Warehouse) -> Error {
    Error::conflict(format!(
        "warehouse {} was changed or deleted by another request meanwhile: look at it and send this again",
        warehouse.name
    ))
}

/// Refuses what could not work, or would tell clients what they must not know.
pub fn check(place: &Place, defaults: &BTreeMap<String, String>, overrides: &BTreeMap<String, String>) -> Result<()> {
    check_place(place)?;
    settings::check("defaults", defaults)?;
    settings::check("overrides", overrides)
}

/// The storage of a changed warehouse: secrets that are left out stay, and must belong to the same key.
pub fn storage_after(wanted: Option<Storage>, now: &Place) -> Result<Storage> {
    let Some(mut storage) = wanted else {
        return Ok(Storage::for_location(&now.root));
    };
    storage.check_given()?;
    storage.keep_secrets(&now.storage)?;
    Ok(storage)
}

/// One store holds all files of a warehouse, for its credentials go to all of its places.
pub fn check_place(place: &Place) -> Result<()> {
    if !place.storage.fits(&place.root) {
        return Err(Error::invalid(format!(
            "storage has type {}, and location '{}' is of type {}: they must be of one type",
            place.storage.kind(),
            place.root,
            place.root.kind()
        )));
    }
    if place.allowed.len() > ALLOWED_MAX {
        return Err(Error::invalid(format!("allowed-locations has more than {ALLOWED_MAX} entries")));
    }
    match place.allowed.iter().find(|allowed| !place.root.is_in_store_of(allowed)) {
        Some(other) if other.kind() == place.root.kind() => Err(Error::invalid(format!(
            "allowed-locations: '{other}' is in another storage account than location '{}': make a warehouse of its own \
             for it",
            place.root
        ))),
        Some(other) => Err(Error::invalid(format!(
            "allowed-locations: '{other}' is of type {}, and location '{}' of type {}: make a warehouse of its own for it",
            other.kind(),
            place.root,
            place.root.kind()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::error::Kind;
    use crate::ident::WarehouseName;

    fn warehouse() -> Warehouse {
        let root = Location::parse("s3://bucket/w").unwrap();
        let place = Place { storage: Storage::for_location(&root), root, allowed: Vec::new() };
        let made = Warehouse::new(WarehouseId(Uuid::from_u128(1)), WarehouseName::parse("w").unwrap(), place);
        Warehouse { version: 3, ..made }
    }

    fn meant() -> WarehouseChange {
        let Warehouse { id, name, place, version, .. } = warehouse();
        let (name, location) = (Some(name.to_string()), Some(place.root));
        WarehouseChange { id: Some(id), name, location, version: Some(version), settings: WarehouseSettings::default() }
    }

    #[test]
    fn a_change_of_what_is_meant_passes() {
        for change in [meant(), WarehouseChange::default()] {
            check_meant(&change, &warehouse()).unwrap();
        }
    }

    #[test]
    fn a_change_of_another_warehouse_is_refused_with_the_field() {
        let (id, location) = (WarehouseId(Uuid::from_u128(2)), Location::parse("s3://bucket/v").unwrap());
        for (field, change) in [
            ("id", WarehouseChange { id: Some(id), ..meant() }),
            ("name", WarehouseChange { name: Some("v".into()), ..meant() }),
            ("location", WarehouseChange { location: Some(location), ..meant() }),
        ] {
            let refused = check_meant(&change, &warehouse()).unwrap_err();
            assert!(refused.kind() == Kind::Invalid && refused.message().starts_with(field), "{refused}");
        }
    }

    #[test]
    fn a_change_of_an_older_version_is_a_conflict() {
        let change = WarehouseChange { version: Some(2), ..meant() };
        assert_eq!(check_meant(&change, &warehouse()).unwrap_err().kind(), Kind::CommitFailed);
    }

    fn checked(root: &str, allowed: &str) -> Result<()> {
        let root = Location::parse(root).unwrap();
        let (storage, allowed) = (Storage::for_location(&root), vec![Location::parse(allowed).unwrap()]);
        check_place(&Place { root, allowed, storage })
    }

    #[test]
    fn further_places_are_in_the_store_of_the_root() {
        for (root, allowed) in [
            ("file:///a", "file:///b"),
            ("s3://b/x", "s3a://other/x"),
            ("abfss://c@a.dfs.core.windows.net/x", "wasbs://d@a.blob.core.windows.net/y"),
        ] {
            checked(root, allowed).unwrap();
        }
        for (root, allowed, why) in [
            ("s3://b/x", "gs://b/x", "of type gcs"),
            ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@b.dfs.core.windows.net/x", "another storage account"),
            ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.elsewhere.example/x", "another storage account"),
        ] {
            let error = checked(root, allowed).unwrap_err();
            assert!(error.message().starts_with("allowed-locations: '") && error.message().contains(why), "{error}");
        }
    }
}
