//! The only door to object storage: every file that the catalog reads, writes or deletes passes through here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use metrics::{Gauge, counter, gauge, histogram};
use moka::Expiry;
use moka::future::Cache;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::sync::Semaphore;
use tracing::{Instrument, field};
use uuid::Uuid;

mod client;
mod error;
mod fault;
mod links;
mod local;
mod place;
mod probe;
mod secret;
mod storage;
mod traced;

pub use error::FileError;
pub use place::Place;
pub use secret::{Secret, SecretsKey};
pub use storage::{AdlsStorage, GcsStorage, S3Storage, Storage};
pub use traced::TraceHeaders;

use crate::error::Error;
use crate::location::{Location, StoreKind};
use client::{Client, StoreKey};
use fault::Fault;
use links::{Fence, Last};
use probe::Probe;
use traced::Traced;

/// Object store clients that are kept, one for each bucket and settings.
const MAX_CLIENTS: u64 = 256;

/// How long an operation waits for its turn: where a store hangs, those who come later are not held up with it.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);

type Result<T> = std::result::Result<T, FileError>;

/// Bounds of the process, and what it keeps to itself.
#[derive(Debug, Clone)]
pub struct FilesOptions {
    /// Operations on one object store at one time; others wait for their turn.
    pub max_concurrent_operations: usize,
    /// How long a secret that is in a file is used before the file is read again.
    pub secret_file_max_age: Duration,
    /// The server's own files, which no warehouse may name as a secret.
    pub own_files: Arc<[PathBuf]>,
    /// What object stores are told of the current trace.
    pub trace_headers: TraceHeaders,
}

impl Default for FilesOptions {
    fn default() -> Self {
        Self {
            max_concurrent_operations: 64,
            secret_file_max_age: Duration::from_secs(60),
            own_files: Arc::default(),
            trace_headers: Vec::new,
        }
    }
}

/// Reads and writes the files of all warehouses; one for each process.
///
/// Every method checks that the location lies in the place, whatever was checked before, and that no symbolic link leads
/// out of it. Locations are taken as they
/// stand, without decoding: they reach the file that an engine means by the same text.
#[derive(Debug)]
pub struct Files {
    options: FilesOptions,
    secrets_key: Option<SecretsKey>,
    clients: Cache<StoreKey, Arc<Client>>,
}

/// Lets a client end when its secrets may have changed.
struct Aging(Duration);

/// Counts an operation as under way until it ends or is dropped.
struct InFlight(Gauge);

/// One object in its store.
struct Object {
    client: Arc<Client>,
    path: Path,
    location: Location,
}

impl Files {
    /// Without a key, secrets that are stored encrypted can be neither made nor used.
    pub fn new(options: FilesOptions, secrets_key: Option<SecretsKey>) -> Self {
        let aging = Aging(options.secret_file_max_age);
        let clients = Cache::builder().max_capacity(MAX_CLIENTS).expire_after(aging).build();
        Self { options, secrets_key, clients }
    }

    /// Checks the settings and encrypts the secrets that are plain text, so that they may be stored.
    pub fn seal(&self, storage: &Storage) -> crate::error::Result<Storage> {
        storage.check()?;
        storage.sealed(self.secrets_key.as_ref())
    }

    /// The whole object, if it has at most `limit_bytes`.
    pub async fn read(&self, place: &Place, location: &str, limit_bytes: u64) -> Result<Bytes> {
        let object = self.named(place, location).await?;
        self.observed("read", &object, async {
            object.check_links(place, Last::Followed).await?;
            object.read(location, limit_bytes).await
        })
        .await
    }

    /// Writes a new object durably; one that is there already is never touched.
    ///
    /// After [`FileError::Unavailable`] the object may have been written. A remote store may have written it and lost
    /// the answer, so that a second try met the first one's object: the same bytes there count as written.
    pub async fn write_new(&self, place: &Place, location: &str, bytes: Bytes) -> Result<()> {
        let object = self.named(place, location).await?;
        self.observed("write", &object, async {
            object.check_links(place, Last::Followed).await?;
            match object.put_new(location, bytes.clone()).await {
                Err(FileError::AlreadyExists { .. }) if object.is_remote() => object.is_ours(location, &bytes).await,
                result => result,
            }
        })
        .await
    }

