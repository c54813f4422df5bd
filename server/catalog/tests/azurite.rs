//! ADLS for real: the emulator that `AZURITE_ENDPOINT` names, as in `http://127.0.0.1:10000/devstoreaccount1`.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use catalog::files::{AdlsStorage, FileError, Files, FilesOptions, Place, Secret, Storage};
use catalog::location::Location;
use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;
use uuid::Uuid;

/// The emulator's own account and key, the same everywhere.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const LIMIT_BYTES: u64 = 1 << 20;

fn endpoint() -> String {
    std::env::var("AZURITE_ENDPOINT").unwrap_or_else(|_| {
        panic!("AZURITE_ENDPOINT is not set; start Azurite and set it to http://HOST:PORT/{ACCOUNT}")
    })
}

/// A container of a test's own.
async fn container() -> String {
    let name = format!("files-{}", Uuid::now_v7().simple());
    let url = Url::parse(&format!("{}/{name}?restype=container&{}", endpoint(), shared_access()))
        .expect("AZURITE_ENDPOINT is a URL");
    let address = url.socket_addrs(|| None).expect("an address")[0];
    let target = format!("{}?{}", url.path(), url.query().expect("the signature"));
    let head = format!("PUT {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(address).await.expect("Azurite listens");
    stream.write_all(head.as_bytes()).await.expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    name
}

/// A signature that allows everything in the account.
fn shared_access() -> String {
    let (rights, services, kinds, until, version) = ("rwdlac", "b", "sco", "2099-01-01T00:00:00Z", "2019-12-12");
    let signed = format!("{ACCOUNT}\n{rights}\n{services}\n{kinds}\n\n{until}\n\n\n{version}\n");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &BASE64.decode(ACCOUNT_KEY).expect("base64"));
    let signature = BASE64.encode(hmac::sign(&key, signed.as_bytes()));
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in
        [("sv", version), ("ss", services), ("srt", kinds), ("sp", rights), ("se", until), ("sig", signature.as_str())]
    {
        query.append_pair(name, value);
    }
    query.finish()
}

fn place(container: &str, adls: AdlsStorage) -> Place {
    let root = format!("abfss://{container}@{ACCOUNT}.dfs.core.windows.net/w");
    let storage = Storage::Adls(AdlsStorage { endpoint: Some(endpoint()), ..adls });
    Place { root: Location::parse(&root).expect("a location"), allowed: Vec::new(), storage }
}

fn with_key(key: &str) -> AdlsStorage {
    AdlsStorage { account_key: Some(Secret::new(key)), ..AdlsStorage::default() }
}

fn files() -> Files {
    Files::new(FilesOptions::default(), None)
}

#[tokio::test]
#[ignore = "needs AZURITE_ENDPOINT"]
async fn a_probe_passes_with_the_key_of_the_account() {
    let place = place(&container().await, with_key(ACCOUNT_KEY));
    for _ in 0..2 {
        files().probe(&place, Uuid::from_u128(1)).await.expect("nothing is left of the first probe");
    }
}

/// It is not asked to delete: the emulator knows no signature for the batches that deletes are sent in.
#[tokio::test]
#[ignore = "needs AZURITE_ENDPOINT"]
async fn a_shared_access_signature_writes_once_and_reads() {
    let sas = AdlsStorage { sas_token: Some(Secret::new(shared_access())), ..AdlsStorage::default() };
    let (files, place) = (files(), place(&container().await, sas));
    let location = place.root.join("a b").to_string();
    files.write_new(&place, &location, Bytes::from_static(b"x")).await.unwrap();
    let again = files.write_new(&place, &location, Bytes::from_static(b"y")).await;
    assert!(matches!(again, Err(FileError::AlreadyExists { .. })), "{again:?}");
    assert_eq!(files.read(&place, &location, LIMIT_BYTES).await.unwrap(), "x");
}

#[tokio::test]
#[ignore = "needs AZURITE_ENDPOINT"]
async fn of_racing_writers_of_one_name_one_wins_whatever_the_spelling() {
    let (files, place) = (files(), place(&container().await, with_key(ACCOUNT_KEY)));
    let dfs = place.root.join("t/0.json").to_string();
    let blob = dfs.replace("abfss:", "wasbs:").replace(".dfs.", ".blob.");
    let write = async |writer: usize| {
        let location = if writer.is_multiple_of(2) { &dfs } else { &blob };
        files.write_new(&place, location, Bytes::from(writer.to_string())).await.is_ok()
    };
    let written = join_all((0..8).map(write)).await;
    assert_eq!(written.iter().filter(|written| **written).count(), 1, "{written:?}");
    assert_eq!(
        files.read(&place, &dfs, LIMIT_BYTES).await.unwrap(),
        files.read(&place, &blob, LIMIT_BYTES).await.unwrap()
    );
}

#[tokio::test]
#[ignore = "needs AZURITE_ENDPOINT"]
async fn many_blobs_are_deleted_though_some_are_gone() {
    let (files, place) = (files(), place(&container().await, with_key(ACCOUNT_KEY)));
    let locations: Vec<Location> = (0..300).map(|i| place.root.join(&i.to_string())).collect();
    for location in &locations[1..] {
        files.write_new(&place, location.as_str(), Bytes::from_static(b"x")).await.unwrap();
    }
    files.delete_all(&place, locations.clone()).await.unwrap();
    for location in &locations {
        let read = files.read(&place, location.as_str(), LIMIT_BYTES).await;
        assert!(matches!(read, Err(FileError::Missing { .. })), "{read:?}");
    }
}

#[tokio::test]
#[ignore = "needs AZURITE_ENDPOINT"]
async fn a_wrong_key_and_a_container_that_is_gone_are_told_apart() {
    let container = container().await;
    let wrong = files().probe(&place(&container, with_key("d3Jvbmc=")), Uuid::from_u128(1)).await.unwrap_err();
    assert!(wrong.message().contains("account-key") && !wrong.message().contains("d3Jvbmc"), "{wrong}");
    let gone = files().probe(&place("gone", with_key(ACCOUNT_KEY)), Uuid::from_u128(1)).await.unwrap_err();
    assert!(gone.message().contains("there is no container 'gone'"), "{gone}");
}
