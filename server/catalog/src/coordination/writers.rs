//! Which row of the ledger is meant, and what a call makes of it.

use crate::commits::identity::{Position, Writer, WriterKind};
use crate::commits::lineage::{Which, WriterRow};
use crate::error::{Error, Kind, Result};
use crate::metadata::MAIN_BRANCH;
use crate::namespaces::check_part;

use super::landing;

/// A writer that makes itself known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    pub writer: Writer,
    /// `None` is main.
    pub ref_name: Option<String>,
    /// Raises the epoch, so that whatever commits with a lower one is refused from now on.
    pub take_over: bool,
}

/// What is to become of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Register { take_over: bool },
    Reset { position: Option<Position> },
    Retire,
}

/// When a change is made: the time, and the last sequence number that the table has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub now_ms: i64,
    /// `None` where the table counts none.
    pub sequence_number: Option<i64>,
}

impl Register {
    /// The row that it is about, wholly named.
    pub fn checked(self) -> Result<(Which, Change)> {
        let Self { writer: Writer { kind, id, part }, ref_name, take_over } = self;
        let ref_name = ref_name.unwrap_or_else(|| MAIN_BRANCH.to_owned());
        if kind == WriterKind::Arroyo {
            return Err(Error::invalid("kind 'arroyo' cannot be registered: its commits do not name their writer"));
        }
        check_part("writer-id", &id)?;
        check_part("ref", &ref_name)?;
        if !part.is_empty() {
            check_part("part", &part)?;
        }
        let which = Which { id, ref_name: Some(ref_name), kind: Some(kind), part: Some(part) };
        Ok((which, Change::Register { take_over }))
    }
}

impl Which {
    /// The id that the ledger has. Arroyo's commits name no writer, so that any name will do for it.
    pub fn id(&self) -> &str {
        if self.kind == Some(WriterKind::Arroyo) { "" } else { &self.id }
    }

    pub fn fits(&self, row: &WriterRow) -> bool {
        self.ref_name.as_ref().is_none_or(|name| *name == row.ref_name) && self.fits_writer(row)
    }

    fn fits_writer(&self, row: &WriterRow) -> bool {
        let Writer { kind, id, part } = &row.writer;
        id == self.id()
            && self.kind.is_none_or(|wanted| wanted == *kind)
            && self.part.as_ref().is_none_or(|wanted| wanted == part)
    }

    /// The one row that is meant; `None` where none is. Several are refused with what tells them apart.
    fn one_of(&self, mut rows: Vec<WriterRow>) -> Result<Option<WriterRow>> {
        rows.retain(|row| self.fits(row));
        match rows.len() {
            0 | 1 => Ok(rows.pop()),
            _ => Err(self.ambiguous(&rows)),
        }
    }

    /// The ref and the writer that a question is about, who may be unknown as yet.
    pub fn asked(&self, rows: &[WriterRow]) -> Result<(String, Writer)> {
        if let Some(row) = self.one_of(rows.to_vec())? {
            return Ok((row.ref_name, row.writer));
        }
        let ref_name = self.ref_name.clone().unwrap_or_else(|| MAIN_BRANCH.to_owned());
        // On another ref it is known under the same name.
        let mut elsewhere: Vec<_> = rows.iter().filter(|row| self.fits_writer(row)).cloned().collect();
        elsewhere.dedup_by(|a, b| a.writer == b.writer);
        match elsewhere.as_slice() {
            [] => Ok((ref_name, self.unknown())),
            [row] => Ok((ref_name, row.writer.clone())),
            several => Err(self.ambiguous(several)),
        }
    }

    fn unknown(&self) -> Writer {
        let part = self.part.clone().unwrap_or_default();
        Writer { kind: self.kind.unwrap_or(WriterKind::Named), id: self.id().to_owned(), part }
    }

    fn ambiguous(&self, rows: &[WriterRow]) -> Error {
        let choices: Vec<_> = rows.iter().map(choice).collect();
        let message = format!("several writers have the id '{}': name ref, kind and part of one of {}", self.id, {
            choices.join("; ")
        });
        Error::invalid(message)
    }

