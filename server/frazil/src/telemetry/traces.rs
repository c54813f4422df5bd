//! Traces by OTLP, and the W3C trace context that comes with requests and goes on with them.

use std::collections::HashMap;

use axum::http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{KeyValue, TraceId};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::Error;
use crate::config::TelemetryConfig;

pub const SERVICE: &str = "frazil";

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// Sends spans to the endpoint, if there is one. What a caller traces is traced; of the others the configured share.
pub fn provider(config: &TelemetryConfig) -> Result<Option<SdkTracerProvider>, Error> {
    let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
    let exporter = SpanExporter::builder().with_http().with_endpoint(endpoint).build()?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_service_name(SERVICE).with_attribute(version).build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.trace_ratio)));
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource);
    Ok(Some(provider.with_sampler(sampler).build()))
}

/// Takes up the trace of the caller, where the request brings one, and tells the id of the trace that the span is in.
/// Without an exporter there is none but the caller's.
pub fn continue_trace(span: &Span, headers: &HeaderMap) -> Option<TraceId> {
    let caller = headers.contains_key(TRACEPARENT).then(|| TraceContextPropagator::new().extract(&Carrier(headers)));
    if let Some(caller) = &caller {
        // Without an exporter there is no layer that could keep it, which is no fault.
        let _ = span.set_parent(caller.clone());
    }
    let id = |context: &opentelemetry::Context| context.span().span_context().trace_id();
    let valid = |id: &TraceId| *id != TraceId::INVALID;
    Some(id(&span.context())).filter(valid).or_else(|| caller.as_ref().map(id).filter(valid))
}

/// The headers that let a request of ours go on with the current trace; none where there is no exporter.
pub fn trace_headers() -> Vec<(&'static str, String)> {
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut headers);
    let header =
        |name: &'static str| headers.get(name).filter(|value| !value.is_empty()).map(|value| (name, value.clone()));
    [TRACEPARENT, TRACESTATE].into_iter().filter_map(header).collect()
}

struct Carrier<'a>(&'a HeaderMap);

impl Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}
