//! What can go wrong with a file, and what that means for the caller of the catalog.

use std::io::ErrorKind;

use super::fault::{Cause, Fault, io_kind};
use crate::error::{Error, Kind};

pub(super) type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why an object store did not do what it was asked. Each variant names the location as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The words are those of Iceberg's own file systems, which its clients and its compatibility kit know.
    #[error("Failed to open input stream for file: {location}")]
    Missing { location: String },
    #[error("file {location} exists already and is never overwritten")]
    AlreadyExists { location: String },
    #[error("the object store denies access to {location}: check the credentials of the warehouse")]
    Denied { location: String, source: Source },
    #[error("file {location} has {size_bytes} bytes, more than the {limit_bytes} that are read")]
    TooLarge { location: String, size_bytes: u64, limit_bytes: u64 },
    #[error("location '{location}' leads through a symbolic link out of this warehouse")]
    LeadsOut { location: String },
    /// Nothing is known about what became of the operation: a write may have been carried out.
    #[error("the object store did not answer for {location}; try again")]
    Unavailable { location: String, source: Source },
    /// Told by a write; a read takes it for a missing file.
    #[error("the bucket or container of {location} does not exist")]
    NoBucket { location: String, source: Source },
    /// The settings of the store cannot be used, or not now: a reference leads nowhere, a key is missing.
    #[error(transparent)]
    Settings(Error),
    /// The location is none, or lies where the warehouse has no files.
    #[error(transparent)]
    Invalid(#[from] Error),
}

impl FileError {
    /// Sorts an error of the store by its meaning. Local errors are known by their cause, wherever in the chain it is.
    pub(super) fn from_store(location: &str, error: object_store::Error) -> Self {
        use object_store::Error as Store;
        let location = location.to_owned();
        match (&error, io_kind(&error)) {
            (Store::AlreadyExists { .. }, _) => FileError::AlreadyExists { location },
            (Store::NotFound { .. }, _) | (_, Some(ErrorKind::NotFound | ErrorKind::NotADirectory)) => {
                FileError::Missing { location }
            }
            (Store::PermissionDenied { .. } | Store::Unauthenticated { .. }, _)
            | (_, Some(ErrorKind::PermissionDenied)) => {
                FileError::Denied { location, source: Fault::of(&error).into() }
            }
            (Store::InvalidPath { .. }, _) | (_, Some(ErrorKind::InvalidFilename)) => {
                let message = format!("location '{location}' cannot be a file's name in its store");
                FileError::Invalid(Error::invalid(message).with_source(error))
            }
            _ => FileError::Unavailable { location, source: Fault::of(&error).into() },
        }
    }

    /// As [`Self::from_store`] for a write, where a missing bucket or folder is the store's fault and not an answer, and
    /// a file that stands where a folder must be is the caller's.
    pub(super) fn from_write(location: &str, error: object_store::Error) -> Self {
        use object_store::Error as Store;
        match (&error, io_kind(&error)) {
            (Store::AlreadyExists { .. }, _) => Self::from_store(location, error),
            (_, Some(ErrorKind::NotADirectory | ErrorKind::AlreadyExists)) => {
                let message = format!("location '{location}' needs a folder where a file is");
                FileError::Invalid(Error::invalid(message).with_source(error))
            }
            (Store::NotFound { .. }, _) | (_, Some(ErrorKind::NotFound)) => {
                let (location, fault) = (location.to_owned(), Fault::of(&error));
                match fault.cause {
                    Cause::NoBucket => FileError::NoBucket { location, source: fault.into() },
                    _ => FileError::Unavailable { location, source: fault.into() },
                }
            }
            _ => Self::from_store(location, error),
        }
    }

    /// An error of the local file system, as its store would have told it.
    pub(super) fn from_io(location: &str, error: std::io::Error) -> Self {
        Self::from_store(location, local(error))
    }

    /// As [`Self::from_io`] for a write.
    pub(super) fn from_local_write(location: &str, error: std::io::Error) -> Self {
        Self::from_write(location, local(error))
    }

