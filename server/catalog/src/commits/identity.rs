//! Who is writing and how far they are, told by what stock writers leave in the summaries of their snapshots.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A snapshot's summary, as [`crate::metadata::Snapshot::summary`] gives it.
pub type Summary = BTreeMap<String, String>;

const FLINK_JOB: &str = "flink.job-id";
const FLINK_OPERATOR: &str = "flink.operator-id";
const FLINK_CHECKPOINT: &str = "flink.max-committed-checkpoint-id";
const KAFKA_CONNECT_OFFSETS: &str = "kafka.connect.offsets.";
const SPARK_QUERY: &str = "spark.sql.streaming.queryId";
const SPARK_EPOCH: &str = "spark.sql.streaming.epochId";
const ARROYO_COMMIT: &str = "arroyo.commit-id";
const WRITER_ID: &str = "frazil.writer-id";
const WRITER_PART: &str = "frazil.part";
const WRITER_POSITION: &str = "frazil.position";
const WRITER_EPOCH: &str = "frazil.epoch";

/// What a commit counts of itself. Two builds of the same commit count alike, whatever they were built on.
const COUNTS: [&str; 6] = [
    "added-data-files",
    "added-delete-files",
    "added-equality-deletes",
    "added-files-size",
    "added-position-deletes",
    "added-records",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriterKind {
    Flink,
    KafkaConnect,
    SparkStreaming,
    Arroyo,
    /// Names itself by `frazil.writer-id`.
    Named,
}

impl WriterKind {
    /// As the stores and the API have it.
    pub fn as_str(self) -> &'static str {
        match self {
            WriterKind::Flink => "flink",
            WriterKind::KafkaConnect => "kafka-connect",
            WriterKind::SparkStreaming => "spark-streaming",
            WriterKind::Arroyo => "arroyo",
            WriterKind::Named => "named",
        }
    }

    /// Whether a writer of this kind writes new files when it repeats a position, so that only the position tells.
    pub fn goes_by_position(self) -> bool {
        matches!(self, WriterKind::SparkStreaming | WriterKind::Arroyo)
    }

    /// The reverse of [`Self::as_str`].
    pub fn of(text: &str) -> Option<Self> {
        use WriterKind::{Arroyo, Flink, KafkaConnect, Named, SparkStreaming};
        [Flink, KafkaConnect, SparkStreaming, Arroyo, Named].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One writer of one branch of one table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Writer {
    pub kind: WriterKind,
    /// The job, the offsets key, the query or the name that it goes by.
    pub id: String,
    /// Flink's operator, or the part of a named writer; empty where there is none.
    pub part: String,
}

impl Writer {
    /// Whether a snapshot of `self` keeps one of `other` from being rebased over it. Flink's own ancestry check takes
    /// an operator that is not told for any.
    pub fn fences(&self, other: &Writer) -> bool {
        let any_part = self.kind == WriterKind::Flink && (self.part.is_empty() || other.part.is_empty());
        self.kind == other.kind && self.id == other.id && (any_part || self.part == other.part)
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.id)?;
        if self.part.is_empty() { Ok(()) } else { write!(f, "/{}", self.part) }
    }
}

/// How far a writer is. Serialized as the number, the map or the text that it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Position {
    /// A checkpoint, an epoch, or a number of the writer's own. [`END_OF_INPUT`] is no place in the order.
    Number(i64),
    /// Partition to offset.
    Offsets(BTreeMap<String, i64>),
    /// Only equal or not.
    Mark(String),
}

/// What Flink commits when its bounded input ends.
pub const END_OF_INPUT: i64 = i64::MAX;

impl Position {
    /// `None` where neither is ahead of the other. A partition that is absent is behind any offset.
    pub fn compare(&self, other: &Position) -> Option<Ordering> {
        match (self, other) {
            (Position::Number(mine), Position::Number(theirs)) => Some(mine.cmp(theirs)),
            (Position::Offsets(mine), Position::Offsets(theirs)) => compare_offsets(mine, theirs),
            (Position::Mark(mine), Position::Mark(theirs)) if mine == theirs => Some(Ordering::Equal),
            _ => None,
        }
    }
}

fn compare_offsets(mine: &BTreeMap<String, i64>, theirs: &BTreeMap<String, i64>) -> Option<Ordering> {
    let partitions = mine.keys().chain(theirs.keys());
    let each = partitions.map(|partition| mine.get(partition).cmp(&theirs.get(partition)));
    each.filter(|order| order.is_ne()).try_fold(Ordering::Equal, |so_far, order| match so_far {
        Ordering::Equal => Some(order),
        _ if so_far == order => Some(order),
        _ => None,
    })
}

