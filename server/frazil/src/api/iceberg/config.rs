//! What a client is told before anything else.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use catalog::idempotency;
use catalog::warehouses::Warehouse;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::Api;
use crate::api::error::Result;
use crate::api::iceberg::wire::config::CatalogConfig;
use crate::api::request::Query;
use crate::api::source::PublicUrl;
use crate::auth::Authenticator;

/// How Java's client renews a token: by exchange, which most providers refuse, or by logging in again, which all take.
const TOKEN_EXCHANGE: &str = "token-exchange-enabled";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ConfigQuery {
    /// The name of a warehouse. Without it the default one is meant.
    warehouse: Option<String>,
}

/// Tell a client the prefix of its warehouse, and what it may call.
#[utoipa::path(get, path = "/v1/config", tag = "configuration", params(ConfigQuery),
    responses((status = 200, description = "What the client is to use", body = CatalogConfig)))]
pub async fn get_config(
    State(api): State<Api>,
    url: PublicUrl,
    Query(query): Query<ConfigQuery>,
) -> Result<Json<CatalogConfig>> {
    let warehouse = match query.warehouse.as_deref() {
        None | Some("") => api.catalog.warehouses.get_default().await?,
        Some(name) => api.catalog.warehouses.get(name).await?,
    };
    let mut defaults = warehouse.client_defaults();
    defaults.extend(api.catalog.commits.config_defaults(&warehouse, api.commit_deadline_ms()));
    if api.auth().is_some_and(Authenticator::has_issuers) {
        defaults.entry(TOKEN_EXCHANGE.to_owned()).or_insert_with(|| "false".to_owned());
    }
    Ok(Json(CatalogConfig {
        defaults,
        overrides: overrides(&warehouse, url),
        endpoints: api.endpoints().to_vec(),
        idempotency_key_lifetime: format!("PT{}M", idempotency::LIFETIME.as_secs() / 60),
    }))
}

/// Overrides win over what the client was configured with, so that no client talks to another warehouse than it named.
fn overrides(warehouse: &Warehouse, PublicUrl(url): PublicUrl) -> BTreeMap<String, String> {
    let prefix = ("prefix".to_owned(), warehouse.name.to_string());
    let uri = url.map(|url| ("uri".to_owned(), url));
    let mut overrides = warehouse.overrides.clone();
    overrides.extend([prefix].into_iter().chain(uri));
    overrides
}
