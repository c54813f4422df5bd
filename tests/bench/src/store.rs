//! The object store that tables lie in, as clients use it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use faults::writer::Object;
use faults::writer::files::local;
use futures::future::{join_all, try_join_all};
use object_store::ObjectStoreExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;

use crate::report::Result;
use crate::target::{StoreKind, StoreOptions};

/// How many files a client fetches at a time.
const AT_A_TIME: usize = 8;

#[derive(Debug)]
pub struct Store {
    place: Place,
    spare: Mutex<Vec<String>>,
}

#[derive(Debug)]
enum Place {
    Local,
    S3 { client: AmazonS3, bucket: String },
}

impl Store {
    pub fn open(options: &StoreOptions) -> Result<Self> {
        let place = match options.kind {
            StoreKind::File => Place::Local,
            StoreKind::S3 => Place::s3(options)?,
        };
        Ok(Self { place, spare: Mutex::default() })
    }

    /// As stock clients write: on local files nothing is forced to the disk.
    pub async fn put(&self, object: &Object) -> Result<()> {
        let Place::S3 { client, .. } = &self.place else {
            let file = PathBuf::from(local(&object.location));
            if let Err(error) = tokio::fs::write(&file, &object.bytes).await {
                let folder = file.parent().filter(|_| error.kind() == std::io::ErrorKind::NotFound).ok_or(error)?;
                tokio::fs::create_dir_all(folder).await?;
                tokio::fs::write(&file, &object.bytes).await?;
            }
            return Ok(());
        };
        client.put(&self.key(&object.location)?, object.bytes.clone().into()).await?;
        Ok(())
    }

    pub async fn put_all(&self, objects: &[Object]) -> Result<()> {
        for some in objects.chunks(AT_A_TIME) {
            try_join_all(some.iter().map(|object| self.put(object))).await?;
        }
        Ok(())
    }

    /// As a server must write that answers for the file: it is on the disk afterwards.
    pub async fn put_durably(&self, object: Object) -> Result<()> {
        match &self.place {
            Place::S3 { .. } => self.put(&object).await,
            Place::Local => {
                tokio::task::spawn_blocking(move || {
                    write_durably(Path::new(local(&object.location)), &object.bytes).map_err(Into::into)
                })
                .await?
            }
        }
    }

    pub async fn get(&self, location: &str) -> Result<Vec<u8>> {
        match &self.place {
            Place::Local => {
                tokio::fs::read(local(location)).await.map_err(|error| format!("{location}: {error}").into())
            }
            Place::S3 { client, .. } => Ok(client.get(&self.key(location)?).await?.bytes().await?.into()),
        }
    }

    /// Several files with their locations.
    pub async fn get_all(&self, locations: Vec<String>) -> Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::with_capacity(locations.len());
        for some in locations.chunks(AT_A_TIME) {
            let fetched = try_join_all(some.iter().map(|location| self.get(location))).await?;
            files.extend(some.iter().cloned().zip(fetched));
        }
        Ok(files)
    }

    pub async fn size_bytes(&self, location: &str) -> Result<u64> {
        match &self.place {
            Place::Local => Ok(tokio::fs::metadata(local(location)).await?.len()),
            Place::S3 { client, .. } => Ok(client.head(&self.key(location)?).await?.size),
        }
    }

    /// For what clients delete as they go: [`Store::sweep`] sees to it, for it is not the catalog's work.
    pub fn spare(&self, location: &str) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(location.to_owned());
    }

    /// Gives back the room of what was left over. The names go with the folder or the bucket: an ext4 without a journal
    /// looks at every file that was just deleted before it makes a new one, which is charged to whoever is measured next,
    /// and SeaweedFS takes minutes for the thousands of files of losers.
    pub async fn sweep(&self) {
        let spare = std::mem::take(&mut *self.spare.lock().unwrap_or_else(PoisonError::into_inner));
        if matches!(self.place, Place::Local) {
            for some in spare.chunks(AT_A_TIME) {
                join_all(some.iter().map(|location| empty(local(location)))).await;
            }
        }
    }

    fn key(&self, location: &str) -> Result<Key> {
        let Place::S3 { bucket, .. } = &self.place else { return Ok(Key::parse(local(location))?) };
        let path = location.split_once("://").map_or(location, |(_, path)| path);
        let key = path.strip_prefix(bucket.as_str()).ok_or_else(|| format!("{location} is not in bucket {bucket}"))?;
        Ok(Key::parse(key.trim_start_matches('/'))?)
    }
}

/// What is gone already stays so.
async fn empty(file: &str) {
    drop(tokio::fs::OpenOptions::new().write(true).truncate(true).open(file).await);
}

impl Place {
    fn s3(options: &StoreOptions) -> Result<Self> {
        let path = options.root.strip_prefix("s3://").ok_or("store.root must begin with s3://")?;
        let bucket = path.split('/').next().unwrap_or(path).to_owned();
        let mut builder = AmazonS3Builder::new().with_bucket_name(&bucket).with_allow_http(true);
        builder = builder.with_region(options.region.as_deref().unwrap_or("us-east-1"));
        if let Some(endpoint) = &options.endpoint {
            builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
        }
        if let (Some(id), Some(secret)) = (&options.access_key_id, &options.secret_access_key) {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        }
        Ok(Self::S3 { client: builder.build()?, bucket })
    }
}

/// A temporary file, forced to the disk, renamed; then its folder forced to the disk.
fn write_durably(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder)?;
    let temporary = file.with_extension("tmp");
    let mut written = std::fs::File::create(&temporary)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    std::fs::rename(&temporary, file)?;
    std::fs::File::open(folder)?.sync_all()
}
