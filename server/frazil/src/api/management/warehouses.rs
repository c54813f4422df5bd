//! Warehouses.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use crate::api::Api;
use crate::api::error::Result;
use crate::api::iceberg::wire::paging::Paging;
use crate::api::management::wire::{
    CreateWarehouseRequest, ListWarehousesResponse, UpdateWarehouseRequest, WarehouseResponse,
};
use crate::api::place::AtWarehouse;
use crate::api::request::{Caller, Mutation, NoBody, Query};

/// List the warehouses by their names.
#[utoipa::path(get, path = "/management/v1/warehouses", tag = "management", params(Paging),
    responses((status = 200, description = "The warehouses, without secrets", body = ListWarehousesResponse)))]
pub async fn list_warehouses(
    State(api): State<Api>,
    Caller(ctx): Caller,
    Query(paging): Query<Paging>,
) -> Result<Json<ListWarehousesResponse>> {
    Ok(Json(api.catalog.warehouses.list(&ctx, &paging.into()).await?.into()))
}

/// Create a warehouse, once its store has shown that it can be written, read, listed and deleted in.
#[utoipa::path(post, path = "/management/v1/warehouses", tag = "management", request_body = CreateWarehouseRequest,
    responses((status = 201, description = "The warehouse, without secrets", body = WarehouseResponse),
              (status = 400, description = "The request cannot be, or the store cannot be used: the message says why"),
              (status = 409, description = "The name is taken, or the location overlaps with another warehouse's")))]
pub async fn create_warehouse(
    State(api): State<Api>,
    Mutation { ctx, body }: Mutation<CreateWarehouseRequest>,
) -> Result<(StatusCode, Json<WarehouseResponse>)> {
    let made = api.catalog.warehouses.create(&ctx, body.try_into()?).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Load a warehouse.
#[utoipa::path(get, path = "/management/v1/warehouses/{warehouse}", tag = "management",
    responses((status = 200, description = "The warehouse, without secrets", body = WarehouseResponse)))]
pub async fn load_warehouse(
    State(api): State<Api>,
    Caller(ctx): Caller,
    AtWarehouse(name): AtWarehouse,
) -> Result<Json<WarehouseResponse>> {
    Ok(Json(api.catalog.warehouses.load(&ctx, &name).await?.into()))
}

/// Replace all of a warehouse but its name and its location, once its store has shown that it can be used.
#[utoipa::path(put, path = "/management/v1/warehouses/{warehouse}", tag = "management",
    request_body = UpdateWarehouseRequest,
    responses((status = 200, description = "The warehouse as it is now, without secrets", body = WarehouseResponse),
              (status = 400, description = "The request cannot be, or the store cannot be used: the message says why"),
              (status = 409, description = "Another change was quicker: look at the warehouse, and send this again")))]
pub async fn update_warehouse(
    State(api): State<Api>,
    AtWarehouse(name): AtWarehouse,
    Mutation { ctx, body }: Mutation<UpdateWarehouseRequest>,
) -> Result<Json<WarehouseResponse>> {
    Ok(Json(api.catalog.warehouses.update(&ctx, &name, body.try_into()?).await?.into()))
}

/// Delete a warehouse that holds nothing. Its location is left as it is.
#[utoipa::path(delete, path = "/management/v1/warehouses/{warehouse}", tag = "management",
    responses((status = 204, description = "It is gone"),
              (status = 409, description = "It holds namespaces, tables or views")))]
pub async fn delete_warehouse(
    State(api): State<Api>,
    AtWarehouse(name): AtWarehouse,
    Mutation { ctx, body: NoBody }: Mutation<NoBody>,
) -> Result<StatusCode> {
    api.catalog.warehouses.delete(&ctx, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