    fn missing(&self) -> Error {
        let told = [("ref", self.ref_name.as_deref()), ("kind", self.kind.map(WriterKind::as_str))];
        let told = told.into_iter().chain([("part", self.part.as_deref())]);
        let further = told.filter_map(|(field, value)| Some(format!(", {field} '{}'", value?))).collect::<String>();
        let message = format!("no writer with id '{}'{further} has committed or was registered", self.id);
        Error::new(Kind::NotFound, message)
    }
}

fn choice(row: &WriterRow) -> String {
    format!("ref={} kind={} part={}", row.ref_name, row.writer.kind.as_str(), row.writer.part)
}

impl Change {
    /// The row as it is among `rows`, and as it is to be.
    pub fn of(&self, which: &Which, rows: Vec<WriterRow>, at: Moment) -> Result<(Option<WriterRow>, WriterRow)> {
        let before = which.one_of(rows)?;
        let after = match (self, before.clone()) {
            (Change::Register { take_over }, Some(row)) => registered_again(row, *take_over)?,
            (Change::Register { .. }, None) => registered(which, at.now_ms),
            (Change::Reset { .. } | Change::Retire, None) => return Err(which.missing()),
            (Change::Reset { position }, Some(row)) => reset(row, position.clone(), at)?,
            (Change::Retire, Some(row)) => WriterRow { retired: true, ..row },
        };
        Ok((before, after))
    }
}

fn registered(which: &Which, now_ms: i64) -> WriterRow {
    let ref_name = which.ref_name.as_deref().unwrap_or(MAIN_BRANCH);
    WriterRow { epoch: Some(1), ..WriterRow::blank(ref_name, which.unknown(), now_ms) }
}

fn registered_again(row: WriterRow, take_over: bool) -> Result<WriterRow> {
    let epoch = match take_over {
        true => Some(row.epoch.unwrap_or(0).checked_add(1).ok_or_else(last_epoch)?),
        false => row.epoch,
    };
    Ok(WriterRow { epoch, retired: false, ..row })
}

fn last_epoch() -> Error {
    Error::unprocessable("the epoch of this writer is the highest that there is: register under another writer-id")
}

