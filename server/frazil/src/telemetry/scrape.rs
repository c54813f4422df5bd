//! The answer of `/metrics`: what was counted, and what is looked at when somebody asks.

use std::sync::Arc;

use catalog::Catalog;
use catalog::store::PoolUse;
use metrics::gauge;
use metrics_exporter_prometheus::PrometheusHandle;
use metrics_process::Collector;

use super::tables;

/// Always 1; its label tells the version.
const BUILD_INFO: &str = "frazil_build_info";

/// Connections to the database, by pool and state.
const CONNECTIONS: &str = "frazil_database_connections";

/// How many connections a pool may have.
const CONNECTIONS_MAX: &str = "frazil_database_connections_max";

/// Gathers what `/metrics` answers.
#[derive(Clone)]
pub struct Scrape {
    handle: PrometheusHandle,
    process: Arc<Collector>,
}

impl Scrape {
    pub fn new(handle: PrometheusHandle) -> Self {
        Self { handle, process: Arc::default() }
    }

    /// In the text format of Prometheus.
    pub fn text(&self, catalog: &Catalog, now_ms: i64) -> String {
        gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        catalog.pools.pools().iter().for_each(show_pool);
        self.process.collect();
        let mut text = self.handle.render();
        text.push_str(&tables::render(&catalog.watch.tables(now_ms)));
        text
    }
}

fn show_pool(pool: &PoolUse) {
    gauge!(CONNECTIONS, "pool" => pool.name, "state" => "in-use").set(pool.in_use);
    gauge!(CONNECTIONS, "pool" => pool.name, "state" => "idle").set(pool.idle);
    gauge!(CONNECTIONS_MAX, "pool" => pool.name).set(pool.max);
}
