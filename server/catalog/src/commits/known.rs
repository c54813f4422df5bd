//! Whether a request landed before, told by the snapshot ids that it brings.

/// What the ids of a request say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// None of them is known: the request is new.
    New,
    /// All of them landed in the tables that the request names: answer with what is there now.
    Before,
    /// They landed in part, or in a table that is gone: no refusal may be sent, for it would make clients delete live files.
    InDoubt,
}

/// One table of a request: the ids it adds, and how many of them are known where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    pub added: usize,
    /// Known in the lineage of the live table of that name.
    pub landed_here: usize,
    /// Known to have landed in a table that the name no longer means.
    pub landed_elsewhere: usize,
}

/// Judges all tables of a request together: a transaction lands as a whole.
pub fn landing(parts: &[Evidence]) -> Landing {
    let sum = |count: fn(&Evidence) -> usize| parts.iter().map(count).sum::<usize>();
    let (added, here) = (sum(|part| part.added), sum(|part| part.landed_here));
    match (here, sum(|part| part.landed_elsewhere)) {
        (0, 0) => Landing::New,
        (here, 0) if here == added => Landing::Before,
        _ => Landing::InDoubt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_known_ids_of_a_request_say() {
        let part = |added, landed_here, landed_elsewhere| Evidence { added, landed_here, landed_elsewhere };
        let cases = [
            (vec![], Landing::New),
            (vec![part(0, 0, 0)], Landing::New),
            (vec![part(2, 0, 0)], Landing::New),
            (vec![part(2, 2, 0)], Landing::Before),
            (vec![part(2, 1, 0)], Landing::InDoubt),
            (vec![part(1, 0, 1)], Landing::InDoubt),
            (vec![part(1, 1, 0), part(0, 0, 0)], Landing::Before),
            (vec![part(1, 1, 0), part(1, 0, 0)], Landing::InDoubt),
        ];
        for (parts, expected) in cases {
            assert_eq!(landing(&parts), expected, "{parts:?}");
        }
    }
}
