//! Namespaces.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use catalog::namespaces::Namespace;

use crate::api::Api;
use crate::api::error::Result;
use crate::api::iceberg::wire::namespaces::{
    CreateNamespaceRequest, ListNamespacesResponse, NamespaceResponse, UpdateNamespacePropertiesRequest,
    UpdateNamespacePropertiesResponse,
};
use crate::api::iceberg::wire::paging::{Paging, ParentQuery};
use crate::api::place::{AtNamespace, InWarehouse, Parent};
use crate::api::request::{Caller, Mutation, NoBody, Query};

/// List the namespaces one level below a parent, or those at the top.
#[utoipa::path(get, path = "/v1/{prefix}/namespaces", tag = "namespaces", params(ParentQuery, Paging),
    responses((status = 200, description = "The namespaces, each with all its levels", body = ListNamespacesResponse)))]
pub async fn list_namespaces(
    State(api): State<Api>,
    Caller(ctx): Caller,
    InWarehouse(warehouse): InWarehouse,
    Parent(parent): Parent,
    Query(paging): Query<Paging>,
) -> Result<Json<ListNamespacesResponse>> {
    let listing = api.catalog.namespaces.list(&ctx, &warehouse, parent.as_ref(), &paging.into()).await?;
    Ok(Json(listing.into()))
}

/// Create a namespace. Its parent must exist.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces", tag = "namespaces", request_body = CreateNamespaceRequest,
    responses((status = 200, description = "The namespace as it was created", body = NamespaceResponse),
              (status = 409, description = "The namespace exists")))]
pub async fn create_namespace(
    State(api): State<Api>,
    InWarehouse(warehouse): InWarehouse,
    Mutation { ctx, body }: Mutation<CreateNamespaceRequest>,
) -> Result<Json<NamespaceResponse>> {
    let created = api.catalog.namespaces.create(&ctx, &warehouse, Namespace::try_from(body)?).await?;
    Ok(Json(created.into()))
}

/// Load the properties of a namespace.
#[utoipa::path(get, path = "/v1/{prefix}/namespaces/{namespace}", tag = "namespaces",
    responses((status = 200, description = "The namespace", body = NamespaceResponse)))]
pub async fn load_namespace_metadata(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtNamespace { warehouse, namespace }: AtNamespace,
) -> Result<Json<NamespaceResponse>> {
    Ok(Json(api.catalog.namespaces.get(&ctx, &warehouse, &namespace).await?.into()))
}

/// Tell whether a namespace exists.
#[utoipa::path(head, path = "/v1/{prefix}/namespaces/{namespace}", tag = "namespaces",
    responses((status = 204, description = "It exists")))]
pub async fn namespace_exists(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtNamespace { warehouse, namespace }: AtNamespace,
) -> Result<StatusCode> {
    api.catalog.namespaces.get(&ctx, &warehouse, &namespace).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Drop a namespace that holds nothing.
#[utoipa::path(delete, path = "/v1/{prefix}/namespaces/{namespace}", tag = "namespaces",
    responses((status = 204, description = "It is gone"),
              (status = 409, description = "It holds tables, views or namespaces")))]
pub async fn drop_namespace(
    State(api): State<Api>,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Mutation { ctx, body: NoBody }: Mutation<NoBody>,
) -> Result<StatusCode> {
    api.catalog.namespaces.drop(&ctx, &warehouse, namespace).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Set and remove properties of a namespace in one step.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/properties", tag = "namespaces",
    request_body = UpdateNamespacePropertiesRequest,
    responses((status = 200, description = "What was done, by key", body = UpdateNamespacePropertiesResponse),
              (status = 422, description = "A key is to be both set and removed")))]
pub async fn update_properties(
    State(api): State<Api>,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Mutation { ctx, body }: Mutation<UpdateNamespacePropertiesRequest>,
) -> Result<Json<UpdateNamespacePropertiesResponse>> {
    let changed = api.catalog.namespaces.update_properties(&ctx, &warehouse, namespace, body.into()).await?;
    Ok(Json(changed.into()))
}
