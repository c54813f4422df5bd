//! Object storage for real: the S3 store that `S3_ENDPOINT` and its fellows name.

#[cfg(test)]
mod support {
    pub mod places;
    pub mod proxy;
}

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::error::Kind;
use catalog::files::{FileError, Files, FilesOptions, Place, S3Storage, Secret, SecretsKey, Storage};
use catalog::location::Location;
use futures::future::join_all;
use futures::{StreamExt, stream};
use support::places::{Bucket, LIMIT_BYTES, files, whole_text};
use support::proxy::Proxy;
use uuid::Uuid;

/// More than one request of S3's batch delete takes.
const MANY: usize = 1_050;

fn bytes(text: impl Into<String>) -> Bytes {
    Bytes::from(text.into())
}

#[tokio::test]
async fn an_object_is_written_once_read_and_deleted() {
    let bucket = Bucket::new().await;
    let (files, place) = (files(), bucket.place());
    for name in ["x.json", "a b/c+d/%20=&.json", "ä/日本.json"] {
        let location = bucket.location(name);
        files.write_new(&place, &location, bytes(name)).await.unwrap();
        let again = files.write_new(&place, &location, bytes("other")).await;
        assert!(matches!(again, Err(FileError::AlreadyExists { .. })), "{again:?}");
        files.write_new(&place, &location, bytes(name)).await.expect("the same bytes are written already");
        assert_eq!(files.read(&place, &location, LIMIT_BYTES).await.unwrap(), name);
        for _ in 0..2 {
            files.delete(&place, &location).await.unwrap();
        }
        let gone = files.read(&place, &location, LIMIT_BYTES).await;
        assert!(matches!(gone, Err(FileError::Missing { .. })), "{gone:?}");
    }
}

#[tokio::test]
async fn of_racing_writers_of_one_name_one_wins_and_its_content_stays() {
    let bucket = Bucket::new().await;
    let (files, place) = (files(), bucket.place());
    for round in 0..5 {
        let location = bucket.location(&format!("t/metadata/{round}.json"));
        let write = async |writer: usize| {
            let text = writer.to_string().repeat(10_000);
            files.write_new(&place, &location, bytes(text.clone())).await.ok().map(|()| text)
        };
        let winners: Vec<String> = join_all((0..8).map(write)).await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "round {round}");
        assert_eq!(files.read(&place, &location, LIMIT_BYTES).await.unwrap(), winners[0]);
    }
}

#[tokio::test]
async fn more_objects_than_one_request_takes_are_deleted_though_some_are_gone() {
    let bucket = Bucket::new().await;
    let (files, place) = (files(), bucket.place());
    let names: Vec<String> = (0..MANY).map(|i| bucket.location(&format!("many/{i}"))).collect();
    let written = stream::iter(&names).map(|name| files.write_new(&place, name, bytes("x"))).buffer_unordered(32);
    written.for_each(async |written| written.unwrap()).await;
    let gone = bucket.location("many/gone");
    let all: Vec<Location> = names.iter().chain([&gone]).map(|name| Location::parse(name).unwrap()).collect();
    assert_eq!(files.delete_all(&place, all).await.unwrap(), 0);
    let left = stream::iter(&names).map(|name| files.read(&place, name, LIMIT_BYTES)).buffer_unordered(32);
    left.for_each(async |read| assert!(matches!(read, Err(FileError::Missing { .. })), "{read:?}")).await;
}

#[tokio::test]
async fn a_probe_passes_and_may_be_repeated() {
    let bucket = Bucket::new().await;
    let files = files();
    for _ in 0..2 {
        files.probe(&bucket.place(), Uuid::from_u128(1)).await.expect("nothing is left of the first probe");
    }
}

#[tokio::test]
async fn sealed_keys_open_the_store() {
    let bucket = Bucket::new().await;
    let key = SecretsKey::parse(&"5a".repeat(32)).unwrap();
    let files = Files::new(FilesOptions::default(), Some(key));
    let place = Place { storage: files.seal(&bucket.place().storage).unwrap(), ..bucket.place() };
    files.probe(&place, Uuid::from_u128(1)).await.unwrap();
    let without_key = support::places::files().probe(&place, Uuid::from_u128(1)).await.unwrap_err();
    assert!(without_key.message().contains("secrets.key"), "{without_key}");
}

