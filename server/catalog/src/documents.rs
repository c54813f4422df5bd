//! Metadata documents by location: read once, kept as parsed head and as the bytes to be sent.

use std::io::Read;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use crate::blocking;
use crate::error::{Error, Kind, Result};
use crate::files::{FileError, Files, Place};
use crate::ident::WarehouseId;
use crate::metadata::{TableMetadata, is_gzipped_name};
use crate::view_metadata::ViewMetadata;
use crate::warehouses::Warehouse;

/// The largest metadata file that is read, in bytes, before and after decompression.
pub const DOCUMENT_MAX_BYTES: u64 = 1 << 30;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// A document with the bytes that went to its file and go into every response.
#[derive(Debug)]
pub struct Document<M> {
    pub metadata: M,
    pub bytes: Bytes,
    /// What [`TableDocument::refs_only`] gave, once it was asked for.
    refs_only: OnceLock<Bytes>,
}

pub type TableDocument = Document<TableMetadata>;
pub type ViewDocument = Document<ViewMetadata>;

impl<M> Document<M> {
    pub fn new(metadata: M, bytes: Bytes) -> Self {
        Self { metadata, bytes, refs_only: OnceLock::new() }
    }
}

impl TableDocument {
    /// Reads a stored document. Its bytes are sent as they are, unless they lack what clients ask for.
    fn read(bytes: Bytes) -> Result<Self> {
        let metadata = TableMetadata::parse(&bytes)?;
        Ok(match metadata.was_completed() {
            true => Self::encoded(metadata),
            false => Self::new(metadata, bytes),
        })
    }

    pub fn encoded(metadata: TableMetadata) -> Self {
        let bytes = metadata.encode();
        Self::new(metadata, bytes)
    }

    /// The document with only those snapshots that a ref names; encoded once.
    pub fn refs_only(&self) -> Bytes {
        self.refs_only.get_or_init(|| self.metadata.encode_refs()).clone()
    }
}

impl ViewDocument {
    fn read(bytes: Bytes) -> Result<Self> {
        Ok(Self::new(ViewMetadata::parse(&bytes)?, bytes))
    }

    pub fn encoded(metadata: ViewMetadata) -> Self {
        let bytes = metadata.encode();
        Self::new(metadata, bytes)
    }
}

/// Metadata files never change, so what lies at a location may be kept as long as there is room.
type Cache<M> = moka::future::Cache<(WarehouseId, String), Arc<Document<M>>>;

/// What a small document takes beside its bytes: columns, once a rule asked for them, the entry, and what the allocator
/// rounds up. Some 6 KiB in all were measured for tables of ten columns; rather too much than too little.
const ENTRY_BYTES: usize = 5 << 10;

/// How a document is read from the bytes of its file.
type Reader<M> = fn(Bytes) -> Result<Document<M>>;

/// Reads, writes and remembers metadata documents.
#[derive(Clone)]
pub struct Documents {
    files: Arc<Files>,
    tables: Cache<TableMetadata>,
    views: Cache<ViewMetadata>,
}

impl Documents {
    /// `cache_bytes` bounds what is kept in memory, tables and views each.
    pub fn new(files: Arc<Files>, cache_bytes: u64) -> Self {
        Self {
            files,
            tables: cache(cache_bytes, TableMetadata::memory_bytes),
            views: cache(cache_bytes, ViewMetadata::memory_bytes),
        }
    }

    /// The table whose pointer leads here. A file that is gone, or that cannot be read, is `NotFound`.
    pub async fn table(&self, warehouse: &Warehouse, location: &str) -> Result<Arc<TableDocument>, FileError> {
        self.table_in(warehouse.id, &warehouse.place, location).await
    }

    /// As [`Self::table`].
    pub async fn table_in(
        &self,
        warehouse: WarehouseId,
        place: &Place,
        location: &str,
    ) -> Result<Arc<TableDocument>, FileError> {
        self.read(&self.tables, (warehouse, place), location, (TableDocument::read, Kind::NotFound)).await
    }

    /// The table in the file as it is now: a file that a client names is not ours, and may have been replaced. One that
    /// cannot be read is `Invalid`.
    pub async fn table_anew(&self, warehouse: &Warehouse, location: &str) -> Result<Arc<TableDocument>, FileError> {
        self.read_anew(&self.tables, warehouse, location, TableDocument::read).await
    }

    /// As [`Self::table`].
    pub async fn view(&self, warehouse: &Warehouse, location: &str) -> Result<Arc<ViewDocument>, FileError> {
        let home = (warehouse.id, &warehouse.place);
        self.read(&self.views, home, location, (ViewDocument::read, Kind::NotFound)).await
    }

    /// As [`Self::table_anew`].
    pub async fn view_anew(&self, warehouse: &Warehouse, location: &str) -> Result<Arc<ViewDocument>, FileError> {
        self.read_anew(&self.views, warehouse, location, ViewDocument::read).await
    }

    /// What lay there is gone, or may be.
    pub async fn forget(&self, warehouse: WarehouseId, location: &str) {
        let key = (warehouse, location.to_owned());
        self.tables.invalidate(&key).await;
        self.views.invalidate(&key).await;
    }

    /// Whether a file is known to be gone. Local files are asked, which costs next to nothing; others count as there.
    pub async fn is_lost(&self, warehouse: &Warehouse, location: &str) -> bool {
        self.files.is_lost(&warehouse.place, location).await
    }

