//! Views: made, loaded, replaced, renamed, registered and dropped, in one name space with tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::commits::store::{News, PointerChange, Target};
use crate::context::RequestContext;
use crate::documents::{Documents, ViewDocument};
use crate::error::{Error, Kind, Result};
use crate::files::FileError;
use crate::idempotency::{Answer, Answered};
use crate::ident::{NamespaceIdent, TableIdent, TabularId};
use crate::listing::{Listing, PageRequest};
use crate::location::Location;
use crate::namespaces::check_part;
use crate::namespaces::store::NamespaceStore;
use crate::store::Store;
use crate::tables::{LoadOutcome, Loaded, SnapshotMode, applied_unread, etag, own_location};
use crate::tabulars::{Plan, Pointer, TabularKind, Tabulars};
use crate::view_metadata::{self, NewView, ViewMetadata, ViewRequirement, ViewUpdate};
use crate::warehouses::Warehouse;

/// A view to be made; schema and version as the client sent them.
#[derive(Debug, Clone)]
pub struct CreateView {
    pub ident: TableIdent,
    pub location: Option<String>,
    pub schema: Box<RawValue>,
    pub view_version: Box<RawValue>,
    pub properties: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub struct RegisterView {
    pub ident: TableIdent,
    pub metadata_location: String,
}

/// A commit to a view.
#[derive(Debug, Clone, Deserialize)]
pub struct ReplaceView {
    /// None where it is null or left out.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub requirements: Vec<ViewRequirement>,
    pub updates: Vec<ViewUpdate>,
}

impl ReplaceView {
    pub fn parse(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body)
            .map_err(|error| Error::invalid(format!("the body is not a view's commit: {error}")).with_source(error))
    }
}

fn null_as_empty<'de, D: Deserializer<'de>>(requirements: D) -> std::result::Result<Vec<ViewRequirement>, D::Error> {
    Option::deserialize(requirements).map(Option::unwrap_or_default)
}

#[derive(Clone)]
pub struct Views {
    tabulars: Tabulars,
    namespaces: Arc<dyn NamespaceStore>,
    documents: Documents,
}

impl Views {
    pub fn new(store: Arc<dyn Store>, tabulars: Tabulars, documents: Documents) -> Self {
        Self { tabulars, namespaces: store, documents }
    }

    pub async fn list(
        &self,
        _ctx: &RequestContext,
        warehouse: &Warehouse,
        namespace: &NamespaceIdent,
        page: &PageRequest,
    ) -> Result<Listing<TableIdent>> {
        self.tabulars.list(warehouse, TabularKind::View, namespace, page).await
    }

    pub async fn exists(&self, _ctx: &RequestContext, warehouse: &Warehouse, ident: &TableIdent) -> Result<()> {
        self.pointer(warehouse, ident).await.map(|_| ())
    }

    /// The view as it is now, or word that one of `if_none_match` (without quotes) still stands.
    pub async fn load(
        &self,
        _ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: &TableIdent,
        if_none_match: &[String],
    ) -> Result<LoadOutcome> {
        let pointer = self.pointer(warehouse, ident).await?;
        let etag = etag(pointer.uuid, &pointer.metadata_location, SnapshotMode::All, &BTreeMap::new());
        if if_none_match.contains(&etag) {
            return Ok(LoadOutcome::NotModified { etag });
        }
        Ok(LoadOutcome::Loaded(self.at(warehouse, pointer.metadata_location).await?))
    }

    pub async fn create(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        request: CreateView,
    ) -> Result<Loaded> {
        check_part("name", &request.ident.name)?;
        let ident = request.ident.clone();
        let changed = self.tabulars.change(ctx, warehouse, (self.clone(), request), |(this, request), ctx, home| {
            this.plan_create(ctx, home, request).boxed()
        });
        self.answered(warehouse, &ident, changed.await?).await
    }

    /// Commits to a view: requirements first, then all updates or none.
    pub async fn replace(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        ident: TableIdent,
        request: ReplaceView,
    ) -> Result<Loaded> {
        let wanted = (self.clone(), ident.clone(), request);
        let changed = self.tabulars.change(ctx, warehouse, wanted, |(this, ident, request), ctx, home| {
            this.plan_replace(ctx, home, ident, request).boxed()
        });
        self.answered(warehouse, &ident, changed.await?).await
    }

    pub async fn register(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        request: RegisterView,
    ) -> Result<Loaded> {
        check_part("name", &request.ident.name)?;
        let ident = request.ident.clone();
        let changed = self.tabulars.change(ctx, warehouse, (self.clone(), request), |(this, request), ctx, home| {
            this.plan_register(ctx, home, request).boxed()
        });
        self.answered(warehouse, &ident, changed.await?).await
    }

    pub async fn rename(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        from: TableIdent,
        to: TableIdent,
    ) -> Result<()> {
        self.tabulars.rename(ctx, warehouse, TabularKind::View, (from, to)).await
    }

    pub async fn drop(&self, ctx: &RequestContext, warehouse: &Arc<Warehouse>, ident: TableIdent) -> Result<()> {
        let dropped = self.tabulars.change(ctx, warehouse, (self.clone(), ident), |(this, ident), _, home| {
            let plan = async move {
                let from = this.pointer(home, ident).await?;
                Ok(Plan::new(ident, PointerChange::Drop { from }, Answer::Empty))
            };
            plan.boxed()
        });
        dropped.await.map(|_| ())
    }

