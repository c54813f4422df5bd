//! Functions, in the shapes that they will have.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListFunctionsResponse {
    /// Each as its levels and its name.
    identifiers: Vec<Vec<String>>,
    /// The token of the next page; null after the last one.
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A function with its metadata.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LoadFunctionResult {
    metadata_location: Option<String>,
    #[schema(value_type = Object)]
    metadata: serde_json::Value,
}
