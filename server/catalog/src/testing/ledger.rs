//! Cases of the ledger: how far each writer is, and which snapshots it landed at a position.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::world::{
    AT_MS, Checked, World, create, create_as, drop_of, ident, landed, rename, replace, step, with_lineage, with_news,
};
use crate::commits::identity::{Counts, END_OF_INPUT, Identity, Position, Writer, WriterKind};
use crate::commits::lineage::{Asked, Landed, LedgerRead, Mark, SAME_MAX, Which, WriterCursor, WriterRow};
use crate::commits::store::{News, PointerChange, SwapOutcome};
use crate::idempotency::Answer;
use crate::store::Store;
use crate::tabulars::Pointer;

fn named(id: &str) -> Writer {
    Writer { kind: WriterKind::Named, id: id.to_owned(), part: String::new() }
}

/// A row of `writer` on main whose snapshot has the number of its position.
fn row(writer: Writer, position: i64) -> WriterRow {
    WriterRow {
        ref_name: "main".to_owned(),
        writer,
        position: Some(Position::Number(position)),
        snapshot_id: Some(position),
        sequence_number: position,
        first_snapshot_id: Some(position),
        since_sequence_number: None,
        epoch: None,
        retired: false,
        at_ms: AT_MS,
    }
}

fn of_writers(writers: Vec<WriterRow>) -> News {
    News { writers, ..News::default() }
}

fn of_snapshot(landed: Landed) -> News {
    News { lineage: vec![landed], ..News::default() }
}

fn asked(ref_name: &str, writer: &Writer, position: Option<Position>) -> Asked {
    let identity = Identity { writer: writer.clone(), position, epoch: None };
    Asked { ref_name: ref_name.to_owned(), identity }
}

fn which(id: &str) -> Which {
    Which { id: id.to_owned(), ..Which::default() }
}

/// A snapshot that the writer committed to main.
fn landed_at(snapshot_id: i64, writer: &Writer, position: &Position) -> Landed {
    let identity = Identity { writer: writer.clone(), position: Some(position.clone()), epoch: Some(3) };
    let summary = BTreeMap::from([("added-records".to_owned(), snapshot_id.to_string())]);
    let mark = Mark { identity, counts: Counts::of(&summary) };
    Landed { sequence_number: snapshot_id, writer: Some(mark), is_first: true, rebased: true, ..landed(snapshot_id) }
}

/// A move of table `t` in one statement where a store has such, and one of several.
async fn both(world: &World<'_>, news: [News; 2]) -> Checked<Pointer> {
    let [first, second] = news;
    let made = world.table("t").await?;
    world.must(with_news(step(&made), first)).await?;
    let now = world.pointer("t").await?;
    world.must(with_news(replace(&now, now.uuid, "file:///w/elsewhere"), second)).await?;
    world.pointer("t").await
}

async fn rows(world: &World<'_>, table: Uuid) -> Checked<Vec<WriterRow>> {
    Ok(world.store.writers(world.warehouse, table, None, 1_000).await?)
}

async fn same(world: &World<'_>, table: Uuid, asked: &Asked) -> Checked<Vec<i64>> {
    let read = world.store.ledger(world.warehouse, table, std::slice::from_ref(asked)).await?;
    assert!(read.same.iter().all(|(ref_name, _)| *ref_name == asked.ref_name));
    let mut found: Vec<i64> = read.same.iter().map(|(_, landed)| landed.snapshot_id).collect();
    found.sort_unstable();
    Ok(found)
}

