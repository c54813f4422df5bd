//! Query parameters of listings.

use std::num::NonZeroU64;

use catalog::listing::PageRequest;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which part of a listing is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Paging {
    /// The token of the page before; empty for the first page. Without a token and a size, everything is listed.
    page_token: Option<String>,
    /// How many entries a page has at most.
    #[param(value_type = Option<u32>, minimum = 1)]
    page_size: Option<NonZeroU64>,
}

/// The parent of the namespaces to list.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ParentQuery {
    /// The levels of a namespace, with 0x1F between them. Empty or absent, the top is listed.
    #[expect(dead_code, reason = "only its documentation is wanted: the value is taken before it is decoded")]
    parent: Option<String>,
}

impl From<Paging> for PageRequest {
    fn from(paging: Paging) -> Self {
        let size = paging.page_size.map(|size| u32::try_from(size.get()).unwrap_or(u32::MAX));
        Self { token: paging.page_token, size }
    }
}
