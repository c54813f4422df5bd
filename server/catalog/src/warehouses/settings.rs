//! Client settings of a warehouse: what every client of it is told, and what may not be told that way.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// Bound of the keys of one map, in entries.
const SETTINGS_MAX: usize = 1_000;

/// Bound of a key, and of a value, in bytes.
const KEY_MAX_BYTES: usize = 1_024;
const VALUE_MAX_BYTES: usize = 16 * 1_024;

/// Java clients give these properties to the tables that they make. The name of the property follows.
const OF_TABLES: [&str; 2] = ["table-default.", "table-override."];

/// What the catalog tells by itself, so that a client finds its way back to it.
const OF_THE_CATALOG: [&str; 4] = ["prefix", "uri", "warehouse", crate::commits::DEADLINE_SETTING];

/// What the names of secrets end in, whatever the client library.
const SECRET_ENDINGS: [&str; 9] =
    ["token", "credential", "credentials", "password", "secret", "authorization", ".key", "-key", "_key"];

/// What the names of secrets hold where something else follows: an account, or the other half of the pair.
const SECRET_PARTS: [&str; 9] = [
    "credentials-json",
    "access-key",
    "secret-access",
    "client-secret",
    "account.key",
    "account-key",
    "shared-key",
    "sas-token",
    "connection-string",
];

/// Refuses settings that no client could use, that the catalog tells by itself, or that name a secret.
/// `field` is the name of the map in the request.
pub fn check(field: &str, settings: &BTreeMap<String, String>) -> Result<()> {
    if settings.len() > SETTINGS_MAX {
        return Err(Error::invalid(format!("{field} has more than {SETTINGS_MAX} settings")));
    }
    crate::commits::settings::check(settings)?;
    settings.iter().try_for_each(|(key, value)| check_one(field, key, value))
}

fn check_one(field: &str, key: &str, value: &str) -> Result<()> {
    let refused = |why: &str| Err(Error::invalid(format!("{field}: setting '{}' {why}", shown(key))));
    let named = OF_TABLES.iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(key);
    if named.is_empty() {
        return refused("has no name: write it like 's3.region', or 'table-default.' and the name of a property");
    }
    if key.len() > KEY_MAX_BYTES || value.len() > VALUE_MAX_BYTES {
        return refused(&format!("is too long: a key has at most {KEY_MAX_BYTES} bytes, a value {VALUE_MAX_BYTES}"));
    }
    if key.chars().chain(value.chars()).any(char::is_control) {
        return refused("holds control characters");
    }
    if OF_THE_CATALOG.contains(&key) {
        return refused("is told by the catalog itself: leave it out");
    }
    if names_a_secret(key) && !is_kms_key(key, value) {
        return refused("names a secret, and secrets never go to clients this way: configure it at the client");
    }
    Ok(())
}

/// By its name alone: what a value is cannot be seen.
fn names_a_secret(key: &str) -> bool {
    // A column may be called as it likes.
    let key = key.split_once(".column.").map_or(key, |(before, _)| before).to_ascii_lowercase();
    SECRET_ENDINGS.iter().any(|ending| key.ends_with(ending)) || SECRET_PARTS.iter().any(|part| key.contains(part))
}

/// The name of a key that KMS keeps is no secret, unlike a key of the client's own under the same setting.
fn is_kms_key(key: &str, value: &str) -> bool {
    key == "s3.sse.key" && (value.starts_with("arn:") || value.starts_with("alias/"))
}

fn shown(key: &str) -> String {
    key.chars().take(100).flat_map(char::escape_debug).collect()
}

/// What comes with each table: `own`, replaced where the warehouse says otherwise.
pub fn replaced(
    own: BTreeMap<String, String>,
    defaults: &BTreeMap<String, String>,
    overrides: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let said = |key: &String| overrides.get(key).or_else(|| defaults.get(key)).cloned();
    own.into_iter().map(|(key, value)| (key.clone(), said(&key).unwrap_or(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(key: &str, value: &str) -> Result<()> {
        check("defaults", &BTreeMap::from([(key.to_owned(), value.to_owned())]))
    }

    #[test]
    fn what_names_a_secret_is_refused() {
        for key in [
            "token",
            "credential",
            "s3.access-key-id",
            "s3.secret-access-key",
            "s3.session-token",
            "rest.access-key-id",
            "client.credentials-provider.s3.secret-access-key",
            "adls.auth.shared-key.account.name",
            "adls.auth.shared-key.account.key",
            "adls.account-key",
            "adls.sas-token.lake",
            "adls.connection-string.lake",
            "adls.client-secret",
            "fs.azure.account.key.lake.dfs.core.windows.net",
            "gcs.oauth2.token",
            "gcs.encryption-key",
            "gcs.credentials-json",
            "jdbc.password",
            "header.Authorization",
            "S3.Secret-Access-Key",
            "urn:ietf:params:oauth:token-type:access_token",
            "table-default.password",
        ] {
            let error = checked(key, "x").expect_err(key);
            assert!(error.message().starts_with(&format!("defaults: setting '{key}'")), "{error}");
            assert!(error.message().contains("never go to clients"), "{error}");
        }
    }

    #[test]
    fn other_settings_pass() {
        for key in [
            "s3.endpoint",
            "s3.path-style-access",
            "client.region",
            "client.credentials-provider",
            "io-impl",
            "token-refresh-enabled",
            "token-expires-in-ms",
            "oauth2-server-uri",
            "gcs.oauth2.token-expires-at",
            "s3.session-token-expires-at-ms",
            "table-default.write.format.default",
            "table-default.write.parquet.bloom-filter-enabled.column.token",
            "table-override.encryption.key-id",
            "frazil.of-tomorrow",
        ] {
            checked(key, "x").expect(key);
        }
    }

    #[test]
    fn settings_of_the_coordination_are_read_before_somebody_relies_on_them() {
        checked("frazil.commit.rebase", "append").unwrap();
        assert!(checked("frazil.commit.rebase", "x").is_err());
    }

    #[test]
    fn a_key_that_kms_keeps_may_be_named() {
        assert!(checked("s3.sse.key", "arn:aws:kms:eu-west-1:1:key/2").is_ok());
        assert!(checked("s3.sse.key", "bWluZQ==").is_err());
    }

    #[test]
    fn what_no_client_could_use_is_refused() {
        let long = "k".repeat(KEY_MAX_BYTES + 1);
        for key in ["", "table-default.", "table-override.", "a\nb", &long, "prefix", "uri", "warehouse"] {
            assert!(checked(key, "x").is_err(), "{key}");
        }
        assert!(checked("a", "b\0").is_err());
        assert!(checked("a", &"v".repeat(VALUE_MAX_BYTES + 1)).is_err());
        let many = (0..=SETTINGS_MAX).map(|n| (n.to_string(), String::new())).collect();
        assert!(check("defaults", &many).is_err());
    }

    #[test]
    fn a_setting_of_the_warehouse_wins_over_what_its_store_says() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let own = map(&[("a", "own"), ("b", "own"), ("c", "own")]);
        let (defaults, overrides) = (map(&[("a", "default"), ("b", "default"), ("x", "y")]), map(&[("b", "override")]));
        let expected = map(&[("a", "default"), ("b", "override"), ("c", "own")]);
        assert_eq!(replaced(own, &defaults, &overrides), expected);
    }
}
