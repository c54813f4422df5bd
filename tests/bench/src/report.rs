//! What a run leaves behind: one flat row for each point, checks, and the failures among them.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::measure::Samples;
use crate::settings::Settings;
use crate::target::Target;

/// What cannot be measured is told as text.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Beyond them a failure tells nothing new.
const FAILURES_TOLD: usize = 50;

/// Numbers and texts of one point.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct Row(Map<String, Value>);

impl Row {
    pub fn of(key: &str, value: impl Into<Value>) -> Self {
        Self::default().with(key, value)
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Percentiles of samples, where there are any; `name` stands before `p50_ms`.
    pub fn percentiles(mut self, name: &str, samples: &Samples) -> Self {
        for (label, percent) in [("p50_ms", 50.0), ("p95_ms", 95.0), ("p99_ms", 99.0)] {
            if let Some(found) = samples.percentile_ms(percent) {
                self = self.with(&format!("{name}{label}"), found);
            }
        }
        self
    }

    pub fn merged(mut self, other: Row) -> Self {
        self.0.extend(other.0);
        self
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64()
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}

#[derive(Debug, Serialize)]
struct Check {
    what: String,
    ok: bool,
}

#[derive(Debug, Default, Serialize)]
pub struct Report {
    workload: String,
    target: String,
    store: String,
    preset: String,
    pub parameters: Map<String, Value>,
    rows: Vec<Row>,
    checks: Vec<Check>,
    failures: Vec<String>,
}

impl Report {
    pub fn new(workload: &str, target: &Target, settings: &Settings) -> Self {
        Self {
            workload: workload.to_owned(),
            target: target.name.clone(),
            store: target.store.kind.name().to_owned(),
            preset: settings.preset.name().to_owned(),
            ..Self::default()
        }
    }

    pub fn add(&mut self, row: Row) {
        eprintln!("{} {}: {row}", self.workload, self.target);
        self.rows.push(row);
    }

    /// A check and what came of it: no failures, or some.
    pub fn check(&mut self, what: impl Into<String>, failures: Vec<String>) {
        let what = what.into();
        for failure in failures.iter().take(FAILURES_TOLD) {
            eprintln!("FAILED {what}: {failure}");
            self.failures.push(format!("{what}: {failure}"));
        }
        self.checks.push(Check { what, ok: failures.is_empty() });
    }

    pub fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(file, text + "\n").map_err(|error| format!("{}: {error}", file.display()).into())
    }
}
