//! Tables: made, loaded, listed, renamed, registered and dropped. What changes one is a commit.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::commits::store::{CommitStore, PointerChange};
use crate::commits::swap::location_taken;
use crate::context::RequestContext;
use crate::documents::{Documents, TableDocument};
use crate::error::{Error, Kind, Result};
use crate::files::{FileError, Files};
use crate::idempotency::{Answer, Answered};
use crate::ident::{NamespaceIdent, PurgeId, TableIdent, TabularId};
use crate::listing::{Listing, PageRequest};
use crate::location::Location;
use crate::namespaces::store::NamespaceStore;
use crate::purge::store::PurgeStore;
use crate::purge::{PurgeTarget, PurgeTask};
use crate::store::Store;
use crate::tabulars::{Plan, Pointer, TabularKind, Tabulars};
use crate::warehouses::Warehouse;

mod create;
mod register;

pub use create::CreateTable;
pub(crate) use create::own_location;
pub use register::RegisterTable;

/// Which snapshots a load tells of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SnapshotMode {
    #[default]
    All,
    /// Only those that a branch or tag names.
    Refs,
}

/// A table or view as it is sent: the bytes of its metadata document are those of its file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// `None` for a staged table.
    pub metadata_location: Option<String>,
    /// Without quotes; `None` for a staged table.
    pub etag: Option<String>,
    pub metadata: Bytes,
    pub config: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub enum LoadOutcome {
    NotModified { etag: String },
    Loaded(Loaded),
}

#[derive(Clone)]
pub struct Tables {
    tabulars: Tabulars,
    namespaces: Arc<dyn NamespaceStore>,
    commits: Arc<dyn CommitStore>,
    purges: Arc<dyn PurgeStore>,
    pub(crate) documents: Documents,
    pub(crate) files: Arc<Files>,
}

impl Tables {
    pub fn new(store: Arc<dyn Store>, tabulars: Tabulars, documents: Documents, files: Arc<Files>) -> Self {
        Self { tabulars, namespaces: store.clone(), commits: store.clone(), purges: store, documents, files }
    }

    pub async fn list(
        &self,
        _ctx: &RequestContext,
        warehouse: &Warehouse,
        namespace: &NamespaceIdent,
        page: &PageRequest,
    ) -> Result<Listing<TableIdent>> {
        self.tabulars.list(warehouse, TabularKind::Table, namespace, page).await
    }

    pub async fn exists(&self, _ctx: &RequestContext, warehouse: &Warehouse, ident: &TableIdent) -> Result<()> {
        self.pointer(warehouse, ident).await.map(|_| ())
    }

    /// The table as it is now, or word that one of `if_none_match` (without quotes) still stands.
    pub async fn load(
        &self,
        _ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: &TableIdent,
        mode: SnapshotMode,
        if_none_match: &[String],
    ) -> Result<LoadOutcome> {
        let pointer = self.standing_pointer(warehouse, ident).await?;
        let etag = etag(pointer.uuid, &pointer.metadata_location, mode, &warehouse.table_config());
        if if_none_match.contains(&etag) {
            return Ok(LoadOutcome::NotModified { etag });
        }
        let (location, document) = self.current_document(warehouse, ident, pointer).await?;
        Ok(LoadOutcome::Loaded(loaded(warehouse, location, &document, mode)))
    }

    pub async fn rename(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        from: TableIdent,
        to: TableIdent,
    ) -> Result<()> {
        self.tabulars.rename(ctx, warehouse, TabularKind::Table, (from, to)).await
    }

    pub async fn drop(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: TableIdent,
        purge: bool,
    ) -> Result<()> {
        let dropped = self.tabulars.change(ctx, warehouse, (self.clone(), ident), move |(this, ident), ctx, home| {
            this.plan_drop(ctx, home, ident, purge).boxed()
        });
        dropped.await.map(|_| ())
    }

    /// Takes the table out of the catalog and leaves all its files; answers with its last metadata.
    pub async fn unregister(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: TableIdent,
    ) -> Result<Loaded> {
        let wanted = (self.clone(), ident.clone());
        let dropped = self
            .tabulars
            .change(ctx, warehouse, wanted, |(this, ident), _, home| this.plan_unregister(home, ident).boxed());
        self.answered(warehouse, &ident, dropped.await?).await
    }

    async fn plan_drop(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        ident: &TableIdent,
        purge: bool,
    ) -> Result<Plan> {
        let from = self.pointer(warehouse, ident).await?;
        let purges = match purge {
            true => vec![self.purge_task(ctx, warehouse, &from).await?],
            false => Vec::new(),
        };
        Ok(Plan { purges, ..Plan::new(ident, PointerChange::Drop { from }, Answer::Empty) })
    }

    async fn plan_unregister(&self, warehouse: &Warehouse, ident: &TableIdent) -> Result<Plan> {
        let from = self.pointer(warehouse, ident).await?;
        // What the answer tells must be readable before the pointer goes.
        self.documents.table(warehouse, &from.metadata_location).await?;
        let answer = from.answer();
        Ok(Plan::new(ident, PointerChange::Drop { from }, answer))
    }

    /// A location that a table may be given: inside the warehouse, and no other table's.
    pub(crate) async fn check_location(
        &self,
        warehouse: &Warehouse,
        location: &Location,
        except: Option<TabularId>,
    ) -> Result<()> {
        warehouse.place.check(location)?;
        if std::iter::once(&warehouse.place.root).chain(&warehouse.place.allowed).any(|place| place == location) {
            return Err(Error::invalid(format!(
                "location {location} is a place for many tables: choose a folder below it"
            )));
        }
        match self.commits.location_owner(warehouse.id, location, except).await? {
            Some((owner, taken)) => Err(location_taken(&owner, &taken)),
            None => Ok(()),
        }
    }

