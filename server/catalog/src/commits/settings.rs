//! What a table wants of the coordination: its own properties first, then its warehouse's, then the server's.

use std::collections::BTreeMap;

use crate::commits::identity::{Identity, WriterKind};
use crate::commits::ledger::Stale;
use crate::commits::rebase::Rules;
use crate::error::{Error, Result};
use crate::metadata::TableMetadata;
use crate::warehouses::Warehouse;

pub const REBASE: &str = "frazil.commit.rebase";
pub const REBASE_ANONYMOUS: &str = "frazil.commit.rebase.anonymous";
pub const DEDUP: &str = "frazil.dedup";
pub const STALE: &str = "frazil.writer.stale";

/// `frazil.commit.rebase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebaseSetting {
    Off,
    Append,
    Streaming,
}

/// What the server says where neither table nor warehouse does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// `None`: pure appends of stock streaming writers are rebased, and nothing else.
    pub rebase: Option<RebaseSetting>,
    pub rebase_anonymous: bool,
    pub dedup: bool,
    pub stale: Stale,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { rebase: None, rebase_anonymous: false, dedup: true, stale: Stale::default() }
    }
}

/// The settings in force for one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub rebase: Option<RebaseSetting>,
    pub rebase_anonymous: bool,
    pub dedup: bool,
    pub stale: Stale,
}

impl Settings {
    /// A value that nobody can read (a table may have had it before it came here) counts as not set.
    pub fn of(metadata: &TableMetadata, warehouse: &Warehouse, defaults: Defaults) -> Self {
        Self::read(|key| metadata.property(key), warehouse, defaults)
    }

    fn read<'a>(own: impl Fn(&str) -> Option<&'a str>, warehouse: &'a Warehouse, defaults: Defaults) -> Self {
        Self {
            rebase: said(&own, warehouse, REBASE, rebase).or(defaults.rebase),
            rebase_anonymous: said(&own, warehouse, REBASE_ANONYMOUS, flag).unwrap_or(defaults.rebase_anonymous),
            dedup: said(&own, warehouse, DEDUP, switch).unwrap_or(defaults.dedup),
            stale: said(&own, warehouse, STALE, stale).unwrap_or(defaults.stale),
        }
    }

    /// How far a commit may be rebased. Restamping is always on.
    pub fn rules(&self, identity: Option<&Identity>, is_replace: bool) -> Rules {
        use WriterKind::{Flink, KafkaConnect, Named, SparkStreaming};
        let kind = identity.map(|identity| identity.writer.kind);
        let is_stock = matches!(kind, Some(Flink | KafkaConnect | SparkStreaming));
        let may = is_stock || kind == Some(Named) || self.rebase_anonymous || is_replace;
        match self.rebase {
            Some(RebaseSetting::Append) if may => Rules::Append,
            Some(RebaseSetting::Streaming) if may => Rules::Streaming,
            None if is_stock || self.rebase_anonymous => Rules::Append,
            _ => Rules::Restamp,
        }
    }
}

/// What the table says that can be read, else its warehouse.
fn said<'a, T>(
    own: &impl Fn(&str) -> Option<&'a str>,
    warehouse: &Warehouse,
    key: &str,
    read: fn(&str) -> Option<T>,
) -> Option<T> {
    let in_warehouse = || warehouse.overrides.get(key).or_else(|| warehouse.defaults.get(key));
    own(key).and_then(read).or_else(|| in_warehouse().and_then(|text| read(text)))
}

/// Refuses values of our properties that mean nothing, before somebody relies on them.
pub fn check<'a>(properties: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<()> {
    for (key, value) in properties {
        let (valid, choices) = match key.as_str() {
            REBASE => (rebase(value).is_some(), "off, append or streaming"),
            REBASE_ANONYMOUS => (flag(value).is_some(), "true or false"),
            DEDUP => (switch(value).is_some(), "on or off"),
            STALE => (stale(value).is_some(), "accept, reject or ack"),
            _ => continue,
        };
        if !valid {
            return Err(Error::invalid(format!("property {key} is '{value}': it must be {choices}")));
        }
    }
    Ok(())
}

/// What `GET /v1/config` tells of the settings in force where a table says nothing.
pub fn told(warehouse: &Warehouse, defaults: Defaults) -> BTreeMap<String, String> {
    let settings = Settings::read(|_| None, warehouse, defaults);
    let rebase = match settings.rebase {
        Some(RebaseSetting::Off) => "off",
        Some(RebaseSetting::Append) => "append",
        Some(RebaseSetting::Streaming) => "streaming",
        None => "stock-appends",
    };
    let anonymous = settings.rebase_anonymous.to_string();
    BTreeMap::from([(REBASE.to_owned(), rebase.to_owned()), (REBASE_ANONYMOUS.to_owned(), anonymous)])
}