    async fn plan_create(&self, ctx: &RequestContext, warehouse: &Warehouse, request: &CreateView) -> Result<Plan> {
        let namespace = self.free_name(warehouse, &request.ident).await?;
        let uuid = ctx.new_id();
        let location = match &request.location {
            Some(location) => location.clone(),
            None => own_location(warehouse, &namespace, &request.ident.name, uuid),
        };
        let metadata = view_metadata::create(NewView {
            uuid,
            location: &location,
            schema: &request.schema,
            view_version: &request.view_version,
            properties: request.properties.clone(),
            now_ms: ctx.now_ms(),
        })?;
        let target = self.write(ctx, warehouse, metadata, None).await?;
        Ok(made(ctx, &request.ident, target))
    }

    async fn plan_replace(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        ident: &TableIdent,
        request: &ReplaceView,
    ) -> Result<Plan> {
        let from = self.pointer(warehouse, ident).await?;
        let base = self.documents.view(warehouse, &from.metadata_location).await?;
        request.requirements.iter().try_for_each(|requirement| requirement.check(&base.metadata))?;
        let applied = view_metadata::apply(&base.metadata, &request.updates, ctx.now_ms())?;
        if !applied.changed {
            return Ok(Plan::unchanged(ident, &from));
        }
        let target = self.write(ctx, warehouse, applied.metadata, Some(&from)).await?;
        let (answer, written) = (target.answer(), target.metadata_location.clone());
        let change = PointerChange::Move { from, target, news: News::default() };
        Ok(Plan { written: Some(written), ..Plan::new(ident, change, answer) })
    }

    async fn plan_register(&self, ctx: &RequestContext, warehouse: &Warehouse, request: &RegisterView) -> Result<Plan> {
        self.free_name(warehouse, &request.ident).await?;
        warehouse.place.check(&Location::parse(&request.metadata_location)?)?;
        let document = self.documents.view_anew(warehouse, &request.metadata_location).await?;
        let location = Location::parse(document.metadata.location())?;
        warehouse.place.check(&location)?;
        let target = Target {
            uuid: document.metadata.uuid(),
            location: location.canonical(),
            metadata_location: request.metadata_location.clone(),
        };
        // The file is the client's own: it stays whatever becomes of the register.
        Ok(Plan { written: None, ..made(ctx, &request.ident, target) })
    }

    /// Writes the metadata to a new file below a location that the view may have.
    async fn write(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        metadata: ViewMetadata,
        from: Option<&Pointer>,
    ) -> Result<Target> {
        let location = Location::parse(metadata.location())?;
        warehouse.place.check(&location)?;
        let previous = from.map(|from| from.metadata_location.as_str());
        let target = Target {
            uuid: metadata.uuid(),
            location: location.canonical(),
            metadata_location: view_metadata::next_metadata_location(&metadata, previous, ctx.new_id()),
        };
        let document = Arc::new(ViewDocument::encoded(metadata));
        self.documents.write_new(warehouse, &target.metadata_location, &document).await?;
        self.documents.remember_view(warehouse, target.metadata_location.clone(), document).await;
        Ok(target)
    }

    /// The properties of the namespace that a new view goes into, where the name is free.
    async fn free_name(&self, warehouse: &Warehouse, ident: &TableIdent) -> Result<BTreeMap<String, String>> {
        let namespace = self.namespaces.namespace(warehouse.id, &ident.namespace).await?;
        let namespace = namespace.ok_or_else(|| crate::namespaces::missing(&ident.namespace))?;
        match self.tabulars.find(warehouse, ident).await? {
            Some(taken) => Err(taken.kind.taken(TabularKind::View, ident)),
            None => Ok(namespace.properties),
        }
    }

    async fn pointer(&self, warehouse: &Warehouse, ident: &TableIdent) -> Result<Pointer> {
        self.tabulars.pointer(warehouse, TabularKind::View, ident).await
    }

    /// A mutation's answer as a response. A replay tells what is there now; what was there then, if it is gone.
    async fn answered(&self, warehouse: &Warehouse, ident: &TableIdent, answered: Answered) -> Result<Loaded> {
        let Answer::Document { uuid, metadata_location } = answered.answer else {
            return Err(Error::new(Kind::Internal, "a kept answer is not of this operation"));
        };
        let now = match answered.replayed {
            true => self.tabulars.find(warehouse, ident).await?.filter(|now| now.uuid == uuid),
            false => None,
        };
        let location = now.map_or(metadata_location, |now| now.metadata_location);
        self.at(warehouse, location).await.map_err(applied_unread)
    }

    async fn at(&self, warehouse: &Warehouse, metadata_location: String) -> Result<Loaded, FileError> {
        let document = self.documents.view(warehouse, &metadata_location).await?;
        Ok(Loaded {
            etag: Some(etag(document.metadata.uuid(), &metadata_location, SnapshotMode::All, &BTreeMap::new())),
            metadata_location: Some(metadata_location),
            metadata: document.bytes.clone(),
            config: BTreeMap::new(),
        })
    }
}

fn made(ctx: &RequestContext, ident: &TableIdent, target: Target) -> Plan {
    let (answer, written) = (target.answer(), target.metadata_location.clone());
    let (id, kind, news) = (TabularId(ctx.new_id()), TabularKind::View, News::default());
    let change = PointerChange::Create { id, ident: ident.clone(), kind, target, news };
    Plan { written: Some(written), ..Plan::new(ident, change, answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_may_have_no_requirements_in_three_ways() {
        for requirements in ["", r#""requirements":null,"#, r#""requirements":[],"#] {
            let request = ReplaceView::parse(format!(r#"{{{requirements}"updates":[]}}"#).as_bytes()).unwrap();
            assert!(request.requirements.is_empty(), "{requirements}");
        }
        assert!(ReplaceView::parse(br#"{"requirements":{},"updates":[]}"#).is_err());
        assert!(ReplaceView::parse(br#"{"requirements":[["assert-view-uuid","x"]],"updates":[]}"#).is_err());
    }
}
