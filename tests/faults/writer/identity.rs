//! What stock writers leave in the summaries of their snapshots.

/// Entries of a summary.
pub type Keys = Vec<(String, String)>;

fn keys(entries: &[(&str, &str)]) -> Keys {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A Flink job at a checkpoint; `i64::MAX` ends its input.
pub fn flink(job: &str, operator: &str, checkpoint: i64) -> Keys {
    let checkpoint = checkpoint.to_string();
    keys(&[("flink.job-id", job), ("flink.operator-id", operator), ("flink.max-committed-checkpoint-id", &checkpoint)])
}

/// A Kafka Connect coordinator at offsets of its control topic, as in `{"0":7}`.
pub fn kafka_connect(group: &str, offsets: &str, commit_id: &str) -> Keys {
    let key = format!("kafka.connect.offsets.control-iceberg.{group}");
    keys(&[(&key, offsets), ("kafka.connect.commit-id", commit_id)])
}

/// A query of Spark structured streaming at an epoch.
pub fn spark_streaming(query: &str, epoch: i64) -> Keys {
    let epoch = epoch.to_string();
    keys(&[("spark.sql.streaming.queryId", query), ("spark.sql.streaming.epochId", &epoch), ("engine-name", "spark")])
}

/// A batch job of Spark: it says nothing of a writer.
pub fn spark_batch() -> Keys {
    keys(&[("spark.app.id", "local-1"), ("engine-name", "spark")])
}

/// A writer that names itself to the catalog.
pub fn named(writer: &str, position: Option<i64>, epoch: Option<i64>) -> Keys {
    let mut named = keys(&[("frazil.writer-id", writer)]);
    named.extend(position.map(|position| ("frazil.position".to_owned(), position.to_string())));
    named.extend(epoch.map(|epoch| ("frazil.epoch".to_owned(), epoch.to_string())));
    named
}
