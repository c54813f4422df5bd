//! Where a request points to: the warehouse, namespace, table or view of its path.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use catalog::commits::log::Wanted;
use catalog::context::RequestContext;
use catalog::error::{Error, Kind};
use catalog::ident::encoded::{Reading, decode, decode_namespace, parents, readings};
use catalog::ident::{NamespaceIdent, TableIdent};
use catalog::warehouses::Warehouse;
use uuid::Uuid;

use crate::api::error::{ApiError, Result};
use crate::api::request::context;
use crate::api::{Api, edge};

/// The warehouse that the prefix names.
pub struct InWarehouse(pub Arc<Warehouse>);

/// A namespace of the path.
pub struct AtNamespace {
    pub warehouse: Arc<Warehouse>,
    pub namespace: NamespaceIdent,
}

/// A table of the path, which may not exist.
pub struct AtTable {
    pub warehouse: Arc<Warehouse>,
    pub ident: TableIdent,
}

/// A view of the path, which may not exist.
pub struct AtView {
    pub warehouse: Arc<Warehouse>,
    pub ident: TableIdent,
}

/// A function of the path. None exists yet.
pub struct AtFunction {
    pub warehouse: Arc<Warehouse>,
    pub namespace: NamespaceIdent,
    pub name: String,
}

/// A writer of a table of the path; neither need exist.
pub struct AtWriter {
    pub warehouse: Arc<Warehouse>,
    pub ident: TableIdent,
    pub id: String,
}

/// A request to a table of the path, named by what its client knows of it.
pub struct AtAttempt {
    pub warehouse: Arc<Warehouse>,
    pub ident: TableIdent,
    pub wanted: Wanted,
}

/// The name of a warehouse in the path, which may not exist.
pub struct AtWarehouse(pub String);

/// The namespace that `?parent=` names; `None` is the top.
pub struct Parent(pub Option<NamespaceIdent>);

/// The path as it came, still encoded, beside the route that it matched. What axum hands out is decoded already.
struct Raw<'a> {
    route: &'a str,
    path: &'a str,
}

impl<'a> Raw<'a> {
    fn of(parts: &'a Parts) -> Self {
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        Self { route, path: parts.uri.path() }
    }

    /// The segment at the place of `{name}` in the route.
    fn part(&self, name: &str) -> &'a str {
        let is_it = |segment: &str| segment.strip_prefix('{').and_then(|it| it.strip_suffix('}')) == Some(name);
        let place = self.route.split('/').position(is_it);
        place.and_then(|place| self.path.split('/').nth(place)).unwrap_or("")
    }

    async fn warehouse(&self, api: &Api) -> Result<Arc<Warehouse>> {
        let prefix = decode(self.part("prefix"), Reading::Uri)?;
        let warehouse = api.catalog.warehouses.get(&prefix).await?;
        edge::tell_warehouse(warehouse.name.as_str());
        Ok(warehouse)
    }

    fn namespaces(&self) -> catalog::error::Result<Vec<NamespaceIdent>> {
        let namespace = self.part("namespace");
        readings(&[namespace]).iter().map(|reading| decode_namespace(namespace, *reading)).collect()
    }

    fn tabulars(&self, name: &str) -> catalog::error::Result<Vec<TableIdent>> {
        let (namespace, name) = (self.part("namespace"), self.part(name));
        let ident = |reading: &Reading| {
            let namespace = decode_namespace(namespace, *reading)?;
            Ok(TableIdent::new(namespace, decode(name, *reading)?))
        };
        readings(&[namespace, name]).iter().map(ident).collect()
    }
}

/// The warehouse that the path of a request names, known or not; `None` where it names none.
pub fn warehouse_name(request: &Request) -> Option<String> {
    let route = request.extensions().get::<MatchedPath>()?.as_str();
    let name = Raw { route, path: request.uri().path() }.part("prefix");
    decode(name, Reading::Uri).ok().filter(|name| !name.is_empty())
}

/// Finds which of the names that a path may mean is there.
struct LookUp<'a> {
    api: &'a Api,
    ctx: RequestContext,
    warehouse: Arc<Warehouse>,
}

impl<'a> LookUp<'a> {
    async fn of(parts: &Parts, raw: &Raw<'_>, api: &'a Api) -> Result<Self> {
        Ok(Self { api, ctx: context(parts, api), warehouse: raw.warehouse(api).await? })
    }

