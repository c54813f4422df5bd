//! The clients of object stores: one for each bucket and settings, with a bound of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut, resolve_bucket_region};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder, split_sas};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::local::LocalFileSystem;
use object_store::{ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider};
use tokio::sync::Semaphore;
use url::{Host, Url};

use super::fault::Fault;
use super::secret::{Secret, SecretsKey};
use super::storage::{AdlsStorage, GcsStorage, REGION_OF_ENDPOINTS, S3Storage, Storage};
use super::traced::Traced;
use crate::blocking;
use crate::error::{Error, Kind, Result};
use crate::location::Location;

/// For one try of one request, its body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// After so many failed tries, or so long after the first, no other try is begun.
const MAX_RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// What one client serves: the local file system, or one bucket with one set of settings as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreKey {
    storage: Storage,
    bucket: String,
    /// The storage account and the rest of its host's name; empty in all stores but ADLS.
    account: String,
    account_suffix: String,
}

/// A store, and the turns that bound what it is asked at one time, so that one that hangs holds up nobody else.
#[derive(Debug)]
pub struct Client {
    pub store: Arc<dyn ObjectStore>,
    pub turns: Semaphore,
}

impl StoreKey {
    /// Refuses a location that these settings are not for: nothing is reached in the server's own name by mistake.
    pub fn of(location: &Location, storage: &Storage) -> Result<Self> {
        if !storage.fits(location) {
            let (kind, settings) = (location.kind(), storage.kind());
            return Err(Error::invalid(format!(
                "location '{location}' is of type {kind}, and the storage of the warehouse of type {settings}"
            )));
        }
        Ok(Self {
            storage: storage.clone(),
            bucket: location.bucket().to_owned(),
            account: location.account().to_owned(),
            account_suffix: location.account_suffix().to_owned(),
        })
    }

    /// Whether the client is to be made anew after a while, as a secret in a file may have changed.
    pub fn ages(&self) -> bool {
        self.storage.has_secret_in_file()
    }

    /// Opens the secrets, asks for the region of the bucket where nobody names it, and makes the client. No secret is
    /// read out of the server's `own_files`.
    pub async fn connect(
        self,
        key: Option<SecretsKey>,
        own_files: Arc<[PathBuf]>,
        traced: Traced,
    ) -> Result<Arc<dyn ObjectStore>> {
        let stored = self.storage.clone();
        let open = move || {
            stored.check_files(&own_files)?;
            stored.opened(key.as_ref())
        };
        let opened = blocking::run(open).await?;
        opened.check()?;
        let region = match &opened {
            Storage::S3(s3) if !knows_region(s3) => Some(region_of(&self.bucket, &client_options(None)).await?),
            _ => None,
        };
        blocking::run(move || self.build(&opened, region, traced)).await
    }

    fn build(&self, opened: &Storage, region: Option<String>, traced: Traced) -> Result<Arc<dyn ObjectStore>> {
        let unusable = |_| unusable(&self.bucket, opened);
        Ok(match opened {
            Storage::File => Arc::new(LocalFileSystem::new().with_fsync(true)),
            Storage::S3(s3) => {
                let builder = s3_builder(&self.bucket, s3, region)?.with_http_connector(traced);
                Arc::new(builder.build().map_err(unusable)?)
            }
            Storage::Gcs(gcs) => {
                let builder = gcs_builder(&self.bucket, gcs).with_http_connector(traced);
                Arc::new(builder.build().map_err(unusable)?)
            }
            Storage::Adls(adls) => {
                let builder = self.adls_builder(adls)?.with_http_connector(traced);
                Arc::new(builder.build().map_err(unusable)?)
            }
        })
    }

    fn adls_builder(&self, adls: &AdlsStorage) -> Result<MicrosoftAzureBuilder> {
        let given = [&adls.account_key, &adls.sas_token, &adls.client_secret].into_iter().any(Option::is_some);
        let builder = if given { MicrosoftAzureBuilder::new() } else { MicrosoftAzureBuilder::from_env() };
        let of_host = || format!("https://{}.blob.{}", self.account, self.account_suffix);
        let endpoint = adls.endpoint.clone().unwrap_or_else(of_host);
        let mut builder = builder
            .with_client_options(client_options(Some(&endpoint)))
            .with_retry(retry())
            .with_use_emulator(false)
            .with_account(&self.account)
            .with_container_name(&self.bucket)
            .with_endpoint(endpoint.trim_end_matches('/').to_owned());
        if let Some(key) = &adls.account_key {
            builder = builder.with_access_key(key.reveal());
        }
        if let Some(token) = &adls.sas_token {
            let pairs = split_sas(token.reveal())
                .map_err(|_| Error::invalid("storage sas-token is none: give what follows the '?' of a signed URL"))?;
            builder = builder.with_sas_authorization(pairs);
        }
        let secret = adls.client_secret.as_ref().map(Secret::reveal);
        for (key, value) in [
            (AzureConfigKey::ClientId, adls.client_id.as_deref()),
            (AzureConfigKey::AuthorityId, adls.tenant_id.as_deref()),
            (AzureConfigKey::ClientSecret, secret),
        ] {
            if let Some(value) = value {
                builder = builder.with_config(key, value);
            }
        }
        Ok(builder)
    }
}

