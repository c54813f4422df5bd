//! Who calls: tokens of identity providers and of Frazil's own principals, verified.
//!
//! A token says who made it, and only that maker's keys are tried on it, with the algorithm that goes with the key. What it
//! claims is looked at once its signature verifies.

use std::borrow::Cow;
use std::sync::Arc;

use catalog::context::{Clock, Principal};
use catalog::error::Error;
use catalog::principals::Principals;

use crate::config::AuthConfig;
use issuer::Issuer;
use own::OwnTokens;
use refusals::Refusals;

mod claims;
pub mod issuer;
mod keys;
pub mod own;
pub mod refusals;
mod token;

/// Longer tokens are refused unread, in bytes.
const TOKEN_MAX_BYTES: usize = 16 << 10;

/// Who sent a request, on the request and on its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub principal: Principal,
    /// Who says so: the issuer of the token.
    pub issuer: Arc<str>,
    pub groups: Arc<[String]>,
}

/// Why a request speaks for nobody.
#[derive(Debug)]
pub enum Denied {
    /// It brings no token.
    Missing,
    /// Its token is of nobody that is known here, or was not made for this server.
    Wrong(Cow<'static, str>),
    /// Its token was right once: it has expired, or its principal was revoked.
    Lapsed(Caller),
    /// Whether the token is right cannot be told now.
    Unavailable(Error),
}

impl Denied {
    fn wrong(why: impl Into<Cow<'static, str>>) -> Self {
        Self::Wrong(why.into())
    }
}

/// Verifies tokens, and counts the wrong ones by who sends them.
pub struct Authenticator {
    own: Option<OwnTokens>,
    issuers: Vec<Arc<Issuer>>,
    clock: Arc<dyn Clock>,
    pub refusals: Refusals,
}

impl Authenticator {
    /// `None` where nobody is asked who they are.
    pub async fn open(
        config: &AuthConfig,
        principals: &Principals,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<Self>, Box<dyn std::error::Error + Send + Sync>> {
        if !config.is_on() {
            return Ok(None);
        }
        let own = match config.principals {
            true => Some(OwnTokens::open(config, principals.clone(), clock.clone()).await?),
            false => None,
        };
        let issuers = config.issuers.iter().map(|issuer| Issuer::new(issuer, config.clock_skew_ms).map(Arc::new));
        let issuers = issuers.collect::<Result<_, _>>()?;
        Ok(Some(Self { own, issuers, clock, refusals: Refusals::new(config.refusals_per_minute) }))
    }

    /// Those of Frazil's own principals, where they may log in.
    pub fn own(&self) -> Option<&OwnTokens> {
        self.own.as_ref()
    }

    pub fn has_issuers(&self) -> bool {
        !self.issuers.is_empty()
    }

    pub async fn verify(&self, token: &str) -> Result<Caller, Denied> {
        if token.len() > TOKEN_MAX_BYTES {
            return Err(Denied::wrong(format!("it is longer than {TOKEN_MAX_BYTES} bytes")));
        }
        let told = token::peek(token).ok_or_else(|| Denied::wrong("it is no signed JSON Web Token"))?;
        if told.issuer == own::ISSUER
            && let Some(own) = &self.own
        {
            return own.verify(token).await;
        }
        let issuer = self.issuers.iter().find(|issuer| *issuer.name == *told.issuer);
        let issuer = issuer.ok_or_else(|| Denied::wrong("its issuer is not known here"))?;
        issuer.verify(token, &told, self.clock.now_ms()).await
    }
}
