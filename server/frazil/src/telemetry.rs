//! What the process tells about itself: logs, metrics and traces.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use metrics::{counter, histogram};
pub use metrics_exporter_prometheus::PrometheusHandle;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Dispatch;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::{LogConfig, TelemetryConfig};

mod described;
mod lines;
mod scrape;
mod tables;
mod traces;

use lines::{Lines, Write};
pub use scrape::Scrape;
pub use traces::{continue_trace, trace_headers};

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

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Ends what was begun here; spans that are still held are sent.
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Logs go to standard error; traces go out where an endpoint is configured.
    pub fn begin(log: &LogConfig, telemetry: &TelemetryConfig) -> Result<Self, Error> {
        let (this, events) = Self::prepare(log, telemetry, Box::new(lines::to_stderr))?;
        events.try_init()?;
        Ok(this)
    }

    /// As [`Self::begin`], but what takes the events is given back, and log lines are written by `write`.
    pub fn prepare(log: &LogConfig, telemetry: &TelemetryConfig, write: Write) -> Result<(Self, Dispatch), Error> {
        let traces = traces::provider(telemetry)?;
        let spans =
            traces.as_ref().map(|traces| tracing_opentelemetry::layer().with_tracer(traces.tracer(traces::SERVICE)));
        // A line tells of its request whatever the filter says, and traces do not depend on it.
        let of_requests = filter_fn(|metadata| metadata.is_span() && *metadata.level() <= LevelFilter::INFO)
            .with_max_level_hint(LevelFilter::INFO);
        let filter = EnvFilter::try_new(&log.filter)?.or(of_requests);
        let lines = Lines { format: log.format, write }.with_filter(filter);
        let events = Registry::default().with(spans.with_filter(LevelFilter::INFO)).with(lines);
        Ok((Self { traces }, Dispatch::new(events)))
    }

    /// Sends the spans that have ended and are still held.
    pub fn flush(&self) {
        if let Some(Err(error)) = self.traces.as_ref().map(SdkTracerProvider::force_flush) {
            tracing::warn!(%error, "traces could not be sent");
        }
    }

    pub fn end(self) {
        if let Some(Err(error)) = self.traces.map(|traces| traces.shutdown()) {
            tracing::warn!(%error, "the last traces could not be sent");
        }
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
    described::describe();
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
