//! An OpenID Connect provider: its tokens, and its keys as they were last seen.

use std::error::Error as StdError;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use catalog::context::Principal;
use catalog::error::{Error, Kind};
use metrics::counter;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, StatusCode};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::claims::{self, Asked};
use super::keys::{self, KeySet, VerifyingKey};
use super::token::{Told, verified};
use super::{Caller, Denied};
use crate::config::{IssuerConfig, check_url};

/// Times that keys were asked for, by how that ended.
const FETCHES: &str = "frazil_auth_key_fetches_total";

/// Older keys are asked for anew, while they serve on.
const FRESH: Duration = Duration::from_secs(300);

/// Between two times that a provider is asked in vain, whoever invents key ids.
const PAUSE: Duration = Duration::from_secs(5);

/// For one answer of a provider.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What a provider may answer, in bytes.
const ANSWER_MAX_BYTES: usize = 512 << 10;

type Failure = Box<dyn StdError + Send + Sync>;

pub struct Issuer {
    /// What its tokens say in `iss`.
    pub name: Arc<str>,
    config: IssuerConfig,
    skew_ms: i64,
    http: Client,
    seen: RwLock<Arc<Seen>>,
    /// When the provider was last asked, if it was in vain; whoever holds it is asking.
    asked: Mutex<Option<Instant>>,
}

/// The keys of a provider, and since when they are known. Before the first answer there are none.
#[derive(Default)]
struct Seen {
    keys: KeySet,
    at: Option<Instant>,
}

impl Seen {
    fn is_fresh(&self) -> bool {
        self.at.is_some_and(|at| at.elapsed() < FRESH)
    }
}

impl Issuer {
    /// Asks nobody yet.
    pub fn new(config: &IssuerConfig, skew_ms: i64) -> Result<Self, Failure> {
        let mut http = Client::builder().timeout(ANSWER_WITHIN).redirect(Policy::none());
        if let Some(file) = &config.ca_file {
            http = http.tls_certs_only(authorities(file)?);
        }
        Ok(Self {
            name: config.issuer.as_str().into(),
            config: config.clone(),
            skew_ms,
            http: http.build()?,
            seen: RwLock::default(),
            asked: Mutex::default(),
        })
    }

    /// The caller that a token of this provider speaks for.
    pub async fn verify(self: &Arc<Self>, token: &str, told: &Told, now_ms: i64) -> Result<Caller, Denied> {
        if !self.config.algorithms.iter().any(|allowed| keys::algorithm(*allowed) == told.algorithm) {
            return Err(Denied::wrong("it is signed with an algorithm that is not configured for its issuer"));
        }
        let key = self.key(told).await?;
        let claims = verified(token, &key.key, key.algorithm);
        let claims = claims.ok_or_else(|| Denied::wrong("its signature does not verify"))?;
        let who = claims::judge(&claims, &self.asked_of_tokens(), now_ms).map_err(Denied::wrong)?;
        let caller = |principal| Caller { principal, issuer: self.name.clone(), groups: who.groups.into() };
        match who.has_expired {
            false => Ok(caller(Principal::Named(who.name))),
            true => Err(Denied::Lapsed(caller(Principal::Lapsed(who.name)))),
        }
    }

