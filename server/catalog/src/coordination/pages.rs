//! Pages of the ledger and of the commit log. Both grow with a table's age, so that they are always told in pages.

use uuid::Uuid;

use crate::commits::identity::{Writer, WriterKind};
use crate::commits::lineage::{WriterCursor, WriterRow};
use crate::commits::log::LogEntry;
use crate::error::{Error, Result};
use crate::listing::{Listing, PageRequest};
use crate::store::Page;

/// A request for a page, the first one where no token is named.
pub struct Pages(PageRequest);

impl Pages {
    pub fn of(page: &PageRequest) -> Self {
        Self(PageRequest { token: Some(page.token.clone().unwrap_or_default()), size: page.size })
    }

    /// How many entries to ask the store for.
    pub fn probe(&self) -> Result<u32> {
        Ok(self.page()?.limit.expect("a request with a token has a limit"))
    }

    /// The row that the page comes after.
    pub fn writer(&self) -> Result<Option<WriterCursor>> {
        let cursor = |after: String| {
            let (ref_name, kind, id, part) = serde_json::from_str(&after).ok()?;
            Some(WriterCursor { ref_name, writer: Writer { kind, id, part } })
        };
        self.page()?.after.map(|after| cursor(after).ok_or_else(foreign)).transpose()
    }

    /// The entry that the page comes after.
    pub fn entry(&self) -> Result<Option<Uuid>> {
        self.page()?.after.map(|after| Uuid::try_parse(&after).map_err(|_| foreign())).transpose()
    }

    /// The page out of probed entries.
    pub fn cut<T>(&self, entries: Vec<T>, token: impl Fn(&T) -> String) -> Listing<T> {
        let named: Vec<_> = entries.into_iter().map(|entry| (token(&entry), entry)).collect();
        let Listing { entries, next_page_token } = self.0.cut_by(named, |(token, _)| token);
        Listing { entries: entries.into_iter().map(|(_, entry)| entry).collect(), next_page_token }
    }

    fn page(&self) -> Result<Page> {
        self.0.probe()
    }
}

pub fn writer_token(row: &WriterRow) -> String {
    let Writer { kind, id, part } = &row.writer;
    let place: (&str, WriterKind, &str, &str) = (&row.ref_name, *kind, id, part);
    serde_json::to_string(&place).expect("texts are JSON")
}

pub fn entry_token(entry: &LogEntry) -> String {
    entry.id.to_string()
}

fn foreign() -> Error {
    Error::invalid("pageToken is not one that this listing gave out")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> WriterRow {
        WriterRow {
            ref_name: "main".to_owned(),
            writer: Writer { kind: WriterKind::Flink, id: id.to_owned(), part: "o\"/ü".to_owned() },
            position: None,
            snapshot_id: None,
            sequence_number: 0,
            first_snapshot_id: None,
            since_sequence_number: None,
            epoch: None,
            retired: false,
            at_ms: 0,
        }
    }

    fn request(token: Option<&str>, size: Option<u32>) -> Pages {
        Pages::of(&PageRequest { token: token.map(str::to_owned), size })
    }

    #[test]
    fn a_token_leads_to_the_row_after_the_last_one() {
        let first = request(None, Some(1));
        assert_eq!((first.writer().unwrap(), first.probe().unwrap()), (None, 2));
        let page = first.cut(vec![row("a"), row("b")], writer_token);
        assert_eq!(page.entries, [row("a")]);
        let next = request(page.next_page_token.as_deref(), Some(1));
        let WriterRow { ref_name, writer, .. } = row("a");
        assert_eq!(next.writer().unwrap(), Some(WriterCursor { ref_name, writer }));
        assert!(next.entry().is_err());
    }

    #[test]
    fn who_does_not_page_gets_the_first_page() {
        assert_eq!(request(None, None).probe().unwrap(), request(Some(""), None).probe().unwrap());
    }
}