#[tokio::test]
async fn wrong_keys_are_told_as_such_and_not_shown() {
    let bucket = Bucket::new().await;
    let wrong = |change: fn(&mut S3Storage)| {
        let mut s3 = bucket.s3();
        change(&mut s3);
        Place { storage: Storage::S3(s3), ..bucket.place() }
    };
    for place in [
        wrong(|s3| s3.secret_access_key = Some(Secret::new("wrong-and-hush"))),
        wrong(|s3| s3.access_key_id = Some("nobody".to_owned())),
    ] {
        let error = files().probe(&place, Uuid::from_u128(1)).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        for part in ["writing 's3://", "secret-access-key"] {
            assert!(error.message().contains(part), "{error}");
        }
        assert!(!whole_text(&error).contains("hush"), "{}", whole_text(&error));
        let read = files().read(&place, &bucket.location("x"), LIMIT_BYTES).await;
        assert!(matches!(read, Err(FileError::Denied { .. })), "{read:?}");
    }
}

/// A write is not tried: this store makes the bucket anew for whoever may.
#[tokio::test]
async fn what_was_in_a_bucket_that_is_gone_is_missing() {
    let bucket = Bucket::alone().await;
    let (files, place, location) = (files(), bucket.place(), bucket.location("x"));
    files.write_new(&place, &location, bytes("x")).await.unwrap();
    bucket.delete().await;
    let read = files.read(&place, &location, LIMIT_BYTES).await;
    assert!(matches!(read, Err(FileError::Missing { .. })), "{read:?}");
    files.delete(&place, &location).await.expect("what is gone need not be deleted");
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_told_with_its_endpoint() {
    let bucket = Bucket::new().await;
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let endpoint = format!("http://{nobody}");
    let error = files().probe(&bucket.place_at(&endpoint), Uuid::from_u128(1)).await.unwrap_err();
    assert!(error.message().contains(&format!("does not answer at {endpoint}")), "{error}");
}

#[tokio::test]
async fn another_bucket_of_the_same_store_is_reached_with_the_same_settings() {
    let (bucket, other) = (Bucket::new().await, Bucket::other().await);
    let mut place = bucket.place();
    let location = other.location("t/metadata/0.json");
    assert!(files().write_new(&place, &location, bytes("x")).await.is_err(), "not allowed yet");
    place.allowed = vec![other.place().root];
    files().write_new(&place, &location, bytes("x")).await.unwrap();
    assert_eq!(files().read(&place, &location, LIMIT_BYTES).await.unwrap(), "x");
}

#[tokio::test]
async fn slow_answers_are_waited_for() {
    let bucket = Bucket::new().await;
    let proxy = Proxy::to_store(Duration::from_millis(300)).await;
    let (files, place) = (files(), bucket.place_at(&proxy.endpoint));
    files.probe(&place, Uuid::from_u128(1)).await.unwrap();
}

#[tokio::test]
async fn a_store_that_never_answers_is_given_up_and_a_healthy_one_is_not_held_up_meanwhile() {
    let bucket = Bucket::new().await;
    let proxy = Proxy::that_stalls().await;
    let (files, dead) = (Arc::new(files()), bucket.place_at(&proxy.endpoint));
    let location = bucket.location("x");
    let stuck: Vec<_> = (0..200)
        .map(|_| {
            let (files, dead, location) = (files.clone(), dead.clone(), location.clone());
            tokio::spawn(async move { files.read(&dead, &location, LIMIT_BYTES).await })
        })
        .collect();
    proxy.holds(FilesOptions::default().max_concurrent_operations).await;
    let place = bucket.place();
    for i in 0..20 {
        let location = bucket.location(&i.to_string());
        files.write_new(&place, &location, bytes("x")).await.expect("a healthy store is not held up");
        files.read(&place, &location, LIMIT_BYTES).await.unwrap();
    }
    for ended in join_all(stuck).await {
        let ended = ended.unwrap();
        assert!(matches!(ended, Err(FileError::Unavailable { .. })), "{ended:?}");
    }
}
