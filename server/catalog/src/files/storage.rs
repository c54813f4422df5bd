//! How the store of a warehouse is reached: the settings as they are stored, and what clients are told of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

use super::secret::{Secret, SecretsKey};
use crate::error::{Error, Result};
use crate::location::{Location, StoreKind};

/// What S3-compatible stores call their only region.
pub(super) const REGION_OF_ENDPOINTS: &str = "us-east-1";

/// The settings of a warehouse's store. Credentials that are not given come from the environment of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Storage {
    /// The local file system, which needs no settings.
    #[default]
    File,
    S3(S3Storage),
    Gcs(GcsStorage),
    Adls(AdlsStorage),
}

/// S3, or a store that speaks its language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct S3Storage {
    /// URL of an S3-compatible store; without it, that of AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Without it and without an endpoint, AWS is asked for the region of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The bucket is part of the path (`endpoint/bucket/key`) and not of the host name.
    pub path_style: bool,
    /// Given together with the secret, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_access_key: Option<Secret>,
    /// Of temporary keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_token: Option<Secret>,
}

/// Google Cloud Storage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct GcsStorage {
    /// URL of an emulator; without it, that of Google.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Only told to clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The JSON of a service account's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_key: Option<Secret>,
    /// Requests carry no credentials, as emulators take them.
    #[serde(skip_serializing_if = "is_false")]
    pub anonymous: bool,
}

/// Azure Data Lake Storage and Blob Storage. Container and account are in the location.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct AdlsStorage {
    /// URL of an emulator with the account in its path; without it, that of the location's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_key: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sas_token: Option<Secret>,
    /// Of a service principal, with `client-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Without a secret: of a workload identity or a managed identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
}

impl Storage {
    /// Everything from the environment, for the kind of store that the location lies in.
    pub fn for_location(location: &Location) -> Self {
        match location.kind() {
            StoreKind::File => Storage::File,
            StoreKind::S3 => Storage::S3(S3Storage::default()),
            StoreKind::Gcs => Storage::Gcs(GcsStorage::default()),
            StoreKind::Adls => Storage::Adls(AdlsStorage::default()),
        }
    }

    pub fn kind(&self) -> StoreKind {
        match self {
            Storage::File => StoreKind::File,
            Storage::S3(_) => StoreKind::S3,
            Storage::Gcs(_) => StoreKind::Gcs,
            Storage::Adls(_) => StoreKind::Adls,
        }
    }

    /// Whether these settings are for the kind of store that the location lies in.
    pub fn fits(&self, location: &Location) -> bool {
        self.kind() == location.kind()
    }

    /// Without what is secret; where a secret is kept (`env:`, `file:`) is none.
    pub fn redacted(&self) -> Self {
        let mut shown = self.clone();
        for (_, secret) in shown.secrets() {
            *secret = secret.take().filter(Secret::is_reference);
        }
        shown
    }

    /// What a client needs to reach the same store, by the names of Iceberg's own properties; never credentials.
    /// What the server has from its environment is not told: clients may live elsewhere.
    pub fn client_config(&self) -> BTreeMap<String, String> {
        match self {
            Storage::File => BTreeMap::new(),
            Storage::S3(s3) => s3.client_config(),
            Storage::Gcs(gcs) => gcs.client_config(),
            Storage::Adls(_) => BTreeMap::new(),
        }
    }

    pub(super) fn endpoint(&self) -> Option<&str> {
        match self {
            Storage::File => None,
            Storage::S3(s3) => s3.endpoint.as_deref(),
            Storage::Gcs(gcs) => gcs.endpoint.as_deref(),
            Storage::Adls(adls) => adls.endpoint.as_deref(),
        }
    }

    /// Takes over the stored secrets that are left out here, where they go with the same name as before. Refuses to take
    /// the server's own credentials for them without a word.
    pub fn keep_secrets(&mut self, stored: &Storage) -> Result<()> {
        match (self, stored) {
            (Storage::S3(new), Storage::S3(old)) => {
                new.keep_secrets(old);
                Ok(())
            }
            (Storage::Gcs(new), Storage::Gcs(old)) => new.keep_secrets(old),
            (Storage::Adls(new), Storage::Adls(old)) => new.keep_secrets(old),
            _ => Ok(()),
        }
    }