/// The client's own words are not kept: they may quote a secret that it could not read, given or of the environment.
fn unusable(bucket: &str, opened: &Storage) -> Error {
    let message = |what: &str| format!("the storage settings of '{bucket}' cannot be used: {what}");
    match opened {
        Storage::Gcs(gcs) if gcs.service_account_key.is_some() => {
            Error::invalid(message("service-account-key is not the JSON of a service account's key"))
        }
        Storage::Adls(adls) if adls.account_key.is_some() => Error::invalid(message("account-key is not base64")),
        opened if opened.has_secrets() => Error::invalid(message("no client can be made of them")),
        opened => Error::invalid(message(&format!(
            "no client can be made of them and of what the server's environment names; check {}",
            environment(opened)
        ))),
    }
}

/// Where the server finds credentials that are not given.
fn environment(storage: &Storage) -> &'static str {
    match storage {
        Storage::File => "the user that the server runs as",
        Storage::S3(_) => "its AWS_… variables",
        Storage::Gcs(_) => "its GOOGLE_… variables and the file of its default credentials",
        Storage::Adls(_) => "its AZURE_… variables",
    }
}

/// Whether somebody says the region, or an endpoint that makes it matter little.
fn knows_region(s3: &S3Storage) -> bool {
    let builder = with_credentials(s3);
    s3.region.is_some()
        || s3.endpoint.is_some()
        || builder.get_config_value(&AmazonS3ConfigKey::Region).is_some()
        || endpoint_of_environment(&builder).is_some()
}

/// AWS tells it to everybody.
pub async fn region_of(bucket: &str, options: &ClientOptions) -> Result<String> {
    resolve_bucket_region(bucket, options).await.map_err(|error| {
        let message = format!(
            "AWS does not tell the region of the bucket '{bucket}': make the bucket, set storage region, or set storage \
             endpoint where the store is not that of AWS"
        );
        Error::new(Kind::Unavailable, message).with_source(Fault::of(&error))
    })
}

fn client_options(endpoint: Option<&str>) -> ClientOptions {
    ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_allow_http(endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")))
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: MAX_RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() }
}