/// No snapshot belongs to a position that was told and not committed, and what landed so far no longer speaks for the
/// writer.
fn reset(row: WriterRow, position: Option<Position>, at: Moment) -> Result<WriterRow> {
    if let Some(position) = &position {
        landing::check(row.writer.kind, position)?;
    }
    let row = WriterRow { since_sequence_number: row.since_sequence_number.max(at.sequence_number), ..row };
    if position == row.position {
        return Ok(row);
    }
    Ok(WriterRow { position, snapshot_id: None, sequence_number: 0, ..row })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ref_name: &str, kind: WriterKind, part: &str) -> WriterRow {
        WriterRow {
            ref_name: ref_name.to_owned(),
            writer: Writer { kind, id: "w".to_owned(), part: part.to_owned() },
            position: Some(Position::Number(7)),
            snapshot_id: Some(70),
            sequence_number: 3,
            first_snapshot_id: Some(10),
            since_sequence_number: None,
            epoch: None,
            retired: false,
            at_ms: 5,
        }
    }

    const AT: Moment = Moment { now_ms: 9, sequence_number: Some(12) };

    fn flink() -> WriterRow {
        row("main", WriterKind::Flink, "op")
    }

    fn which(id: &str) -> Which {
        Which { id: id.to_owned(), ..Which::default() }
    }

    fn register(take_over: bool) -> (Which, Change) {
        let writer = Writer { kind: WriterKind::Named, id: "w".to_owned(), part: String::new() };
        Register { writer, ref_name: None, take_over }.checked().unwrap()
    }

    #[test]
    fn a_writer_that_nobody_knew_starts_with_epoch_one() {
        for take_over in [false, true] {
            let (which, change) = register(take_over);
            let (before, after) = change.of(&which, vec![flink()], AT).unwrap();
            assert_eq!(before, None);
            assert_eq!((after.ref_name.as_str(), after.epoch, after.at_ms), ("main", Some(1), 9));
            assert_eq!((after.position, after.snapshot_id), (None, None));
        }
    }

    #[test]
    fn a_take_over_raises_the_epoch_by_one_and_a_register_leaves_it() {
        for (epoch, take_over, expected) in
            [(None, false, None), (None, true, Some(1)), (Some(4), false, Some(4)), (Some(4), true, Some(5))]
        {
            let (which, change) = register(take_over);
            let known = WriterRow { epoch, ..row("main", WriterKind::Named, "") };
            let (_, after) = change.of(&which, vec![known.clone()], AT).unwrap();
            assert_eq!(after, WriterRow { epoch: expected, ..known });
        }
        let (which, change) = register(true);
        let last = WriterRow { epoch: Some(i64::MAX), ..row("main", WriterKind::Named, "") };
        assert_eq!(change.of(&which, vec![last], AT).unwrap_err().kind(), Kind::Unprocessable);
    }

    #[test]
    fn a_register_takes_a_retirement_back() {
        let (which, change) = register(false);
        let known = row("main", WriterKind::Named, "");
        let retired = WriterRow { retired: true, ..known.clone() };
        assert_eq!(change.of(&which, vec![retired], AT).unwrap().1, known);
    }

    #[test]
    fn a_reset_leaves_nothing_of_the_position_but_the_epoch_and_the_beginning() {
        let known = WriterRow { epoch: Some(2), ..flink() };
        for position in [None, Some(Position::Number(3))] {
            let change = Change::Reset { position: position.clone() };
            let (_, after) = change.of(&which("w"), vec![known.clone()], AT).unwrap();
            let since_sequence_number = Some(12);
            let expected =
                WriterRow { position, snapshot_id: None, sequence_number: 0, since_sequence_number, ..known.clone() };
            assert_eq!(after, expected);
        }
        let same = Change::Reset { position: known.position.clone() };
        let since = WriterRow { since_sequence_number: Some(12), ..known.clone() };
        assert_eq!(same.of(&which("w"), vec![known.clone()], AT).unwrap().1, since);
        let mark = Change::Reset { position: Some(Position::Mark("x".to_owned())) };
        assert_eq!(mark.of(&which("w"), vec![known], AT).unwrap_err().kind(), Kind::Invalid);
    }

    #[test]
    fn who_is_not_there_cannot_be_reset_or_retired() {
        for change in [Change::Retire, Change::Reset { position: None }] {
            let error = change.of(&which("x"), vec![], AT).unwrap_err();
            assert_eq!(error.kind(), Kind::NotFound);
            assert!(error.message().contains("'x'"), "{error}");
        }
    }

    #[test]
    fn an_id_that_several_have_must_be_told_more_exactly() {
        let rows = || vec![flink(), row("audit", WriterKind::Flink, "op"), row("main", WriterKind::Named, "")];
        let error = Change::Retire.of(&which("w"), rows(), AT).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().contains("ref=audit kind=flink part=op; ref=main kind=named part="), "{error}");
        let exact = Which { ref_name: Some("main".to_owned()), kind: Some(WriterKind::Flink), ..which("w") };
        let (_, after) = Change::Retire.of(&exact, rows(), AT).unwrap();
        assert_eq!(after, WriterRow { retired: true, ..flink() });
    }

    #[test]
    fn a_question_may_be_about_a_ref_that_the_writer_never_wrote_to() {
        let on_audit = Which { ref_name: Some("audit".to_owned()), ..which("w") };
        assert_eq!(on_audit.asked(&[flink()]).unwrap(), ("audit".to_owned(), flink().writer));
        let stranger = Writer { kind: WriterKind::Named, id: "x".to_owned(), part: String::new() };
        assert_eq!(which("x").asked(&[]).unwrap(), ("main".to_owned(), stranger));
        assert!(on_audit.asked(&[flink(), row("main", WriterKind::Named, "")]).is_err());
    }

    #[test]
    fn what_can_be_no_name_is_refused() {
        let named = |id: &str, part: &str| Writer { kind: WriterKind::Named, id: id.to_owned(), part: part.to_owned() };
        let long = "x".repeat(2_000);
        for (writer, ref_name, field) in [
            (named("", ""), None, "writer-id"),
            (named(&long, ""), None, "writer-id"),
            (named("..", ""), None, "writer-id"),
            (named("a\0", ""), None, "writer-id"),
            (named("w", &long), None, "part"),
            (named("w", ""), Some(""), "ref"),
            (Writer { kind: WriterKind::Arroyo, ..named("w", "") }, None, "kind"),
        ] {
            let register = Register { writer, ref_name: ref_name.map(str::to_owned), take_over: false };
            let error = register.checked().unwrap_err();
            assert!(error.message().starts_with(field), "{error}");
        }
    }
}
