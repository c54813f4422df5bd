//! Who writes to a table, how far each writer is, and what became of each commit, below `/coordination/v1`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::api::error::Result;
use crate::api::place::{AtAttempt, AtTable, AtWriter};
use crate::api::request::{Caller, Mutation, NoBody, Query};

pub mod wire;

use wire::commits::{AttemptResponse, ListCommitsResponse};
use wire::paging::Pages;
use wire::writers::{
    ListWritersResponse, PositionQuery, RegisterWriterRequest, ResetPositionRequest, WriterPositionResponse,
    WriterQuery, WriterResponse,
};

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list_writers, register_writer))
        .routes(routes!(retire_writer))
        .routes(routes!(load_writer_position, reset_writer_position))
        .routes(routes!(list_commits))
        .routes(routes!(load_attempt))
}

/// List the writers of a table, by ref, kind and id.
#[utoipa::path(get, path = "/coordination/v1/{prefix}/namespaces/{namespace}/tables/{table}/writers",
    tag = "coordination", params(Pages),
    responses((status = 200, description = "How far each writer is", body = ListWritersResponse)))]
pub async fn list_writers(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtTable { warehouse, ident }: AtTable,
    Query(page): Query<Pages>,
) -> Result<Json<ListWritersResponse>> {
    Ok(Json(api.catalog.coordination.writers(&ctx, &warehouse, &ident, &page.into()).await?.into()))
}

/// Register a writer, or let a new incarnation of it take over.
#[utoipa::path(post, path = "/coordination/v1/{prefix}/namespaces/{namespace}/tables/{table}/writers",
    tag = "coordination", request_body = RegisterWriterRequest,
    responses((status = 200, description = "The writer, with the epoch that its commits are to name",
               body = WriterResponse)))]
pub async fn register_writer(
    State(api): State<Api>,
    AtTable { warehouse, ident }: AtTable,
    Mutation { ctx, body }: Mutation<RegisterWriterRequest>,
) -> Result<Json<WriterResponse>> {
    Ok(Json(api.catalog.coordination.register(&ctx, &warehouse, ident, body.into()).await?.into()))
}

/// Retire a writer: nobody waits for it any more. Its next commit takes that back.
#[utoipa::path(delete, path = "/coordination/v1/{prefix}/namespaces/{namespace}/tables/{table}/writers/{writer}",
    tag = "coordination", params(WriterQuery),
    responses((status = 204, description = "It is retired"),
              (status = 400, description = "Several writers have the id: the message names them"),
              (status = 404, description = "There is no such table, or no such writer of it")))]
pub async fn retire_writer(
    State(api): State<Api>,
    AtWriter { warehouse, ident, id }: AtWriter,
    Query(query): Query<WriterQuery>,
    Mutation { ctx, body: NoBody }: Mutation<NoBody>,
) -> Result<StatusCode> {
    api.catalog.coordination.retire(&ctx, &warehouse, ident, query.of(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tell how far a writer is, and whether a position of it has landed.
#[utoipa::path(get,
    path = "/coordination/v1/{prefix}/namespaces/{namespace}/tables/{table}/writers/{writer}/position",
    tag = "coordination", params(PositionQuery),
    responses((status = 200, description = "What is known of it; a writer that is not known has nothing to tell",
               body = WriterPositionResponse),
              (status = 400, description = "The position cannot be, or several writers have the id")))]
pub async fn load_writer_position(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtWriter { warehouse, ident, id }: AtWriter,
    Query(query): Query<PositionQuery>,
) -> Result<Json<WriterPositionResponse>> {
    let (which, position) = query.of(id);
    let progress = api.catalog.coordination.progress(&ctx, &warehouse, &ident, &which, position.as_deref()).await?;
    Ok(Json(progress.into()))
}

/// Set a writer back, or on, to a position; `null` is none. Its epoch stays.
#[utoipa::path(put,
    path = "/coordination/v1/{prefix}/namespaces/{namespace}/tables/{table}/writers/{writer}/position",
    tag = "coordination", request_body = ResetPositionRequest,
    responses((status = 200, description = "The writer as it is now", body = WriterResponse),
              (status = 400, description = "The position cannot be, or several writers have the id"),
              (status = 404, description = "There is no such table, or no such writer of it")))]
pub async fn reset_writer_position(
    State(api): State<Api>,
    AtWriter { warehouse, ident, id }: AtWriter,
    Mutation { ctx, body }: Mutation<ResetPositionRequest>,
) -> Result<Json<WriterResponse>> {
    Ok(Json(api.catalog.coordination.reset(&ctx, &warehouse, ident, body.of(id)).await?.into()))
}

/// List the requests that wanted to change a table, the newest first, with what became of each.
#[utoipa::path(get, path = "/coordination/v1/{prefix}/namespaces/{namespace}/tables/{table}/commits",
    tag = "coordination", params(Pages),
    responses((status = 200, description = "The commit log", body = ListCommitsResponse)))]
pub async fn list_commits(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtTable { warehouse, ident }: AtTable,
    Query(page): Query<Pages>,
) -> Result<Json<ListCommitsResponse>> {
    Ok(Json(api.catalog.coordination.log(&ctx, &warehouse, &ident, &page.into()).await?.into()))
}

/// Tell what became of a request, by its `Idempotency-Key` or by the id of its snapshot.
#[utoipa::path(get, path = "/coordination/v1/{prefix}/namespaces/{namespace}/tables/{table}/attempts/{attempt}",
    tag = "coordination",
    responses((status = 200, description = "What is known of it; `unknown` where that is nothing",
               body = AttemptResponse)))]
pub async fn load_attempt(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtAttempt { warehouse, ident, wanted }: AtAttempt,
) -> Result<Json<AttemptResponse>> {
    Ok(Json(api.catalog.coordination.attempt(&ctx, &warehouse, &ident, wanted).await?.into()))
}
