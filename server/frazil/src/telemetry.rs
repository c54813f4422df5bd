//! What the process tells about itself: logs, metrics and traces.

use std::time::Duration;

use axum::http::{HeaderMap, Method, StatusCode};
use metrics::{counter, histogram};
pub use metrics_exporter_prometheus::PrometheusHandle;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{LogConfig, LogFormat, TelemetryConfig};

/// Requests answered, by method, route and status.
const REQUESTS: &str = "frazil_http_requests_total";

/// How long answers took, by method and route, in seconds.
const DURATION: &str = "frazil_http_request_duration_seconds";

/// Requests turned away because too many were under way.
const SHED: &str = "frazil_http_requests_shed_total";

/// From an empty table to one with very many snapshots.
const BUCKETS_BYTES: [f64; 6] = [4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 16_777_216.0];

/// Requests that go with one swap.
const BUCKETS_GROUP: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// From a read out of memory to a commit that waited for its deadline.
const BUCKETS_SECS: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

const SERVICE: &str = "frazil";

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Ends what was begun here; spans that are still held are sent.
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Logs go to standard error; traces go out where an endpoint is configured.
    pub fn begin(log: &LogConfig, telemetry: &TelemetryConfig) -> Result<Self, Error> {
        let traces = telemetry.otlp_endpoint.as_deref().map(tracer_provider).transpose()?;
        let spans = traces.as_ref().map(|traces| tracing_opentelemetry::layer().with_tracer(traces.tracer(SERVICE)));
        Registry::default().with(spans).with(lines(log.format)).with(EnvFilter::try_new(&log.filter)?).try_init()?;
        Ok(Self { traces })
    }

    pub fn end(self) {
        if let Some(Err(error)) = self.traces.map(|traces| traces.shutdown()) {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

fn lines<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}

fn tracer_provider(endpoint: &str) -> Result<SdkTracerProvider, Error> {
    let exporter = SpanExporter::builder().with_http().with_endpoint(endpoint).build()?;
    let resource = Resource::builder().with_service_name(SERVICE).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Takes up the trace of the caller, where the request brings one.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    if headers.contains_key("traceparent") {
        let parent = TraceContextPropagator::new().extract(&Carrier(headers));
        // Without an exporter there is no layer that could keep it, which is no fault.
        let _ = span.set_parent(parent);
    }
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

/// Keeps counters and histograms; durations are kept in buckets, so that they can be added up over replicas.
pub fn recorder() -> PrometheusRecorder {
    let suffix = Matcher::Suffix("_seconds".to_owned());
    let bytes = Matcher::Suffix("_bytes".to_owned());
    let group = Matcher::Full(catalog::commits::GROUP_SIZE.to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(suffix, &BUCKETS_SECS)
        .and_then(|builder| builder.set_buckets_for_metric(bytes, &BUCKETS_BYTES))
        .and_then(|builder| builder.set_buckets_for_metric(group, &BUCKETS_GROUP));
    builder.expect("the buckets are not empty").build_recorder()
}

/// Makes the recorder the one of this process.
pub fn install(recorder: PrometheusRecorder) -> Result<PrometheusHandle, Error> {
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|_| "metrics are recorded already")?;
    Ok(handle)
}

pub fn count_request(method: &Method, route: &str, status: StatusCode, latency: Duration) {
    let (method, route) = (method.as_str().to_owned(), route.to_owned());
    counter!(REQUESTS, "method" => method.clone(), "route" => route.clone(), "status" => status.as_str().to_owned())
        .increment(1);
    histogram!(DURATION, "method" => method, "route" => route).record(latency);
}

pub fn count_shed() {
    counter!(SHED).increment(1);
}