    /// The first name that exists, else the last one. What can be read in one way only is not looked up.
    async fn namespace(&self, mut meant: Vec<NamespaceIdent>) -> Result<NamespaceIdent> {
        let last = pop(&mut meant);
        for ident in meant {
            let found = self.api.catalog.namespaces.get(&self.ctx, &self.warehouse, &ident).await;
            if exists(found, Kind::NoSuchNamespace)? {
                return Ok(ident);
            }
        }
        Ok(last)
    }

    /// As [`Self::namespace`].
    async fn table(&self, mut meant: Vec<TableIdent>) -> Result<TableIdent> {
        let last = pop(&mut meant);
        for ident in meant {
            let found = self.api.catalog.tables.exists(&self.ctx, &self.warehouse, &ident).await;
            if exists(found, Kind::NoSuchTable)? {
                return Ok(ident);
            }
        }
        Ok(last)
    }

    /// As [`Self::namespace`].
    async fn view(&self, mut meant: Vec<TableIdent>) -> Result<TableIdent> {
        let last = pop(&mut meant);
        for ident in meant {
            let found = self.api.catalog.views.exists(&self.ctx, &self.warehouse, &ident).await;
            if exists(found, Kind::NoSuchView)? {
                return Ok(ident);
            }
        }
        Ok(last)
    }
}

fn tell(ident: &TableIdent) {
    edge::tell_namespace(&ident.namespace);
    edge::tell_table(&ident.name);
}

fn pop<T>(meant: &mut Vec<T>) -> T {
    meant.pop().expect("a path can be read in at least one way")
}

fn exists<T>(found: catalog::error::Result<T>, missing: Kind) -> Result<bool> {
    match found {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == missing => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl FromRequestParts<Api> for InWarehouse {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        Raw::of(parts).warehouse(api).await.map(Self)
    }
}

impl FromRequestParts<Api> for AtWarehouse {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<Self> {
        let name = decode(Raw::of(parts).part("warehouse"), Reading::Uri)?;
        edge::tell_warehouse(&name);
        Ok(Self(name))
    }
}

impl FromRequestParts<Api> for AtNamespace {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let raw = Raw::of(parts);
        let look_up = LookUp::of(parts, &raw, api).await?;
        let namespace = look_up.namespace(raw.namespaces()?).await?;
        edge::tell_namespace(&namespace);
        Ok(Self { warehouse: look_up.warehouse, namespace })
    }
}

impl FromRequestParts<Api> for AtTable {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let raw = Raw::of(parts);
        let look_up = LookUp::of(parts, &raw, api).await?;
        let ident = look_up.table(raw.tabulars("table")?).await?;
        tell(&ident);
        Ok(Self { warehouse: look_up.warehouse, ident })
    }
}

impl FromRequestParts<Api> for AtView {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let raw = Raw::of(parts);
        let look_up = LookUp::of(parts, &raw, api).await?;
        let ident = look_up.view(raw.tabulars("view")?).await?;
        tell(&ident);
        Ok(Self { warehouse: look_up.warehouse, ident })
    }
}

impl FromRequestParts<Api> for AtFunction {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let AtNamespace { warehouse, namespace } = AtNamespace::from_request_parts(parts, api).await?;
        let name = decode(Raw::of(parts).part("function"), Reading::Uri)?;
        Ok(Self { warehouse, namespace, name })
    }
}

impl FromRequestParts<Api> for AtWriter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let AtTable { warehouse, ident } = AtTable::from_request_parts(parts, api).await?;
        let id = decode(Raw::of(parts).part("writer"), Reading::Uri)?;
        Ok(Self { warehouse, ident, id })
    }
}

impl FromRequestParts<Api> for AtAttempt {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let AtTable { warehouse, ident } = AtTable::from_request_parts(parts, api).await?;
        let wanted = wanted(&decode(Raw::of(parts).part("attempt"), Reading::Uri)?)?;
        Ok(Self { warehouse, ident, wanted })
    }
}

/// A key is a UUID, a snapshot id an integer.
fn wanted(attempt: &str) -> catalog::error::Result<Wanted> {
    let snapshot = || attempt.parse().map(Wanted::Snapshot).ok();
    let key = || Uuid::try_parse(attempt).map(Wanted::Key).ok();
    let message = "an attempt is named by its Idempotency-Key, a UUID, or by the id of its snapshot, an integer";
    snapshot().or_else(key).ok_or_else(|| Error::invalid(message))
}

impl FromRequestParts<Api> for Parent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let Some(meant) = parents(parts.uri.query().unwrap_or_default())? else {
            return Ok(Self(None));
        };
        let raw = Raw::of(parts);
        let parent = LookUp::of(parts, &raw, api).await?.namespace(meant).await?;
        Ok(Self(Some(parent)))
    }
}
