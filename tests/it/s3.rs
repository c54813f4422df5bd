//! The S3 store that the runner of the tests has started.

use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The settings of a store.
pub struct S3 {
    pub endpoint: String,
    pub region: String,
    pub access_key_id: String,
    pub secret_access_key: String,
    filer: String,
}

impl S3 {
    /// A missing store is a failure: a test that does not run says nothing.
    pub fn of_the_runner() -> Self {
        let setting = |name: &str| {
            std::env::var(name).unwrap_or_else(|_| {
                panic!("{name} is not set: run `tests/run --only unit`, or `tests/support/seaweed.py -- cargo test`")
            })
        };
        Self {
            endpoint: setting("S3_ENDPOINT"),
            region: setting("S3_REGION"),
            access_key_id: setting("S3_ACCESS_KEY_ID"),
            secret_access_key: setting("S3_SECRET_ACCESS_KEY"),
            filer: setting("S3_FILER"),
        }
    }

    /// A place of its own in a bucket that all tests share, for a bucket costs the store more than a test is worth.
    pub async fn place(&self) -> String {
        self.place_in("it-shared").await
    }

    /// The same in another bucket.
    pub async fn place_elsewhere(&self) -> String {
        self.place_in("it-elsewhere").await
    }

    /// Makes the bucket through the file system below the store, where it is not there yet.
    async fn place_in(&self, bucket: &str) -> String {
        let made = Client::new().post(format!("{}/buckets/{bucket}/", self.filer)).send().await.unwrap();
        assert!(made.status().is_success() || made.status() == 409, "{}", made.status());
        format!("s3://{bucket}/{}", Uuid::now_v7())
    }

    /// Waits until the object is no longer there.
    pub async fn wait_until_gone(&self, location: &str) {
        let path = location.strip_prefix("s3://").unwrap();
        for _ in 0..1_500 {
            let found = Client::new().head(format!("{}/buckets/{path}", self.filer)).send().await.unwrap();
            if found.status() == 404 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{location} is still there");
    }

    /// As a request names it, with the secret as it is.
    pub fn storage(&self) -> Value {
        json!({"type": "s3", "endpoint": self.endpoint, "region": self.region, "path-style": true,
            "access-key-id": self.access_key_id, "secret-access-key": self.secret_access_key})
    }
}

/// A way to a store that can go silent: what is sent then, on old connections and new ones, is never answered.
pub struct Proxy {
    pub endpoint: String,
    silence: CancellationToken,
    /// Connections that are held and not answered.
    held: watch::Receiver<usize>,
}

impl Proxy {
    pub async fn before(s3: &S3) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (silence, store) = (CancellationToken::new(), s3.endpoint.trim_start_matches("http://").to_owned());
        let (count, held) = watch::channel(0);
        let proxy = Self { endpoint, silence: silence.clone(), held };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(client, store.clone(), silence.clone(), count.clone()));
            }
        });
        proxy
    }

    pub fn fall_silent(&self) {
        self.silence.cancel();
    }

    /// Waits until that many connections are held and not answered.
    pub async fn holds(&self, connections: usize) {
        self.held.clone().wait_for(|held| *held >= connections).await.unwrap();
    }
}

async fn pass_on(mut client: TcpStream, store: String, silence: CancellationToken, held: watch::Sender<usize>) {
    let mut store = TcpStream::connect(store).await.unwrap();
    tokio::select! {
        biased;
        // Both stay open, and nobody reads from them.
        () = silence.cancelled() => {
            held.send_modify(|held| *held += 1);
            std::future::pending().await
        }
        _ = copy_bidirectional(&mut client, &mut store) => {}
    }
}
