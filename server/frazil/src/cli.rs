//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use figment::providers::Serialized;
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider};

use crate::config::{self, CONFIG_FILE, Config, ConfigError, Hidden};
use crate::doctor::DoctorCommand;

pub mod client;
pub mod health;
pub mod principal;
pub mod store;
pub mod warehouse;

/// How messages name where flags come from.
const COMMAND_LINE: &str = "the command line";

#[derive(Debug, Parser)]
#[command(name = "frazil", version, about = "An Apache Iceberg REST catalog", args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub flags: Flags,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the catalog; what is done where no command is given.
    Serve(Flags),
    /// Bring the database up to date, and end.
    Migrate(Flags),
    /// Print the settings that are in force, without secrets, and end.
    CheckConfig(Flags),
    /// Print the OpenAPI document, and end.
    Openapi,
    /// Tell whether the configured server is ready, and end; for health checks of images.
    Health(health::HealthCommand),
    /// Look at settings, database, storage and clocks, and say what to do about what does not work.
    Doctor(Box<DoctorCommand>),
    /// Back up the embedded database, or copy a database into another one.
    Store(Box<store::StoreCommand>),
    /// Make, show, change and delete the warehouses of a running server.
    Warehouse(warehouse::WarehouseCommand),
    /// Make, list, rotate and revoke the service principals that may log in.
    Principal(principal::PrincipalCommand),
}

/// The settings that most people need, and a way to all others.
#[derive(Debug, Default, Clone, Args)]
pub struct Flags {
    /// The TOML file with the settings.
    #[arg(long, value_name = "FILE", env = CONFIG_FILE)]
    pub config: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8181].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where metrics and health are to be found besides; /metrics is nowhere else then.
    #[arg(long, value_name = "ADDR")]
    metrics_listen: Option<String>,
    /// Listen where others can reach the server, though it asks nobody who they are.
    #[arg(long)]
    insecure: bool,
    /// Where the catalog keeps its state: sqlite:PATH or postgres://… [default: frazil.db in the data folder].
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// The folder of the embedded database and of the warehouse 'default' [default: frazil-data].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A further place for tables of the warehouse 'default'; may be given more than once.
    #[arg(long, value_name = "URI")]
    allowed_location: Vec<String>,
    /// Any other setting by its key, as in --set commit.deadline_ms=20000; may be given more than once.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Hidden::parse)]
    set: Vec<Hidden>,
}

/// What is refused is not shown: it may hold the secrets key.
fn setting(text: &Hidden) -> Result<(String, Value), ConfigError> {
    let refused =
        || ConfigError::Refused("--set is not written like KEY=VALUE, as in --set log.format=json".to_owned());
    let (key, value) = text.reveal().split_once('=').ok_or_else(refused)?;
    config::check_key(COMMAND_LINE, key)?;
    Ok((key.to_owned(), config::value_of(key, value)?))
}

impl Flags {
    /// The settings of file, environment and these flags.
    pub fn load(&self) -> Result<Config, ConfigError> {
        self.settings()?;
        let config = Config::load(self.config.as_deref(), std::env::vars(), self)?;
        Ok(Config { file: self.config.clone(), ..config })
    }

    fn settings(&self) -> Result<Figment, ConfigError> {
        let mut set = Figment::new();
        for (key, value) in self.set.iter().map(setting).collect::<Result<Vec<_>, _>>()? {
            set = set.merge(Serialized::default(&key, value));
        }
        if let Some(listen) = &self.listen {
            set = set.merge(Serialized::default("server.listen", listen));
        }
        if let Some(listen) = &self.metrics_listen {
            set = set.merge(Serialized::default("server.metrics_listen", listen));
        }
        if self.insecure {
            set = set.merge(Serialized::default("server.insecure", true));
        }
        if let Some(url) = &self.database_url {
            set = set.merge(Serialized::default("database.url", url));
        }
        if let Some(dir) = &self.data_dir {
            set = set.merge(Serialized::default("storage.data_dir", dir));
        }
        if !self.allowed_location.is_empty() {
            set = set.merge(Serialized::default("storage.allowed_locations", &self.allowed_location));
        }
        Ok(set)
    }
}

/// Flags are the last word on the settings that they name, and say nothing of the others.
impl Provider for &Flags {
    fn metadata(&self) -> Metadata {
        Metadata::named(COMMAND_LINE)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        self.settings().map_err(|error| Error::from(error.to_string()))?.data()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_the_flags_are_those_of_serve() {
        let cli = Cli::parse_from([
            "frazil",
            "--data-dir",
            "/d",
            "--allowed-location",
            "s3://a",
            "--allowed-location",
            "s3://b",
        ]);
        assert!(cli.command.is_none());
        let config = Config::load(None, [], &cli.flags).unwrap();
        assert_eq!(config.storage.data_dir, PathBuf::from("/d"));
        assert_eq!(config.storage.allowed_locations, ["s3://a", "s3://b"]);
        assert!(!config.server.insecure);
    }

    #[test]
    fn every_setting_can_be_a_flag() {
        let cli = Cli::parse_from([
            "frazil",
            "serve",
            "--set",
            "commit.deadline_ms=7",
            "--set",
            "server.public_url=http://x",
        ]);
        let Some(Command::Serve(flags)) = cli.command else { panic!("not serve: {cli:?}") };
        let config = Config::load(None, [], &flags).unwrap();
        assert_eq!(config.commit.deadline_ms, 7);
        assert_eq!(config.server.public_url.as_deref(), Some("http://x"));
    }

    #[test]
    fn a_flag_that_is_no_setting_is_told_by_its_key_and_never_shown() {
        for (text, told) in [
            ("commit.deadline=hush", "commit.deadline_ms"),
            ("secrets.kye=hush", "'secrets.key'"),
            ("secrets.key:hush", "KEY=VALUE"),
            ("secrets.key=hush", "secrets.key: "),
        ] {
            let cli = Cli::try_parse_from(["frazil", "serve", "--set", text]).unwrap();
            let shown = format!("{cli:?}");
            let Some(Command::Serve(flags)) = cli.command else { panic!("not serve: {shown}") };
            let error = flags.load().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
            assert!(!error.contains("hush") && !shown.contains("hush"), "{error} {shown}");
        }
    }
}