pub fn rebase(text: &str) -> Option<RebaseSetting> {
    match text.trim().to_ascii_lowercase().as_str() {
        "off" => Some(RebaseSetting::Off),
        "append" => Some(RebaseSetting::Append),
        "streaming" => Some(RebaseSetting::Streaming),
        _ => None,
    }
}

pub fn stale(text: &str) -> Option<Stale> {
    match text.trim().to_ascii_lowercase().as_str() {
        "accept" => Some(Stale::GoesOn),
        "reject" => Some(Stale::Reject),
        "ack" => Some(Stale::Acknowledge),
        _ => None,
    }
}

fn flag(text: &str) -> Option<bool> {
    text.trim().to_ascii_lowercase().parse().ok()
}

fn switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::identity::Writer;
    use crate::files::{Place, Storage};
    use crate::ident::{WarehouseId, WarehouseName};
    use crate::location::Location;

    fn identity(kind: WriterKind) -> Identity {
        let writer = Writer { kind, id: "w".to_owned(), part: String::new() };
        Identity { writer, position: None, epoch: None }
    }

    fn settings(rebase: Option<RebaseSetting>, rebase_anonymous: bool) -> Settings {
        Settings { rebase, rebase_anonymous, dedup: true, stale: Stale::GoesOn }
    }

    #[test]
    fn without_a_setting_only_stock_streaming_writers_are_rebased() {
        for (kind, expected) in [
            (WriterKind::Flink, Rules::Append),
            (WriterKind::KafkaConnect, Rules::Append),
            (WriterKind::SparkStreaming, Rules::Append),
            (WriterKind::Named, Rules::Restamp),
            (WriterKind::Arroyo, Rules::Restamp),
        ] {
            assert_eq!(settings(None, false).rules(Some(&identity(kind)), false), expected, "{kind:?}");
        }
        assert_eq!(settings(None, false).rules(None, false), Rules::Restamp);
        assert_eq!(settings(None, false).rules(None, true), Rules::Restamp);
        assert_eq!(settings(None, true).rules(None, false), Rules::Append);
    }

    #[test]
    fn the_anonymous_are_rebased_only_where_that_is_said() {
        for rebase in [RebaseSetting::Append, RebaseSetting::Streaming] {
            assert_eq!(settings(Some(rebase), false).rules(None, false), Rules::Restamp);
            assert_eq!(settings(Some(rebase), false).rules(Some(&identity(WriterKind::Arroyo)), false), Rules::Restamp);
            assert_ne!(settings(Some(rebase), true).rules(None, false), Rules::Restamp);
            assert_ne!(settings(Some(rebase), false).rules(Some(&identity(WriterKind::Named)), false), Rules::Restamp);
        }
        assert_eq!(settings(Some(RebaseSetting::Streaming), false).rules(None, true), Rules::Streaming);
    }

    #[test]
    fn off_is_off_for_everybody() {
        for kind in [WriterKind::Flink, WriterKind::Named] {
            assert_eq!(settings(Some(RebaseSetting::Off), true).rules(Some(&identity(kind)), false), Rules::Restamp);
        }
    }

    #[test]
    fn a_table_speaks_before_its_warehouse_and_that_before_the_server() {
        let place =
            Place { root: Location::parse("s3://b/w").unwrap(), allowed: Vec::new(), storage: Storage::default() };
        let mut warehouse = Warehouse::new(WarehouseId(uuid::Uuid::nil()), WarehouseName::parse("w").unwrap(), place);
        let server = Defaults { rebase: Some(RebaseSetting::Streaming), ..Defaults::default() };
        let read = |own: Option<&'static str>, warehouse: &Warehouse| {
            Settings::read(|key| own.filter(|_| key == REBASE), warehouse, server).rebase
        };
        assert_eq!(read(None, &warehouse), Some(RebaseSetting::Streaming));
        warehouse.defaults.insert(REBASE.to_owned(), "append".to_owned());
        assert_eq!(read(None, &warehouse), Some(RebaseSetting::Append));
        assert_eq!(read(Some("OFF"), &warehouse), Some(RebaseSetting::Off));
        assert_eq!(read(Some("no such thing"), &warehouse), Some(RebaseSetting::Append));
    }

    #[test]
    fn a_value_that_means_nothing_is_refused_with_its_choices() {
        let properties = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        for (key, value) in [(REBASE, "on"), (REBASE_ANONYMOUS, "yes"), (DEDUP, "true"), (STALE, "")] {
            let error = check(&properties(key, value)).unwrap_err();
            assert!(error.message().contains(key) && error.message().contains(" or "), "{error}");
        }
        for (key, value) in
            [(REBASE, "Streaming"), (REBASE_ANONYMOUS, "TRUE"), (DEDUP, "off"), (STALE, "ack"), ("a", "b")]
        {
            check(&properties(key, value)).unwrap();
        }
    }
}
