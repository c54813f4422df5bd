//! Pages of a listing: an opaque token names the last entry, so that nothing is lost or doubled beside changes.

use std::fmt::Write;

use crate::error::{Error, Result};
use crate::store::Page;

/// The largest page, in entries; a larger wish is cut to it.
pub const PAGE_MAX: u32 = 10_000;

/// How many entries a page has where the client pages and names no size.
const PAGE_DEFAULT: u32 = 1_000;

/// What the client asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// Unset: the client does not page and gets everything. Empty: it begins to page.
    pub token: Option<String>,
    pub size: Option<u32>,
}

/// A page with the token of the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    pub entries: Vec<T>,
    pub next_page_token: Option<String>,
}

impl PageRequest {
    /// What to ask the store for: one entry more than the page, to know whether another follows.
    pub fn probe(&self) -> Result<Page> {
        let after = match self.token.as_deref() {
            None | Some("") => None,
            Some(token) => Some(decode(token)?),
        };
        Ok(Page { after, limit: self.limit().map(|limit| limit + 1) })
    }

    /// The page out of the probed names.
    pub fn cut(&self, names: Vec<String>) -> Listing<String> {
        self.cut_by(names, String::as_str)
    }

    /// The page out of probed entries, which are listed by their `name`.
    pub fn cut_by<T>(&self, mut entries: Vec<T>, name: impl Fn(&T) -> &str) -> Listing<T> {
        let limit = self.limit().map_or(usize::MAX, |limit| limit as usize);
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next_page_token = entries.last().filter(|_| more).map(|last| encode(name(last)));
        Listing { entries, next_page_token }
    }

    fn limit(&self) -> Option<u32> {
        match (&self.token, self.size) {
            (_, Some(size)) => Some(size.min(PAGE_MAX)),
            (Some(_), None) => Some(PAGE_DEFAULT),
            (None, None) => None,
        }
    }
}

impl<T> Listing<T> {
    pub fn try_map<U>(self, into: impl FnMut(T) -> Result<U>) -> Result<Listing<U>> {
        let entries = self.entries.into_iter().map(into).collect::<Result<_>>()?;
        Ok(Listing { entries, next_page_token: self.next_page_token })
    }
}

/// Hexadecimal: no character of a name needs to survive a query string.
fn encode(name: &str) -> String {
    name.bytes().fold(String::with_capacity(2 * name.len()), |mut token, byte| {
        write!(token, "{byte:02x}").expect("writing to a string cannot fail");
        token
    })
}

fn decode(token: &str) -> Result<String> {
    let wrong = || Error::invalid("pageToken is not one that this catalog gave out");
    let digits = token.as_bytes();
    if !digits.len().is_multiple_of(2) || !token.is_ascii() {
        return Err(wrong());
    }
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes = digits.chunks(2).map(byte).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(range: std::ops::Range<u32>) -> Vec<String> {
        range.map(|n| format!("n{n}")).collect()
    }

    #[test]
    fn a_client_that_does_not_page_gets_everything() {
        let page = PageRequest::default();
        assert_eq!(page.probe().unwrap(), Page::ALL);
        assert_eq!(page.cut(names(0..3)), Listing { entries: names(0..3), next_page_token: None });
    }

    #[test]
    fn a_token_leads_to_the_entry_after_the_last_one() {
        let first = PageRequest { token: None, size: Some(2) };
        let listing = first.cut(names(0..3));
        assert_eq!(listing.entries, names(0..2));
        let next = PageRequest { token: listing.next_page_token, size: Some(2) };
        assert_eq!(next.probe().unwrap(), Page { after: Some("n1".into()), limit: Some(3) });
    }

    #[test]
    fn a_full_last_page_has_no_token() {
        let page = PageRequest { token: Some(String::new()), size: Some(2) };
        assert_eq!(page.cut(names(0..2)).next_page_token, None);
    }

    #[test]
    fn a_foreign_token_is_refused() {
        for token in ["zz", "abc", "ff", "é€"] {
            let page = PageRequest { token: Some(token.into()), size: None };
            assert!(page.probe().is_err(), "{token}");
        }
    }
}