pub async fn a_row_comes_back_as_it_was_written(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let registered = WriterRow {
        ref_name: "b".to_owned(),
        position: None,
        snapshot_id: None,
        sequence_number: 0,
        first_snapshot_id: None,
        epoch: Some(i64::MAX),
        retired: true,
        ..row(named("registered"), 1)
    };
    let going = WriterRow { epoch: Some(0), ..row(named("going"), END_OF_INPUT) };
    let now = both(&world, [of_writers(vec![registered.clone()]), of_writers(vec![going.clone()])]).await?;
    let wanted = [
        asked("b", &registered.writer, Some(Position::Number(1))),
        asked("main", &going.writer, None),
        asked("main", &going.writer, Some(Position::Number(1))),
        asked("main", &registered.writer, None),
        asked("b", &going.writer, None),
    ];
    let mut read = store.ledger(world.warehouse, now.uuid, &wanted).await?;
    read.rows.sort_by(|one, other| one.ref_name.cmp(&other.ref_name));
    assert_eq!(read, LedgerRead { rows: vec![registered.clone(), going], same: vec![] });
    assert_eq!(store.writer(world.warehouse, now.uuid, &which("registered"), 9).await?, [registered]);
    assert_eq!(store.ledger(world.warehouse, now.uuid, &[]).await?, LedgerRead::default());
    Ok(())
}

pub async fn a_row_takes_the_place_of_the_writers_former(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let former = WriterRow { epoch: Some(7), since_sequence_number: Some(4), retired: true, ..row(named("w"), 5) };
    // Down again: a new incarnation, of an epoch that is not told.
    let later = WriterRow { sequence_number: 6, snapshot_id: Some(60), at_ms: AT_MS + 1, ..row(named("w"), 1) };
    let now = both(&world, [of_writers(vec![former]), of_writers(vec![later.clone()])]).await?;
    let kept = WriterRow { first_snapshot_id: Some(5), since_sequence_number: Some(4), ..later.clone() };
    let expected = WriterRow { epoch: Some(7), ..kept.clone() };
    assert_eq!(rows(&world, now.uuid).await?, [expected]);
    let higher = WriterRow { epoch: Some(8), position: None, first_snapshot_id: None, ..kept };
    world.must(with_news(step(&now), of_writers(vec![higher.clone()]))).await?;
    assert_eq!(rows(&world, now.uuid).await?, [WriterRow { first_snapshot_id: Some(5), ..higher }]);
    Ok(())
}

pub async fn a_first_snapshot_comes_when_it_comes_and_a_first_epoch_too(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let registered = WriterRow { first_snapshot_id: None, snapshot_id: None, position: None, ..row(named("w"), 0) };
    let going = WriterRow { epoch: Some(1), ..row(named("w"), 4) };
    let now = both(&world, [of_writers(vec![registered]), of_writers(vec![going.clone()])]).await?;
    assert_eq!(rows(&world, now.uuid).await?, [going]);
    Ok(())
}

pub async fn a_writer_that_comes_twice_in_a_swap_has_one_row(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let twice = |from| {
        let first = WriterRow { epoch: Some(2), ..row(named("w"), from) };
        of_writers(vec![first, row(named("other"), 1), WriterRow { epoch: Some(1), ..row(named("w"), from + 1) }])
    };
    let now = both(&world, [twice(1), twice(3)]).await?;
    let found = store.writer(world.warehouse, now.uuid, &which("w"), 9).await?;
    assert_eq!(found, [WriterRow { epoch: Some(2), first_snapshot_id: Some(1), ..row(named("w"), 4) }]);
    Ok(())
}

pub async fn writers_are_told_apart_by_ref_kind_id_and_part(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let base = Writer { kind: WriterKind::Flink, id: "job".to_owned(), part: "op".to_owned() };
    let others = [
        Writer { kind: WriterKind::Named, ..base.clone() },
        Writer { id: "job2".to_owned(), ..base.clone() },
        Writer { id: "jo".to_owned(), part: "bop".to_owned(), ..base.clone() },
        Writer { part: String::new(), ..base.clone() },
        base.clone(),
    ];
    let mut all: Vec<WriterRow> = others.into_iter().zip(1..).map(|(writer, n)| row(writer, n)).collect();
    all.push(WriterRow { ref_name: "b".to_owned(), ..row(base.clone(), 9) });
    let now = both(&world, [of_writers(all.clone()), News::default()]).await?;
    assert_eq!(rows(&world, now.uuid).await?.len(), all.len());
    for expected in &all {
        let wanted = [asked(&expected.ref_name, &expected.writer, None)];
        assert_eq!(store.ledger(world.warehouse, now.uuid, &wanted).await?.rows, vec![expected.clone()]);
    }
    assert_eq!(store.writer(world.warehouse, now.uuid, &which("job"), 9).await?.len(), 4);
    Ok(())
}

