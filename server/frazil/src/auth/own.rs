//! Tokens of Frazil's own service principals: given for an id and a secret, and verified by every replica alike.

use std::sync::Arc;
use std::time::Duration;

use catalog::context::{Clock, Principal};
use catalog::error::{Error, Kind};
use catalog::principals::{PrincipalId, Principals, ServicePrincipal, Standing};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use moka::future::Cache;
use serde::{Deserialize, Serialize};

use super::token::verified;
use super::{Caller, Denied};
use crate::config::{AuthConfig, Hidden};

/// What these tokens say in `iss`: no URL, as that of every other issuer is.
pub const ISSUER: &str = "frazil";

/// Only holders of the key verify these tokens, so that it need not be a pair.
const ALGORITHM: Algorithm = Algorithm::HS256;

/// A principal that is revoked can do something for so long.
const REMEMBERED: Duration = Duration::from_secs(3);

/// Principals that are remembered at one time.
const REMEMBERED_MAX: u64 = 10_000;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    iat: i64,
    exp: i64,
    /// Which of its principal's secrets it was given for.
    generation: i64,
}

/// A token, for the one who logged in.
#[derive(Debug)]
pub struct Issued {
    pub token: Hidden,
    pub expires_in_secs: i64,
}

/// An id and its secret, as somebody sent them.
#[derive(Debug)]
pub struct Credential {
    pub id: String,
    pub secret: Hidden,
}

/// Why nobody logs in.
#[derive(Debug)]
pub enum LoginRefused {
    /// Id and secret are of nobody, or of a principal that has expired or was revoked.
    Credential,
    /// The token that was to be renewed cannot be.
    Token(&'static str),
    Unavailable(Error),
}

pub struct OwnTokens {
    key_id: String,
    signing: EncodingKey,
    verifying: DecodingKey,
    lifetime_ms: i64,
    skew_ms: i64,
    principals: Principals,
    remembered: Cache<PrincipalId, Option<Arc<ServicePrincipal>>>,
    clock: Arc<dyn Clock>,
}

impl OwnTokens {
    /// With the key of the catalog, which is made where there is none.
    pub async fn open(config: &AuthConfig, principals: Principals, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        let key = principals.signing_key(clock.as_ref()).await?;
        Ok(Self {
            key_id: key.id.to_string(),
            signing: EncodingKey::from_secret(key.reveal())?,
            verifying: DecodingKey::from_secret(key.reveal())?,
            lifetime_ms: config.token_lifetime_ms,
            skew_ms: config.clock_skew_ms,
            principals,
            remembered: Cache::builder().max_capacity(REMEMBERED_MAX).time_to_live(REMEMBERED).build(),
            clock,
        })
    }

    /// The caller that one of these tokens speaks for.
    pub async fn verify(&self, token: &str) -> Result<Caller, Denied> {
        let (claims, id) = self.read(token).ok_or_else(|| Denied::wrong("its signature does not verify"))?;
        let found = self.remembered.try_get_with(id, self.look_up(id)).await.map_err(|error| unavailable(&error))?;
        let now_ms = self.clock.now_ms();
        let stands = found.as_ref().is_some_and(|found| found.standing(now_ms) == Standing::Good);
        let name = found.map_or_else(|| id.to_string(), |found| found.name.to_string());
        let caller = |principal| Caller { principal, issuer: ISSUER.into(), groups: Arc::new([]) };
        match stands && !self.has_expired(&claims, now_ms) {
            true => Ok(caller(Principal::Named(name))),
            false => Err(Denied::Lapsed(caller(Principal::Lapsed(name)))),
        }
    }

    /// A token for whoever has this id and secret.
    pub async fn log_in(&self, credential: &Credential) -> Result<Issued, LoginRefused> {
        Ok(self.issue(&self.authenticate(credential).await?))
    }

    /// A token in place of another one, which has not expired, or comes with the credential of its principal. One that was
    /// given for a secret of earlier is worth no other.
    pub async fn renew(&self, token: &str, credential: Option<&Credential>) -> Result<Issued, LoginRefused> {
        let (claims, id) = self.read(token).ok_or(LoginRefused::Token("it is no token of this server"))?;
        if let Some(credential) = credential {
            let principal = self.authenticate(credential).await?;
            return match principal.id == id {
                true => Ok(self.issue(&principal)),
                false => Err(LoginRefused::Token("it is a token of another principal")),
            };
        }
        if self.has_expired(&claims, self.clock.now_ms()) {
            return Err(LoginRefused::Token("it has expired: log in with the credential"));
        }
        match self.in_good_standing(id).await? {
            Some(principal) if principal.generation == claims.generation => Ok(self.issue(&principal)),
            _ => Err(LoginRefused::Token("its principal was revoked, has expired, or has another secret by now")),
        }
    }

    /// Asks the database each time: what was rotated or revoked is so at once.
    async fn authenticate(&self, credential: &Credential) -> Result<ServicePrincipal, LoginRefused> {
        let id = PrincipalId::parse(&credential.id).ok_or(LoginRefused::Credential)?;
        let found = self.in_good_standing(id).await?;
        found.filter(|found| found.has_secret(credential.secret.reveal())).ok_or(LoginRefused::Credential)
    }

    async fn in_good_standing(&self, id: PrincipalId) -> Result<Option<ServicePrincipal>, LoginRefused> {
        let found = self.principals.find(id).await.map_err(LoginRefused::Unavailable)?;
        Ok(found.filter(|found| found.standing(self.clock.now_ms()) == Standing::Good))
    }

    async fn look_up(&self, id: PrincipalId) -> Result<Option<Arc<ServicePrincipal>>, Error> {
        Ok(self.principals.find(id).await?.map(Arc::new))
    }

    fn read(&self, token: &str) -> Option<(Claims, PrincipalId)> {
        let claims: Claims = verified(token, &self.verifying, ALGORITHM)?;
        let id = PrincipalId::parse(&claims.sub)?;
        Some((claims, id))
    }

    fn has_expired(&self, claims: &Claims, now_ms: i64) -> bool {
        claims.exp.saturating_mul(1_000).saturating_add(self.skew_ms) <= now_ms
    }

    /// No longer than its principal.
    fn issue(&self, principal: &ServicePrincipal) -> Issued {
        let now_ms = self.clock.now_ms();
        let left_ms = principal.expires_at_ms.map_or(i64::MAX, |expires_at_ms| expires_at_ms - now_ms);
        let (iat, lifetime_secs) = (now_ms / 1_000, self.lifetime_ms.min(left_ms).max(1_000) / 1_000);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            sub: principal.id.to_string(),
            iat,
            exp: iat + lifetime_secs,
            generation: principal.generation,
        };
        let header = Header { kid: Some(self.key_id.clone()), ..Header::new(ALGORITHM) };
        let token =
            encode(&header, &claims, &self.signing).expect("claims of plain values can be signed with a secret");
        Issued { token: token.into(), expires_in_secs: lifetime_secs }
    }
}

/// The error that several requests share.
fn unavailable(error: &Error) -> Denied {
    Denied::Unavailable(Error::new(Kind::Unavailable, error.message().to_owned()))
}
