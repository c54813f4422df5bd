//! Values as the columns hold them, and back.

use catalog::ident::{NamespaceIdent, TableIdent, TabularId};
use catalog::location::Location;
use catalog::store::StoreError;
use catalog::tabulars::{Pointer, TabularKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::aborted;

/// A text from a request. Postgres holds no NUL; no name holds any control character, so what stands for it is not found.
pub(crate) fn text(text: &str) -> String {
    text.replace('\0', "\u{1}")
}

/// The levels of a namespace.
pub(crate) fn parts(ident: &NamespaceIdent) -> Vec<String> {
    ident.levels().iter().map(|level| text(level)).collect()
}

pub(crate) fn table_ident(parts: Vec<String>, name: String) -> Result<TableIdent, StoreError> {
    let namespace = NamespaceIdent::new(parts).map_err(aborted)?;
    Ok(TableIdent::new(namespace, name))
}

pub(crate) fn kind(kind: &str) -> Result<TabularKind, StoreError> {
    TabularKind::of(kind).ok_or_else(|| aborted(format!("unknown kind '{kind}' in table tabular")))
}

pub(crate) fn location(text: &str) -> Result<Location, StoreError> {
    Location::parse(text).map_err(aborted)
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is kept as JSON has text keys only")
}

pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(aborted)
}

/// A row of `tabular`.
pub(crate) struct PointerRow {
    pub id: Uuid,
    pub kind: String,
    pub uuid: Uuid,
    pub location: String,
    pub metadata_location: String,
    pub version: i64,
}

impl TryFrom<PointerRow> for Pointer {
    type Error = StoreError;

    fn try_from(row: PointerRow) -> Result<Self, StoreError> {
        Ok(Pointer {
            id: TabularId(row.id),
            kind: kind(&row.kind)?,
            uuid: row.uuid,
            location: row.location,
            metadata_location: row.metadata_location,
            version: row.version,
        })
    }
}
