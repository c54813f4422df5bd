//! The settings: one struct per concern, read from a file, the environment and the command line, in this order.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use catalog::commits::settings::{self, Defaults};
use catalog::files::SecretsKey;
use catalog::location::Location;
use figment::providers::Serialized;
use figment::{Figment, Provider};
use serde::{Deserialize, Serialize};

mod auth;
mod keys;
mod secret;
mod server;

pub use auth::{AuthConfig, IssuerConfig, SigningAlgorithm, check_url};
pub use keys::{CONFIG_FILE, CREDENTIAL, SERVER, TOKEN, check_key, value_of};
pub use secret::{DatabaseUrl, Hidden};
pub use server::{LimitsConfig, ServerConfig, TlsConfig};

/// More than any of the counted settings can use; semaphores take no larger one.
const COUNT_MAX: u64 = 1 << 40;

/// Each table that metrics show by its name has some 35 series.
const TABLES_SHOWN_MAX: usize = 10_000;

/// All settings. Durations are in milliseconds and sizes in bytes, as their names say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    pub server: ServerConfig,
    pub database: DatabaseConfig,
    pub storage: StorageConfig,
    pub secrets: SecretsConfig,
    pub auth: AuthConfig,
    pub commit: CommitConfig,
    pub limits: LimitsConfig,
    pub log: LogConfig,
    pub telemetry: TelemetryConfig,
    /// Where some of them were read from; no setting itself.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// Where the catalog keeps its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseConfig {
    /// `sqlite:PATH` or `postgres://…`; without it, `frazil.db` in the data folder.
    pub url: Option<DatabaseUrl>,
    /// Bring a Postgres database up to date on start. SQLite is always brought up to date.
    pub migrate: bool,
    /// Connections to Postgres at most.
    pub connections: u32,
    /// How long a request waits for one of them.
    pub wait_ms: u64,
    /// After this Postgres gives up on a statement; 0 is never.
    pub statement_timeout_ms: u64,
    /// A standby of the Postgres database that listings and the commit log are read from, as long as it is up to date.
    pub replica_url: Option<DatabaseUrl>,
    /// A standby that is further behind is left alone.
    pub replica_lag_ms: u64,
}

/// Where tables may lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageConfig {
    /// Holds the embedded database and the warehouse `default`.
    pub data_dir: PathBuf,
    /// Make the warehouse `default` where there is no warehouse at all.
    pub default_warehouse: bool,
    /// Where tables of the warehouse `default` may lie besides its own folder.
    #[serde(deserialize_with = "keys::one_or_many")]
    pub allowed_locations: Vec<String>,
    /// Operations on one object store at one time.
    pub concurrent_operations: usize,
}

/// The key that secrets of warehouses are encrypted with in the database: 32 bytes in base64 or hex.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretsConfig {
    pub key: Option<Hidden>,
    /// The file that holds it.
    pub key_file: Option<PathBuf>,
}

