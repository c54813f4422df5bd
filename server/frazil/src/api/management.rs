//! What operators change while the catalog is served, below `/management/v1`. Engines are not told of it.

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;

pub mod warehouses;
pub mod wire;

pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(warehouses::list_warehouses, warehouses::create_warehouse)).routes(routes!(
        warehouses::load_warehouse,
        warehouses::update_warehouse,
        warehouses::delete_warehouse
    ))
}
