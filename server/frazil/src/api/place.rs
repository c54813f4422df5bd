//! Where a request points to: the warehouse, namespace, table or view of its path.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use catalog::context::RequestContext;
use catalog::error::{Error, Kind};
use catalog::ident::{NamespaceIdent, TableIdent};
use catalog::warehouses::Warehouse;

use crate::api::Api;
use crate::api::error::{ApiError, Result};
use crate::api::names::{Reading, decode, decode_namespace, parents, readings};
use crate::api::request::context;

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
    pub namespace: AtNamespace,
    pub name: String,
}

/// The namespace that `?parent=` names; `None` is the top.
pub struct Parent(pub Option<NamespaceIdent>);

/// The path's parameters as they came, still encoded.
struct Raw(RawPathParams);

impl Raw {
    async fn of(parts: &mut Parts, api: &Api) -> Result<Self> {
        let unreadable = |_| ApiError::from(Error::invalid("the path has no readable parameters"));
        RawPathParams::from_request_parts(parts, api).await.map(Self).map_err(unreadable)
    }

    fn part(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }

    async fn warehouse(&self, api: &Api) -> Result<Arc<Warehouse>> {
        let prefix = decode(self.part("prefix"), Reading::Uri)?;
        Ok(api.catalog.warehouses.get(&prefix).await?)
    }

    fn tabulars(&self, name: &str) -> Result<Vec<TableIdent>> {
        let (namespace, name) = (self.part("namespace"), self.part(name));
        let ident = |reading: &Reading| {
            let namespace = decode_namespace(namespace, *reading)?;
            Ok(TableIdent::new(namespace, decode(name, *reading)?))
        };
        readings(&[namespace, name]).iter().map(ident).collect()
    }
}

impl FromRequestParts<Api> for InWarehouse {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        Raw::of(parts, api).await?.warehouse(api).await.map(Self)
    }
}

impl FromRequestParts<Api> for AtNamespace {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let raw = Raw::of(parts, api).await?;
        let (warehouse, encoded) = (raw.warehouse(api).await?, raw.part("namespace"));
        let read = |reading: &Reading| decode_namespace(encoded, *reading);
        let meant = readings(&[encoded]).iter().map(read).collect::<catalog::error::Result<_>>()?;
        let namespace = existing_namespace(api, &context(parts, api), &warehouse, meant).await?;
        Ok(Self { warehouse, namespace })
    }
}

impl FromRequestParts<Api> for AtTable {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let raw = Raw::of(parts, api).await?;
        let (warehouse, meant) = (raw.warehouse(api).await?, raw.tabulars("table")?);
        let ctx = context(parts, api);
        let exists = async |ident: &TableIdent| api.catalog.tables.exists(&ctx, &warehouse, ident).await;
        let ident = first_existing(meant, Kind::NoSuchTable, exists).await?;
        Ok(Self { warehouse, ident })
    }
}

impl FromRequestParts<Api> for AtView {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let raw = Raw::of(parts, api).await?;
        let (warehouse, meant) = (raw.warehouse(api).await?, raw.tabulars("view")?);
        let ctx = context(parts, api);
        let exists = async |ident: &TableIdent| api.catalog.views.exists(&ctx, &warehouse, ident).await;
        let ident = first_existing(meant, Kind::NoSuchView, exists).await?;
        Ok(Self { warehouse, ident })
    }
}

impl FromRequestParts<Api> for AtFunction {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let namespace = AtNamespace::from_request_parts(parts, api).await?;
        let raw = Raw::of(parts, api).await?;
        Ok(Self { namespace, name: decode(raw.part("function"), Reading::Uri)? })
    }
}

impl FromRequestParts<Api> for Parent {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let Some(meant) = parents(parts.uri.query().unwrap_or_default())? else { return Ok(Self(None)) };
        let warehouse = Raw::of(parts, api).await?.warehouse(api).await?;
        existing_namespace(api, &context(parts, api), &warehouse, meant).await.map(|parent| Self(Some(parent)))
    }
}

async fn existing_namespace(
    api: &Api,
    ctx: &RequestContext,
    warehouse: &Warehouse,
    meant: Vec<NamespaceIdent>,
) -> Result<NamespaceIdent> {
    let exists = async |ident: &NamespaceIdent| api.catalog.namespaces.get(ctx, warehouse, ident).await.map(|_| ());
    first_existing(meant, Kind::NoSuchNamespace, exists).await
}

/// The first of the names that exists, else the last one. A name that can be read in one way only is not looked up.
async fn first_existing<T>(
    meant: Vec<T>,
    missing: Kind,
    exists: impl AsyncFn(&T) -> catalog::error::Result<()>,
) -> Result<T> {
    let mut meant = meant.into_iter();
    let mut name = meant.next().expect("a path can be read in at least one way");
    for next in meant {
        match exists(&name).await {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == missing => name = next,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(name)
}