/// What no key of a database could hold, and what no text of one holds.
fn odd_texts() -> Vec<String> {
    // Digits that do not repeat, so that no compression helps a key to fit.
    let digits = (0..9_000_u32).map(|n| char::from_digit(n.wrapping_mul(2_654_435_761) >> 28, 16).unwrap_or('x'));
    let long: String = digits.collect();
    let odd = ["\0", "\0\0", "\u{1}", "\u{2}\u{2}", "a\0b", "a\u{1}b", "'\"`;--\\u0000", "\u{1F9CA}", ""];
    odd.iter().map(|text| (*text).to_owned()).chain([format!("{long}1"), format!("{long}2")]).collect()
}

pub async fn any_text_names_a_writer_its_ref_its_part_or_its_partitions(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let mut now = world.table("t").await?;
    let mut snapshot_id = 0;
    for text in odd_texts() {
        for turn in 0..3 {
            snapshot_id += 1;
            let of = |wanted: i32| if turn == wanted { text.clone() } else { "x".to_owned() };
            let writer = Writer { kind: WriterKind::Named, id: of(0), part: of(1) };
            let position = Position::Offsets(BTreeMap::from([(text.clone(), snapshot_id)]));
            let written =
                WriterRow { ref_name: of(2), position: Some(position.clone()), ..row(writer.clone(), snapshot_id) };
            let landed = Landed { ref_name: Some(of(2)), ..landed_at(snapshot_id, &writer, &position) };
            let carried = vec![(text.clone(), snapshot_id)];
            let news = News { lineage: vec![landed.clone()], carried, writers: vec![written.clone()] };
            world.must(with_news(step(&now), news)).await?;
            now = world.pointer("t").await?;
            for ref_name in [of(2), text.clone()] {
                let wanted = [asked(&ref_name, &writer, Some(position.clone()))];
                let read = store.ledger(world.warehouse, now.uuid, &wanted).await?;
                let row = (ref_name == written.ref_name).then(|| written.clone());
                assert_eq!(
                    read,
                    LedgerRead { rows: row.into_iter().collect(), same: vec![(ref_name, landed.clone())] }
                );
            }
        }
    }
    Ok(())
}

pub async fn a_snapshot_is_found_by_writer_position_and_ref(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let positions = [
        Position::Number(5),
        Position::Number(i64::MIN),
        Position::Mark("5".to_owned()),
        Position::Offsets(BTreeMap::from([("5".to_owned(), 5)])),
        Position::Offsets(BTreeMap::new()),
    ];
    let writer = named("w");
    let of = |from| News {
        lineage: positions.iter().zip(from..).map(|(position, n)| landed_at(n, &writer, position)).collect(),
        ..News::default()
    };
    let now = both(&world, [of(10), of(20)]).await?;
    for (n, position) in (0..).zip(&positions) {
        let wanted = asked("main", &writer, Some(position.clone()));
        assert_eq!(same(&world, now.uuid, &wanted).await?, [10 + n, 20 + n], "{position:?}");
        let twice = store.ledger(world.warehouse, now.uuid, &[wanted.clone(), wanted]).await?;
        assert_eq!(twice.same.len(), 2);
        for other in [asked("b", &writer, Some(position.clone())), asked("main", &named("v"), Some(position.clone()))] {
            assert_eq!(same(&world, now.uuid, &other).await?, [] as [i64; 0], "{position:?}");
        }
    }
    assert_eq!(same(&world, now.uuid, &asked("main", &writer, Some(Position::Number(6)))).await?, [] as [i64; 0]);
    assert_eq!(same(&world, now.uuid, &asked("main", &writer, None)).await?, [] as [i64; 0]);
    Ok(())
}

