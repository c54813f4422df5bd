//! The check of a warehouse's storage: what is tried, and what its failures mean to the one who set it up.

use std::fmt;

use bytes::Bytes;
use uuid::Uuid;

use super::error::FileError;
use super::fault::{Cause, Fault};
use super::place::Place;
use super::{Files, local};
use crate::error::{Error, Result};
use crate::location::{Location, StoreKind};

const READ_LIMIT_BYTES: u64 = 1024;

/// One check, with an object of its own.
pub struct Probe<'a> {
    files: &'a Files,
    place: &'a Place,
    folder: Location,
    object: Location,
    content: Bytes,
}

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Connect,
    Write,
    Read,
    List,
    /// A write of an object that exists, which must be refused.
    WriteAgain,
    Delete,
}

impl<'a> Probe<'a> {
    pub fn new(files: &'a Files, place: &'a Place, id: Uuid) -> Self {
        let folder = place.root.join(&format!("frazil-probe-{id}"));
        let object = folder.join("object");
        Self { files, place, folder, object, content: Bytes::from(id.to_string()) }
    }

    /// Leaves nothing behind where the store lets it.
    pub async fn run(&self) -> Result<()> {
        self.files.named(self.place, self.object.as_str()).await.map_err(self.failed(Step::Connect))?;
        self.write(self.content.clone()).await.map_err(self.failed(Step::Write))?;
        let checked = self.check_written().await;
        let deleted = self.files.delete(self.place, self.object.as_str()).await.map_err(self.failed(Step::Delete));
        if self.folder.kind() == StoreKind::File {
            // A folder that is left behind is empty and harms nobody.
            let _ = tokio::fs::remove_dir(local::path(&self.folder)).await;
        }
        checked.and(deleted)
    }

    async fn check_written(&self) -> Result<()> {
        let location = self.object.as_str();
        let read = self.files.read(self.place, location, READ_LIMIT_BYTES).await.map_err(self.failed(Step::Read))?;
        if read != self.content {
            return Err(self.misbehaved(Step::Read, "gives back other bytes than were written"));
        }
        if !self.is_listed().await.map_err(self.failed(Step::List))? {
            return Err(self.misbehaved(Step::List, "does not list what was written"));
        }
        match self.write(Bytes::from_static(b"overwritten")).await {
            Err(FileError::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(self.failed(Step::WriteAgain)(error)),
            Ok(()) => Err(self.misbehaved(
                Step::WriteAgain,
                "overwrites what exists: Frazil needs conditional writes (If-None-Match), so choose another store or a newer \
                 version of it",
            )),
        }
    }

    async fn write(&self, content: Bytes) -> std::result::Result<(), FileError> {
        self.files.write_new(self.place, self.object.as_str(), content).await
    }

    async fn is_listed(&self) -> std::result::Result<bool, FileError> {
        let object = self.files.named(self.place, self.object.as_str()).await?;
        self.files.observed("list", &object, object.is_listed()).await
    }

    /// An error that names the step, the location and the way to mend it.
    fn failed(&self, step: Step) -> impl Fn(FileError) -> Error {
        move |error| {
            let object = &self.object;
            if let FileError::Invalid(error) | FileError::Settings(error) = error {
                return Error::invalid(format!("{step} '{object}' failed: {}", error.message())).with_source(error);
            }
            let mend = match cause(&error) {
                Some(cause) => mend(cause, step, self.place, object),
                None => "the store answered otherwise than it must".to_owned(),
            };
            Error::invalid(format!("{step} '{object}' failed: {mend} ({})", said(&error)))
        }
    }

    /// The store carried out the step otherwise than it must.
    fn misbehaved(&self, step: Step, what: &str) -> Error {
        Error::invalid(format!("{step} '{}' failed: the object store {what}", self.object))
    }
}

fn cause(error: &FileError) -> Option<Cause> {
    match error {
        FileError::Denied { source, .. }
        | FileError::Unavailable { source, .. }
        | FileError::NoBucket { source, .. } => source.downcast_ref::<Fault>().map(|fault| fault.cause),
        _ => None,
    }
}

fn said(error: &FileError) -> String {
    match error {
        FileError::Denied { source, .. }
        | FileError::Unavailable { source, .. }
        | FileError::NoBucket { source, .. } => source.to_string(),
        error => error.to_string(),
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
        Cause::NoCredentials => format!(
            "the server could not get credentials: check {}, or, where none are given, what its environment names",
            credentials(kind)
        ),
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
    format!("grant {needed} there, and see that the {} exists", bucket(kind))
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
