//! Everything that Frazil answers over HTTP: routes, layers and what the handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use catalog::Catalog;
use catalog::context::Clock;
use ipnet::IpNet;
use tower::ServiceBuilder;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;
use tower_http::decompression::RequestDecompressionLayer;
use utoipa_axum::router::OpenApiRouter;

use crate::api::load::Load;
use crate::auth::Authenticator;
use crate::config::{CommitConfig, LimitsConfig, ServerConfig};
use crate::telemetry::{PrometheusHandle, Scrape};

pub mod answer;
pub mod auth;
pub mod base_path;
pub mod coordination;
pub mod document;
pub mod edge;
pub mod encoding;
pub mod error;
pub mod forwarded;
pub mod iceberg;
pub mod json;
pub mod load;
pub mod management;
pub mod operations;
pub mod place;
pub mod places;
pub mod request;
pub mod source;
pub mod unread;

/// Smaller answers are sent as they are, in bytes.
const COMPRESS_ABOVE_BYTES: u64 = 4096;

/// What every handler may use.
#[derive(Clone)]
pub struct Api {
    pub catalog: Catalog,
    shared: Arc<Shared>,
}

struct Shared {
    auth: Option<Authenticator>,
    clock: Arc<dyn Clock>,
    commit: CommitConfig,
    limits: LimitsConfig,
    server: ServerConfig,
    trusted_proxies: Arc<[IpNet]>,
    scrape: Scrape,
    draining: AtomicBool,
    endpoints: Vec<String>,
}

/// What the process hands to its API.
pub struct ApiParts {
    pub catalog: Catalog,
    /// `None` where nobody is asked who they are.
    pub auth: Option<Authenticator>,
    pub clock: Arc<dyn Clock>,
    pub commit: CommitConfig,
    pub limits: LimitsConfig,
    pub server: ServerConfig,
    /// Those of [`ServerConfig::trusted_networks`].
    pub trusted_proxies: Vec<IpNet>,
    pub metrics: PrometheusHandle,
}

impl Api {
    pub fn new(parts: ApiParts) -> Self {
        let endpoints = iceberg::endpoints(&routes().into_openapi());
        let ApiParts { catalog, auth, clock, commit, limits, server, trusted_proxies, metrics } = parts;
        let (trusted_proxies, draining) = (trusted_proxies.into(), AtomicBool::new(false));
        let scrape = Scrape::new(metrics);
        let shared = Shared { auth, clock, commit, limits, server, trusted_proxies, scrape, draining, endpoints };
        Self { catalog, shared: Arc::new(shared) }
    }

    /// `None` where nobody is asked who they are.
    pub fn auth(&self) -> Option<&Authenticator> {
        self.shared.auth.as_ref()
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        self.shared.clock.clone()
    }

    pub fn commit_deadline_ms(&self) -> u64 {
        self.shared.commit.deadline_ms
    }

    pub fn limits(&self) -> &LimitsConfig {
        &self.shared.limits
    }

    /// Where clients reach the catalog, told to them where it is set.
    pub fn public_url(&self) -> Option<&str> {
        self.shared.server.public_url.as_deref()
    }

    /// See [`ServerConfig::base_path`].
    pub fn base_path(&self) -> &str {
        self.shared.server.base_path()
    }

    /// What `/metrics` answers.
    pub fn metrics(&self) -> String {
        self.shared.scrape.text(&self.catalog, self.shared.clock.now_ms())
    }

    /// What clients may call, as `GET /v1/config` tells it.
    pub fn endpoints(&self) -> &[String] {
        &self.shared.endpoints
    }

    /// From now on this process is not ready: it only finishes what it has begun.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::Relaxed)
    }
}

/// All routes with their documentation: what is here is served, documented and, below the prefix, advertised.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(document::head())
        .merge(iceberg::routes())
        .merge(iceberg::oauth::routes())
        .merge(coordination::routes())
        .merge(management::routes())
        .merge(operations::routes())
}

/// The whole service, below its base path.
pub fn router(api: Api) -> Router {
    let base_path = api.base_path().to_owned();
    if base_path.is_empty() {
        return at_root(api);
    }
    let outside = layered(complete(Router::new()), &api).with_state(api.clone());
    base_path::below(&base_path, at_root(api), outside)
}

/// The service of the listener for metrics and health. It has no base path: no proxy leads to it.
pub fn metrics_router(api: Api) -> Router {
    let (routes, _) = operations::health().merge(operations::metrics_alone()).split_for_parts();
    layered(complete(routes), &api).with_state(api)
}

fn at_root(api: Api) -> Router {
    let load = Load::new(api.limits());
    // Turns away before a byte of the body is read; health and metrics are answered all the more.
    let shed = from_fn_with_state(load, load::shed);
    let (catalog, _) = iceberg::routes().merge(coordination::routes()).merge(management::routes()).split_for_parts();
    let mut guarded = catalog.layer(shed.clone());
    if api.shared.server.metrics_listen.is_none() {
        guarded = guarded.merge(operations::metrics_alone().split_for_parts().0);
    }
    // Whatever is not among the open routes below is asked who it is, the paths that lead nowhere included.
    let guarded = complete(guarded).layer(from_fn_with_state(api.clone(), auth::ask));
    let (logging_in, _) = iceberg::oauth::routes().split_for_parts();
    let (open, _) = operations::health().merge(operations::document()).split_for_parts();
    let open = open.merge(logging_in.layer(shed)).merge(document::swagger_ui());
    let open = open.method_not_allowed_fallback(edge::method_not_allowed);
    layered(guarded.merge(open), &api).with_state(api)
}

/// Routes, and what is answered where none of them fits.
fn complete(routes: Router<Api>) -> Router<Api> {
    routes.fallback(edge::no_such_route).method_not_allowed_fallback(edge::method_not_allowed)
}

/// Routes with all that is around them.
fn layered(routes: Router<Api>, api: &Api) -> Router<Api> {
    // Outermost first.
    let layers = ServiceBuilder::new()
        // Who asks is known to all that is below: to the log, and to whoever counts by client.
        .layer(from_fn_with_state(api.shared.trusted_proxies.clone(), source::find_out))
        // The id comes next, so that everything below can name the request.
        .layer(from_fn(edge::identify))
        // Above all that can fail, so that nothing is missing in log and metrics.
        .layer(from_fn(edge::observe))
        // Around whatever may answer without reading: most refusals do.
        .layer(from_fn(unread::read_to_end))
        // Around the failures, so that their bodies are compressed like any other.
        .layer(
            CompressionLayer::new()
                .quality(CompressionLevel::Fastest)
                .compress_when(SizeAbove::new(COMPRESS_ABOVE_BYTES)),
        )
        // Gives every failure from below its body: routes, limits, panics and handlers alike.
        .layer(from_fn(edge::answer_failures))
        .layer(CatchPanicLayer::custom(edge::answer_panic))
        .layer(from_fn(encoding::settle))
        // Last, so that the limits of bodies count what is unpacked. It reads nothing before a handler does.
        .layer(RequestDecompressionLayer::new().pass_through_unaccepted(true));
    routes.layer(layers)
}