    /// Whether the object is there, asked of its store.
    pub async fn exists(&self, place: &Place, location: &str) -> Result<bool> {
        let object = self.named(place, location).await?;
        self.observed("head", &object, async {
            object.check_links(place, Last::Followed).await?;
            let found = object.client.store.head(&object.path).await;
            match found.map_err(|error| FileError::from_store(location, error)) {
                Ok(_) => Ok(true),
                Err(FileError::Missing { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Whether a local file is gone. Other stores are not asked: there the question costs a round trip.
    pub async fn is_lost(&self, place: &Place, location: &str) -> bool {
        let Ok(local) = Location::parse(location) else {
            return false;
        };
        if local.kind() != StoreKind::File || place.check(&local).is_err() {
            return false;
        }
        let fence = Fence::of(place);
        let is_lost = blocking(move || {
            let gone = matches!(local::path(&local).try_exists(), Ok(false));
            gone && fence.check(&local, Last::Followed).is_ok()
        });
        is_lost.await.unwrap_or(false)
    }

    /// Deletes an object; one that is gone already is no error.
    pub async fn delete(&self, place: &Place, location: &str) -> Result<()> {
        let object = self.named(place, location).await?;
        self.observed("delete", &object, async {
            object.check_links(place, Last::Kept).await?;
            let deleted = object.client.store.delete(&object.path).await;
            ignore_missing(deleted.map_err(|error| FileError::from_store(location, error)))
        })
        .await
    }

    /// Deletes many objects with as few requests as the store allows; all of them are tried before an error is told.
    /// Returns how many were left alone, because a link leads them out of the place.
    pub async fn delete_all(&self, place: &Place, locations: Vec<Location>) -> Result<usize> {
        let (locations, mut result) = keep_inside(place, locations).await;
        let mut by_store: Vec<(Object, Vec<Path>)> = Vec::new();
        for location in locations {
            let object = match self.named(place, location.as_str()).await {
                Ok(object) => object,
                Err(error) => {
                    result = result.and(Err(error));
                    continue;
                }
            };
            let path = object.path.clone();
            match by_store.iter_mut().find(|(first, _)| Arc::ptr_eq(&first.client, &object.client)) {
                Some((_, paths)) => paths.push(path),
                None => by_store.push((object, vec![path])),
            }
        }
        for (first, paths) in by_store {
            let deleted = self.observed("delete-many", &first, first.delete_many(paths)).await;
            result = result.and_then(|left| deleted.map(|()| left));
        }
        result
    }

    /// On local files makes the folders that some engines expect to find: `data` and `metadata` below the location.
    pub async fn prepare_table(&self, place: &Place, location: &Location) -> Result<()> {
        if location.kind() != StoreKind::File {
            return Ok(place.check(location)?);
        }
        let object = self.named(place, location.as_str()).await?;
        self.observed("prepare", &object, async {
            let (fence, table) = (Fence::of(place), location.clone());
            let made = blocking(move || {
                for folder in [table.join("data"), table.join("metadata")] {
                    fence.check(&folder, Last::Followed)?;
                    local::create_folder(&local::path(&folder))
                        .map_err(|error| FileError::from_local_write(table.as_str(), error))?;
                }
                Ok(())
            });
            made.await.map_err(|error| FileError::from_io(location.as_str(), error))?
        })
        .await
    }

    /// Tries what the catalog needs below the root, with a small object: write, read, list, conditional write and delete,
    /// so that a wrong setting is told at once and not by the first commit. `id` names the object, so that two probes do
    /// not meet. Returns when the store wrote it, by its own clock. The error names the step, the location and the way to
    /// mend it.
    pub async fn probe(&self, place: &Place, id: Uuid) -> crate::error::Result<i64> {
        Probe::new(self, place, id).run().await
    }

    /// The object of a location that lies in the place by its name; links are not looked at.
    async fn named(&self, place: &Place, location: &str) -> Result<Object> {
        let parsed = Location::parse(location)?;
        place.check(&parsed)?;
        let path = Path::parse(parsed.key()).map_err(|error| FileError::from_store(location, error.into()))?;
        if path.is_root() {
            return Err(Error::invalid(format!("location '{location}' names a store and no file in it")).into());
        }
        let client = self.client(StoreKey::of(&parsed, &place.storage)?).await?;
        Ok(Object { client, path, location: parsed })
    }

    /// The client is made once, however many ask for it at the same time.
    async fn client(&self, key: StoreKey) -> Result<Arc<Client>> {
        let (connecting, secrets_key, own_files) =
            (key.clone(), self.secrets_key.clone(), self.options.own_files.clone());
        let (turns, traced) = (self.options.max_concurrent_operations, Traced(self.options.trace_headers));
        let made = self.clients.try_get_with(key, async move {
            let store = connecting.connect(secrets_key, own_files, traced).await?;
            Ok(Arc::new(Client { store, turns: Semaphore::new(turns) }))
        });
        made.await.map_err(|error: Arc<Error>| {
            let message = error.message().to_owned();
            FileError::Settings(Error::new(error.kind(), message).with_source(error))
        })
    }

    /// Waits for a turn of the object's store, then counts and times the operation.
    async fn observed<T>(
        &self,
        operation: &'static str,
        object: &Object,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let span = tracing::info_span!("files", otel.name = %format_args!("files {operation}"), operation, outcome = field::Empty);
        let work = work.instrument(span.clone());
        let result = match tokio::time::timeout(TURN_TIMEOUT, object.client.turns.acquire()).await {
            Ok(turn) => {
                let _turn = turn.expect("the semaphore is never closed");
                let (_in_flight, begun) = (InFlight::begin(), Instant::now());
                let result = work.await;
                histogram!("frazil_files_duration_seconds", "operation" => operation).record(begun.elapsed());
                result
            }
            Err(_) => Err(object.no_turn()),
        };
        let outcome = result.as_ref().map_or_else(FileError::outcome, |_| "ok");
        span.record("outcome", outcome);
        counter!("frazil_files_operations_total", "operation" => operation, "outcome" => outcome).increment(1);
        result
    }
}

impl Expiry<StoreKey, Arc<Client>> for Aging {
    fn expire_after_create(&self, key: &StoreKey, _: &Arc<Client>, _: Instant) -> Option<Duration> {
        key.ages().then_some(self.0)
    }
}

impl InFlight {
    fn begin() -> Self {
        let gauge = gauge!("frazil_files_in_flight");
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl Object {
    fn is_remote(&self) -> bool {
        self.location.kind() != StoreKind::File
    }

    fn no_turn(&self) -> FileError {
        let said = format!("no operation on this store ended within {} s", TURN_TIMEOUT.as_secs());
        FileError::Unavailable { location: self.location.to_string(), source: Fault::unanswered(said).into() }
    }

    /// Refuses a local file that a link leads out of the place.
    async fn check_links(&self, place: &Place, last: Last) -> Result<()> {
        if self.is_remote() {
            return Ok(());
        }
        let (fence, local) = (Fence::of(place), self.location.clone());
        let checked = blocking(move || fence.check(&local, last));
        checked.await.map_err(|error| FileError::from_io(self.location.as_str(), error))?
    }

    async fn read(&self, location: &str, limit_bytes: u64) -> Result<Bytes> {
        let object = self.client.store.get_opts(&self.path, GetOptions::default()).await;
        let object = object.map_err(|error| FileError::from_store(location, error))?;
        let size_bytes = object.meta.size;
        if size_bytes > limit_bytes {
            return Err(FileError::TooLarge { location: location.to_owned(), size_bytes, limit_bytes });
        }
        object.bytes().await.map_err(|error| FileError::from_store(location, error))
    }

    async fn put_new(&self, location: &str, bytes: Bytes) -> Result<()> {
        let options = PutOptions::from(PutMode::Create);
        let payload = match self.is_remote() {
            true => PutPayload::from_bytes(bytes),
            false => local::in_steps(&bytes).collect(),
        };
        let written = self.client.store.put_opts(&self.path, payload, options).await;
        written.map(drop).map_err(|error| FileError::from_write(location, error))
    }

    /// The store says that the object exists: is it what we wanted to write?
    async fn is_ours(&self, location: &str, bytes: &Bytes) -> Result<()> {
        match self.read(location, bytes.len() as u64).await {
            Ok(found) if found == *bytes => Ok(()),
            Ok(_) | Err(FileError::TooLarge { .. }) => Err(FileError::AlreadyExists { location: location.to_owned() }),
            // S3 also says so while another write or a delete of the same key is under way.
            Err(FileError::Missing { .. }) => Err(FileError::Unavailable {
                location: location.to_owned(),
                source: "the store refused the object as existing, but does not have it".into(),
            }),
            Err(error) => Err(error),
        }
    }

    async fn delete_many(&self, paths: Vec<Path>) -> Result<()> {
        let paths = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut results = self.client.store.delete_stream(paths);
        let mut first_error = Ok(());
        while let Some(deleted) = results.next().await {
            let deleted = deleted.map(drop).map_err(|error| FileError::from_store(self.location.as_str(), error));
            first_error = first_error.and(ignore_missing(deleted));
        }
        first_error
    }

    /// When it was written, by the clock of the store, if a list has it.
    async fn listed_as_of(&self) -> Result<Option<i64>> {
        let mut listed = self.client.store.list(self.path.parent().as_ref());
        while let Some(meta) =
            listed.try_next().await.map_err(|error| FileError::from_store(self.location.as_str(), error))?
        {
            if meta.location == self.path {
                return Ok(Some(meta.last_modified.timestamp_millis()));
            }
        }
        Ok(None)
    }
}

/// Leaves out the locations that a link leads out of the place, and counts them. Those that cannot be looked at are left
/// out too, and the first of them is told of.
async fn keep_inside(place: &Place, locations: Vec<Location>) -> (Vec<Location>, Result<usize>) {
    if locations.iter().all(|location| location.kind() != StoreKind::File) {
        return (locations, Ok(0));
    }
    let fence = Fence::of(place);
    let sorted = blocking(move || {
        let (mut inside, mut outside, mut first_error) = (Vec::new(), 0, None);
        for location in locations {
            let checked = match location.kind() {
                StoreKind::File => fence.check(&location, Last::Kept),
                _ => Ok(()),
            };
            match checked {
                Ok(()) => inside.push(location),
                Err(FileError::LeadsOut { .. }) => outside += 1,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        (inside, first_error.map_or(Ok(outside), Err))
    });
    let failed = |error| (Vec::new(), Err(FileError::from_io(place.root.as_str(), error)));
    sorted.await.unwrap_or_else(failed)
}

/// Runs what blocks beside the tasks that must not.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)
}

fn ignore_missing(result: Result<()>) -> Result<()> {
    match result {
        Err(FileError::Missing { .. }) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests;