fn s3_builder(bucket: &str, s3: &S3Storage, region: Option<String>) -> Result<AmazonS3Builder> {
    let builder = with_credentials(s3);
    let endpoint = s3.endpoint.clone().or_else(|| endpoint_of_environment(&builder));
    // The certificates of AWS do not cover a bucket whose name has a dot.
    let path_style = s3.path_style || endpoint.is_none() && bucket.contains('.');
    let mut builder = builder
        .with_client_options(client_options(endpoint.as_deref()))
        .with_retry(retry())
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_virtual_hosted_style_request(!path_style)
        .with_bucket_name(bucket);
    // The one that clients are told, whatever the environment says.
    let of_endpoint = s3.endpoint.as_ref().map(|_| REGION_OF_ENDPOINTS.to_owned());
    if let Some(region) = s3.region.clone().or(region).or(of_endpoint) {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = endpoint {
        let endpoint = bucket_endpoint(&endpoint, bucket, path_style)?;
        builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    }
    Ok(builder)
}

/// Given keys stand alone: a session token of the environment would belong to other keys.
fn with_credentials(s3: &S3Storage) -> AmazonS3Builder {
    let (Some(id), Some(secret)) = (&s3.access_key_id, &s3.secret_access_key) else {
        return AmazonS3Builder::from_env();
    };
    let builder = AmazonS3Builder::new().with_access_key_id(id).with_secret_access_key(secret.reveal());
    match &s3.session_token {
        Some(token) => builder.with_token(token.reveal()),
        None => builder,
    }
}

fn endpoint_of_environment(builder: &AmazonS3Builder) -> Option<String> {
    [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint].iter().find_map(|key| builder.get_config_value(key))
}

/// In the virtual-hosted style the bucket is the first part of the endpoint's host name.
fn bucket_endpoint(endpoint: &str, bucket: &str, path_style: bool) -> Result<String> {
    // Not shown: one of the environment may hold credentials.
    let refused = || Error::invalid("storage endpoint is not a URL like 'https://host:port'");
    let mut url = Url::parse(endpoint).map_err(|error| refused().with_source(error))?;
    let host = url.host_str().ok_or_else(refused)?;
    if !path_style && !matches!(url.host(), Some(Host::Domain(_))) {
        return Err(Error::invalid(
            "no bucket can stand before the IP address of the storage endpoint: set path-style",
        ));
    }
    if !path_style {
        let host = format!("{bucket}.{host}");
        url.set_host(Some(&host)).map_err(|error| refused().with_source(error))?;
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn gcs_builder(bucket: &str, gcs: &GcsStorage) -> GoogleCloudStorageBuilder {
    let given = gcs.service_account_key.is_some() || gcs.anonymous;
    let builder = if given { GoogleCloudStorageBuilder::new() } else { GoogleCloudStorageBuilder::from_env() };
    let mut builder = builder
        .with_client_options(client_options(gcs.endpoint.as_deref()))
        .with_retry(retry())
        .with_bucket_name(bucket)
        .with_skip_signature(gcs.anonymous);
    if gcs.anonymous {
        // Writes ask for credentials all the same, and would look for them in the environment.
        let nobody = GcpCredential { bearer: String::new() };
        builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(nobody)));
    }
    if let Some(endpoint) = &gcs.endpoint {
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    if let Some(key) = &gcs.service_account_key {
        builder = builder.with_service_account_key(key.reveal());
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> S3Storage {
        S3Storage {
            endpoint: Some("http://127.0.0.1:9000/".to_owned()),
            region: Some("eu-west-1".to_owned()),
            path_style: true,
            access_key_id: Some("id".to_owned()),
            secret_access_key: Some(Secret::new("hush")),
            session_token: Some(Secret::new("token")),
        }
    }

    fn key(text: &str) -> StoreKey {
        let location = Location::parse(text).unwrap();
        StoreKey::of(&location, &Storage::for_location(&location)).unwrap()
    }

    #[test]
    fn settings_of_s3_reach_the_client() {
        let builder = s3_builder("b", &keys(), None).unwrap();
        for (key, value) in [
            (AmazonS3ConfigKey::S3Endpoint, "http://127.0.0.1:9000"),
            (AmazonS3ConfigKey::Region, "eu-west-1"),
            (AmazonS3ConfigKey::AccessKeyId, "id"),
            (AmazonS3ConfigKey::SecretAccessKey, "hush"),
            (AmazonS3ConfigKey::Token, "token"),
            (AmazonS3ConfigKey::VirtualHostedStyleRequest, "false"),
            (AmazonS3ConfigKey::ConditionalPut, "etag"),
            (AmazonS3ConfigKey::Bucket, "b"),
        ] {
            assert_eq!(builder.get_config_value(&key).as_deref(), Some(value), "{key:?}");
        }
        builder.build().unwrap();
    }

    #[test]
    fn the_region_of_an_endpoint_is_the_one_that_clients_are_told() {
        let without_keys = S3Storage { endpoint: keys().endpoint, path_style: true, ..S3Storage::default() };
        for s3 in [S3Storage { region: None, ..keys() }, without_keys] {
            let signed_with = s3_builder("b", &s3, None).unwrap().get_config_value(&AmazonS3ConfigKey::Region);
            let told = Storage::S3(s3).client_config().remove("s3.region");
            assert_eq!((signed_with.as_deref(), told.as_deref()), (Some("us-east-1"), Some("us-east-1")));
        }
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
        let error = bucket_endpoint("http://127.0.0.1:9000", "b", false).unwrap_err();
        assert!(error.message().contains("set path-style"), "{error}");
    }

    #[tokio::test]
    async fn half_a_key_makes_no_client() {
        let half = Storage::S3(S3Storage { secret_access_key: None, session_token: None, ..keys() });
        let key = StoreKey::of(&Location::parse("s3://b/x").unwrap(), &half).unwrap();
        assert!(
            key.connect(None, Arc::default(), Traced(Vec::new))
                .await
                .unwrap_err()
                .message()
                .contains("secret-access-key")
        );
    }

    #[test]
    fn aliases_of_one_bucket_share_a_client_and_buckets_do_not() {
        assert_eq!(key("s3://b/x"), key("s3a://b/y"));
        assert_ne!(key("s3://b/x"), key("s3://c/x"));
        assert_eq!(key("file:///x"), key("file:///y"));
        let (one, same) = (key("abfss://c@a.dfs.core.windows.net/x"), key("wasbs://c@a.blob.core.windows.net/y"));
        assert_eq!(one, same);
        assert_ne!(one, key("abfss://c@b.dfs.core.windows.net/x"));
    }

    #[test]
    fn settings_of_the_environment_that_cannot_be_used_are_told_by_their_names() {
        for (location, named) in
            [("gs://b", "GOOGLE_"), ("abfss://c@a.dfs.core.windows.net", "AZURE_"), ("s3://b", "AWS_")]
        {
            let error = unusable("b", &Storage::for_location(&Location::parse(location).unwrap()));
            assert!(error.message().contains(named) && std::error::Error::source(&error).is_none(), "{error}");
        }
    }

    #[test]
    fn another_kind_of_store_is_not_reached() {
        let refused = StoreKey::of(&Location::parse("gs://b/x").unwrap(), &Storage::S3(keys())).unwrap_err();
        assert!(refused.message().contains("is of type gcs"), "{refused}");
    }
}
