use Class::{Append, EqualityDelta, EqualityDeltaWithPositions, Other, Replace};

use super::*;
use crate::commits::identity::{Counts, Writer};
use crate::commits::lineage::Mark;
use crate::commits::rebase::manifest::tests::{Written, data, equality};
use crate::commits::rebase::manifest_list::ManifestFile;

const ALL: [Class; 5] = [Append, EqualityDelta, EqualityDeltaWithPositions, Replace, Other];

#[test]
fn every_pair_is_in_the_table() {
    use Sequence::{Any, Explicit, Inherited};
    for (mine, over) in [
        (Append, [Some(Inherited); 5]),
        (EqualityDelta, [Some(Inherited), Some(Inherited), Some(Inherited), Some(Inherited), None]),
        (EqualityDeltaWithPositions, [Some(Inherited), Some(Inherited), Some(Inherited), Some(Inherited), None]),
        (Replace, [Some(Any), Some(Explicit), None, None, None]),
        (Other, [None; 5]),
    ] {
        for (class, expected) in ALL.into_iter().zip(over) {
            let found = may_follow(mine, &[(3, class)], Rules::Streaming);
            assert_eq!(found.ok(), expected, "{mine:?} over {class:?}");
        }
    }
}

#[test]
fn one_snapshot_in_the_way_is_enough_and_one_delete_asks_for_numbers() {
    let between = [(3, Append), (2, EqualityDelta), (1, Append)];
    assert_eq!(may_follow(Replace, &between, Rules::Streaming), Ok(Sequence::Explicit));
    let refused = may_follow(Replace, &[(3, Append), (2, Replace)], Rules::Streaming).unwrap_err();
    assert!(refused.contains("snapshot 2 of class replace"), "{refused}");
}

#[test]
fn a_table_that_asks_for_appends_gets_nothing_else() {
    for mine in ALL {
        assert_eq!(may_follow(mine, &[(3, Append)], Rules::Append).is_ok(), mine == Append, "{mine:?}");
        assert!(may_follow(mine, &[(3, Append)], Rules::Restamp).is_err(), "{mine:?}");
    }
}

#[test]
fn what_was_built_on_an_empty_branch_goes_over_appends_alone() {
    assert!(all_append(&[(3, Append), (2, Append)]).is_ok());
    for class in ALL.into_iter().filter(|class| *class != Append) {
        assert!(all_append(&[(3, Append), (2, class)]).is_err(), "{class:?}");
    }
}

fn landed(snapshot_id: i64, parent_id: Option<i64>) -> Landed {
    Landed { ref_name: Some("main".to_owned()), ..Landed::bare(snapshot_id, parent_id, snapshot_id, 0) }
}

#[test]
fn a_chain_has_no_gap() {
    let chain = [landed(5, Some(4)), landed(4, Some(3)), landed(3, None)];
    for (between, head, asserted, expected) in [
        (&chain[..2], 5, Some(3), true),
        (&chain[..], 5, None, true),
        (&chain[..1], 5, Some(3), false),
        (&chain[..], 5, Some(3), false),
        (&chain[..2], 6, Some(3), false),
        (&chain[..2], 5, None, false),
        (&[landed(5, Some(4)), landed(3, None)][..], 5, None, false),
        (&[][..], 5, Some(3), false),
    ] {
        assert_eq!(is_chain(between, head, asserted), expected, "{between:?} from {head} to {asserted:?}");
    }
}

fn identity(kind: WriterKind, id: &str, part: &str) -> Identity {
    let writer = Writer { kind, id: id.to_owned(), part: part.to_owned() };
    Identity { writer, position: None, epoch: None }
}

/// Whether a snapshot of `theirs` in between lets one of `mine` through, on branch `main`.
fn passes(mine: &Identity, theirs: &Identity, is_first: bool) -> bool {
    let writer = Some(Mark { identity: theirs.clone(), counts: Counts::default() });
    let between = [landed(6, Some(5)), Landed { writer, is_first, ..landed(5, Some(4)) }];
    check_fences(Some(mine), "main", &between).is_ok()
}