    /// Refuses settings that contradict each other or are none, with a message that names the field.
    pub fn check(&self) -> Result<()> {
        match self {
            Storage::File => Ok(()),
            Storage::S3(s3) => s3.check(),
            Storage::Gcs(gcs) => gcs.check(),
            Storage::Adls(adls) => adls.check(),
        }
    }

    pub(super) fn sealed(&self, key: Option<&SecretsKey>) -> Result<Self> {
        self.with_secrets(|field, secret| secret.seal(field, key))
    }

    /// Refuses a secret in one of the server's own files. Blocks: links are followed.
    pub(super) fn check_files(&self, own_files: &[PathBuf]) -> Result<()> {
        self.with_secrets(|field, secret| secret.check_file(field, own_files).map(|()| secret.clone())).map(drop)
    }

    /// With every secret as [`Secret::reveal`] is to tell it. Blocks where one is in a file.
    pub(super) fn opened(&self, key: Option<&SecretsKey>) -> Result<Self> {
        self.with_secrets(|field, secret| secret.open(field, key))
    }

    pub(super) fn has_secret_in_file(&self) -> bool {
        self.clone().secrets().iter().any(|(_, secret)| secret.as_ref().is_some_and(Secret::is_in_file))
    }

    pub(super) fn has_secrets(&self) -> bool {
        self.clone().secrets().iter().any(|(_, secret)| secret.is_some())
    }

    fn with_secrets(&self, change: impl Fn(&str, &Secret) -> Result<Secret>) -> Result<Self> {
        let mut changed = self.clone();
        for (field, slot) in changed.secrets() {
            if let Some(secret) = slot {
                *secret = change(field, secret)?;
            }
        }
        Ok(changed)
    }

    /// Every field that can hold a secret, by its name.
    fn secrets(&mut self) -> Vec<(&'static str, &mut Option<Secret>)> {
        match self {
            Storage::File => Vec::new(),
            Storage::S3(s3) => {
                vec![("secret-access-key", &mut s3.secret_access_key), ("session-token", &mut s3.session_token)]
            }
            Storage::Gcs(gcs) => vec![("service-account-key", &mut gcs.service_account_key)],
            Storage::Adls(adls) => vec![
                ("account-key", &mut adls.account_key),
                ("sas-token", &mut adls.sas_token),
                ("client-secret", &mut adls.client_secret),
            ],
        }
    }
}

impl S3Storage {
    fn check(&self) -> Result<()> {
        check_endpoint(self.endpoint.as_deref())?;
        check_name("region", self.region.as_deref())?;
        let refused = |message| Err(Error::invalid(message));
        match (&self.access_key_id, &self.secret_access_key, &self.session_token) {
            (Some(_), None, _) => refused("storage has access-key-id without secret-access-key: give both or none"),
            (None, Some(_), _) => refused("storage has secret-access-key without access-key-id: give both or none"),
            (None, None, Some(_)) => refused("storage has session-token without the keys that it belongs to"),
            _ => Ok(()),
        }
    }

    fn client_config(&self) -> BTreeMap<String, String> {
        let mut config = BTreeMap::new();
        let mut tell = |name: &str, value: &str| config.insert(name.to_owned(), value.to_owned());
        if let Some(endpoint) = &self.endpoint {
            tell("s3.endpoint", endpoint);
        }
        if self.path_style {
            tell("s3.path-style-access", "true");
        }
        // Java's client begins nothing without a region, though such a store knows none.
        let of_endpoint = self.endpoint.as_ref().map(|_| REGION_OF_ENDPOINTS);
        if let Some(region) = self.region.as_deref().or(of_endpoint) {
            tell("client.region", region);
            tell("s3.region", region);
        }
        config
    }

    fn keep_secrets(&mut self, old: &Self) {
        if self.access_key_id.is_some() && self.access_key_id == old.access_key_id && self.secret_access_key.is_none() {
            self.secret_access_key.clone_from(&old.secret_access_key);
            self.session_token = self.session_token.take().or_else(|| old.session_token.clone());
        }
    }
}