pub async fn a_snapshot_comes_back_as_it_landed(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let writer = Writer { kind: WriterKind::Flink, id: "job".to_owned(), part: "op".to_owned() };
    let position = Position::Number(END_OF_INPUT);
    let (one, mut two) = (landed_at(1, &writer, &position), landed_at(2, &writer, &position));
    (two.is_first, two.rebased, two.parent_id) = (false, false, None);
    let now = both(&world, [of_snapshot(one.clone()), of_snapshot(two.clone())]).await?;
    let wanted = [asked("main", &writer, Some(position.clone()))];
    let mut read = store.ledger(world.warehouse, now.uuid, &wanted).await?;
    read.same.sort_by_key(|(_, landed)| landed.snapshot_id);
    assert_eq!(read.same, [("main".to_owned(), one.clone()), ("main".to_owned(), two.clone())]);
    Ok(())
}

pub async fn of_many_snapshots_at_one_position_the_newest_are_found(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (writer, position) = (named("w"), Position::Number(END_OF_INPUT));
    let many = |from: i64| News {
        lineage: (from..from + 20).map(|n| landed_at(n, &writer, &position)).collect(),
        ..News::default()
    };
    let now = both(&world, [many(1), many(21)]).await?;
    let newest: Vec<i64> = (41 - i64::from(SAME_MAX)..41).collect();
    assert_eq!(same(&world, now.uuid, &asked("main", &writer, Some(position))).await?, newest);
    Ok(())
}

pub async fn rows_of_a_writer_are_found_by_all_that_names_it(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let part = |part: &str| Writer { part: part.to_owned(), ..named("w") };
    let flink = Writer { kind: WriterKind::Flink, ..part("b") };
    let elsewhere = WriterRow { ref_name: "a".to_owned(), ..row(part("a"), 1) };
    let all = [elsewhere, row(flink, 2), row(part("a"), 3), row(part("b"), 4)];
    let now = both(&world, [of_writers(all.to_vec()), News::default()]).await?;
    let id = which("w");
    for (which, limit, expected) in [
        (id.clone(), 9, vec![1, 2, 3, 4]),
        (id.clone(), 2, vec![1, 2]),
        (Which { ref_name: Some("main".to_owned()), ..id.clone() }, 9, vec![2, 3, 4]),
        (Which { kind: Some(WriterKind::Named), ..id.clone() }, 9, vec![1, 3, 4]),
        (Which { part: Some("b".to_owned()), ..id.clone() }, 9, vec![2, 4]),
        (Which { part: Some(String::new()), ..id }, 9, vec![]),
        (which("v"), 9, vec![]),
    ] {
        let found = store.writer(world.warehouse, now.uuid, &which, limit).await?;
        let found: Vec<i64> = found.iter().map(|row| row.sequence_number).collect();
        assert_eq!(found, expected, "{which:?}");
    }
    Ok(())
}

pub async fn what_adopts_keeps_what_is_known_of_its_own_uuid(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (writer, position) = (named("w"), Position::Number(2));
    let made = world.table("t").await?;
    world.must(with_news(step(&made), of_writers(vec![row(writer.clone(), 5)]))).await?;
    let now = world.pointer("t").await?;
    let news = News {
        carried: vec![("main".to_owned(), 2)],
        writers: vec![row(writer.clone(), 2), row(named("new"), 1)],
        ..of_snapshot(Landed { ref_name: None, ..landed_at(2, &writer, &position) })
    };
    let mut swap = world.swap(vec![with_news(step(&now), news)]);
    swap.adopts = true;
    assert_eq!(store.swap(&swap).await?, SwapOutcome::Applied);
    assert_eq!(rows(&world, now.uuid).await?, [row(named("new"), 1), row(writer.clone(), 5)]);
    assert_eq!(same(&world, now.uuid, &asked("main", &writer, Some(position))).await?, [2]);
    Ok(())
}

