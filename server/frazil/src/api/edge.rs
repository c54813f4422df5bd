//! The outermost layers: a request gets its id, its span and its measures; a failure gets its body and one line of log.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{MatchedPath, OriginalUri, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use catalog::context::Noted;
use catalog::error::{Error, Kind};
use catalog::ident::NamespaceIdent;
use tokio::time::Instant;
use tracing::{Instrument, Span, field};

use crate::api::error::{ApiError, Failure};
use crate::auth::Caller;
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

/// One span, one line of log and one set of measures per request, named by the route and never by the path that was asked
/// for.
pub async fn observe(mut request: Request, next: Next) -> Response {
    let (method, began, noted) = (request.method().clone(), Instant::now(), Noted::default());
    let route =
        request.extensions().get::<MatchedPath>().map_or("unmatched".into(), |path| Arc::<str>::from(path.as_str()));
    let span = request_span(&request, &method, &route);
    request.extensions_mut().insert(noted.clone());
    let response = next.run(request).instrument(span.clone()).await;
    let (status, latency) = (response.status(), began.elapsed());
    span.record("status", status.as_u16());
    span.record("outcome", noted.outcome().unwrap_or_else(|| outcome(status)));
    span.record("principal", principal(&response));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    span.in_scope(|| tell_answered(&route, status, latency));
    telemetry::count_request(&method, &route, status, latency);
    response
}

/// Whoever asks every few seconds whether all is well, and hears that it is, leaves no line in most logs.
fn tell_answered(route: &str, status: StatusCode, latency: Duration) {
    let latency_ms = latency.as_micros() as f64 / 1000.0;
    let is_probe = route == "/metrics" || route.starts_with("/health/");
    match is_probe && status.is_success() {
        true => tracing::debug!(latency_ms, "answered"),
        false => tracing::info!(latency_ms, "answered"),
    }
}

/// The fields of every line and every trace of a request; docs/observability.md lists them.
fn request_span(request: &Request, method: &Method, route: &str) -> Span {
    let request_id = request.extensions().get::<RequestId>().map_or("", |id| &id.0);
    let span = tracing::info_span!(
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = field::Empty,
        %method,
        route,
        request_id,
        trace_id = field::Empty,
        principal = field::Empty,
        warehouse = field::Empty,
        namespace = field::Empty,
        table = field::Empty,
        status = field::Empty,
        outcome = field::Empty,
    );
    if let Some(id) = telemetry::continue_trace(&span, request.headers()) {
        span.record("trace_id", field::display(id));
    }
    span
}

/// What became of a request, where nobody noted more than its status.
fn outcome(status: StatusCode) -> &'static str {
    match status {
        StatusCode::TOO_MANY_REQUESTS => "failed",
        status if status.is_server_error() => "failed",
        status if status.is_client_error() => "refused",
        _ => "ok",
    }
}

/// Who called, as the layer that asks has left it on the answer.
fn principal(response: &Response) -> &str {
    response.extensions().get::<Caller>().map_or("anonymous", |caller| caller.principal.name())
}

/// Says in the log who called.
pub fn tell_principal(name: &str) {
    Span::current().record("principal", name);
}

/// Says in the log which warehouse the request is for.
pub fn tell_warehouse(name: &str) {
    Span::current().record("warehouse", name);
}

pub fn tell_namespace(namespace: &NamespaceIdent) {
    Span::current().record("namespace", field::display(namespace));
}

/// The name of a table or view.
pub fn tell_table(name: &str) {
    Span::current().record("table", name);
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
