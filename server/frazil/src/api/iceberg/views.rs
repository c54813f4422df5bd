//! Views.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use catalog::views::ReplaceView;

use crate::api::answer::{IfNoneMatch, document};
use crate::api::error::Result;
use crate::api::iceberg::wire::paging::Paging;
use crate::api::iceberg::wire::tables::{ListTablesResponse, RenameTableRequest};
use crate::api::iceberg::wire::views::{CommitViewRequest, CreateViewRequest, LoadViewResult, RegisterViewRequest};
use crate::api::place::{AtNamespace, AtView, InWarehouse};
use crate::api::request::{Caller, Mutation, NoBody, Query};
use crate::api::{Api, edge};

/// List the views of a namespace.
#[utoipa::path(get, path = "/v1/{prefix}/namespaces/{namespace}/views", tag = "views", params(Paging),
    responses((status = 200, description = "The names of the views", body = ListTablesResponse)))]
pub async fn list_views(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Query(paging): Query<Paging>,
) -> Result<Json<ListTablesResponse>> {
    Ok(Json(api.catalog.views.list(&ctx, &warehouse, &namespace, &paging.into()).await?.into()))
}

/// Create a view.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/views", tag = "views",
    request_body = CreateViewRequest,
    responses((status = 200, description = "The view as it was made", body = LoadViewResult),
              (status = 409, description = "A table or view has the name")))]
pub async fn create_view(
    State(api): State<Api>,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Mutation { ctx, body }: Mutation<CreateViewRequest>,
) -> Result<Response> {
    let wanted = body.within(namespace);
    edge::tell_table(&wanted.ident.name);
    Ok(document(api.catalog.views.create(&ctx, &warehouse, wanted).await?))
}

/// Load a view, or learn that it is still the one that the client has.
#[utoipa::path(get, path = "/v1/{prefix}/namespaces/{namespace}/views/{view}", tag = "views",
    params(("If-None-Match" = Option<String>, Header, description = "The ETag of the answer before")),
    responses((status = 200, description = "The view", body = LoadViewResult,
               headers(("ETag" = String, description = "Names this answer"))),
              (status = 304, description = "It is still the one that the client has")))]
pub async fn load_view(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtView { warehouse, ident }: AtView,
    known: IfNoneMatch,
) -> Result<Response> {
    Ok(known.answer(api.catalog.views.load(&ctx, &warehouse, &ident, &known.tags).await?))
}

/// Tell whether a view exists.
#[utoipa::path(head, path = "/v1/{prefix}/namespaces/{namespace}/views/{view}", tag = "views",
    responses((status = 204, description = "It exists")))]
pub async fn view_exists(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtView { warehouse, ident }: AtView,
) -> Result<StatusCode> {
    api.catalog.views.exists(&ctx, &warehouse, &ident).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Commit to a view. The path names the view, whatever the body says.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/views/{view}", tag = "views",
    request_body = CommitViewRequest,
    responses((status = 200, description = "The view as it is now", body = LoadViewResult),
              (status = 409, description = "A requirement does not hold: load the view, and commit anew")))]
pub async fn replace_view(
    State(api): State<Api>,
    AtView { warehouse, ident }: AtView,
    Mutation { ctx, body }: Mutation<ReplaceView>,
) -> Result<Response> {
    Ok(document(api.catalog.views.replace(&ctx, &warehouse, ident, body).await?))
}

/// Drop a view.
#[utoipa::path(delete, path = "/v1/{prefix}/namespaces/{namespace}/views/{view}", tag = "views",
    responses((status = 204, description = "It is gone")))]
pub async fn drop_view(
    State(api): State<Api>,
    AtView { warehouse, ident }: AtView,
    Mutation { ctx, body: NoBody }: Mutation<NoBody>,
) -> Result<StatusCode> {
    api.catalog.views.drop(&ctx, &warehouse, ident).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a view into the catalog, as its metadata file says it is.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/register-view", tag = "views",
    request_body = RegisterViewRequest,
    responses((status = 200, description = "The view", body = LoadViewResult),
              (status = 409, description = "A table or view has the name")))]
pub async fn register_view(
    State(api): State<Api>,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Mutation { ctx, body }: Mutation<RegisterViewRequest>,
) -> Result<Response> {
    let wanted = body.within(namespace);
    edge::tell_table(&wanted.ident.name);
    Ok(document(api.catalog.views.register(&ctx, &warehouse, wanted).await?))
}

/// Give a view another name, in the same namespace or another.
#[utoipa::path(post, path = "/v1/{prefix}/views/rename", tag = "views", request_body = RenameTableRequest,
    responses((status = 204, description = "It has the new name"),
              (status = 409, description = "A table or view has the new name")))]
pub async fn rename_view(
    State(api): State<Api>,
    InWarehouse(warehouse): InWarehouse,
    Mutation { ctx, body }: Mutation<RenameTableRequest>,
) -> Result<StatusCode> {
    let (from, to) = body.idents()?;
    api.catalog.views.rename(&ctx, &warehouse, from, to).await?;
    Ok(StatusCode::NO_CONTENT)
}
