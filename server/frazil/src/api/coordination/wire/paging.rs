//! Query parameters of listings that have no end.

use std::num::NonZeroU64;

use catalog::listing::PageRequest;
use serde::Deserialize;
use utoipa::IntoParams;

/// Which part of a listing is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Pages {
    /// The token of the page before; absent or empty for the first page.
    page_token: Option<String>,
    /// How many entries a page has at most; 1,000 where it is not told.
    #[param(value_type = Option<u32>, minimum = 1)]
    page_size: Option<NonZeroU64>,
}

impl From<Pages> for PageRequest {
    fn from(pages: Pages) -> Self {
        let size = pages.page_size.map(|size| u32::try_from(size.get()).unwrap_or(u32::MAX));
        Self { token: pages.page_token, size }
    }
}