impl GcsStorage {
    fn check(&self) -> Result<()> {
        check_endpoint(self.endpoint.as_deref())?;
        match (self.anonymous, &self.service_account_key) {
            (true, Some(_)) => Err(Error::invalid("storage has service-account-key and is anonymous: choose one")),
            _ => Ok(()),
        }
    }

    fn client_config(&self) -> BTreeMap<String, String> {
        let anonymous = self.anonymous.then(|| "true".to_owned());
        let told =
            [("gcs.project-id", &self.project_id), ("gcs.service.host", &self.endpoint), ("gcs.no-auth", &anonymous)];
        told.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
    }

    /// A token is sent to the endpoint, so that a stored key goes with it.
    fn keep_secrets(&mut self, old: &Self) -> Result<()> {
        if self.anonymous || self.service_account_key.is_some() || old.service_account_key.is_none() {
            return Ok(());
        }
        if self.endpoint != old.endpoint {
            return Err(secret_left_out("service-account-key", "endpoint"));
        }
        self.service_account_key.clone_from(&old.service_account_key);
        Ok(())
    }
}

impl AdlsStorage {
    fn check(&self) -> Result<()> {
        check_endpoint(self.endpoint.as_deref())?;
        check_name("tenant-id", self.tenant_id.as_deref())?;
        let ways = [self.account_key.is_some(), self.sas_token.is_some(), self.client_secret.is_some()];
        if ways.iter().filter(|given| **given).count() > 1 {
            return Err(Error::invalid("storage has several of account-key, sas-token and client-secret: give one"));
        }
        if self.client_secret.is_some() && (self.client_id.is_none() || self.tenant_id.is_none()) {
            return Err(Error::invalid("storage has client-secret without client-id and tenant-id: give all three"));
        }
        Ok(())
    }

    /// A token is sent to the endpoint, so that a stored secret goes with it.
    fn keep_secrets(&mut self, old: &Self) -> Result<()> {
        let Some(secret) = old.secret() else {
            return Ok(());
        };
        if self.secret().is_some() {
            return Ok(());
        }
        if self.endpoint != old.endpoint {
            return Err(secret_left_out(secret, "endpoint"));
        }
        if (&self.client_id, &self.tenant_id) != (&old.client_id, &old.tenant_id) {
            return Err(secret_left_out(secret, "client-id or tenant-id"));
        }
        self.account_key.clone_from(&old.account_key);
        self.sas_token.clone_from(&old.sas_token);
        self.client_secret.clone_from(&old.client_secret);
        Ok(())
    }

    /// The name of the one that is given.
    fn secret(&self) -> Option<&'static str> {
        let secrets = [
            ("account-key", &self.account_key),
            ("sas-token", &self.sas_token),
            ("client-secret", &self.client_secret),
        ];
        secrets.into_iter().find(|(_, secret)| secret.is_some()).map(|(name, _)| name)
    }
}

/// Without it the server's own credentials would be taken, and sent to wherever the new settings say.
fn secret_left_out(secret: &str, changed: &str) -> Error {
    Error::invalid(format!(
        "storage {changed} is another one than before, and {secret} is left out: give {secret} again; or, to take the \
         server's own credentials, leave out the whole storage in a change before this one"
    ))
}

fn is_false(value: &bool) -> bool {
    !value
}

/// `http` is allowed exactly where the endpoint says so.
fn check_endpoint(endpoint: Option<&str>) -> Result<()> {
    let Some(endpoint) = endpoint else {
        return Ok(());
    };
    let refused = |why: &str| Err(Error::invalid(format!("storage endpoint {why}: write it like 'https://host:port'")));
    match Url::parse(endpoint) {
        // Not shown: it may hold what is meant by it.
        Ok(url) if !url.username().is_empty() || url.password().is_some() => refused("holds credentials"),
        Ok(url) if url.query().is_some() || url.fragment().is_some() => refused("has a query or a fragment"),
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
        _ if endpoint.contains('@') => refused("is no URL of a server"),
        _ => refused(&format!("'{endpoint}' is no URL of a server")),
    }
}

/// A name that becomes a part of a host's name or of a path.
fn check_name(field: &str, name: Option<&str>) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    match name {
        Some(name) if name.is_empty() || !name.chars().all(plain) => {
            Err(Error::invalid(format!("storage {field} must consist of letters, digits, '-' and '.'")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
