//! How the store of a warehouse is reached, and the clients that reach it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::local::LocalFileSystem;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::location::Location;

/// For one try of one request, its body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// After so many failed tries, or so long after the first, no other try is begun.
const MAX_RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// The settings of a warehouse's store. Local files need none; those of S3 that are not given come from the environment
/// (the `AWS_…` variables, a web identity, or the machine's role).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Storage {
    /// URL of an S3-compatible store; without it, that of AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The bucket is part of the path (`endpoint/bucket/key`) and not of the host name.
    pub path_style: bool,
    /// Lets the endpoint be `http://`.
    pub allow_http: bool,
    /// Given together with the secret, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<Secret>,
}

/// A text that is never printed. It is serialized as it is, for only the catalog's own database is written that way.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one who must send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// What one client serves: the local file system, or one bucket with one set of settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum StoreKey {
    Local,
    S3 { bucket: String, storage: Storage },
}

impl StoreKey {
    pub(super) fn of(location: &Location, storage: &Storage) -> Self {
        match location.scheme() {
            "file" => StoreKey::Local,
            _ => StoreKey::S3 { bucket: location.bucket().to_owned(), storage: storage.clone() },
        }
    }

    pub(super) fn connect(&self) -> Result<Arc<dyn ObjectStore>> {
        match self {
            StoreKey::Local => Ok(Arc::new(LocalFileSystem::new().with_fsync(true))),
            StoreKey::S3 { bucket, storage } => s3_client(bucket, storage),
        }
    }
}

fn s3_client(bucket: &str, storage: &Storage) -> Result<Arc<dyn ObjectStore>> {
    let client = s3_builder(bucket, storage)?.build().map_err(|error| {
        Error::invalid(format!("the storage settings of bucket '{bucket}' cannot be used")).with_source(error)
    })?;
    Ok(Arc::new(client))
}

fn s3_builder(bucket: &str, storage: &Storage) -> Result<AmazonS3Builder> {
    let options = ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_allow_http(storage.allow_http);
    let retry = RetryConfig { max_retries: MAX_RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
    let mut builder = with_credentials(storage)?
        .with_client_options(options)
        .with_retry(retry)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_virtual_hosted_style_request(!storage.path_style)
        .with_bucket_name(bucket);
    if let Some(region) = &storage.region {
        builder = builder.with_region(region);
    }
    let environment = || builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    if let Some(endpoint) = storage.endpoint.clone().or_else(environment) {
        builder = builder.with_endpoint(bucket_endpoint(&endpoint, bucket, storage.path_style)?);
    }
    Ok(builder)
}

/// Given keys stand alone: a session token of the environment would belong to other keys.
fn with_credentials(storage: &Storage) -> Result<AmazonS3Builder> {
    match (&storage.access_key_id, &storage.secret_access_key) {
        (None, None) => Ok(AmazonS3Builder::from_env()),
        (Some(id), Some(secret)) => {
            Ok(AmazonS3Builder::new().with_access_key_id(id).with_secret_access_key(secret.reveal()))
        }
        (Some(_), None) => {
            Err(Error::invalid("storage has access-key-id without secret-access-key: give both or none"))
        }
        (None, Some(_)) => {
            Err(Error::invalid("storage has secret-access-key without access-key-id: give both or none"))
        }
    }
}

/// In the virtual-hosted style the bucket is the first part of the endpoint's host name.
fn bucket_endpoint(endpoint: &str, bucket: &str, path_style: bool) -> Result<String> {
    let refused = || Error::invalid(format!("storage endpoint '{endpoint}' is not a URL like 'https://host:port'"));
    let mut url = url::Url::parse(endpoint).map_err(|error| refused().with_source(error))?;
    let host = url.host_str().ok_or_else(refused)?;
    if !path_style {
        let host = format!("{bucket}.{host}");
        url.set_host(Some(&host)).map_err(|error| refused().with_source(error))?;
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Storage {
        Storage {
            endpoint: Some("http://127.0.0.1:9000/".to_owned()),
            region: Some("eu-west-1".to_owned()),
            path_style: true,
            allow_http: true,
            access_key_id: Some("id".to_owned()),
            secret_access_key: Some(Secret::new("hush")),
        }
    }

    #[test]
    fn the_secret_is_never_printed() {
        let printed = format!("{:?}", StoreKey::of(&Location::parse("s3://b/x").unwrap(), &keys()));
        assert!(printed.contains("[secret]") && !printed.contains("hush"), "{printed}");
    }

    #[test]
    fn settings_are_read_back_as_they_were_written() {
        let text = serde_json::to_string(&keys()).unwrap();
        assert!(text.contains("\"secret-access-key\":\"hush\""), "{text}");
        assert_eq!(serde_json::from_str::<Storage>(&text).unwrap(), keys());
        assert_eq!(serde_json::from_str::<Storage>("{}").unwrap(), Storage::default());
        assert_eq!(serde_json::to_string(&Storage::default()).unwrap(), r#"{"path-style":false,"allow-http":false}"#);
    }

    #[test]
    fn settings_reach_the_client() {
        let builder = s3_builder("b", &keys()).unwrap();
        for (key, value) in [
            (AmazonS3ConfigKey::Endpoint, "http://127.0.0.1:9000"),
            (AmazonS3ConfigKey::Region, "eu-west-1"),
            (AmazonS3ConfigKey::AccessKeyId, "id"),
            (AmazonS3ConfigKey::SecretAccessKey, "hush"),
            (AmazonS3ConfigKey::VirtualHostedStyleRequest, "false"),
            (AmazonS3ConfigKey::ConditionalPut, "etag"),
            (AmazonS3ConfigKey::Bucket, "b"),
        ] {
            assert_eq!(builder.get_config_value(&key).as_deref(), Some(value), "{key:?}");
        }
        builder.build().unwrap();
    }

    #[test]
    fn the_bucket_is_in_the_host_name_unless_it_is_in_the_path() {
        for (endpoint, path_style, expected) in [
            ("https://s3.example.org:9000/", false, "https://b.s3.example.org:9000"),
            ("https://s3.example.org/base/", true, "https://s3.example.org/base"),
        ] {
            assert_eq!(bucket_endpoint(endpoint, "b", path_style).unwrap(), expected);
        }
        assert!(bucket_endpoint("s3.example.org", "b", true).is_err());
    }

    #[test]
    fn half_a_key_is_refused() {
        let half = Storage { secret_access_key: None, ..keys() };
        assert!(s3_builder("b", &half).unwrap_err().message().contains("secret-access-key"));
        let half = Storage { access_key_id: None, ..keys() };
        assert!(s3_builder("b", &half).unwrap_err().message().contains("access-key-id"));
    }

    #[test]
    fn aliases_of_one_bucket_share_a_client() {
        let key = |text: &str| StoreKey::of(&Location::parse(text).unwrap(), &keys());
        assert_eq!(key("s3://b/x"), key("s3a://b/y"));
        assert_ne!(key("s3://b/x"), key("s3://c/x"));
        assert_eq!(key("file:///x"), StoreKey::Local);
    }
}
