//! The settings of a store as they are sent.

use catalog::files::Storage;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The fields that hold secrets. No message shows what is in them.
const SECRETS: [&str; 6] =
    ["secret-access-key", "session-token", "service-account-key", "account-key", "sas-token", "client-secret"];

/// How the store of a warehouse is reached. Secrets are given as they are, and then stored encrypted, or by where the
/// server finds them: `env:NAME`, `file:/path`. They are never told again.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only its documentation is wanted: the catalog has the settings themselves")
)]
pub enum StorageSettings {
    File,
    S3(S3Settings),
    Gcs(GcsSettings),
    Adls(AdlsSettings),
}

/// S3, or a store that speaks its language. Without keys, those of the server's environment are used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct S3Settings {
    /// URL of an S3-compatible store; without it, that of AWS. It may be `http://`.
    #[schema(example = "http://127.0.0.1:9000")]
    endpoint: Option<String>,
    region: Option<String>,
    /// The bucket is part of the path and not of the host name.
    #[schema(value_type = Option<bool>)]
    path_style: bool,
    /// Given together with the secret, or not at all.
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    /// Of temporary keys.
    session_token: Option<String>,
}

/// Google Cloud Storage. Without a key, the credentials of the server's environment are used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct GcsSettings {
    /// URL of an emulator; without it, that of Google.
    endpoint: Option<String>,
    /// Only told to clients.
    project_id: Option<String>,
    /// The JSON of a service account's key, as a text.
    service_account_key: Option<String>,
    /// Requests carry no credentials, as emulators take them.
    #[schema(value_type = Option<bool>)]
    anonymous: bool,
}

/// Azure Data Lake Storage and Blob Storage; container and account are in the location. At most one of the secrets is
/// given; without any, the identity of the server's environment is used.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AdlsSettings {
    /// URL of an emulator with the account in its path; without it, that of the location's host.
    endpoint: Option<String>,
    account_key: Option<String>,
    sas_token: Option<String>,
    /// Of a service principal, with `client-id`.
    tenant_id: Option<String>,
    /// Without a secret: of a workload identity or a managed identity.
    client_id: Option<String>,
    client_secret: Option<String>,
}

/// Reads what a request says of a store, for `deserialize_with`.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Storage>, D::Error> {
    let Some(settings) = Option::<Map<String, Value>>::deserialize(deserializer)? else {
        return Ok(None);
    };
    if let Some(secret) =
        SECRETS.iter().find(|name| settings.get(**name).is_some_and(|it| !it.is_string() && !it.is_null()))
    {
        return Err(D::Error::custom(format!("{secret} must be a text")));
    }
    let unknown = settings.keys().find(|name| *name != "type");
    if settings.get("type").is_some_and(|kind| kind == "file")
        && let Some(unknown) = unknown
    {
        return Err(D::Error::unknown_field(unknown, &["type"]));
    }
    Storage::deserialize(Value::Object(settings)).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(settings: Value) -> String {
        read(settings).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_a_setting_of_the_type_is_refused() {
        assert!(refusal(json!({"type": "file", "region": "x"})).contains("unknown field `region`"));
        assert!(refusal(json!({"type": "s3", "pathstyle": true})).contains("unknown field `pathstyle`"));
        assert!(refusal(json!({"type": "gs"})).contains("unknown variant `gs`"));
        assert!(refusal(json!({"region": "x"})).contains("missing field `type`"));
        assert_eq!(read(Value::Null).unwrap(), None);
    }

    #[test]
    fn no_message_shows_a_secret() {
        for name in SECRETS {
            for value in [json!(4711), json!({"k": 4711}), json!([4711])] {
                let message = refusal(json!({"type": "s3", name: value}));
                assert!(message.contains(name) && !message.contains("4711"), "{message}");
            }
        }
    }

    /// What the documentation says is what the catalog takes.
    #[test]
    fn the_documented_fields_are_those_of_the_catalog() {
        let text = || Some("x".to_owned());
        let documented = [
            StorageSettings::File,
            StorageSettings::S3(S3Settings {
                endpoint: text(),
                region: text(),
                path_style: true,
                access_key_id: text(),
                secret_access_key: text(),
                session_token: text(),
            }),
            StorageSettings::Gcs(GcsSettings {
                endpoint: text(),
                project_id: text(),
                service_account_key: text(),
                anonymous: true,
            }),
            StorageSettings::Adls(AdlsSettings {
                endpoint: text(),
                account_key: text(),
                sas_token: text(),
                tenant_id: text(),
                client_id: text(),
                client_secret: text(),
            }),
        ];
        for settings in documented {
            let sent = serde_json::to_value(&settings).unwrap();
            let read = read(sent.clone()).unwrap().unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), sent);
        }
    }
}
