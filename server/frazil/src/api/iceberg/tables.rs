//! Tables.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use catalog::commits::request::CommitRequest;

use crate::api::answer::{IfNoneMatch, committed, document};
use crate::api::error::Result;
use crate::api::iceberg::wire::commits::CommitTableRequest;
use crate::api::iceberg::wire::paging::Paging;
use crate::api::iceberg::wire::tables::{
    CreateTableRequest, DropQuery, ListTablesResponse, LoadQuery, LoadTableResult, RegisterTableRequest,
    RenameTableRequest,
};
use crate::api::place::{AtNamespace, AtTable, InWarehouse};
use crate::api::request::{Caller, Mutation, NoBody, Query};
use crate::api::{Api, edge};

/// List the tables of a namespace.
#[utoipa::path(get, path = "/v1/{prefix}/namespaces/{namespace}/tables", tag = "tables", params(Paging),
    responses((status = 200, description = "The names of the tables", body = ListTablesResponse)))]
pub async fn list_tables(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Query(paging): Query<Paging>,
) -> Result<Json<ListTablesResponse>> {
    Ok(Json(api.catalog.tables.list(&ctx, &warehouse, &namespace, &paging.into()).await?.into()))
}

/// Create a table, or stage one that its first commit makes.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/tables", tag = "tables",
    request_body = CreateTableRequest,
    responses((status = 200, description = "The table as it was made", body = LoadTableResult,
               headers(("ETag" = String, description = "Names this answer"))),
              (status = 409, description = "A table or view has the name")))]
pub async fn create_table(
    State(api): State<Api>,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Mutation { ctx, body }: Mutation<CreateTableRequest>,
) -> Result<Response> {
    let wanted = body.within(namespace);
    edge::tell_table(&wanted.ident.name);
    Ok(document(api.catalog.tables.create(&ctx, &warehouse, wanted).await?))
}

/// Load a table, or learn that it is still the one that the client has.
#[utoipa::path(get, path = "/v1/{prefix}/namespaces/{namespace}/tables/{table}", tag = "tables",
    params(LoadQuery, ("If-None-Match" = Option<String>, Header, description = "The ETag of the answer before")),
    responses((status = 200, description = "The table", body = LoadTableResult,
               headers(("ETag" = String, description = "Names this answer"))),
              (status = 304, description = "It is still the one that the client has")))]
pub async fn load_table(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtTable { warehouse, ident }: AtTable,
    Query(query): Query<LoadQuery>,
    known: IfNoneMatch,
) -> Result<Response> {
    let loaded = api.catalog.tables.load(&ctx, &warehouse, &ident, query.mode(), &known.tags).await?;
    Ok(known.answer(loaded))
}

/// Tell whether a table exists.
#[utoipa::path(head, path = "/v1/{prefix}/namespaces/{namespace}/tables/{table}", tag = "tables",
    responses((status = 204, description = "It exists")))]
pub async fn table_exists(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtTable { warehouse, ident }: AtTable,
) -> Result<StatusCode> {
    api.catalog.tables.exists(&ctx, &warehouse, &ident).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Commit to a table, or make it with its first commit. The path names the table, whatever the body says.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/tables/{table}", tag = "tables",
    request_body = CommitTableRequest,
    responses((status = 200, description = "The table as it is now", body = LoadTableResult,
               headers(("ETag" = String, description = "Names this answer"),
                       ("x-frazil-duplicate-of" = String, description = "Nothing was added: the writer had committed \
                           the same before, with this snapshot"))),
              (status = 422, description = "Refused without harm to the client's files: another content at a position \
                  that was committed, or an epoch that was taken over"),
              (status = 429, description = "Too many commits wait for this table: send it again"),
              (status = 409, description = "A requirement does not hold: load the table, and commit anew")))]
pub async fn update_table(
    State(api): State<Api>,
    AtTable { warehouse, ident }: AtTable,
    Mutation { ctx, body }: Mutation<CommitRequest>,
) -> Result<Response> {
    Ok(committed(api.catalog.commits.commit(&ctx, &warehouse, ident, body).await?))
}

/// Drop a table, and its files too where that is asked for.
#[utoipa::path(delete, path = "/v1/{prefix}/namespaces/{namespace}/tables/{table}", tag = "tables", params(DropQuery),
    responses((status = 204, description = "It is gone; its files go later, if at all")))]
pub async fn drop_table(
    State(api): State<Api>,
    AtTable { warehouse, ident }: AtTable,
    Query(query): Query<DropQuery>,
    Mutation { ctx, body: NoBody }: Mutation<NoBody>,
) -> Result<StatusCode> {
    api.catalog.tables.drop(&ctx, &warehouse, ident, query.purge_requested).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a table out of the catalog, and leave its files.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister", tag = "tables",
    responses((status = 200, description = "The table as it was last", body = LoadTableResult)))]
pub async fn unregister_table(
    State(api): State<Api>,
    AtTable { warehouse, ident }: AtTable,
    Mutation { ctx, body: NoBody }: Mutation<NoBody>,
) -> Result<Response> {
    Ok(document(api.catalog.tables.unregister(&ctx, &warehouse, ident).await?))
}

/// Take a table into the catalog, as its metadata file says it is.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/register", tag = "tables",
    request_body = RegisterTableRequest,
    responses((status = 200, description = "The table", body = LoadTableResult,
               headers(("ETag" = String, description = "Names this answer"))),
              (status = 409, description = "The name is taken, or the table is there under another name")))]
pub async fn register_table(
    State(api): State<Api>,
    AtNamespace { warehouse, namespace }: AtNamespace,
    Mutation { ctx, body }: Mutation<RegisterTableRequest>,
) -> Result<Response> {
    let wanted = body.within(namespace);
    edge::tell_table(&wanted.ident.name);
    Ok(document(api.catalog.tables.register(&ctx, &warehouse, wanted).await?))
}

/// Give a table another name, in the same namespace or another.
#[utoipa::path(post, path = "/v1/{prefix}/tables/rename", tag = "tables", request_body = RenameTableRequest,
    responses((status = 204, description = "It has the new name"),
              (status = 409, description = "A table or view has the new name")))]
pub async fn rename_table(
    State(api): State<Api>,
    InWarehouse(warehouse): InWarehouse,
    Mutation { ctx, body }: Mutation<RenameTableRequest>,
) -> Result<StatusCode> {
    let (from, to) = body.idents()?;
    api.catalog.tables.rename(&ctx, &warehouse, from, to).await?;
    Ok(StatusCode::NO_CONTENT)
}