    fn asked_of_tokens(&self) -> Asked<'_> {
        Asked {
            issuer: &self.config.issuer,
            audiences: &self.config.audiences,
            principal_claim: &self.config.principal_claim,
            groups_claim: self.config.groups_claim.as_deref(),
            skew_ms: self.skew_ms,
        }
    }

    /// The key that a token names. A key that is known serves at once, however old; for one that is not, the provider is asked.
    async fn key(self: &Arc<Self>, told: &Told) -> Result<VerifyingKey, Denied> {
        let find = |seen: &Seen| seen.keys.find(told.key_id.as_deref(), told.algorithm).cloned();
        let seen = self.seen();
        if let Some(key) = find(&seen) {
            if !seen.is_fresh() {
                tokio::spawn(self.clone().refresh_beside());
            }
            return Ok(key);
        }
        self.refresh(seen).await;
        let seen = self.seen();
        match find(&seen) {
            Some(key) => Ok(key),
            None if seen.at.is_some() => Err(Denied::wrong("its issuer has no such key")),
            None => Err(Denied::Unavailable(Error::new(
                Kind::Unavailable,
                "the keys of the token's issuer cannot be had now, so the token cannot be verified",
            ))),
        }
    }

    fn seen(&self) -> Arc<Seen> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the provider, unless somebody else has since `before`; waits for whoever is asking.
    async fn refresh(self: &Arc<Self>, before: Arc<Seen>) {
        let this = self.clone();
        // On its own, so that whoever hangs up does not keep the keys from all others.
        let asking = tokio::spawn(async move {
            let mut asked = this.asked.lock().await;
            if Arc::ptr_eq(&before, &this.seen()) {
                this.ask(&mut asked).await;
            }
        });
        if let Err(error) = asking.await {
            tracing::error!(%error, "the keys of an issuer could not be asked for");
        }
    }

    /// Asks the provider, unless somebody is asking.
    async fn refresh_beside(self: Arc<Self>) {
        if let Ok(mut asked) = self.asked.try_lock()
            && !self.seen().is_fresh()
        {
            self.ask(&mut asked).await;
        }
    }

    /// Takes over the provider's keys; those that are known stay where it does not answer.
    async fn ask(&self, asked: &mut Option<Instant>) {
        if asked.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        *asked = Some(Instant::now());
        match self.fetch().await {
            Ok(keys) => {
                if !keys.has_ids_of(&self.seen().keys) {
                    *asked = None;
                }
                let seen = Arc::new(Seen { keys, at: Some(Instant::now()) });
                *self.seen.write().unwrap_or_else(PoisonError::into_inner) = seen;
                counter!(FETCHES, "outcome" => "ok").increment(1);
            }
            Err(error) => {
                counter!(FETCHES, "outcome" => "failed").increment(1);
                tracing::warn!(issuer = %self.name, error = &*error as &dyn StdError, "the keys of an issuer cannot be had");
            }
        }
    }

    async fn fetch(&self) -> Result<KeySet, Failure> {
        let url = match &self.config.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let body = self.get(&url).await?;
        KeySet::read(&body, &self.config.algorithms).map_err(|why| format!("{url}: {why}").into())
    }

    /// Where the provider says that its keys are.
    async fn discover(&self) -> Result<String, Failure> {
        #[derive(Deserialize)]
        struct Discovery {
            issuer: String,
            jwks_uri: String,
        }
        let url = format!("{}/.well-known/openid-configuration", self.config.issuer.trim_end_matches('/'));
        let body = self.get(&url).await?;
        let found: Discovery = serde_json::from_slice(&body).map_err(|error| format!("{url}: {error}"))?;
        if found.issuer != self.config.issuer {
            return Err(format!("{url} is that of issuer '{}': write it so in auth.issuers", found.issuer).into());
        }
        check_url(&found.jwks_uri).map_err(|why| format!("{url}: jwks_uri {why}"))?;
        Ok(found.jwks_uri)
    }

    async fn get(&self, url: &str) -> Result<Vec<u8>, Failure> {
        let mut request = self.http.get(url).header("accept", "application/json");
        if let Some(file) = &self.config.token_file {
            request =
                request.bearer_auth(tokio::fs::read_to_string(file).await.map_err(|why| unreadable(file, why))?.trim());
        }
        let mut answer = request.send().await?;
        if answer.status() != StatusCode::OK {
            return Err(format!("{url} answers {}", answer.status()).into());
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_MAX_BYTES {
                return Err(format!("{url} answers more than {ANSWER_MAX_BYTES} bytes").into());
            }
        }
        Ok(body)
    }
}

fn authorities(file: &Path) -> Result<Vec<Certificate>, Failure> {
    let pem = std::fs::read(file).map_err(|why| unreadable(file, why))?;
    let found = Certificate::from_pem_bundle(&pem)?;
    match found.is_empty() {
        true => Err(format!("{} holds no certificate in PEM", file.display()).into()),
        false => Ok(found),
    }
}

fn unreadable(file: &Path, why: std::io::Error) -> Failure {
    format!("cannot read {}: {why}", file.display()).into()
}
