//! What each metric tells, in a few words; docs/observability.md says more.

use metrics::{counter, describe_counter, describe_gauge, describe_histogram};
use metrics_process::Collector;

const COUNTERS: [(&str, &str); 18] = [
    ("frazil_http_requests_total", "Requests that were answered."),
    ("frazil_http_requests_shed_total", "Requests turned away because too many were under way."),
    ("frazil_auth_refusals_total", "Requests that were not let through, by the reason."),
    ("frazil_auth_key_fetches_total", "Times that an issuer was asked for its keys."),
    ("frazil_files_operations_total", "Operations on metadata and data files."),
    ("frazil_sql_round_trips_total", "Statements that were sent to the database."),
    ("frazil_purges_total", "Deletions in the background."),
    ("frazil_commits_total", "Requests for a table, by what became of them."),
    ("frazil_commit_refusals_total", "Requests that were refused for good, by their reason."),
    ("frazil_commit_rebases_total", "Requests that were put on another head."),
    ("frazil_commit_unmerges_total", "Rebases that took merged manifests apart."),
    ("frazil_commit_swaps_lost_total", "Swaps that found the table changed."),
    ("frazil_commit_log_dropped_total", "Entries of the commit log that were not written."),
    ("frazil_writer_incarnations_total", "Writers that began anew under their old name."),
    ("frazil_snapshot_timestamps_moved_total", "Snapshots whose timestamp was moved to fit the history."),
    ("frazil_snapshot_totals_wrong_total", "Snapshots whose totals do not fit those of their parent."),
    ("frazil_metrics_reports_total", "Reports that engines sent."),
    ("frazil_audit_events_total", "Changes that the audit log tells of."),
];

const GAUGES: [(&str, &str); 6] = [
    ("frazil_files_in_flight", "Operations on files that are under way."),
    ("frazil_commit_queue_depth", "Requests that wait in this process, over all tables."),
    ("frazil_writer_last_commit_timestamp_seconds", "When a known writer committed last."),
    ("frazil_build_info", "Always 1; its label tells the version."),
    ("frazil_database_connections", "Connections to the database."),
    ("frazil_database_connections_max", "How many connections a pool may have."),
];

const HISTOGRAMS: [(&str, &str); 5] = [
    ("frazil_http_request_duration_seconds", "From the head of a request to the head of its answer."),
    ("frazil_files_duration_seconds", "How long operations on files took."),
    ("frazil_commit_wait_seconds", "From the arrival of a request until its group was first taken."),
    ("frazil_commit_group_size", "How many requests were taken together."),
    ("frazil_commit_metadata_bytes", "Size of the metadata files that commits write."),
];

/// Counters of what is rare are shown before they first count: who watches for the first time could not see it else.
const RARE: [&str; 3] =
    ["frazil_http_requests_shed_total", "frazil_commit_swaps_lost_total", "frazil_commit_log_dropped_total"];

/// Says it to the recorder of the process.
pub fn describe() {
    COUNTERS.iter().for_each(|(name, help)| describe_counter!(*name, *help));
    GAUGES.iter().for_each(|(name, help)| describe_gauge!(*name, *help));
    HISTOGRAMS.iter().for_each(|(name, help)| describe_histogram!(*name, *help));
    RARE.iter().for_each(|name| counter!(*name).increment(0));
    Collector::default().describe();
}
