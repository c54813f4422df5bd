//! What is shown of single tables, in the text format of Prometheus.

use std::fmt::Write;

use catalog::commits::board::{BUCKETS_SECS, Durations, Shown, TableName, TableState};
use catalog::commits::log::Outcome;

/// Requests for a table, by what became of them.
const COMMITS: &str = "frazil_table_commits_total";

/// From a request's arrival to its answer.
const DURATION: &str = "frazil_table_commit_duration_seconds";

/// From a request's arrival to the begin of the group that it went with.
const WAIT: &str = "frazil_table_commit_wait_seconds";

/// What is shown of a table as its last commit left it: name, help and value.
type Gauge = (&'static str, &'static str, fn(&TableState) -> Option<f64>);

const GAUGES: [Gauge; 6] = [
    ("frazil_table_last_commit_timestamp_seconds", "When the table was changed last.", |state| {
        Some(state.at_ms as f64 / 1000.0)
    }),
    ("frazil_table_snapshots", "Snapshots in the metadata of the table.", |state| Some(state.snapshots as f64)),
    ("frazil_table_metadata_bytes", "Size of the metadata file of the table.", |state| {
        Some(state.metadata_bytes as f64)
    }),
    ("frazil_table_data_files", "Data files of the main branch.", |state| state.data_files.map(|count| count as f64)),
    ("frazil_table_delete_files", "Delete files of the main branch.", |state| {
        state.delete_files.map(|count| count as f64)
    }),
    ("frazil_table_files_bytes", "Size of the data and delete files of the main branch.", |state| {
        state.files_bytes.map(|bytes| bytes as f64)
    }),
];

/// All others together, where a table's name stands. No table is named so: names have a namespace before a dot.
const OTHERS: &str = "other";

/// Outcomes that are shown before they first happen, so that their rates are right from the beginning.
const ALWAYS: [Outcome; 3] = [Outcome::Committed, Outcome::Rebased, Outcome::Conflicted];

/// The tables, and all others together as one named `other`.
pub fn render((tables, others): &(Vec<(TableName, Shown)>, Shown)) -> String {
    let mut text = String::new();
    let named = tables.iter().map(|(name, shown)| (labels(name), shown));
    let series: Vec<_> = named.chain([(format!("table=\"{OTHERS}\""), others)]).collect();
    head(&mut text, COMMITS, "counter", "Requests for a table, by what became of them.");
    for (labels, shown) in &series {
        for outcome in Outcome::ALL {
            let count = shown.outcomes[outcome as usize];
            if count > 0 || ALWAYS.contains(&outcome) {
                line(&mut text, COMMITS, &format!("{labels},outcome=\"{}\"", outcome.as_str()), count);
            }
        }
    }
    head(&mut text, DURATION, "histogram", "From the arrival of a request for a table to its answer.");
    series.iter().for_each(|(labels, shown)| histogram(&mut text, DURATION, labels, &shown.took));
    head(&mut text, WAIT, "histogram", "From the arrival of a request for a table until its group was first taken.");
    series.iter().for_each(|(labels, shown)| histogram(&mut text, WAIT, labels, &shown.waited));
    for (name, help, value) in GAUGES {
        head(&mut text, name, "gauge", help);
        for (labels, shown) in &series {
            if let Some(value) = shown.state.as_ref().and_then(value) {
                line(&mut text, name, labels, value);
            }
        }
    }
    text
}

fn labels(name: &TableName) -> String {
    format!("warehouse=\"{}\",table=\"{}\"", escaped(&name.warehouse), escaped(&name.table))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    writeln!(text, "{name}{{{labels}}} {value}").expect("writing to memory does not fail");
}

fn histogram(text: &mut String, name: &str, labels: &str, durations: &Durations) {
    let bucket = format!("{name}_bucket");
    let mut below = 0;
    for (bound, count) in BUCKETS_SECS.iter().zip(durations.buckets) {
        below += count;
        line(text, &bucket, &format!("{labels},le=\"{bound}\""), below);
    }
    line(text, &bucket, &format!("{labels},le=\"+Inf\""), durations.count);
    line(text, &format!("{name}_sum"), labels, durations.sum_secs);
    line(text, &format!("{name}_count"), labels, durations.count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_shown_with_what_is_known_of_it_and_the_others_without_gauges() {
        let mut shown = Shown::default();
        shown.outcomes[Outcome::Rebased as usize] = 2;
        shown.took = Durations { sum_secs: 0.5, count: 2, ..Durations::default() };
        shown.took.buckets[0] = 1;
        shown.state = Some(TableState {
            at_ms: 1_500,
            snapshots: 3,
            metadata_bytes: 9,
            data_files: Some(4),
            delete_files: None,
            files_bytes: None,
        });
        let name = TableName { warehouse: "w".to_owned(), table: "n.\"t\"\n".to_owned() };
        let text = render(&(vec![(name, shown)], Shown::default()));
        let labels = r#"warehouse="w",table="n.\"t\"\n""#;
        for expected in [
            format!("frazil_table_commits_total{{{labels},outcome=\"rebased\"}} 2\n"),
            format!("frazil_table_commits_total{{{labels},outcome=\"conflicted\"}} 0\n"),
            format!("frazil_table_commit_duration_seconds_bucket{{{labels},le=\"0.01\"}} 1\n"),
            format!("frazil_table_commit_duration_seconds_bucket{{{labels},le=\"30\"}} 1\n"),
            format!("frazil_table_commit_duration_seconds_bucket{{{labels},le=\"+Inf\"}} 2\n"),
            format!("frazil_table_commit_duration_seconds_sum{{{labels}}} 0.5\n"),
            format!("frazil_table_last_commit_timestamp_seconds{{{labels}}} 1.5\n"),
            format!("frazil_table_data_files{{{labels}}} 4\n"),
            "frazil_table_commits_total{table=\"other\",outcome=\"committed\"} 0\n".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected}in\n{text}");
        }
        for absent in ["frazil_table_delete_files{", "frazil_table_data_files{table=\"other\"", "outcome=\"refused\""] {
            assert!(!text.contains(absent), "{absent} in\n{text}");
        }
    }
}
