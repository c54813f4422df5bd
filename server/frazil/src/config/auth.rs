//! The settings of who may call.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

use super::ConfigError;

/// Who may call. Nobody is asked who they are unless one of the two ways to log in is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthConfig {
    /// Frazil's own service principals may log in, at `/v1/oauth/tokens`.
    pub principals: bool,
    /// How long an access token of theirs holds.
    pub token_lifetime_ms: i64,
    /// By how much the clocks of issuers and of this server may differ.
    pub clock_skew_ms: i64,
    /// Wrong tokens that one source address may send in a minute; more are answered 429.
    pub refusals_per_minute: u32,
    /// The identity providers whose tokens are taken.
    pub issuers: Vec<IssuerConfig>,
}

/// An OpenID Connect provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// What its tokens say in `iss`, to the letter.
    pub issuer: String,
    /// A token must be for one of them.
    pub audiences: Vec<String>,
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<SigningAlgorithm>,
    /// Where its keys are; else its discovery document tells.
    pub jwks_url: Option<String>,
    /// The certificate authorities (PEM) of its endpoints, in place of those of the system.
    pub ca_file: Option<PathBuf>,
    /// A bearer token that its endpoints want; read anew each time.
    pub token_file: Option<PathBuf>,
    /// The claim that names the principal; a dot leads into a claim.
    #[serde(default = "default_principal_claim")]
    pub principal_claim: String,
    pub groups_claim: Option<String>,
}

/// How tokens of an issuer are signed. What is not here cannot be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SigningAlgorithm {
    #[serde(rename = "RS256")]
    Rs256,
    #[serde(rename = "ES256")]
    Es256,
    #[serde(rename = "EdDSA")]
    EdDsa,
}

fn default_algorithms() -> Vec<SigningAlgorithm> {
    vec![SigningAlgorithm::Rs256]
}

fn default_principal_claim() -> String {
    "sub".to_owned()
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            principals: false,
            token_lifetime_ms: 3_600_000,
            clock_skew_ms: 60_000,
            refusals_per_minute: 60,
            issuers: Vec::new(),
        }
    }
}

impl AuthConfig {
    /// Whether callers are asked who they are.
    pub fn is_on(&self) -> bool {
        self.principals || !self.issuers.is_empty()
    }

    pub fn check(&self) -> Result<(), ConfigError> {
        let refused = |message: &str| Err(ConfigError::Refused(message.to_owned()));
        if self.token_lifetime_ms < 1_000 {
            return refused("auth.token_lifetime_ms must be at least 1000");
        }
        if self.clock_skew_ms < 0 {
            return refused("auth.clock_skew_ms must not be negative");
        }
        if self.refusals_per_minute == 0 {
            return refused("auth.refusals_per_minute must be at least 1");
        }
        for (index, issuer) in self.issuers.iter().enumerate() {
            let place = format!("auth.issuers[{index}]");
            issuer.check(&place)?;
            if self.issuers[..index].iter().any(|other| other.issuer == issuer.issuer) {
                return refused(&format!("{place}.issuer is '{}', as that of another one", issuer.issuer));
            }
        }
        Ok(())
    }
}

impl IssuerConfig {
    fn check(&self, place: &str) -> Result<(), ConfigError> {
        let empty = |field: &str| Err(ConfigError::Refused(format!("{place}.{field} must not be empty")));
        check_url(&self.issuer).map_err(|why| ConfigError::Refused(format!("{place}.issuer {why}")))?;
        if let Some(url) = &self.jwks_url {
            check_url(url).map_err(|why| ConfigError::Refused(format!("{place}.jwks_url {why}")))?;
        }
        if self.audiences.is_empty() || self.audiences.iter().any(String::is_empty) {
            return empty("audiences");
        }
        if self.algorithms.is_empty() {
            return empty("algorithms");
        }
        if self.principal_claim.is_empty() {
            return empty("principal_claim");
        }
        Ok(())
    }
}

/// Keys that came over a line where anybody could change them would prove nothing.
pub fn check_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is '{text}', which is no URL: {error}"))?;
    let is_here = match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
        None => false,
    };
    match url.scheme() {
        "https" if url.has_host() => Ok(url),
        "http" if is_here => Ok(url),
        _ => Err(format!("is '{text}': it must begin with https:// (http:// only for a loopback address)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_tls_or_from_this_machine() {
        for url in ["https://idp.example/realms/data", "http://127.0.0.1:8080/x", "http://[::1]/", "http://localhost"] {
            assert!(check_url(url).is_ok(), "{url}");
        }
        for url in ["http://idp.example/", "ftp://127.0.0.1", "idp.example", "https://", "http://127.0.0.1.example/"] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