#[test]
fn a_snapshot_of_the_same_writer_is_a_fence() {
    use WriterKind::{Flink, KafkaConnect, Named, SparkStreaming};
    let flink = |id, part| identity(Flink, id, part);
    for (mine, theirs, expected) in [
        (flink("j", "o"), flink("j", "o"), false),
        (flink("j", "o"), flink("j", ""), false),
        (flink("j", ""), flink("j", "o"), false),
        (flink("j", "o"), flink("j", "p"), true),
        (flink("j", "o"), flink("k", "o"), true),
        (identity(KafkaConnect, "k", ""), identity(KafkaConnect, "k", ""), false),
        (identity(KafkaConnect, "k", ""), identity(KafkaConnect, "l", ""), true),
        (identity(SparkStreaming, "q", ""), identity(SparkStreaming, "q", ""), false),
        (identity(Named, "w", "1"), identity(Named, "w", "1"), false),
        (identity(Named, "w", "1"), identity(Named, "w", "2"), true),
        (identity(Named, "w", "1"), identity(Flink, "w", "1"), true),
        (identity(WriterKind::Arroyo, "", ""), identity(WriterKind::Arroyo, "", ""), true),
    ] {
        assert_eq!(passes(&mine, &theirs, false), expected, "{mine:?} over {theirs:?}");
    }
}

#[test]
fn a_newcomer_of_the_same_kind_may_be_a_successor() {
    use WriterKind::{Flink, KafkaConnect, Named, SparkStreaming};
    for kind in [Flink, KafkaConnect, SparkStreaming] {
        assert!(!passes(&identity(kind, "old", ""), &identity(kind, "new", ""), true), "{kind:?}");
        assert!(passes(&identity(kind, "old", ""), &identity(kind, "new", ""), false), "{kind:?}");
    }
    assert!(passes(&identity(Named, "old", ""), &identity(Named, "new", ""), true));
    assert!(passes(&identity(Flink, "old", ""), &identity(KafkaConnect, "new", ""), true));
    let newcomer = identity(Flink, "new", "");
    let writer = Some(Mark { identity: newcomer, counts: Counts::default() });
    let elsewhere = Landed { writer, is_first: true, ref_name: Some("audit".to_owned()), ..landed(5, Some(4)) };
    assert!(check_fences(Some(&identity(Flink, "old", "")), "main", &[elsewhere]).is_ok());
}

#[test]
fn nobody_fences_a_writer_without_a_name() {
    let writer = Some(Mark { identity: identity(WriterKind::Flink, "j", "o"), counts: Counts::default() });
    assert!(check_fences(None, "main", &[Landed { writer, is_first: true, ..landed(5, Some(4)) }]).is_ok());
}

#[test]
fn only_manifests_that_carry_nothing_over_must_tell_the_number_of_the_commit() {
    let numbers = Numbers { was: 5, is: 9, next_row_id: None };
    let manifest = |existing_files, min_sequence_number| ManifestFile {
        path: "m".to_owned(),
        added_files: 1,
        existing_files,
        min_sequence_number,
        ..ManifestFile::default()
    };
    for (existing_files, min_sequence_number, fits) in [(0, 5, true), (0, 2, false), (1, 2, true)] {
        let delta = Delta { new: vec![manifest(existing_files, min_sequence_number)], replaced: Vec::new() };
        assert_eq!(
            check_inherits(&delta, numbers).is_ok(),
            fits,
            "{existing_files} existing from {min_sequence_number}"
        );
    }
}

#[test]
fn added_entries_are_held_against_what_is_asked_of_their_numbers() {
    use Sequence::{Any, Explicit, Inherited};
    let own = |written: Written| written.entry;
    let existing = own(data("old", 5).numbered(2).as_(Status::Existing));
    for (entry, wanted, fits) in [
        (own(data("a", 7)), Inherited, true),
        (own(data("a", 7).numbered(3)), Inherited, false),
        (own(data("a", 7)), Explicit, false),
        (own(equality("e", 7)), Explicit, false),
        (own(data("a", 7).numbered(3)), Explicit, true),
        (own(data("a", 7)), Any, true),
    ] {
        assert_eq!(
            check_entries("m", &[existing.clone(), entry.clone()], wanted).is_ok(),
            fits,
            "{entry:?} {wanted:?}"
        );
    }
}
