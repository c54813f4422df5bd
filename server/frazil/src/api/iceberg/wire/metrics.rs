//! Reports of engines.

use std::collections::BTreeMap;

use bytes::Bytes;
use catalog::error::Result;
use utoipa::ToSchema;

use crate::api::request::RequestBody;

/// A report about a scan or a commit. What the kinds have in common is asked for, the rest is taken as it is.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct ReportMetricsRequest {
    pub report_type: ReportType,
    pub table_name: String,
    pub snapshot_id: i64,
    /// Counters and timers by name.
    pub metrics: BTreeMap<String, serde_json::Value>,
    pub metadata: Option<BTreeMap<String, String>>,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum ReportType {
    ScanReport,
    CommitReport,
}

/// The text of a report.
pub struct Report(pub Bytes);

impl RequestBody for Report {
    fn read(body: &Bytes) -> Result<Self> {
        Ok(Self(body.clone()))
    }
}