pub async fn a_carried_snapshot_is_found_on_its_other_ref_too(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (writer, position) = (named("w"), Position::Number(1));
    let carried = |ref_name: &str| vec![(ref_name.to_owned(), 1), (ref_name.to_owned(), 77)];
    let mut staged = landed_at(1, &writer, &position);
    staged.ref_name = None;
    let first = News { carried: carried("b"), ..of_snapshot(staged) };
    // What is carried a second time is still carried once.
    let twice = [carried("b"), carried("c"), carried("c")].concat();
    let now = both(&world, [first, News { carried: twice, ..News::default() }]).await?;
    for (ref_name, found) in [("main", vec![]), ("b", vec![1]), ("c", vec![1]), ("d", vec![])] {
        let wanted = asked(ref_name, &writer, Some(position.clone()));
        assert_eq!(same(&world, now.uuid, &wanted).await?, found, "{ref_name}");
    }
    let now = world.pointer("t").await?;
    world.must(with_news(step(&now), News { carried: carried("d"), ..News::default() })).await?;
    assert_eq!(same(&world, now.uuid, &asked("d", &writer, Some(position))).await?, [1]);
    Ok(())
}

pub async fn a_uuid_that_comes_keeps_what_is_known_of_it(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let (writer, position) = (named("w"), Position::Number(1));
    let known = News { writers: vec![row(writer.clone(), 5)], ..of_snapshot(landed_at(1, &writer, &position)) };
    let gone = both(&world, [known, News::default()]).await?;
    world.must(drop_of(&gone)).await?;
    let other = Position::Number(2);
    let seed = || News {
        lineage: vec![landed_at(1, &writer, &other), landed_at(2, &writer, &other)],
        carried: vec![("main".to_owned(), 2)],
        writers: vec![WriterRow { epoch: Some(9), ..row(writer.clone(), 2) }, row(named("new"), 1)],
    };
    world.must(with_news(create_as("t", gone.uuid, &gone.location)?, seed())).await?;
    let check = async || {
        let mut found = rows(&world, gone.uuid).await?;
        found.sort_by(|one, other| one.writer.cmp(&other.writer));
        assert_eq!(found, [row(named("new"), 1), row(writer.clone(), 5)]);
        assert_eq!(same(&world, gone.uuid, &asked("main", &writer, Some(position.clone()))).await?, [1]);
        assert_eq!(same(&world, gone.uuid, &asked("main", &writer, Some(other.clone()))).await?, [2]);
        Checked::Ok(())
    };
    check().await?;
    world.must(drop_of(&world.pointer("t").await?)).await?;
    // The same by an overwrite, which moves a pointer to another UUID.
    let made = world.table("u").await?;
    world.must(with_news(replace(&made, gone.uuid, &made.location), seed())).await?;
    check().await
}

pub async fn a_swap_that_is_not_applied_leaves_the_ledger_as_it_was(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let writer = named("w");
    let old = world.table("t").await?;
    world
        .must(with_news(
            with_lineage(step(&old), &[1]),
            News { writers: vec![row(writer.clone(), 1)], ..of_snapshot(landed(1)) },
        ))
        .await?;
    let now = world.pointer("t").await?;
    let receipt = world.receipt(Answer::Empty);
    store.keep(&receipt).await?;
    let news = |snapshot_id| News {
        carried: vec![("b".to_owned(), 1)],
        writers: vec![row(writer.clone(), 2), row(named("new"), 1)],
        ..of_snapshot(landed_at(snapshot_id, &writer, &Position::Number(2)))
    };
    let moves = |from: &Pointer| [step(from), replace(from, from.uuid, "file:///w/other")];
    let lost = moves(&old).map(|change| (with_news(change, news(2)), vec![], SwapOutcome::Lost));
    let known = moves(&now).map(|change| (with_news(change, news(1)), vec![], SwapOutcome::SnapshotKnown));
    let taken = moves(&now).map(|change| {
        (with_news(change, news(2)), vec![world.receipt(Answer::Empty), receipt.clone()], SwapOutcome::KeyTaken)
    });
    for (change, receipts, expected) in lost.into_iter().chain(known).chain(taken) {
        let mut swap = world.swap(vec![change]);
        swap.receipts = receipts;
        assert_eq!(store.swap(&swap).await?, expected);
        assert_eq!(rows(&world, now.uuid).await?, [row(writer.clone(), 1)], "{expected:?}");
        let wanted = asked("main", &writer, Some(Position::Number(2)));
        assert_eq!(same(&world, now.uuid, &wanted).await?, [] as [i64; 0]);
    }
    assert_eq!(world.pointer("t").await?, now);
    Ok(())
}

