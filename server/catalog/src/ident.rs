//! Names and ids: what is what, and what a name may be.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};

pub mod encoded;

macro_rules! uuid_newtype {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

uuid_newtype! {
    WarehouseId,
    NamespaceId,
    /// The catalog's own id of a table or view; it survives renames and is never the table UUID.
    TabularId,
    /// One try to move pointers; its outcome can be asked for afterwards.
    AttemptId,
    /// A piece of background deletion.
    PurgeId,
}

/// A warehouse's name, which is also its prefix in the paths of the REST spec: `[a-z0-9][a-z0-9_-]{0,62}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct WarehouseName(String);

impl WarehouseName {
    pub fn parse(name: &str) -> Result<Self> {
        let (first, rest) = (name.chars().next(), name.chars().skip(1));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let valid = first.is_some_and(plain) && name.len() <= 63 && { rest }.all(|c| plain(c) || c == '_' || c == '-');
        if valid {
            Ok(Self(name.to_owned()))
        } else {
            Err(Error::invalid(format!("warehouse name '{name}' must match [a-z0-9][a-z0-9_-]{{0,62}}")))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WarehouseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A namespace as its levels, outermost first; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamespaceIdent(Vec<String>);

impl NamespaceIdent {
    /// Checks only what no name can be: no level, or an empty one. What a name may be is asked where one is made.
    pub fn new(levels: Vec<String>) -> Result<Self> {
        if levels.is_empty() || levels.iter().any(String::is_empty) {
            return Err(Error::invalid("namespace must have at least one level, and no level may be empty"));
        }
        Ok(Self(levels))
    }

    pub fn levels(&self) -> &[String] {
        &self.0
    }

    /// The last level.
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The namespace that this one lies in; `None` at the top.
    pub fn parent(&self) -> Option<NamespaceIdent> {
        match self.0.split_last() {
            Some((_, parent)) if !parent.is_empty() => Some(Self(parent.to_vec())),
            _ => None,
        }
    }
}

/// Dot-joined and unquoted, as Java prints it and as its compatibility kit expects it in messages.
impl fmt::Display for NamespaceIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// A table's or view's name with its namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableIdent {
    pub namespace: NamespaceIdent,
    pub name: String,
}

impl TableIdent {
    pub fn new(namespace: NamespaceIdent, name: impl Into<String>) -> Self {
        Self { namespace, name: name.into() }
    }
}

impl fmt::Display for TableIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace, self.name)
    }
}
