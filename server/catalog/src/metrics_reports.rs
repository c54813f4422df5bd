//! Scan and commit reports of engines: checked and counted.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::context::RequestContext;
use crate::error::{Error, Result};
use crate::ident::TableIdent;
use crate::tables::Tables;
use crate::warehouses::Warehouse;

/// Reports taken, by kind.
pub const REPORTS_TOTAL: &str = "frazil_metrics_reports_total";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Report<'a> {
    report_type: Option<String>,
    #[serde(borrow)]
    table_name: Option<&'a RawValue>,
    snapshot_id: Option<i64>,
    #[serde(borrow)]
    metrics: Option<&'a RawValue>,
}

#[derive(Clone)]
pub struct MetricsReports {
    tables: Tables,
}

impl MetricsReports {
    pub fn new(tables: Tables) -> Self {
        Self { tables }
    }

    /// Takes the report of an engine; `body` is its JSON text.
    pub async fn report(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        ident: &TableIdent,
        body: &[u8],
    ) -> Result<()> {
        let kind = check(body)?;
        self.tables.exists(ctx, warehouse, ident).await?;
        metrics::counter!(REPORTS_TOTAL, "type" => kind).increment(1);
        Ok(())
    }
}

/// The kind of the report, which must have what the spec asks of both kinds.
fn check(body: &[u8]) -> Result<&'static str> {
    let report: Report<'_> = serde_json::from_slice(body)
        .map_err(|error| Error::invalid(format!("the body is not a metrics report: {error}")).with_source(error))?;
    let kind = match report.report_type.as_deref() {
        Some("scan-report") => "scan",
        Some("commit-report") => "commit",
        Some(other) => {
            return Err(Error::invalid(format!("report-type '{other}' must be scan-report or commit-report")));
        }
        None => return Err(Error::invalid("report-type is required: scan-report or commit-report")),
    };
    let is_object = |raw: &&RawValue| raw.get().starts_with('{');
    if report.table_name.is_none() {
        return Err(Error::invalid("table-name is required"));
    }
    if report.snapshot_id.is_none() {
        return Err(Error::invalid("snapshot-id is required"));
    }
    if !report.metrics.as_ref().is_some_and(is_object) {
        return Err(Error::invalid("metrics is required and must be an object"));
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_must_say_what_it_is_of() {
        let whole = r#"{"report-type":"scan-report","table-name":"t","snapshot-id":1,"metrics":{}}"#;
        assert_eq!(check(whole.as_bytes()).unwrap(), "scan");
        for (from, to) in [
            ("scan-report", "other"),
            (r#""report-type":"scan-report","#, ""),
            (r#""table-name":"t","#, ""),
            (r#""snapshot-id":1,"#, ""),
            (r#""metrics":{}"#, r#""metrics":[]"#),
            ("{", "["),
        ] {
            assert!(check(whole.replacen(from, to, 1).as_bytes()).is_err(), "{from}");
        }
    }
}
