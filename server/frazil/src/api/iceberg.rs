//! The Iceberg REST spec below `/v1`.

use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::api::document::operations;

pub mod config;
pub mod functions;
pub mod metrics;
pub mod namespaces;
pub mod oauth;
pub mod tables;
pub mod transactions;
pub mod views;
pub mod wire;

/// Below the prefix of a warehouse lies what clients are told about.
const ADVERTISED: &str = "/v1/{prefix}/";

/// The one list of operations; each names its method and path at its handler.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(config::get_config))
        .routes(routes!(namespaces::list_namespaces, namespaces::create_namespace))
        .routes(routes!(namespaces::load_namespace_metadata, namespaces::namespace_exists, namespaces::drop_namespace))
        .routes(routes!(namespaces::update_properties))
        .routes(routes!(tables::list_tables, tables::create_table))
        .routes(routes!(tables::load_table, tables::table_exists, tables::update_table, tables::drop_table))
        .routes(routes!(tables::unregister_table))
        .routes(routes!(tables::register_table))
        .routes(routes!(tables::rename_table))
        .routes(routes!(metrics::report_metrics))
        .routes(routes!(transactions::commit_transaction))
        .routes(routes!(views::list_views, views::create_view))
        .routes(routes!(views::load_view, views::view_exists, views::replace_view, views::drop_view))
        .routes(routes!(views::register_view))
        .routes(routes!(views::rename_view))
        .routes(routes!(functions::list_functions))
        .routes(routes!(functions::load_function))
}

/// The operations as clients compare them: method, one space, path.
pub fn endpoints(document: &OpenApi) -> Vec<String> {
    let below = operations(document).filter(|operation| operation.path.starts_with(ADVERTISED));
    below.map(|operation| format!("{} {}", operation.method, operation.path)).collect()
}