/// What one snapshot tells of its writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub writer: Writer,
    pub position: Option<Position>,
    /// The incarnation of a named writer: a lower one than the highest seen is a zombie's.
    pub epoch: Option<i64>,
}

impl Identity {
    /// The position as text, for people.
    pub fn told_position(&self) -> String {
        match &self.position {
            Some(Position::Number(number)) => number.to_string(),
            Some(Position::Offsets(offsets)) => serde_json::to_string(offsets).unwrap_or_default(),
            Some(Position::Mark(mark)) => mark.clone(),
            None => "none".to_owned(),
        }
    }

    /// `None` for a writer that says nothing of itself. Stock writers are known by the keys that they set anyway.
    pub fn of(summary: &Summary) -> Option<Self> {
        flink(summary)
            .or_else(|| kafka_connect(summary))
            .or_else(|| spark_streaming(summary))
            .or_else(|| arroyo(summary))
            .or_else(|| named(summary))
    }
}

fn flink(summary: &Summary) -> Option<Identity> {
    let checkpoint = summary.get(FLINK_CHECKPOINT)?.parse().ok()?;
    let part = summary.get(FLINK_OPERATOR).cloned().unwrap_or_default();
    let writer = Writer { kind: WriterKind::Flink, id: summary.get(FLINK_JOB)?.clone(), part };
    Some(Identity { writer, position: Some(Position::Number(checkpoint)), epoch: epoch(summary) })
}

fn kafka_connect(summary: &Summary) -> Option<Identity> {
    let (key, offsets) = summary.iter().find(|(key, _)| key.starts_with(KAFKA_CONNECT_OFFSETS))?;
    let writer = Writer { kind: WriterKind::KafkaConnect, id: key.clone(), part: String::new() };
    let position = serde_json::from_str(offsets).ok().map(Position::Offsets);
    Some(Identity { writer, position, epoch: epoch(summary) })
}

fn spark_streaming(summary: &Summary) -> Option<Identity> {
    let writer =
        Writer { kind: WriterKind::SparkStreaming, id: summary.get(SPARK_QUERY)?.clone(), part: String::new() };
    let position = summary.get(SPARK_EPOCH).and_then(|epoch| epoch.parse().ok()).map(Position::Number);
    Some(Identity { writer, position, epoch: epoch(summary) })
}

/// Its commit id is a hash over job, operator, epoch and table: there is no writer in it and no order.
fn arroyo(summary: &Summary) -> Option<Identity> {
    let commit = summary.get(ARROYO_COMMIT)?.clone();
    let writer = Writer { kind: WriterKind::Arroyo, id: String::new(), part: String::new() };
    Some(Identity { writer, position: Some(Position::Mark(commit)), epoch: None })
}

fn named(summary: &Summary) -> Option<Identity> {
    let part = summary.get(WRITER_PART).cloned().unwrap_or_default();
    let writer = Writer { kind: WriterKind::Named, id: summary.get(WRITER_ID)?.clone(), part };
    let position = summary.get(WRITER_POSITION).and_then(|text| match serde_json::from_str(text) {
        Ok(position @ (Position::Number(_) | Position::Offsets(_))) => Some(position),
        Ok(Position::Mark(_)) | Err(_) => None,
    });
    Some(Identity { writer, position, epoch: epoch(summary) })
}

fn epoch(summary: &Summary) -> Option<i64> {
    summary.get(WRITER_EPOCH)?.parse().ok()
}

/// The numbers of `COUNTS` in their order; one that is not told is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts([i64; COUNTS.len()]);