    /// A mutation's answer as a response. A replay tells what is there now; what was there then, if it is gone.
    pub(crate) async fn answered(
        &self,
        warehouse: &Arc<Warehouse>,
        ident: &TableIdent,
        answered: Answered,
    ) -> Result<Loaded> {
        let Answer::Document { uuid, metadata_location } = answered.answer else {
            return Err(Error::new(Kind::Internal, "a kept answer is not of this operation"));
        };
        if answered.replayed
            && let Some(now) = self.tabulars.find(warehouse, ident).await?.filter(|now| now.uuid == uuid)
        {
            let (location, document) = self.current_document(warehouse, ident, now).await?;
            return Ok(loaded(warehouse, location, &document, SnapshotMode::All));
        }
        match self.documents.table(warehouse, &metadata_location).await {
            Ok(document) => Ok(loaded(warehouse, metadata_location, &document, SnapshotMode::All)),
            Err(FileError::Missing { .. }) if answered.replayed => Err(Error::unprocessable(format!(
                "this request succeeded before, and {ident} was purged since: send a new request with a new key"
            ))),
            Err(error) => Err(applied_unread(error)),
        }
    }

    /// The pointer of a table; a view of that name is no table.
    pub(crate) async fn pointer(&self, warehouse: &Warehouse, ident: &TableIdent) -> Result<Pointer> {
        self.tabulars.pointer(warehouse, TabularKind::Table, ident).await
    }

    /// The pointer, unless its file is known to be gone: then nothing kept in memory may hide that.
    async fn standing_pointer(&self, warehouse: &Warehouse, ident: &TableIdent) -> Result<Pointer> {
        let pointer = self.pointer(warehouse, ident).await?;
        if !self.documents.is_lost(warehouse, &pointer.metadata_location).await {
            return Ok(pointer);
        }
        let again = self.pointer(warehouse, ident).await?;
        match self.documents.is_lost(warehouse, &again.metadata_location).await {
            true => Err(FileError::Missing { location: again.metadata_location }.into()),
            false => Ok(again),
        }
    }

    /// A file that is gone may have been replaced since the pointer was read: look twice before saying so.
    async fn current_document(
        &self,
        warehouse: &Arc<Warehouse>,
        ident: &TableIdent,
        pointer: Pointer,
    ) -> Result<(String, Arc<TableDocument>)> {
        match self.documents.table(warehouse, &pointer.metadata_location).await {
            Ok(document) => Ok((pointer.metadata_location, document)),
            Err(FileError::Missing { .. }) => {
                let again = self.pointer(warehouse, ident).await?;
                let document = self.documents.table(warehouse, &again.metadata_location).await?;
                Ok((again.metadata_location, document))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Without its metadata a table has nothing that could be found and deleted, or that could forbid it.
    async fn purge_task(&self, ctx: &RequestContext, warehouse: &Warehouse, from: &Pointer) -> Result<PurgeTask> {
        match self.documents.table(warehouse, &from.metadata_location).await {
            Ok(document) if forbids_gc(&document) => Err(Error::invalid(
                "cannot purge: the table's property gc.enabled is not true; drop it without purge, or set the property",
            )),
            Ok(_) | Err(FileError::Missing { .. }) => Ok(PurgeTask {
                id: PurgeId(ctx.new_id()),
                warehouse: warehouse.id,
                target: PurgeTarget::Table {
                    location: from.location.clone(),
                    metadata_location: from.metadata_location.clone(),
                },
                not_before_ms: ctx.now_ms(),
            }),
            Err(error) => Err(error.into()),
        }
    }
}

/// No refusal may follow what is applied: clients would delete its files.
pub(crate) fn applied_unread(error: FileError) -> Error {
    Error::new(Kind::StateUnknown, "the change is applied, and its metadata cannot be read now: load it again")
        .with_source(error)
}

/// As Java reads it: everything but "true", in any case, is false.
fn forbids_gc(document: &TableDocument) -> bool {
    document.metadata.property("gc.enabled").is_some_and(|enabled| !enabled.eq_ignore_ascii_case("true"))
}

fn loaded(warehouse: &Warehouse, metadata_location: String, document: &TableDocument, mode: SnapshotMode) -> Loaded {
    let config = warehouse.table_config();
    Loaded {
        etag: Some(etag(document.metadata.uuid(), &metadata_location, mode, &config)),
        metadata_location: Some(metadata_location),
        metadata: match mode {
            SnapshotMode::All => document.bytes.clone(),
            SnapshotMode::Refs => document.refs_only(),
        },
        config,
    }
}

/// Names one answer by all that shapes it: never by the version alone, for a table dropped and made again begins anew.
pub(crate) fn etag(
    uuid: Uuid,
    metadata_location: &str,
    mode: SnapshotMode,
    config: &BTreeMap<String, String>,
) -> String {
    let mode = match mode {
        SnapshotMode::All => "all",
        SnapshotMode::Refs => "refs",
    };
    let mut digest = Sha256::new()
        .chain_update(uuid.as_bytes())
        .chain_update(metadata_location)
        .chain_update([0])
        .chain_update(mode);
    for text in config.iter().flat_map(|(key, value)| [key, value]) {
        // None of them holds a NUL.
        digest = digest.chain_update([0]).chain_update(text);
    }
    digest.finalize()[..16].iter().fold(String::new(), |mut tag, byte| {
        write!(tag, "{byte:02x}").expect("writing to a string cannot fail");
        tag
    })
}
