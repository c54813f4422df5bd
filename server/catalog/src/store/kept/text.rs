//! Texts from clients, made fit for the columns of a database.

use sha2::{Digest, Sha256};

/// Of a text that is part of a key as a whole: an entry of a B-tree must fit into a third of a page.
const WHOLE_BYTES_MAX: usize = 1_000;
/// Of a longer one. With the hash behind it, it is longer than any whole one.
const CUT_BYTES: usize = 960;

/// The same text without NUL, which Postgres does not hold, and without U+0001, which stands between texts. Escaped texts
/// are equal where the texts are, and sort alike.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0' => escaped.push_str("\u{2}\u{2}"),
            '\u{1}' => escaped.push_str("\u{2}\u{3}"),
            '\u{2}' => escaped.push_str("\u{2}\u{4}"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The reverse of [`escaped`].
pub fn unescaped(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\u{2}', Some(stands_for @ '\u{2}'..='\u{4}')) => {
                chars.next();
                unescaped.push(char::from(stands_for as u8 - 2));
            }
            _ => unescaped.push(c),
        }
    }
    unescaped
}

/// A text that fits into a key, different for different texts: a hash stands for the end of a long one. Texts that differ
/// in what is left of them sort as they do.
pub fn bounded(text: &str) -> String {
    match text.len() <= WHOLE_BYTES_MAX {
        true => text.to_owned(),
        false => {
            let kept = text.floor_char_boundary(CUT_BYTES);
            format!("{}{}", &text[..kept], hex::encode(Sha256::digest(text)))
        }
    }
}

/// The first eight bytes of SHA-256.
pub(super) fn hash(text: &str) -> i64 {
    let digest = Sha256::digest(text);
    let (first, _) = digest.split_first_chunk().expect("SHA-256 has 32 bytes");
    i64::from_be_bytes(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: [&str; 10] =
        ["", "\0", "\0\0", "\u{1}", "\u{1}\0", "\u{2}", "\u{2}\u{2}", "\u{2}\u{3}", "a\0b", "a\u{1F9CA}"];

    #[test]
    fn any_text_comes_back_as_it_was_and_holds_no_nul() {
        for text in ODD {
            assert!(!escaped(text).contains(['\0', '\u{1}']), "{text:?}");
            assert_eq!(unescaped(&escaped(text)), text);
        }
    }

    #[test]
    fn texts_sort_as_they_did_alone_and_in_a_row() {
        let joined = |[one, two]: [&str; 2]| [one, two].map(escaped).join("\u{1}");
        for mine in ODD {
            for theirs in ODD {
                assert_eq!(escaped(mine).cmp(&escaped(theirs)), mine.cmp(theirs), "{mine:?} {theirs:?}");
                for second in ODD {
                    let (one, two) = ([mine, second], [theirs, mine]);
                    assert_eq!(joined(one).cmp(&joined(two)), one.cmp(&two), "{one:?} {two:?}");
                }
            }
        }
    }

    #[test]
    fn what_was_kept_before_texts_were_escaped_is_read_as_it_is() {
        for text in ["main", "\u{1}", "\u{2}", "\u{2}a"] {
            assert_eq!(unescaped(text), text);
        }
    }

    #[test]
    fn a_long_text_fits_into_a_key_and_stays_different() {
        let long = "ü".repeat(WHOLE_BYTES_MAX);
        let other = format!("{long}.");
        for text in [&long, &other] {
            assert!((WHOLE_BYTES_MAX + 1..=1_024).contains(&bounded(text).len()));
        }
        assert_ne!(bounded(&long), bounded(&other));
        assert_eq!(bounded("main"), "main");
    }
}
