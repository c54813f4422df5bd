//! Which settings there are, and how a file or the environment names them.

use std::collections::BTreeMap;
use std::path::Path;

use figment::providers::{Format, Toml};
use figment::value::Value;
use serde::{Deserialize, Deserializer};

use crate::config::{Config, ConfigError, Settings};

/// A setting `server.listen` is the variable `FRAZIL_SERVER_LISTEN`.
const ENV_PREFIX: &str = "FRAZIL_";

/// Names the file with the settings, and is no setting itself.
pub const CONFIG_FILE: &str = "FRAZIL_CONFIG";

/// Names the server that `frazil warehouse` talks to, and is no setting itself.
pub const SERVER: &str = "FRAZIL_SERVER";

/// The access token that commands show to the server, and the credential that they get one with; no settings.
pub const TOKEN: &str = "FRAZIL_TOKEN";
pub const CREDENTIAL: &str = "FRAZIL_CREDENTIAL";

/// Variables that begin like settings and are none.
const NO_SETTINGS: [&str; 4] = [CONFIG_FILE, SERVER, TOKEN, CREDENTIAL];

/// The setting that is a list of tables, written in TOML: `[{ issuer = "https://…", audiences = ["…"] }]`.
const TABLES: &str = "auth.issuers";

/// The setting that is a secret.
const SECRET: &str = "secrets.key";

/// Less alike than this is another word, from 0 to 1.
const ALIKE: f64 = 0.7;

/// All keys, as in `server.listen` and `server.tls.cert_file`.
fn all() -> Vec<String> {
    let defaults = serde_json::to_value(Config::default()).expect("settings are plain values");
    let mut keys = Vec::new();
    collect(&defaults, "", &mut keys);
    keys
}

/// The keys below `prefix`; an object is a table of settings, all else is one.
fn collect(settings: &serde_json::Value, prefix: &str, keys: &mut Vec<String>) {
    match settings.as_object() {
        None => keys.push(prefix.to_owned()),
        Some(table) => table.iter().for_each(|(name, value)| collect(value, &below(prefix, name), keys)),
    }
}

fn below(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// Refuses what is no setting.
pub fn check_key(place: &str, key: &str) -> Result<(), ConfigError> {
    let known = all();
    match known.iter().any(|known| known == key) {
        true => Ok(()),
        false => Err(unknown(place.to_owned(), key, &known)),
    }
}

/// The settings of a file, all of them known.
pub fn of_file(path: &Path) -> Result<figment::providers::Data<Toml>, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.into(), source })?;
    let table: toml::Table = text.parse().map_err(|error| not_toml(path, &text, &error))?;
    let known = all();
    if let Some(key) = stranger(&table, "", &known) {
        return Err(unknown(path.display().to_string(), &key, &known));
    }
    Ok(Toml::string(&text))
}

/// The first key of a file that is no setting, and no table of settings.
fn stranger(table: &toml::Table, prefix: &str, known: &[String]) -> Option<String> {
    table.iter().find_map(|(name, value)| {
        let key = below(prefix, name);
        match value.as_table() {
            _ if known.contains(&key) => None,
            Some(table) if !table.is_empty() => stranger(table, &key, known),
            Some(_) if known.iter().any(|known| known.starts_with(&format!("{key}."))) => None,
            _ => Some(key),
        }
    })
}

fn is_setting(name: &str) -> bool {
    name.starts_with(ENV_PREFIX) && !NO_SETTINGS.contains(&name) && !arms_failpoints(name)
}

#[cfg(feature = "failpoints")]
fn arms_failpoints(name: &str) -> bool {
    name == catalog::failpoint::VARIABLE
}

#[cfg(not(feature = "failpoints"))]
fn arms_failpoints(_: &str) -> bool {
    false
}

fn not_toml(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    ConfigError::NotToml { path: path.into(), line, message: error.message().to_owned() }
}

/// The settings among the variables. One that begins like a setting and is none is an error, not a silent default.
pub fn of_env(env: impl IntoIterator<Item = (String, String)>) -> Result<Settings, ConfigError> {
    let known: BTreeMap<String, String> = all().into_iter().map(|key| (variable(&key), key)).collect();
    let mut settings = Settings::new();
    for (name, value) in env.into_iter().filter(|(name, _)| is_setting(name)) {
        let Some(key) = known.get(&name) else {
            let names: Vec<String> = known.into_keys().collect();
            return Err(unknown("the environment".to_owned(), &name, &names));
        };
        settings.insert(key.clone(), value_of(key, &value)?);
    }
    Ok(settings)
}

/// The value of a setting that was given as text. Digits are no number where a secret is wanted.
pub fn value_of(key: &str, text: &str) -> Result<Value, ConfigError> {
    match key {
        SECRET => Ok(Value::from(text)),
        TABLES => tables(key, text),
        _ => Ok(text.parse().expect("any text is a value")),
    }
}

fn tables(key: &str, text: &str) -> Result<Value, ConfigError> {
    let refused = |why: &str| {
        ConfigError::Refused(format!("{key} is not a list of tables in TOML, as in [{{ a = 'b' }}]: {why}"))
    };
    let document: toml::Table =
        format!("list = {text}").parse().map_err(|error: toml::de::Error| refused(error.message()))?;
    Value::serialize(&document["list"]).map_err(|error| refused(&error.to_string()))
}

fn variable(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.to_uppercase().replace('.', "_"))
}

fn unknown(place: String, key: &str, known: &[String]) -> ConfigError {
    // A key without its concern is as near as one with it.
    let last = |known: &str| known.rsplit('.').next().map_or(0.0, |last| strsim::jaro_winkler(last, key));
    let alike = |known: &&String| strsim::jaro_winkler(known, key).max(last(known));
    let nearest = known.iter().max_by(|a, b| alike(a).total_cmp(&alike(b))).filter(|nearest| alike(nearest) >= ALIKE);
    ConfigError::UnknownKey { place, key: key.to_owned(), nearest: nearest.cloned() }
}

/// A list may be written as its only entry, as a variable mostly does.
pub fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => one.split(',').map(|entry| entry.trim().to_owned()).collect(),
        OneOrMany::Many(many) => many,
    })
}
