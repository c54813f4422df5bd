//! Cases of [`crate::idempotency::store::IdempotencyStore`].

use futures::future::join_all;
use uuid::Uuid;

use super::world::{AT_MS, Checked, RACERS, World};
use crate::error::Kind;
use crate::idempotency::Answer;
use crate::idempotency::store::Kept;
use crate::store::Store;

pub async fn an_answer_comes_back_as_it_was_kept(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let answers = [
        Answer::Empty,
        Answer::Body(r#"{"a":"\u0000 ü"}"#.into()),
        Answer::Document { uuid: Uuid::now_v7(), metadata_location: "s3://b/t/metadata/1.json".into() },
        Answer::Refused { kind: Kind::NoSuchNamespace, message: "Namespace does not exist: a\u{0}b".into() },
    ];
    for answer in answers {
        let receipt = world.receipt(answer);
        assert_eq!(store.receipt(world.warehouse, receipt.key).await?, None);
        assert_eq!(store.keep(&receipt).await?, Kept::Kept);
        assert!(world.is_kept(&receipt).await?, "{receipt:?}");
    }
    Ok(())
}

pub async fn the_first_answer_to_a_key_stays(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let first = world.receipt(Answer::Empty);
    let mut second = first.clone();
    second.answer = Answer::Body("{}".into());
    store.keep(&first).await?;
    assert_eq!(store.keep(&second).await?, Kept::KeyTaken);
    assert!(world.is_kept(&first).await?);
    Ok(())
}

pub async fn of_racing_answers_to_a_key_one_is_kept(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let first = world.receipt(Answer::Empty);
    let racing: Vec<_> = (0..RACERS)
        .map(|n| {
            let mut receipt = first.clone();
            receipt.answer = Answer::Body(n.to_string());
            receipt
        })
        .collect();
    let mut winners = Vec::new();
    for (receipt, kept) in racing.iter().zip(join_all(racing.iter().map(|r| store.keep(r))).await) {
        if kept? == Kept::Kept {
            winners.push(receipt);
        }
    }
    assert_eq!(winners.len(), 1);
    assert!(world.is_kept(winners[0]).await?);
    Ok(())
}

pub async fn a_key_belongs_to_one_warehouse(store: &dyn Store) -> Checked {
    let (one, two) = (World::bare(store, "one").await?, World::bare(store, "two").await?);
    let receipt = one.receipt(Answer::Empty);
    store.keep(&receipt).await?;
    assert_eq!(store.receipt(two.warehouse, receipt.key).await?, None);
    let mut other = receipt.clone();
    other.warehouse = two.warehouse;
    assert_eq!(store.keep(&other).await?, Kept::Kept);
    Ok(())
}

pub async fn old_receipts_are_forgotten_oldest_first(store: &dyn Store) -> Checked {
    let world = World::bare(store, "w").await?;
    let mut receipts = Vec::new();
    for age in [3, 2, 1, 0] {
        let mut receipt = world.receipt(Answer::Empty);
        receipt.at_ms = AT_MS - age;
        store.keep(&receipt).await?;
        receipts.push(receipt);
    }
    assert_eq!(store.forget_receipts(AT_MS, 2).await?, 2);
    assert!(!world.is_kept(&receipts[1]).await? && world.is_kept(&receipts[2]).await?);
    assert_eq!(store.forget_receipts(AT_MS, 100).await?, 1);
    assert_eq!(store.forget_receipts(AT_MS, 100).await?, 0);
    assert!(world.is_kept(&receipts[3]).await?);
    Ok(())
}
