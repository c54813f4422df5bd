//! Who asks, and under which URL: known before anything else looks at a request.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use ipnet::IpNet;

use crate::api::{Api, forwarded};

/// The address of the client: the peer's, or what trusted proxies tell of it. A request that came by no network has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source(pub IpAddr);

/// The URL that the client has for our root, as trusted proxies tell it.
#[derive(Debug, Clone)]
struct Reached(String);

/// Where clients are told to find the catalog; `None` is where they asked. The base path is part of it.
pub struct PublicUrl(pub Option<String>);

/// Finds out where the request comes from.
pub async fn find_out(State(trusted): State<Arc<[IpNet]>>, mut request: Request, next: Next) -> Response {
    if let Some(&ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() {
        let told = forwarded::read(peer.ip(), request.headers(), &trusted);
        request.extensions_mut().insert(Source(told.source));
        if let Some(url) = told.url {
            request.extensions_mut().insert(Reached(url));
        }
    }
    next.run(request).await
}

impl FromRequestParts<Api> for PublicUrl {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Infallible> {
        let reached = || parts.extensions.get::<Reached>().map(|Reached(url)| format!("{url}{}", api.base_path()));
        Ok(Self(api.public_url().map(str::to_owned).or_else(reached)))
    }
}
