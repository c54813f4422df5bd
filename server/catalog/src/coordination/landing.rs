//! Whether a position of a writer has landed on a ref.

use crate::commits::ancestry::Met;
use crate::commits::identity::{Identity, Position, Writer, WriterKind};
use crate::commits::lineage::{Asked, Landed, WriterRow};
use crate::error::{Error, Result};

/// How far a writer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Its rows of the ledger, as far as they were asked for.
    pub rows: Vec<WriterRow>,
    /// The answer to a question for a position.
    pub landing: Option<Landing>,
}

/// What became of a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing {
    /// It is there, in this snapshot.
    Landed(Landed),
    /// It was there, and the ref went back behind it.
    RolledBack(Landed),
    /// It never came.
    Missing,
}

/// A position of a writer on a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub ref_name: String,
    pub writer: Writer,
    pub position: Position,
}

impl Question {
    pub fn asked(&self) -> Asked {
        let identity = Identity { writer: self.writer.clone(), position: Some(self.position.clone()), epoch: None };
        Asked { ref_name: self.ref_name.clone(), identity }
    }
}

/// `there` holds the snapshots at the position with what was met of them, the newest first. Behind a gap in the lineage
/// they count as landed, as they do for the next commit.
pub fn judge(mut there: Vec<(Landed, Met)>) -> Landing {
    // On the ref, else perhaps on it, else nowhere any more; the newest of its kind.
    there.sort_by_key(|(_, met)| match met {
        Met::Ancestor => 0,
        Met::Gap => 1,
        Met::Missing => 2,
    });
    match there.into_iter().next() {
        None => Landing::Missing,
        Some((landed, Met::Missing)) => Landing::RolledBack(landed),
        Some((landed, Met::Ancestor | Met::Gap)) => Landing::Landed(landed),
    }
}

/// A position of such a writer, out of a query: an integer, a JSON object of offsets, or a mark as it is.
pub fn parse(kind: WriterKind, text: &str) -> Result<Position> {
    if kind == WriterKind::Arroyo {
        return Ok(Position::Mark(text.to_owned()));
    }
    let position = serde_json::from_str(text).map_err(|_| misfit(kind))?;
    check(kind, &position)?;
    Ok(position)
}

/// Whether a writer of that kind counts in this way.
pub fn check(kind: WriterKind, position: &Position) -> Result<()> {
    use WriterKind::{Arroyo, Flink, KafkaConnect, Named, SparkStreaming};
    let fits = match position {
        Position::Number(_) => matches!(kind, Flink | SparkStreaming | Named),
        Position::Offsets(_) => matches!(kind, KafkaConnect | Named),
        Position::Mark(_) => kind == Arroyo,
    };
    if fits { Ok(()) } else { Err(misfit(kind)) }
}

fn misfit(kind: WriterKind) -> Error {
    let wanted = match kind {
        WriterKind::Flink | WriterKind::SparkStreaming => "an integer",
        WriterKind::KafkaConnect => "an object of offsets by partition",
        WriterKind::Arroyo => "a text",
        WriterKind::Named => "an integer, or an object of offsets by partition",
    };
    Error::invalid(format!("position of a writer of kind {} must be {wanted}", kind.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn landed(snapshot_id: i64) -> Landed {
        Landed { ref_name: Some("main".to_owned()), ..Landed::bare(snapshot_id, None, snapshot_id, 0) }
    }

    #[test]
    fn the_snapshot_that_was_met_tells_where_the_position_is() {
        let judged = |newer, older| judge(vec![(landed(9), newer), (landed(4), older)]);
        assert_eq!(judged(Met::Missing, Met::Ancestor), Landing::Landed(landed(4)));
        assert_eq!(judged(Met::Ancestor, Met::Ancestor), Landing::Landed(landed(9)));
        assert_eq!(judged(Met::Gap, Met::Gap), Landing::Landed(landed(9)));
        assert_eq!(judged(Met::Missing, Met::Gap), Landing::Landed(landed(4)));
        assert_eq!(judged(Met::Missing, Met::Missing), Landing::RolledBack(landed(9)));
        assert_eq!(judge(vec![]), Landing::Missing);
    }

    #[test]
    fn a_position_is_read_as_its_writer_counts() {
        let offsets = Position::Offsets(BTreeMap::from([("0".to_owned(), 4)]));
        for (kind, text, expected) in [
            (WriterKind::Flink, "9223372036854775807", Some(Position::Number(i64::MAX))),
            (WriterKind::SparkStreaming, "0", Some(Position::Number(0))),
            (WriterKind::KafkaConnect, r#"{"0": 4}"#, Some(offsets.clone())),
            (WriterKind::Named, r#"{"0":4}"#, Some(offsets)),
            (WriterKind::Named, "-3", Some(Position::Number(-3))),
            (WriterKind::Arroyo, "0012", Some(Position::Mark("0012".to_owned()))),
            (WriterKind::Flink, r#"{"0":4}"#, None),
            (WriterKind::KafkaConnect, "4", None),
            (WriterKind::Named, r#""x""#, None),
            (WriterKind::Named, "x", None),
            (WriterKind::Named, "1.5", None),
            (WriterKind::Named, "", None),
        ] {
            assert_eq!(parse(kind, text).ok(), expected, "{kind:?} {text}");
        }
    }
}
