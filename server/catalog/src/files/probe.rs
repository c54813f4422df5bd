//! The check of a warehouse's storage: what is tried, and what its failures mean to the one who set it up.

use std::fmt;

use super::error::FileError;
use super::fault::{Cause, Fault};
use super::place::Place;
use crate::error::Error;
use crate::location::{Location, StoreKind};

/// What is tried, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Connect,
    Write,
    Read,
    List,
    /// A write of an object that exists, which must be refused.
    WriteAgain,
    Delete,
}

/// A step that failed: an error that names the step, the location and the way to mend it.
pub fn failed(step: Step, place: &Place, location: &Location, error: FileError) -> Error {
    if let FileError::Invalid(error) | FileError::Settings(error) = error {
        return Error::invalid(format!("{step} '{location}' failed: {}", error.message())).with_source(error);
    }
    let mend = match cause(&error) {
        Some(cause) => mend(cause, step, place, location),
        None => "see the log of the server".to_owned(),
    };
    let said = said(&error).map_or_else(String::new, |said| format!(" ({said})"));
    Error::invalid(format!("{step} '{location}' failed: {mend}{said}"))
}

/// A step that the store carried out otherwise than it must.
pub fn misbehaved(step: Step, location: &Location, what: &str) -> Error {
    Error::invalid(format!("{step} '{location}' failed: the object store {what}"))
}

fn cause(error: &FileError) -> Option<Cause> {
    match error {
        FileError::Denied { source, .. }
        | FileError::Unavailable { source, .. }
        | FileError::NoBucket { source, .. } => source.downcast_ref::<Fault>().map(|fault| fault.cause),
        _ => None,
    }
}

fn said(error: &FileError) -> Option<String> {
    match error {
        FileError::Denied { source, .. }
        | FileError::Unavailable { source, .. }
        | FileError::NoBucket { source, .. } => Some(source.to_string()),
        error => Some(error.to_string()),
    }
}

fn mend(cause: Cause, step: Step, place: &Place, location: &Location) -> String {
    let kind = location.kind();
    match cause {
        Cause::Credentials => format!("the store does not take the credentials: check {}", credentials(kind)),
        Cause::NotAllowed => format!("the credentials do not allow it: {}", permission(kind, step)),
        Cause::NoBucket => {
            format!("there is no {} '{}': make it, or mend the location", bucket(kind), location.bucket())
        }
        Cause::OtherRegion => {
            "the bucket is in another region or has another endpoint: set the right region".to_owned()
        }
        Cause::NoCredentials => {
            format!("the server could not get credentials from its environment: give {}", credentials(kind))
        }
        Cause::Unreachable => format!("the store does not answer{}", reached_at(place)),
        Cause::Unsupported => {
            "the store does not know such requests, conditional writes (If-None-Match) among them: Frazil \
                               needs them, so choose another store or a newer version of it"
                .to_owned()
        }
        Cause::Other => "the store failed".to_owned(),
    }
}

fn credentials(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::File => "the user that the server runs as",
        StoreKind::S3 => "access-key-id, secret-access-key and session-token",
        StoreKind::Gcs => "service-account-key",
        StoreKind::Adls => "account-key, sas-token, or tenant-id, client-id and client-secret",
    }
}

fn permission(kind: StoreKind, step: Step) -> String {
    let needed = match (kind, step) {
        (StoreKind::File, _) => return "let the user that the server runs as write there".to_owned(),
        (StoreKind::S3, Step::List) => "s3:ListBucket",
        (StoreKind::S3, Step::Read) => "s3:GetObject",
        (StoreKind::S3, Step::Delete) => "s3:DeleteObject",
        (StoreKind::S3, _) => "s3:PutObject",
        (StoreKind::Gcs, Step::List) => "storage.objects.list",
        (StoreKind::Gcs, Step::Read) => "storage.objects.get",
        (StoreKind::Gcs, Step::Delete) => "storage.objects.delete",
        (StoreKind::Gcs, _) => "storage.objects.create",
        (StoreKind::Adls, _) => "the role Storage Blob Data Contributor",
    };
    format!("grant {needed} there")
}

fn bucket(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::Adls => "container",
        _ => "bucket",
    }
}

fn reached_at(place: &Place) -> String {
    match place.storage.endpoint() {
        Some(endpoint) => format!(" at {endpoint}: check the endpoint, and whether the server can reach it"),
        None => ": check whether the server can reach it, or set an endpoint".to_owned(),
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Connect => "connecting to",
            Step::Write => "writing",
            Step::Read => "reading",
            Step::List => "listing",
            Step::WriteAgain => "the conditional write of",
            Step::Delete => "deleting",
        })
    }
}
