//! Counters that a server tells in Prometheus' text format.

use crate::report::Result;
use crate::target::Target;

pub const SQL_ROUND_TRIPS: &str = "frazil_sql_round_trips_total";
pub const OBJECT_WRITES: &str = "frazil_files_operations_total{operation=\"write\"}";
pub const SWAPS_LOST: &str = "frazil_commit_swaps_lost_total";

/// All samples of all replicas.
#[derive(Debug, Clone)]
pub struct Counters(String);

impl Counters {
    /// None where the server tells none.
    pub async fn read(target: &Target) -> Result<Option<Self>> {
        let urls = target.metrics();
        if urls.is_empty() {
            return Ok(None);
        }
        let mut text = String::new();
        for url in urls {
            text.push_str(&reqwest::get(url).await?.error_for_status()?.text().await?);
            text.push('\n');
        }
        Ok(Some(Self(text)))
    }

    /// The sum over all samples of a counter that have the labels that `what` names; none where there is no such counter.
    pub fn sum(&self, what: &str) -> Option<f64> {
        let (name, labels) = what.split_once('{').unwrap_or((what, ""));
        let labels = labels.trim_end_matches('}');
        let mut known = self.0.lines().filter(|line| line.starts_with(&format!("# TYPE {name} "))).peekable();
        let samples = self.0.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels))
        });
        let values: Vec<f64> = samples.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        (known.peek().is_some() || !values.is_empty()).then(|| values.iter().sum())
    }

    /// How far a counter has come since `before`. A counter that has not begun counts as 0.
    pub fn since(&self, before: &Counters, what: &str) -> Option<f64> {
        Some(self.sum(what)? - before.sum(what).unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE frazil_files_operations_total counter\n\
        frazil_files_operations_total{operation=\"read\",outcome=\"ok\"} 7\n\
        frazil_files_operations_total{operation=\"write\",outcome=\"ok\"} 3\n\
        frazil_files_operations_total{operation=\"write\",outcome=\"failed\"} 1\n\
        frazil_sql_round_trips_total 12\n";

    #[test]
    fn a_counter_is_summed_over_the_labels_that_are_not_asked_for() {
        let counters = Counters(TEXT.to_owned());
        assert_eq!(counters.sum(OBJECT_WRITES), Some(4.0));
        assert_eq!(counters.sum("frazil_files_operations_total"), Some(11.0));
        assert_eq!(counters.sum(SQL_ROUND_TRIPS), Some(12.0));
        assert_eq!(counters.sum(SWAPS_LOST), None);
    }

    #[test]
    fn a_counter_that_begins_late_counts_from_nothing() {
        let (before, after) = (Counters(String::new()), Counters(TEXT.to_owned()));
        assert_eq!(after.since(&before, SQL_ROUND_TRIPS), Some(12.0));
    }
}
