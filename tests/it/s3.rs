//! The S3 store that the runner of the tests has started.

use reqwest::Client;
use serde_json::{Value, json};
use uuid::Uuid;

/// The settings of a store with a bucket that this test has made.
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

    /// A bucket of its own, made through the file system below the store.
    pub async fn bucket(&self) -> String {
        let name = format!("it-{}", Uuid::now_v7());
        let made = Client::new().post(format!("{}/buckets/{name}/", self.filer)).send().await.unwrap();
        made.error_for_status().unwrap();
        name
    }

    /// As a request names it, with the secret as it is.
    pub fn storage(&self) -> Value {
        json!({"type": "s3", "endpoint": self.endpoint, "region": self.region, "path-style": true,
            "access-key-id": self.access_key_id, "secret-access-key": self.secret_access_key})
    }
}
