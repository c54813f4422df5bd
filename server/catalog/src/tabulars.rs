//! What tables and views share: one name space, a pointer to the current metadata file, and listings.

use std::fmt;

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::{Error, Kind};
use crate::ident::{NamespaceIdent, TableIdent, TabularId, WarehouseId};
use crate::store::{Page, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TabularKind {
    Table,
    View,
}

impl TabularKind {
    /// As the stores keep it.
    pub fn as_str(self) -> &'static str {
        match self {
            TabularKind::Table => "table",
            TabularKind::View => "view",
        }
    }

    /// The reverse of [`Self::as_str`].
    pub fn of(text: &str) -> Option<Self> {
        [TabularKind::Table, TabularKind::View]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }

    pub fn missing(self, ident: &TableIdent) -> Error {
        match self {
            TabularKind::Table => Error::new(Kind::NoSuchTable, format!("Table does not exist: {ident}")),
            TabularKind::View => Error::new(Kind::NoSuchView, format!("View does not exist: {ident}")),
        }
    }

    /// The refusal of a new table or view (`wanted`) whose name belongs to this kind already.
    pub fn taken(self, wanted: TabularKind, ident: &TableIdent) -> Error {
        let message = match self == wanted {
            true => format!("{self} already exists: {ident}"),
            false => format!("{self} with same name already exists: {ident}"),
        };
        Error::new(Kind::AlreadyExists, message)
    }
}

impl fmt::Display for TabularKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TabularKind::Table => "Table",
            TabularKind::View => "View",
        })
    }
}

/// Where the current metadata file of a table or view lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    pub id: TabularId,
    pub kind: TabularKind,
    /// The table UUID (or view UUID) of the metadata document.
    pub uuid: Uuid,
    /// The normal form of the location, see [`crate::location::Location`].
    pub location: String,
    pub metadata_location: String,
    /// Rises with every change of the pointer.
    pub version: i64,
}

#[async_trait]
pub trait TabularStore: Send + Sync + 'static {
    /// The table or view of that name, whichever it is.
    async fn pointer(&self, warehouse: WarehouseId, ident: &TableIdent) -> Result<Option<Pointer>, StoreError>;

    /// The names of one kind, in order; `None` where the namespace does not exist.
    async fn list_tabulars(
        &self,
        warehouse: WarehouseId,
        namespace: &NamespaceIdent,
        kind: TabularKind,
        page: &Page,
    ) -> Result<Option<Vec<String>>, StoreError>;
}
