//! Everything that Frazil answers over HTTP: routes, layers and what the handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use catalog::Catalog;
use catalog::context::Clock;
use metrics_exporter_prometheus::PrometheusHandle;
use tower::ServiceBuilder;
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;
use tower_http::decompression::RequestDecompressionLayer;
use utoipa_axum::router::OpenApiRouter;

use crate::config::{CommitConfig, LimitsConfig};

pub mod answer;
pub mod coordination;
pub mod document;
pub mod edge;
pub mod encoding;
pub mod error;
pub mod iceberg;
pub mod json;
pub mod management;
pub mod names;
pub mod operations;
pub mod place;
pub mod places;
pub mod request;
pub mod unread;

use places::Places;

/// Smaller answers are sent as they are, in bytes.
const COMPRESS_ABOVE_BYTES: u64 = 4096;

/// What every handler may use.
#[derive(Clone)]
pub struct Api {
    pub catalog: Catalog,
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    commit: CommitConfig,
    limits: LimitsConfig,
    public_url: Option<String>,
    metrics: PrometheusHandle,
    draining: AtomicBool,
    endpoints: Vec<String>,
}

/// What the process hands to its API.
pub struct ApiParts {
    pub catalog: Catalog,
    pub clock: Arc<dyn Clock>,
    pub commit: CommitConfig,
    pub limits: LimitsConfig,
    /// Where clients reach the catalog, told to them where it is set.
    pub public_url: Option<String>,
    pub metrics: PrometheusHandle,
}

impl Api {
    pub fn new(parts: ApiParts) -> Self {
        let endpoints = iceberg::endpoints(&routes().into_openapi());
        let ApiParts { catalog, clock, commit, limits, public_url, metrics } = parts;
        let draining = AtomicBool::new(false);
        let shared = Shared { clock, commit, limits, public_url, metrics, draining, endpoints };
        Self { catalog, shared: Arc::new(shared) }
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

    pub fn public_url(&self) -> Option<&str> {
        self.shared.public_url.as_deref()
    }

    pub fn metrics(&self) -> &PrometheusHandle {
        &self.shared.metrics
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
        .merge(coordination::routes())
        .merge(management::routes())
        .merge(operations::routes())
}

/// The whole service.
pub fn router(api: Api) -> Router {
    let places = Arc::new(Places::new(api.limits().concurrent_requests));
    let (catalog, _) = iceberg::routes().merge(coordination::routes()).merge(management::routes()).split_for_parts();
    // Turns away before a byte of the body is read; health and metrics are answered all the more.
    let catalog = catalog.layer(from_fn_with_state(places, places::shed_load));
    let (operations, _) = operations::routes().split_for_parts();
    // Outermost first.
    let layers = ServiceBuilder::new()
        // The id comes first, so that everything below can name the request.
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
    catalog
        .merge(operations)
        .merge(document::swagger_ui())
        .fallback(edge::no_such_route)
        .method_not_allowed_fallback(edge::method_not_allowed)
        .layer(layers)
        .with_state(api)
}