pub async fn the_ledger_is_the_tables_whatever_its_name(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let stranger = World::bare(store, "stranger").await?;
    let (writer, position) = (named("w"), Position::Number(1));
    let news = News { writers: vec![row(writer.clone(), 1)], ..of_snapshot(landed_at(1, &writer, &position)) };
    world.must(with_news(create("t")?, news)).await?;
    let made = world.pointer("t").await?;
    let other = world.table("other").await?;
    world.must(rename(&made, ident("u")?)).await?;
    world.must(drop_of(&world.pointer("u").await?)).await?;
    let wanted = asked("main", &writer, Some(position.clone()));
    assert_eq!((rows(&world, made.uuid).await?.len(), same(&world, made.uuid, &wanted).await?), (1, vec![1]));
    for (place, table) in [(&world, other.uuid), (&stranger, made.uuid)] {
        assert_eq!((rows(place, table).await?, same(place, table, &wanted).await?), (vec![], vec![]));
        assert!(store.writer(place.warehouse, table, &which("w"), 9).await?.is_empty());
    }
    Ok(())
}

pub async fn writers_are_listed_in_pages_by_ref_and_writer(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let mut all = Vec::new();
    for ref_name in ["b", "main", "ma\0in", "B"] {
        for (kind, id, part) in [("flink", "j", "o"), ("named", "a", ""), ("named", "a", "p"), ("named", "a\u{1}", "")]
        {
            let kind = WriterKind::of(kind).ok_or("a kind")?;
            let writer = Writer { kind, id: id.to_owned(), part: part.to_owned() };
            all.push(WriterRow { ref_name: ref_name.to_owned(), ..row(writer, 1) });
        }
    }
    let now = both(&world, [of_writers(all.clone()), News::default()]).await?;
    let key = |row: &WriterRow| {
        let Writer { kind, id, part } = row.writer.clone();
        (row.ref_name.clone(), kind.as_str(), id, part)
    };
    all.sort_by_key(key);
    for limit in [1, 3, 16, 100] {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = store.writers(world.warehouse, now.uuid, after.as_ref(), limit).await?;
            let Some(last) = page.last() else { break };
            assert!(page.len() <= limit as usize);
            after = Some(WriterCursor { ref_name: last.ref_name.clone(), writer: last.writer.clone() });
            listed.extend(page);
        }
        assert_eq!(listed, all, "{limit}");
    }
    Ok(())
}

pub async fn an_attempt_of_many_writers_is_one_swap(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let many = |from: i64| {
        let each = |n: i64| (landed_at(n, &named(&n.to_string()), &Position::Number(n)), row(named(&n.to_string()), n));
        let (lineage, writers) = (from..from + 200).map(each).unzip();
        News { lineage, writers, ..News::default() }
    };
    let now = both(&world, [many(0), many(200)]).await?;
    let wanted: Vec<Asked> =
        (0..400).map(|n| asked("main", &named(&n.to_string()), Some(Position::Number(n)))).collect();
    let read = store.ledger(world.warehouse, now.uuid, &wanted).await?;
    assert_eq!((read.rows.len(), read.same.len()), (400, 400));
    Ok(())
}

/// A registration changes nothing but the ledger, and still all that was judged before it is judged again.
pub async fn a_change_of_the_ledger_alone_moves_the_version(store: &dyn Store) -> Checked {
    let world = World::new(store).await?;
    let made = world.table("t").await?;
    let change = match step(&made) {
        PointerChange::Move { from, mut target, .. } => {
            target.metadata_location.clone_from(&made.metadata_location);
            PointerChange::Move { from, target, news: of_writers(vec![row(named("w"), 1)]) }
        }
        other => other,
    };
    world.must(change.clone()).await?;
    let now = world.pointer("t").await?;
    assert_eq!((now.version, &now.metadata_location), (2, &made.metadata_location));
    assert_eq!(rows(&world, now.uuid).await?.len(), 1);
    assert_eq!(world.apply(change).await?, SwapOutcome::Lost);
    Ok(())
}