    /// Writes a document to a new file, compressed where its name says so.
    pub async fn write_new<M>(
        &self,
        warehouse: &Warehouse,
        location: &str,
        document: &Document<M>,
    ) -> Result<(), FileError> {
        let plain = document.bytes.clone();
        if plain.len() as u64 > DOCUMENT_MAX_BYTES {
            // Written, it could never be read again.
            let message =
                format!("the metadata would have more than {DOCUMENT_MAX_BYTES} bytes: expire snapshots first");
            return Err(FileError::Invalid(Error::invalid(message)));
        }
        let bytes = match is_gzipped_name(location) {
            true => blocking::run(move || Ok(gzip(&plain))).await?,
            false => plain,
        };
        self.files.write_new(&warehouse.place, location, bytes).await
    }

    pub async fn remember_table(&self, warehouse: &Warehouse, location: String, document: Arc<TableDocument>) {
        self.tables.insert((warehouse.id, location), document).await;
    }

    /// The table has moved on twice since this document: only a load that began before then could still want it, while
    /// each document of a long history takes the room of many tables.
    pub async fn outlived(&self, warehouse: &Warehouse, location: &str) {
        self.tables.invalidate(&(warehouse.id, location.to_owned())).await;
    }

    pub async fn remember_view(&self, warehouse: &Warehouse, location: String, document: Arc<ViewDocument>) {
        self.views.insert((warehouse.id, location), document).await;
    }

    /// Deletes the file of an attempt that certainly lost. A failure leaves an orphan and nothing worse.
    pub async fn discard(&self, warehouse: &Warehouse, location: &str) {
        self.forget(warehouse.id, location).await;
        if let Err(error) = self.files.delete(&warehouse.place, location).await {
            tracing::warn!(location, error = &error as &dyn std::error::Error, "a lost metadata file stays behind");
        }
    }

    /// Whoever asks for a document while it is being read waits for it.
    async fn read<M: Send + Sync + 'static>(
        &self,
        cache: &Cache<M>,
        (warehouse, place): (WarehouseId, &Place),
        location: &str,
        reader: (Reader<M>, Kind),
    ) -> Result<Arc<Document<M>>, FileError> {
        let load = self.fetch(place, location, reader);
        cache.try_get_with((warehouse, location.to_owned()), load).await.map_err(own)
    }

    /// Reads beside the memory, so that a store which does not answer takes nothing out of it.
    async fn read_anew<M: Send + Sync + 'static>(
        &self,
        cache: &Cache<M>,
        warehouse: &Warehouse,
        location: &str,
        reader: Reader<M>,
    ) -> Result<Arc<Document<M>>, FileError> {
        let document = self.fetch(&warehouse.place, location, (reader, Kind::Invalid)).await?;
        cache.insert((warehouse.id, location.to_owned()), document.clone()).await;
        Ok(document)
    }

    async fn fetch<M: Send + Sync + 'static>(
        &self,
        place: &Place,
        location: &str,
        (read, unreadable): (Reader<M>, Kind),
    ) -> Result<Arc<Document<M>>, FileError> {
        let stored = self.files.read(place, location, DOCUMENT_MAX_BYTES).await?;
        let parsed = blocking::run(move || Ok(Arc::new(read(gunzip(stored)?)?)));
        parsed.await.map_err(|error| {
            let message = format!("metadata file {location} cannot be read: {}", error.message());
            FileError::Invalid(Error::new(unreadable, message).with_source(error))
        })
    }
}

/// The error for each of those who waited for it.
fn own(error: Arc<FileError>) -> FileError {
    Arc::try_unwrap(error).unwrap_or_else(|shared| match &*shared {
        FileError::Missing { location } => FileError::Missing { location: location.clone() },
        FileError::Denied { location, source } => {
            FileError::Denied { location: location.clone(), source: source.to_string().into() }
        }
        FileError::Unavailable { location, source } => {
            FileError::Unavailable { location: location.clone(), source: source.to_string().into() }
        }
        FileError::NoBucket { location, source } => {
            FileError::NoBucket { location: location.clone(), source: source.to_string().into() }
        }
        FileError::Settings(error) => FileError::Settings(Error::new(error.kind(), error.message().to_owned())),
        FileError::Invalid(error) => FileError::Invalid(Error::new(error.kind(), error.message().to_owned())),
        FileError::LeadsOut { .. } | FileError::AlreadyExists { .. } | FileError::TooLarge { .. } => {
            FileError::Invalid(Error::invalid(shared.to_string()))
        }
    })
}

fn cache<M: Send + Sync + 'static>(max_bytes: u64, memory_bytes: fn(&M) -> usize) -> Cache<M> {
    moka::future::Cache::builder()
        .max_capacity(max_bytes)
        .weigher(move |(_, location): &(WarehouseId, String), document: &Arc<Document<M>>| {
            let own = document.bytes.len() + memory_bytes(&document.metadata);
            u32::try_from(own + location.len() + ENTRY_BYTES).unwrap_or(u32::MAX)
        })
        .build()
}

/// Told by the magic number rather than the name, for files that come from elsewhere. Some writers append members.
fn gunzip(stored: Bytes) -> Result<Bytes> {
    if !stored.starts_with(GZIP_MAGIC) {
        return Ok(stored);
    }
    let mut plain = Vec::new();
    let mut limited = MultiGzDecoder::new(&stored[..]).take(DOCUMENT_MAX_BYTES + 1);
    limited.read_to_end(&mut plain).map_err(|error| Error::invalid("it is not whole gzip").with_source(error))?;
    match plain.len() as u64 > DOCUMENT_MAX_BYTES {
        true => Err(Error::invalid(format!("it holds more than {DOCUMENT_MAX_BYTES} bytes"))),
        false => Ok(plain.into()),
    }
}

fn gzip(plain: &Bytes) -> Bytes {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("a vector takes all bytes").into()
}
