//! Functions, of which a catalog has none yet.

use axum::Json;
use axum::extract::State;
use catalog::error::{Error, Kind};
use catalog::listing::PageRequest;

use crate::api::Api;
use crate::api::error::Result;
use crate::api::iceberg::wire::functions::{ListFunctionsResponse, LoadFunctionResult};
use crate::api::iceberg::wire::paging::Paging;
use crate::api::place::{AtFunction, AtNamespace};
use crate::api::request::{Caller, Query};

/// List the functions of a namespace: there are none.
#[utoipa::path(get, path = "/v1/{prefix}/namespaces/{namespace}/functions", tag = "functions", params(Paging),
    responses((status = 200, description = "The names of the functions", body = ListFunctionsResponse)))]
pub async fn list_functions(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Query(paging): Query<Paging>,
) -> Result<Json<ListFunctionsResponse>> {
    PageRequest::from(paging).probe()?;
    api.catalog.namespaces.get(&ctx, &warehouse, &namespace).await?;
    Ok(Json(ListFunctionsResponse::default()))
}

/// Load a function: it does not exist.
#[utoipa::path(get, path = "/v1/{prefix}/namespaces/{namespace}/functions/{function}", tag = "functions",
    responses((status = 200, description = "The function", body = LoadFunctionResult)))]
pub async fn load_function(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtFunction { warehouse, namespace, name }: AtFunction,
) -> Result<Json<LoadFunctionResult>> {
    api.catalog.namespaces.get(&ctx, &warehouse, &namespace).await?;
    Err(Error::new(Kind::NoSuchFunction, format!("Function does not exist: {namespace}.{name}")).into())
}
