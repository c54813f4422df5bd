//! `frazil health`: asks a server whether it is ready.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use reqwest::Method;

use crate::cli::Flags;
use crate::cli::client::{Client, ClientError};
use crate::welcome::local_uri;

/// Less than those wait who run health checks.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Args)]
pub struct HealthCommand {
    /// The server, by the URL that its clients have [default: this machine, where the settings let it listen].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

impl HealthCommand {
    /// Prints `ready`, or fails with the server's reason.
    pub async fn run(self, out: &mut impl Write) -> Result<(), Error> {
        let http = reqwest::Client::builder().timeout(ANSWER_WITHIN);
        let client = match self.url {
            Some(url) => Client::with(&url, http)?,
            None => {
                let server = self.flags.load()?.server;
                // The certificate is for the names that others use. Nothing that is secret is sent or told.
                let http = http.no_proxy().tls_danger_accept_invalid_certs(true);
                Client::with(&local_uri(&server, server.listen), http)?
            }
        };
        let asked = client.send(Method::GET, "/health/ready", None).await;
        asked.map_err(|error| match error {
            ClientError::NoAnswer { server, cause } => format!("no answer from {server} ({cause})").into(),
            refused => Error::from(refused),
        })?;
        writeln!(out, "ready")?;
        Ok(())
    }
}
