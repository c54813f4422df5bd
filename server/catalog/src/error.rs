//! One error for the whole catalog; its kind says what the caller may do now.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// What went wrong, sorted by what the caller may do about it.
///
/// The HTTP edge maps each kind to one status and one exception name of the REST spec; nothing else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The request is malformed or breaks a rule of the format: mend it.
    Invalid,
    /// The same, where Java clients wait for their own exception of that name.
    IllegalArgument,
    /// The caller was known and is no longer, for the token has expired or its principal was revoked: log in anew.
    Unauthorized,
    /// The caller is known and may not do this.
    Forbidden,
    NoSuchWarehouse,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    NoSuchFunction,
    /// A file that the catalog refers to is gone from the object store; or a writer that is asked for is not known.
    NotFound,
    /// The name is taken by a table, a view or a namespace.
    AlreadyExists,
    NamespaceNotEmpty,
    WarehouseNotEmpty,
    /// Certainly not applied: reload, rebuild, commit again.
    CommitFailed,
    /// Refused in a way that must not make a client delete its files, or a contradiction inside the request.
    Unprocessable,
    /// Refused before anything was touched: come back after a while.
    Overloaded,
    /// Certainly not applied, and not the caller's fault: send the same request again after a while.
    Unavailable,
    /// The change may have been applied; only the catalog can tell, later.
    StateUnknown,
    /// A fault of ours while reading; nothing was to be changed.
    Internal,
}

/// A failed request: a kind, a sentence for the caller, and the cause for the log.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: Kind,
    message: Cow<'static, str>,
    #[source]
    source: Option<Source>,
}

/// What the catalog's methods return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::CommitFailed, message)
    }

    pub fn unprocessable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Unprocessable, message)
    }

    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Kind {
    /// A refusal that the same request would meet again, so that it may be kept with an `Idempotency-Key`.
    pub fn is_deterministic(self) -> bool {
        match self {
            Kind::Invalid
            | Kind::IllegalArgument
            | Kind::NoSuchWarehouse
            | Kind::NoSuchNamespace
            | Kind::NoSuchTable
            | Kind::NoSuchView
            | Kind::NoSuchFunction
            | Kind::NotFound
            | Kind::AlreadyExists
            | Kind::NamespaceNotEmpty
            | Kind::WarehouseNotEmpty
            | Kind::CommitFailed
            | Kind::Unprocessable => true,
            Kind::Unauthorized
            | Kind::Forbidden
            | Kind::Overloaded
            | Kind::Unavailable
            | Kind::StateUnknown
            | Kind::Internal => false,
        }
    }
}
