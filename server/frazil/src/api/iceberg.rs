//! The Iceberg REST spec below `/v1`.

use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::api::document::operations;

pub mod config;
//GATE pub mod functions;
//GATE pub mod metrics;
pub mod namespaces;
//GATE pub mod tables;
//GATE pub mod transactions;
//GATE pub mod views;
pub mod wire;

/// Below the prefix of a warehouse lies what clients are told about.
const ADVERTISED: &str = "/v1/{prefix}/";

/// The one list of operations; each names its method and path at its handler.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(config::get_config))
        .routes(routes!(namespaces::list_namespaces, namespaces::create_namespace))
        .routes(routes!(
            namespaces::load_namespace_metadata,
            namespaces::namespace_exists,
            namespaces::drop_namespace
        ))
        .routes(routes!(namespaces::update_properties))
    //GATE .routes(routes!(tables::list_tables, tables::create_table))
    //GATE .routes(routes!(tables::load_table, tables::table_exists, tables::update_table, tables::drop_table))
    //GATE .routes(routes!(tables::unregister_table))
    //GATE .routes(routes!(tables::register_table))
    //GATE .routes(routes!(tables::rename_table))
    //GATE .routes(routes!(metrics::report_metrics))
    //GATE .routes(routes!(transactions::commit_transaction))
    //GATE .routes(routes!(views::list_views, views::create_view))
    //GATE .routes(routes!(views::load_view, views::view_exists, views::replace_view, views::drop_view))
    //GATE .routes(routes!(views::register_view))
    //GATE .routes(routes!(views::rename_view))
    //GATE .routes(routes!(functions::list_functions))
    //GATE .routes(routes!(functions::load_function))
}

/// The operations as clients compare them: method, one space, path.
pub fn endpoints(document: &OpenApi) -> Vec<String> {
    let below = operations(document).filter(|operation| operation.path.starts_with(ADVERTISED));
    below
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect()
}
