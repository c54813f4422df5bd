//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use figment::providers::Serialized;
use figment::value::{Dict, Map};
use figment::{Error, Figment, Metadata, Profile, Provider};

use crate::config::{CONFIG_FILE, Config, ConfigError};

#[derive(Debug, Parser)]
#[command(
    name = "frazil",
    version,
    about = "An Apache Iceberg REST catalog",
    args_conflicts_with_subcommands = true
)]
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
}

/// The settings that most people need. All others are in the file and in the environment.
#[derive(Debug, Default, Clone, Args)]
pub struct Flags {
    /// The TOML file with the settings.
    #[arg(long, value_name = "FILE", env = CONFIG_FILE)]
    pub config: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8181].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
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
}

impl Flags {
    /// The settings of file, environment and these flags.
    pub fn load(&self) -> Result<Config, ConfigError> {
        Config::load(self.config.as_deref(), std::env::vars(), self)
    }

    fn settings(&self) -> Figment {
        let mut set = Figment::new();
        if let Some(listen) = &self.listen {
            set = set.merge(Serialized::default("server.listen", listen));
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
        set
    }
}

/// Flags are the last word on the settings that they name, and say nothing of the others.
impl Provider for &Flags {
    fn metadata(&self) -> Metadata {
        Metadata::named("the command line")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        self.settings().data()
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
}
