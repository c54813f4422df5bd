//! Fresh buckets in the store that the environment names.

use std::env;

use catalog::files::{Files, FilesOptions, Place, S3Storage, Secret, Storage};
use catalog::location::Location;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

pub const LIMIT_BYTES: u64 = 1 << 20;

/// A place of a test's own in a bucket. The store keeps volumes for each bucket, so that the tests share two.
pub struct Bucket {
    pub name: String,
    prefix: String,
}

pub fn files() -> Files {
    Files::new(FilesOptions::default(), None)
}

/// Of an error and of all that lies behind it.
pub fn whole_text(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(|error| format!("{error} {error:?}")).collect()
}

pub fn setting(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set; run: python tests/support/seaweed.py -- cargo test -p catalog --test object_stores")
    })
}

impl Bucket {
    pub async fn new() -> Self {
        Self::named("files").await
    }

    pub async fn other() -> Self {
        Self::named("files-other").await
    }

    /// Nobody else has it, so that it may be deleted.
    pub async fn alone() -> Self {
        Self::named(&format!("files-{}", Uuid::now_v7().simple())).await
    }

    async fn named(name: &str) -> Self {
        filer("POST", &format!("/buckets/{name}/")).await;
        Self { name: name.to_owned(), prefix: format!("w-{}", Uuid::now_v7().simple()) }
    }

    pub async fn delete(&self) {
        filer("DELETE", &format!("/buckets/{}?recursive=true", self.name)).await;
    }

    pub fn s3(&self) -> S3Storage {
        S3Storage {
            endpoint: Some(setting("S3_ENDPOINT")),
            region: Some(setting("S3_REGION")),
            path_style: true,
            access_key_id: Some(setting("S3_ACCESS_KEY_ID")),
            secret_access_key: Some(Secret::new(setting("S3_SECRET_ACCESS_KEY"))),
            session_token: None,
        }
    }

    pub fn place(&self) -> Place {
        self.place_at(&setting("S3_ENDPOINT"))
    }

    pub fn place_at(&self, endpoint: &str) -> Place {
        Place {
            root: Location::parse(&format!("s3://{}/{}", self.name, self.prefix)).unwrap(),
            allowed: Vec::new(),
            storage: Storage::S3(S3Storage { endpoint: Some(endpoint.to_owned()), ..self.s3() }),
        }
    }

    pub fn location(&self, name: &str) -> String {
        self.place().root.join(name).to_string()
    }
}

/// A request to the file system below the store, where buckets are folders.
async fn filer(method: &str, path: &str) {
    let filer = setting("S3_FILER");
    let host = filer.strip_prefix("http://").expect("the filer is on loopback");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let done = answer.starts_with("HTTP/1.1 2") || answer.starts_with("HTTP/1.1 409");
    assert!(done, "{method} {path}: {answer}");
}
