//! The outermost layers: a request gets its id, its span and its measures; a failure gets its body and one line of log.

use std::any::Any;
use std::sync::Arc;

use axum::extract::{MatchedPath, OriginalUri, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use catalog::error::{Error, Kind};
use tokio::time::Instant;
use tracing::{Instrument, field};

use crate::api::error::{ApiError, Failure};
use crate::telemetry;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Bound of a request id that a client names, in bytes.
const REQUEST_ID_MAX_BYTES: usize = 128;

/// The name of one request in the log and in 5xx answers.
#[derive(Clone)]
pub struct RequestId(pub Arc<str>);

/// Takes the client's `x-request-id`, or makes one, and sends it back.
pub async fn identify(mut request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let header = HeaderValue::from_str(&id).expect("a request id is visible ASCII");
    request.extensions_mut().insert(RequestId(id));
    let mut response = next.run(request).await;
    response.headers_mut().insert(REQUEST_ID, header);
    response
}

fn request_id(request: &Request) -> Arc<str> {
    let told = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let fits =
        |id: &&str| !id.is_empty() && id.len() <= REQUEST_ID_MAX_BYTES && id.bytes().all(|b| b.is_ascii_graphic());
    told.filter(fits).map_or_else(|| uuid::Uuid::now_v7().to_string().into(), Arc::from)
}

/// One span and one set of measures per request, named by the route and never by the path that was asked for.
pub async fn observe(request: Request, next: Next) -> Response {
    let (method, began) = (request.method().clone(), Instant::now());
    let route =
        request.extensions().get::<MatchedPath>().map_or("unmatched".into(), |path| Arc::<str>::from(path.as_str()));
    let id = request.extensions().get::<RequestId>().map_or("", |id| &id.0);
    let span = tracing::info_span!("request", %method, %route, id, status = field::Empty);
    telemetry::continue_trace(&span, request.headers());
    let response = next.run(request).instrument(span.clone()).await;
    span.record("status", response.status().as_u16());
    let latency = began.elapsed();
    span.in_scope(|| tracing::info!(status = response.status().as_u16(), latency_ms = latency.as_millis(), "answered"));
    telemetry::count_request(&method, &route, response.status(), latency);
    response
}

/// Turns a failure into Iceberg's error shape and logs its causes; an answer to HEAD stays without a body.
pub async fn answer_failures(request: Request, next: Next) -> Response {
    let head = request.method() == Method::HEAD;
    let id = request.extensions().get::<RequestId>().map_or_else(|| "".into(), |id| id.0.clone());
    let mut response = next.run(request).await;
    if let Some(Failure(failure)) = response.extensions_mut().remove::<Failure>() {
        log(&failure);
        let headers = std::mem::take(response.headers_mut());
        // Who asked is still to be told above.
        let extensions = std::mem::take(response.extensions_mut());
        response = (failure.status(), failure.body(&id)).into_response();
        response.headers_mut().extend(
            headers
                .into_iter()
                .filter_map(|(name, value)| Some((name?, value)))
                .filter(|(name, _)| *name != header::CONTENT_TYPE && *name != header::CONTENT_LENGTH),
        );
        response.extensions_mut().extend(extensions);
    }
    if head { without_body(response) } else { response }
}

fn log(failure: &ApiError) {
    match failure.status() {
        status if status.is_server_error() => tracing::error!(status = status.as_u16(), "{}", failure.chain()),
        // Clients ask for what is not there all the time.
        StatusCode::NOT_FOUND => tracing::debug!(status = 404, "{}", failure.chain()),
        status => tracing::info!(status = status.as_u16(), "{}", failure.chain()),
    }
}

fn without_body(response: Response) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_TYPE);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, axum::body::Body::empty())
}

/// The answer where a handler panicked.
pub fn answer_panic(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let cause = text.unwrap_or_else(|| "a panic without a message".to_owned());
    ApiError::from(Error::new(Kind::Internal, "a handler panicked").with_source(cause)).into_response()
}

pub async fn no_such_route(OriginalUri(uri): OriginalUri) -> ApiError {
    ApiError::no_such_route(uri.path())
}

pub async fn method_not_allowed(OriginalUri(uri): OriginalUri, method: Method) -> ApiError {
    ApiError::method_not_allowed(method.as_str(), uri.path())
}
