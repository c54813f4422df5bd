//! `frazil health`: is the server ready? For the health checks of images, which have no other program to ask with.

use std::error::Error;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use reqwest::Method;

use crate::cli::Flags;
use crate::cli::client::Client;
use crate::config::ServerConfig;

/// A server that takes longer to say that it is ready is not.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

const READY: &str = "/health/ready";

#[derive(Debug, Args)]
pub struct HealthCommand {
    /// The server to ask [default: the one on this machine, where the settings say that it listens].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

impl HealthCommand {
    /// Prints `ready`, or fails with what the server says.
    pub async fn run(self, out: &mut impl Write) -> Result<(), Box<dyn Error + Send + Sync>> {
        let url = match self.url {
            Some(url) => url,
            None => url_of(&self.flags.load()?.server),
        };
        Client::close_by(&url, ANSWER_WITHIN)?.send(Method::GET, READY, None).await?;
        writeln!(out, "ready")?;
        Ok(())
    }
}

/// Where the server with these settings is asked from its own machine.
fn url_of(server: &ServerConfig) -> String {
    format!("http://{}", reachable(server.listen))
}

/// The loopback address where a server listens on all of them.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_asked_on_loopback() {
        for (listen, url) in [
            ("127.0.0.1:8181", "http://127.0.0.1:8181"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:8181", "http://[::1]:8181"),
            ("10.0.0.7:8181", "http://10.0.0.7:8181"),
        ] {
            let server = ServerConfig { listen: listen.parse().unwrap(), ..ServerConfig::default() };
            assert_eq!(url_of(&server), url);
        }
    }
}
