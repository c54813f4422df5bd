//! Where the server listens and for whom, and the bounds of what it takes.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, keys};

/// Where the server listens, and how it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerConfig {
    pub listen: SocketAddr,
    /// Listen on an address that others can reach, though nobody is asked who they are.
    pub insecure: bool,
    /// Where clients reach the catalog, if it is not where they asked for its configuration.
    pub public_url: Option<String>,
    /// The path below which everything lies, as in `/catalog`; see [`Self::base_path`].
    pub base_path: Option<String>,
    /// A listener of its own for metrics and health; `/metrics` is nowhere else then.
    pub metrics_listen: Option<SocketAddr>,
    /// Whose word on where a request comes from is taken: addresses and networks.
    #[serde(deserialize_with = "keys::one_or_many")]
    pub trusted_proxies: Vec<String>,
    pub connections: usize,
    /// How long a client may take to send the head of a request, and how long a connection may be idle.
    pub header_timeout_ms: u64,
    /// How long the server still takes requests after it was told to end, for balancers that ask for readiness.
    pub drain_notice_ms: u64,
    /// How long requests under way may take after that.
    pub drain_timeout_ms: u64,
    pub tls: TlsConfig,
}

/// The files of the certificate, in PEM. They are read again when they change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TlsConfig {
    /// The certificate of the server and those that lead to its authority.
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

/// Bounds of what one request or one process may take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsConfig {
    /// Requests at work; more are turned away with 429.
    pub concurrent_requests: usize,
    /// A body that holds names and properties, after decompression.
    pub body_bytes: usize,
    /// A body that may hold as much as a table's metadata, after decompression.
    pub metadata_body_bytes: usize,
    /// All large bodies that are in memory at one time; more are turned away with 429.
    pub bodies_bytes: usize,
    /// How long a body may take to arrive, and how long a client may take nothing of its answer.
    pub body_timeout_ms: u64,
    /// Metadata documents kept in memory.
    pub metadata_cache_bytes: u64,
    /// Manifest lists and manifests kept in memory, for commits that are rebased.
    pub manifest_cache_bytes: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8181)),
            insecure: false,
            public_url: None,
            base_path: None,
            metrics_listen: None,
            trusted_proxies: Vec::new(),
            connections: 4096,
            header_timeout_ms: 75_000,
            drain_notice_ms: 0,
            drain_timeout_ms: 30_000,
            tls: TlsConfig::default(),
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            concurrent_requests: 1024,
            body_bytes: 1 << 20,
            metadata_body_bytes: 64 << 20,
            bodies_bytes: 256 << 20,
            body_timeout_ms: 60_000,
            metadata_cache_bytes: 224 << 20,
            manifest_cache_bytes: 64 << 20,
        }
    }
}

impl ServerConfig {
    /// What the types do not tell.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.tls.files()?;
        self.trusted_networks()?;
        match is_path(self.base_path()) {
            true => Ok(()),
            false => Err(ConfigError::Refused(format!(
                "server.base_path is '{}': write it like /catalog, with letters, digits and -._~ between its slashes",
                self.base_path()
            ))),
        }
    }

    /// The prefix of all paths, without a slash at its end; empty where there is none.
    pub fn base_path(&self) -> &str {
        self.base_path.as_deref().unwrap_or_default().trim_end_matches('/')
    }

    /// An address is the network that holds it alone.
    pub fn trusted_networks(&self) -> Result<Vec<IpNet>, ConfigError> {
        let network = |text: &String| {
            let alone = || text.parse::<IpAddr>().map(IpNet::from);
            text.parse::<IpNet>().or_else(|_| alone()).map_err(|_| {
                let message = format!("server.trusted_proxies has '{text}': write networks, as in 10.0.0.0/8");
                ConfigError::Refused(message)
            })
        };
        self.trusted_proxies.iter().map(network).collect()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.cert_file.is_some() { "https" } else { "http" }
    }
}

impl LimitsConfig {
    /// What the types do not tell.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.bodies_bytes.checked_sub(self.body_bytes.max(self.metadata_body_bytes)) {
            Some(_) => Ok(()),
            None => Err(ConfigError::Refused(format!(
                "limits.bodies_bytes is {}: it must have room for one body of limits.metadata_body_bytes or body_bytes",
                self.bodies_bytes
            ))),
        }
    }
}

impl TlsConfig {
    /// Certificate and key; `None` where HTTP is served as it is.
    pub fn files(&self) -> Result<Option<(&Path, &Path)>, ConfigError> {
        match (&self.cert_file, &self.key_file) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            _ => Err(ConfigError::Refused("server.tls needs both cert_file and key_file, or neither".to_owned())),
        }
    }
}

fn is_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(is_plain);
    path.is_empty() || path.strip_prefix('/').is_some_and(|path| path.split('/').all(is_segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: impl FnOnce(&mut ServerConfig)) -> ServerConfig {
        let mut config = ServerConfig::default();
        set(&mut config);
        config
    }

    #[test]
    fn a_base_path_is_plain_and_loses_its_last_slash() {
        for (path, kept) in [("/catalog", "/catalog"), ("/a/b-c.d/", "/a/b-c.d"), ("/", ""), ("", "")] {
            let config = with(|config| config.base_path = Some(path.into()));
            config.check().unwrap();
            assert_eq!(config.base_path(), kept);
        }
        for path in ["catalog", "/a//b", "/a b", "/a/../b", "/{x}", "http://x/y", "/a?b"] {
            let refusal = with(|config| config.base_path = Some(path.into())).check().unwrap_err().to_string();
            assert!(refusal.starts_with("server.base_path"), "{refusal}");
        }
    }

    #[test]
    fn a_proxy_is_an_address_or_a_network() {
        let config = with(|config| config.trusted_proxies = vec!["10.0.0.0/8".into(), "::1".into()]);
        let told: Vec<String> = config.trusted_networks().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["10.0.0.0/8", "::1/128"]);
        let refusal = with(|config| config.trusted_proxies = vec!["proxy.example".into()]).check().unwrap_err();
        assert!(refusal.to_string().contains("server.trusted_proxies has 'proxy.example'"), "{refusal}");
    }

    #[test]
    fn a_certificate_comes_with_its_key() {
        let config = with(|config| config.tls.cert_file = Some("c.pem".into()));
        assert!(config.check().unwrap_err().to_string().contains("server.tls needs both"));
        assert_eq!((config.scheme(), ServerConfig::default().scheme()), ("https", "http"));
    }
}
