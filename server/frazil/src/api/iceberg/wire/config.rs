//! The configuration of a client.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// What a client is to use: defaults give way to its own settings, overrides do not.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CatalogConfig {
    pub defaults: BTreeMap<String, String>,
    /// `prefix` always, and `uri` where the server knows its public address.
    pub overrides: BTreeMap<String, String>,
    /// The operations that are served.
    #[schema(example = json!(["GET /v1/{prefix}/namespaces"]))]
    pub endpoints: Vec<String>,
    /// For how long an answer is kept with its `Idempotency-Key`, as an ISO 8601 duration.
    #[schema(example = "PT30M")]
    pub idempotency_key_lifetime: String,
}