    pub(super) fn outcome(&self) -> &'static str {
        match self {
            FileError::Missing { .. } => "missing",
            FileError::AlreadyExists { .. } => "already-exists",
            FileError::Denied { .. } => "denied",
            FileError::TooLarge { .. } => "too-large",
            FileError::LeadsOut { .. } => "leads-out",
            FileError::Unavailable { .. } => "unavailable",
            FileError::NoBucket { .. } => "no-bucket",
            FileError::Settings(_) => "settings",
            FileError::Invalid(_) => "invalid",
        }
    }
}

fn local(error: std::io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "local", source: error.into() }
}

/// | file | kind | because |
/// |---|---|---|
/// | `Missing` | `NotFound` | the catalog refers to a file that is gone |
/// | `AlreadyExists` | `CommitFailed` | certainly not applied; another attempt takes another name |
/// | `Denied` | `Forbidden` | neither the caller nor a second try can help |
/// | `TooLarge`, `LeadsOut`, `Invalid` | `Invalid` | the caller named a file that is none of ours |
/// | `Unavailable`, `NoBucket` | `Unavailable` | no pointer has moved; the same request may be sent again |
/// | `Settings` | its own | it was judged where it was found |
impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        let kind = match &error {
            FileError::Missing { .. } => Kind::NotFound,
            FileError::AlreadyExists { .. } => Kind::CommitFailed,
            FileError::Denied { .. } => Kind::Forbidden,
            FileError::TooLarge { .. } | FileError::LeadsOut { .. } => Kind::Invalid,
            FileError::Unavailable { .. } | FileError::NoBucket { .. } => Kind::Unavailable,
            FileError::Invalid(error) | FileError::Settings(error) => error.kind(),
        };
        let message = error.to_string();
        match error {
            FileError::Invalid(error) | FileError::Settings(error) => error,
            FileError::Denied { source, .. }
            | FileError::Unavailable { source, .. }
            | FileError::NoBucket { source, .. } => Error::new(kind, message).with_source(source),
            _ => Error::new(kind, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(kind: ErrorKind) -> object_store::Error {
        object_store::Error::Generic { store: "test", source: Box::new(std::io::Error::from(kind)) }
    }

    #[test]
    fn errors_of_the_store_are_sorted_by_their_cause() {
        for (error, outcome) in [
            (io(ErrorKind::NotFound), "missing"),
            (io(ErrorKind::NotADirectory), "missing"),
            (io(ErrorKind::PermissionDenied), "denied"),
            (io(ErrorKind::InvalidFilename), "invalid"),
            (io(ErrorKind::StorageFull), "unavailable"),
            (io(ErrorKind::TimedOut), "unavailable"),
        ] {
            assert_eq!(FileError::from_store("file:///x", error).outcome(), outcome);
        }
    }

    #[test]
    fn a_write_is_never_answered_as_a_missing_file() {
        for (kind, outcome) in [
            (ErrorKind::NotFound, "unavailable"),
            (ErrorKind::NotADirectory, "invalid"),
            (ErrorKind::AlreadyExists, "invalid"),
            (ErrorKind::PermissionDenied, "denied"),
            (ErrorKind::StorageFull, "unavailable"),
        ] {
            assert_eq!(FileError::from_write("file:///x", io(kind)).outcome(), outcome, "{kind}");
        }
        let taken = object_store::Error::AlreadyExists {
            path: "x".to_owned(),
            source: Box::new(std::io::Error::from(ErrorKind::AlreadyExists)),
        };
        assert_eq!(FileError::from_write("file:///x", taken).outcome(), "already-exists");
    }

    #[test]
    fn a_missing_file_is_told_in_icebergs_words() {
        let error = Error::from(FileError::Missing { location: "file:/tmp/x.json".to_owned() });
        assert_eq!(error.kind(), Kind::NotFound);
        assert_eq!(error.message(), "Failed to open input stream for file: file:/tmp/x.json");
    }

    #[test]
    fn a_store_that_does_not_answer_is_told_with_its_cause() {
        let error = Error::from(FileError::from_store("file:///x", io(ErrorKind::StorageFull)));
        assert_eq!(error.kind(), Kind::Unavailable);
        assert!(std::error::Error::source(&error).is_some());
        assert!(!error.message().contains("storage"), "the cause is for the log: {error}");
    }
}
