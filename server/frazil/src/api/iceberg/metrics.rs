//! Reports of engines about their scans and commits.

use axum::extract::State;
use axum::http::StatusCode;

use crate::api::Api;
use crate::api::error::Result;
use crate::api::iceberg::wire::metrics::{Report, ReportMetricsRequest};
use crate::api::place::AtTable;
use crate::api::request::Mutation;

/// Report the metrics of a scan or a commit.
#[utoipa::path(post, path = "/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics", tag = "tables",
    request_body = ReportMetricsRequest,
    responses((status = 204, description = "The report is taken")))]
pub async fn report_metrics(
    State(api): State<Api>,
    AtTable { warehouse, ident }: AtTable,
    Mutation { ctx, body: Report(body) }: Mutation<Report>,
) -> Result<StatusCode> {
    api.catalog.metrics_reports.report(&ctx, &warehouse, &ident, &body).await?;
    Ok(StatusCode::NO_CONTENT)
}