impl Counts {
    pub fn of(summary: &Summary) -> Self {
        Self(COUNTS.map(|key| summary.get(key).and_then(|count| count.parse().ok()).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(entries: &[(&str, &str)]) -> Summary {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn offsets(entries: &[(&str, i64)]) -> Position {
        Position::Offsets(entries.iter().map(|(partition, offset)| ((*partition).to_owned(), *offset)).collect())
    }

    fn told(entries: &[(&str, &str)]) -> (WriterKind, String, String, Option<Position>, Option<i64>) {
        let Identity { writer, position, epoch } = Identity::of(&summary(entries)).unwrap();
        (writer.kind, writer.id, writer.part, position, epoch)
    }

    #[test]
    fn stock_writers_are_known_by_their_own_keys() {
        let flink = [(FLINK_JOB, "j"), (FLINK_OPERATOR, "o"), (FLINK_CHECKPOINT, "7"), (WRITER_ID, "w")];
        assert_eq!(told(&flink), (WriterKind::Flink, "j".into(), "o".into(), Some(Position::Number(7)), None));
        let key = "kafka.connect.offsets.control-iceberg.connect-ice-sink";
        let kafka = [(key, r#"{"0":4,"1":9}"#), ("kafka.connect.commit-id", "8af8f9a0")];
        let position = Some(offsets(&[("0", 4), ("1", 9)]));
        assert_eq!(told(&kafka), (WriterKind::KafkaConnect, key.into(), String::new(), position, None));
        let spark = [(SPARK_QUERY, "q"), (SPARK_EPOCH, "3"), ("spark.app.id", "local-1")];
        let position = Some(Position::Number(3));
        assert_eq!(told(&spark), (WriterKind::SparkStreaming, "q".into(), String::new(), position, None));
        let position = Some(Position::Mark("h".into()));
        assert_eq!(told(&[(ARROYO_COMMIT, "h")]), (WriterKind::Arroyo, String::new(), String::new(), position, None));
    }

    #[test]
    fn any_other_writer_may_name_itself() {
        let whole = [(WRITER_ID, "w"), (WRITER_PART, "3"), (WRITER_POSITION, "12"), (WRITER_EPOCH, "2")];
        let position = Some(Position::Number(12));
        assert_eq!(told(&whole), (WriterKind::Named, "w".into(), "3".into(), position, Some(2)));
        let map = [(WRITER_ID, "w"), (WRITER_POSITION, r#"{"a":1}"#)];
        assert_eq!(told(&map).3, Some(offsets(&[("a", 1)])));
        for no_position in ["x", "1.5", "[1]", r#""mark""#, r#"{"a":"b"}"#] {
            assert_eq!(told(&[(WRITER_ID, "w"), (WRITER_POSITION, no_position)]).3, None, "{no_position}");
        }
    }

    #[test]
    fn who_says_nothing_is_anonymous() {
        for entries in [
            &[("operation", "append"), ("spark.app.id", "a")][..],
            &[("trino_query_id", "x")],
            &[(FLINK_JOB, "j"), (FLINK_CHECKPOINT, "x")],
            &[(FLINK_CHECKPOINT, "1")],
            &[(WRITER_PART, "1"), (WRITER_POSITION, "1")],
        ] {
            assert_eq!(Identity::of(&summary(entries)), None, "{entries:?}");
        }
    }

    #[test]
    fn numbers_stand_in_a_line_and_offsets_partition_by_partition() {
        use Ordering::{Equal, Greater, Less};
        let number = Position::Number;
        for (mine, theirs, expected) in [
            (number(1), number(2), Some(Less)),
            (number(END_OF_INPUT), number(END_OF_INPUT), Some(Equal)),
            (offsets(&[("0", 4)]), offsets(&[("0", 4)]), Some(Equal)),
            (offsets(&[("0", 4)]), offsets(&[("0", 4), ("1", 0)]), Some(Less)),
            (offsets(&[("0", 5), ("1", 1)]), offsets(&[("0", 4)]), Some(Greater)),
            (offsets(&[("0", 5)]), offsets(&[("0", 4), ("1", 1)]), None),
            (Position::Mark("a".into()), Position::Mark("a".into()), Some(Equal)),
            (Position::Mark("a".into()), Position::Mark("b".into()), None),
            (number(1), offsets(&[("0", 1)]), None),
        ] {
            assert_eq!(mine.compare(&theirs), expected, "{mine:?} {theirs:?}");
            assert_eq!(theirs.compare(&mine), expected.map(Ordering::reverse), "{theirs:?} {mine:?}");
        }
    }

    #[test]
    fn a_flink_operator_that_is_not_told_may_be_any() {
        let flink = |job: &str, operator: &str| Writer {
            kind: WriterKind::Flink,
            id: job.to_owned(),
            part: operator.to_owned(),
        };
        assert!(flink("j", "o").fences(&flink("j", "o")));
        assert!(flink("j", "").fences(&flink("j", "o")) && flink("j", "o").fences(&flink("j", "")));
        assert!(!flink("j", "o").fences(&flink("j", "p")) && !flink("i", "o").fences(&flink("j", "o")));
        let named = |part: &str| Writer { kind: WriterKind::Named, ..flink("j", part) };
        assert!(!named("").fences(&named("o")) && !named("o").fences(&flink("j", "o")));
    }

    #[test]
    fn counts_are_those_of_the_commit_alone() {
        let one = [("added-data-files", "1"), ("added-records", "5"), ("total-records", "5")];
        let same = [("added-data-files", "1"), ("added-records", "5"), ("total-records", "500"), ("engine-name", "x")];
        let other = [("added-data-files", "1"), ("added-records", "6")];
        assert_eq!(Counts::of(&summary(&one)), Counts::of(&summary(&same)));
        assert_ne!(Counts::of(&summary(&one)), Counts::of(&summary(&other)));
    }
}
