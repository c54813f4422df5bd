//! The check of a warehouse's storage: what is tried, and what its failures mean to the one who set it up.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use uuid::Uuid;

use super::error::{FileError, Source};
use super::fault::{Cause, Fault};
use super::place::Place;
use super::{Files, local};
use crate::error::{Error, Result};
use crate::location::{Location, StoreKind};

const READ_LIMIT_BYTES: u64 = 1024;

/// How long a store may take to show that it can be used, and then to delete what was written: 30 seconds in all.
const TRIED_WITHIN: Duration = Duration::from_secs(20);
const CLEANED_UP_WITHIN: Duration = Duration::from_secs(10);

/// One check, with an object of its own.
pub struct Probe<'a> {
    files: &'a Files,
    place: &'a Place,
    folder: Location,
    object: Location,
    content: Bytes,
    tried_within: Duration,
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
        Self { files, place, folder, object, content: Bytes::from(id.to_string()), tried_within: TRIED_WITHIN }
    }

    /// When the store wrote the object, by its own clock. Leaves nothing behind where the store lets it, whatever fails or
    /// takes too long. A store that does not answer is not waited for.
    pub async fn run(&self) -> Result<i64> {
        let mut may_be_written = false;
        let tried = timeout(self.tried_within, self.tried(&mut may_be_written)).await;
        let tried = tried.unwrap_or_else(|_| Err(self.too_slow(self.tried_within)));
        if !may_be_written {
            return tried;
        }
        let cleaned_up = timeout(CLEANED_UP_WITHIN, self.clean_up()).await;
        let written_ms = tried?;
        cleaned_up.unwrap_or_else(|_| Err(self.too_slow(CLEANED_UP_WITHIN)))?;
        Ok(written_ms)
    }

    async fn tried(&self, may_be_written: &mut bool) -> Result<i64> {
        self.files.named(self.place, self.object.as_str()).await.map_err(self.failed(Step::Connect))?;
        *may_be_written = true;
        if let Err(error) = self.write(self.content.clone()).await {
            *may_be_written = matches!(error, FileError::Unavailable { .. });
            return Err(self.failed(Step::Write)(error));
        }
        self.check_written().await
    }

    async fn clean_up(&self) -> Result<()> {
        let deleted = self.files.delete(self.place, self.object.as_str()).await.map_err(self.failed(Step::Delete));
        if self.folder.kind() == StoreKind::File {
            // A folder that is left behind is empty and harms nobody.
            let _ = tokio::fs::remove_dir(local::path(&self.folder)).await;
        }
        deleted
    }

    async fn check_written(&self) -> Result<i64> {
        let location = self.object.as_str();
        let read = self.files.read(self.place, location, READ_LIMIT_BYTES).await.map_err(self.failed(Step::Read))?;
        if read != self.content {
            return Err(self.misbehaved(Step::Read, "gives back other bytes than were written"));
        }
        let Some(written_ms) = self.listed_as_of().await.map_err(self.failed(Step::List))? else {
            return Err(self.misbehaved(Step::List, "does not list what was written"));
        };
        match self.write(Bytes::from_static(b"overwritten")).await {
            Err(FileError::AlreadyExists { .. }) => Ok(written_ms),
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

    async fn listed_as_of(&self) -> std::result::Result<Option<i64>, FileError> {
        let object = self.files.named(self.place, self.object.as_str()).await?;
        self.files.observed("list", &object, object.listed_as_of()).await
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

    fn too_slow(&self, within: Duration) -> Error {
        let (root, seconds) = (&self.place.root, within.as_secs());
        Error::invalid(format!(
            "the store of '{root}' did not answer within {seconds} s: check its endpoint, and that the server can reach it"
        ))
    }

    /// The store carried out the step otherwise than it must.
    fn misbehaved(&self, step: Step, what: &str) -> Error {
        Error::invalid(format!("{step} '{}' failed: the object store {what}", self.object))
    }
}

/// The store's part in an error.
fn source(error: &FileError) -> Option<&Source> {
    match error {
        FileError::Denied { source, .. }
        | FileError::Unavailable { source, .. }
        | FileError::NoBucket { source, .. } => Some(source),
        _ => None,
    }
}

fn cause(error: &FileError) -> Option<Cause> {
    source(error)?.downcast_ref::<Fault>().map(|fault| fault.cause)
}

fn said(error: &FileError) -> String {
    source(error).map_or_else(|| error.to_string(), ToString::to_string)
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    use super::*;
    use crate::files::{FilesOptions, S3Storage, Secret, Storage};

    /// Answers deletes, which are posts, and nothing else, and tells of each.
    async fn serve(mut stream: TcpStream, deleted: UnboundedSender<()>) {
        let mut head = [0; 6];
        let begun = stream.read_exact(&mut head).await;
        if begun.is_ok() && &head == b"POST /" {
            let _ = deleted.send(());
            let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 15\r\n\r\n<DeleteResult/>";
            let _ = stream.write_all(answer).await;
        }
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }

    #[tokio::test]
    async fn what_a_slow_store_may_have_written_is_deleted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
        let (tell, mut deletes) = unbounded_channel();
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, tell.clone()));
            }
        });
        let (access_key_id, secret_access_key) = (Some("id".to_owned()), Some(Secret::new("hush")));
        let s3 = S3Storage { endpoint, path_style: true, access_key_id, secret_access_key, ..S3Storage::default() };
        let root = Location::parse("s3://bucket/w").unwrap();
        let place = Place { root, allowed: Vec::new(), storage: Storage::S3(s3) };
        let files = Files::new(FilesOptions::default(), None);
        let probe = Probe::new(&files, &place, Uuid::from_u128(1));
        // Connected before, so that the write is what the time runs out on.
        files.named(&place, probe.object.as_str()).await.unwrap();
        let error = Probe { tried_within: Duration::ZERO, ..probe }.run().await.unwrap_err();
        assert!(error.message().contains("did not answer"), "{error}");
        deletes.recv().await.expect("the object is deleted");
        server.abort();
    }
}
