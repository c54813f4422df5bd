//! What operators and tools ask: health, metrics and the OpenAPI document.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use catalog::error::{Error, Kind};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::error::Result;
use crate::api::{Api, document};

pub fn routes() -> OpenApiRouter<Api> {
    health().merge(metrics_alone()).merge(document())
}

pub fn health() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready))
}

/// Apart from the others: not everybody may ask for them, and they may have a listener of their own.
pub fn metrics_alone() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(metrics))
}

pub fn document() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(openapi_yaml))
}

/// How the process is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    #[schema(value_type = String, example = "ready")]
    status: &'static str,
}

/// Tell that the process runs.
#[utoipa::path(get, path = "/health/live", tag = "operations",
    responses((status = 200, description = "The process runs", body = Health)))]
pub async fn live() -> axum::Json<Health> {
    axum::Json(Health { status: "live" })
}

/// Tell whether the process takes requests: its database answers, and it is not about to end.
#[utoipa::path(get, path = "/health/ready", tag = "operations",
    responses((status = 200, description = "It takes requests", body = Health)))]
pub async fn ready(State(api): State<Api>) -> Result<axum::Json<Health>> {
    if api.is_draining() {
        return Err(Error::new(Kind::Unavailable, "the server is about to end").into());
    }
    api.catalog.warehouses.check().await?;
    Ok(axum::Json(Health { status: "ready" }))
}

/// Tell what was counted and timed, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "Counters, gauges and histograms", body = String, content_type = "text/plain")))]
pub async fn metrics(State(api): State<Api>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], api.metrics()).into_response()
}

/// This document.
#[utoipa::path(get, path = "/openapi.yaml", tag = "operations",
    responses((status = 200, description = "The OpenAPI document", body = String, content_type = "application/yaml")))]
pub async fn openapi_yaml(State(api): State<Api>) -> Response {
    ([(header::CONTENT_TYPE, "application/yaml")], document::yaml_below(api.base_path())).into_response()
}