impl SecretsConfig {
    /// The key; `None` where none is set.
    pub fn read(&self) -> Result<Option<SecretsKey>, ConfigError> {
        let refused = |setting: &str, error: catalog::error::Error| ConfigError::Refused(format!("{setting}: {error}"));
        match (&self.key, &self.key_file) {
            (Some(_), Some(_)) => {
                Err(ConfigError::Refused("secrets.key and secrets.key_file are both set: choose one".to_owned()))
            }
            (Some(key), None) => {
                SecretsKey::parse(key.reveal()).map(Some).map_err(|error| refused("secrets.key", error))
            }
            (None, Some(file)) => SecretsKey::read(file).map(Some).map_err(|error| refused("secrets.key_file", error)),
            (None, None) => Ok(None),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommitConfig {
    /// After this time no new attempt is begun.
    pub deadline_ms: u64,
    /// How long a metadata file lies on after it fell out of the log.
    pub metadata_delete_grace_ms: i64,
    /// Requests that may wait for one table; more are turned away with 429.
    pub queue_max: usize,
    /// Requests that are committed with one swap.
    pub group_max: usize,
    /// How long a branch waits for a request that lost its place to rebased ones.
    pub turn_ms: u64,
    /// A request that is older than this is not rebased.
    pub rebase_max_age_ms: u64,
    /// `off`, `append` or `streaming`, where neither table nor warehouse says it; without it, pure appends of stock
    /// streaming writers are rebased.
    pub rebase: Option<String>,
    /// Rebase writers that nobody knows, where neither table nor warehouse says it.
    pub rebase_anonymous: bool,
    /// Acknowledge a checkpoint that landed before, where neither table nor warehouse says it.
    pub dedup: bool,
    /// `accept`, `reject` or `ack`: what becomes of a position behind the ledger's.
    pub stale: String,
    /// How long landed snapshots are remembered; 0 is for ever.
    pub lineage_retention_days: u32,
    /// How long the commit ids of writers that have no order (Arroyo) are remembered.
    pub ledger_equality_retention_days: u32,
    pub log_retention_days: u32,
    pub event_retention_days: u32,
}

impl CommitConfig {
    /// What holds where neither a table nor its warehouse says something else.
    pub fn defaults(&self) -> Result<Defaults, ConfigError> {
        let choices = |key: &str, value: &str, choices: &str| {
            ConfigError::Refused(format!("commit.{key} is '{value}': it must be {choices}"))
        };
        let rebase = self
            .rebase
            .as_deref()
            .map(|text| settings::rebase(text).ok_or_else(|| choices("rebase", text, "off, append or streaming")));
        let stale =
            settings::stale(&self.stale).ok_or_else(|| choices("stale", &self.stale, "accept, reject or ack"))?;
        Ok(Defaults { rebase: rebase.transpose()?, rebase_anonymous: self.rebase_anonymous, dedup: self.dedup, stale })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogConfig {
    pub format: LogFormat,
    /// As in `info,frazil=debug`.
    pub filter: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TelemetryConfig {
    /// Where traces go, by OTLP over HTTP, as in `http://localhost:4318/v1/traces`.
    pub otlp_endpoint: Option<String>,
    /// The share of requests that are traced where their caller does not say, from 0 to 1.
    pub trace_ratio: f64,
    /// Tables that metrics show by their names; all others are shown as one.
    pub tables_max: usize,
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self {
            url: None,
            migrate: true,
            connections: 16,
            wait_ms: 5_000,
            statement_timeout_ms: 30_000,
            replica_url: None,
            replica_lag_ms: 10_000,
        }
    }
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self {
            data_dir: "frazil-data".into(),
            default_warehouse: true,
            allowed_locations: Vec::new(),
            concurrent_operations: 64,
        }
    }
}

impl Default for CommitConfig {
    fn default() -> Self {
        Self {
            deadline_ms: 30_000,
            metadata_delete_grace_ms: 300_000,
            queue_max: 1024,
            group_max: 64,
            turn_ms: 1_000,
            rebase_max_age_ms: 10_000,
            rebase: None,
            rebase_anonymous: false,
            dedup: true,
            stale: "accept".to_owned(),
            lineage_retention_days: 0,
            ledger_equality_retention_days: 7,
            log_retention_days: 30,
            event_retention_days: 7,
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: LogFormat::Text, filter: "info".to_owned() }
    }
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { otlp_endpoint: None, trace_ratio: 1.0, tables_max: 100 }
    }
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the settings in {path}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The line is not shown: it may hold a secret.
    #[error("{path} is not TOML, in line {line}: {message}")]
    NotToml { path: PathBuf, line: usize, message: String },
    #[error("{place} sets '{key}', which is no setting{}", did_you_mean(nearest))]
    UnknownKey { place: String, key: String, nearest: Option<String> },
    #[error("a setting cannot be used: {0}")]
    Invalid(Box<figment::Error>),
    #[error("{0}")]
    Refused(String),
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |nearest| format!("; the nearest one is '{nearest}'"))
}

impl Config {
    /// Reads file, environment and flags; a later one wins. `env` holds all variables, `flags` settings by key.
    pub fn load(
        file: Option<&Path>,
        env: impl IntoIterator<Item = (String, String)>,
        flags: impl Provider,
    ) -> Result<Self, ConfigError> {
        let mut figment = Figment::from(Serialized::defaults(Config::default()));
        if let Some(path) = file {
            figment = figment.merge(keys::of_file(path)?);
        }
        for (key, value) in keys::of_env(env)? {
            figment = figment.merge(Serialized::default(&key, value));
        }
        let config: Self = figment.merge(flags).extract().map_err(|error| ConfigError::Invalid(Box::new(error)))?;
        config.check()
    }

    /// What the type of a setting does not tell.
    fn check(self) -> Result<Self, ConfigError> {
        let refused = |message: String| Err(ConfigError::Refused(message));
        let address = self.server.listen;
        if !address.ip().is_loopback() && !self.server.insecure && !self.auth.is_on() {
            return refused(format!(
                "server.listen is {address}, which others can reach, and this server asks nobody who they are: \
                 set auth.principals or auth.issuers, listen on 127.0.0.1, or say --insecure (server.insecure) where \
                 something else guards it"
            ));
        }
        if let Some((key, value)) = self.counts().into_iter().find(|(_, value)| !(1..=COUNT_MAX).contains(value)) {
            return refused(format!("{key} is {value}: it must be from 1 to {COUNT_MAX}"));
        }
        if self.commit.metadata_delete_grace_ms < 0 {
            return refused("commit.metadata_delete_grace_ms must not be negative".to_owned());
        }
        let TelemetryConfig { trace_ratio, tables_max, .. } = self.telemetry;
        if !(0.0..=1.0).contains(&trace_ratio) {
            return refused(format!("telemetry.trace_ratio is {trace_ratio}: it must be from 0 to 1"));
        }
        if tables_max > TABLES_SHOWN_MAX {
            return refused(format!("telemetry.tables_max is {tables_max}: it must be at most {TABLES_SHOWN_MAX}"));
        }
        let database = self.database_url();
        if database.scheme() != "sqlite" && !database.is_postgres() {
            let scheme = database.scheme();
            return refused(format!("database.url begins with '{scheme}:': write sqlite:PATH or postgres://…"));
        }
        if let Some(replica) = &self.database.replica_url
            && [&database, replica].iter().any(|url| !url.is_postgres())
        {
            return refused(
                "database.replica_url is for PostgreSQL: it and database.url begin with postgres://".to_owned(),
            );
        }
        for place in &self.storage.allowed_locations {
            if let Err(error) = Location::parse(place) {
                return refused(format!("storage.allowed_locations: {error}"));
            }
        }
        self.server.check()?;
        self.limits.check()?;
        self.secrets.read()?;
        self.auth.check()?;
        self.commit.defaults()?;
        Ok(self)
    }

    /// The settings that would stop everything if they were 0.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("server.connections", self.server.connections as u64),
            ("server.header_timeout_ms", self.server.header_timeout_ms),
            ("database.connections", self.database.connections.into()),
            ("database.wait_ms", self.database.wait_ms),
            ("storage.concurrent_operations", self.storage.concurrent_operations as u64),
            ("commit.deadline_ms", self.commit.deadline_ms),
            ("commit.queue_max", self.commit.queue_max as u64),
            ("commit.group_max", self.commit.group_max as u64),
            ("commit.log_retention_days", self.commit.log_retention_days.into()),
            ("commit.event_retention_days", self.commit.event_retention_days.into()),
            ("limits.concurrent_requests", self.limits.concurrent_requests as u64),
            ("limits.body_bytes", self.limits.body_bytes as u64),
            ("limits.metadata_body_bytes", self.limits.metadata_body_bytes as u64),
            ("limits.bodies_bytes", self.limits.bodies_bytes as u64),
            ("limits.body_timeout_ms", self.limits.body_timeout_ms),
        ]
    }

    /// The database as it will be used.
    pub fn database_url(&self) -> DatabaseUrl {
        let embedded = || format!("sqlite:{}", self.storage.data_dir.join("frazil.db").display()).into();
        self.database.url.clone().unwrap_or_else(embedded)
    }
}

/// The effective settings as TOML, without secrets.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut effective = self.clone();
        effective.database.url = Some(self.database_url());
        f.write_str(&toml::to_string(&effective).map_err(|_| fmt::Error)?)
    }
}

/// Settings by their keys, as in `server.listen`.
pub type Settings = BTreeMap<String, figment::value::Value>;

#[cfg(test)]
mod tests;
