//! Frazil's own service principals, for those who have no identity provider: who they are, what they log in with, and the
//! key that their access tokens are signed with.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::audit;
use crate::context::Clock;
use crate::error::{Error, Kind, Result};
use crate::files::{Secret, SecretsKey};
use store::{PrincipalCreated, PrincipalStore, StoredKey};

pub mod store;

/// Principals that are read at one time.
const PAGE: u32 = 1_000;

/// Randomness of a secret and of the signing key, in bytes.
const RANDOM_BYTES: usize = 32;

/// What the sealed signing key is bound to.
const KEY_FIELD: &str = "principals.signing-key";

/// The public half of a credential: `fp_` and 32 hexadecimal digits. Ids are in the order of their creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalId(pub Uuid);

impl PrincipalId {
    const PREFIX: &'static str = "fp_";

    /// `None` for what was never given to anybody.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::PREFIX).filter(|digits| digits.len() == 32)?;
        Uuid::try_parse(digits).ok().map(Self)
    }
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.0.simple())
    }
}

/// What operators and the log call a principal: `[A-Za-z0-9][A-Za-z0-9._@-]{0,127}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalName(String);

impl PrincipalName {
    pub fn parse(name: &str) -> Result<Self> {
        let mut letters = name.chars();
        let first = letters.next().is_some_and(|c| c.is_ascii_alphanumeric());
        let rest = letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '@' | '-'));
        match first && rest && name.len() <= 128 {
            true => Ok(Self(name.to_owned())),
            false => Err(Error::invalid(format!(
                "principal name '{}' must match [A-Za-z0-9][A-Za-z0-9._@-]{{0,127}}",
                name.escape_debug()
            ))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PrincipalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The secret half of a credential: `fs_` and 64 hexadecimal digits. It is shown once, and never printed by accident.
pub struct PrincipalSecret(String);

impl PrincipalSecret {
    fn random() -> Self {
        Self(format!("fs_{}", hex::encode(random())))
    }

    /// The secret itself, for the one who is to keep it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PrincipalSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// SHA-256 of a secret. A secret has 256 random bits, so that no slower hash would make it safer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Takes as long for any secret.
    fn is_of(&self, secret: &str) -> bool {
        verify_slices_are_equal(&self.0, &Self::of(secret).0).is_ok()
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hash]")
    }
}

/// Somebody who may log in with an id and a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePrincipal {
    pub id: PrincipalId,
    /// Told apart among those that are not revoked.
    pub name: PrincipalName,
    pub secret_hash: SecretHash,
    /// How many secrets there were, this one included.
    pub generation: i64,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
}

/// Whether a principal may still do anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Good,
    Expired,
    Revoked,
}

impl ServicePrincipal {
    pub fn standing(&self, now_ms: i64) -> Standing {
        match (self.revoked_at_ms, self.expires_at_ms) {
            (Some(_), _) => Standing::Revoked,
            (None, Some(expires_at_ms)) if expires_at_ms <= now_ms => Standing::Expired,
            (None, _) => Standing::Good,
        }
    }

    /// Whether it logs in with that secret.
    pub fn has_secret(&self, secret: &str) -> bool {
        self.secret_hash.is_of(secret)
    }
}

/// What access tokens of principals are signed with: the same for all replicas.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    pub id: Uuid,
    secret: [u8; RANDOM_BYTES],
}

impl SigningKey {
    /// The key itself, for the one who signs.
    pub fn reveal(&self) -> &[u8] {
        &self.secret
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.id)
    }
}

/// A principal, and the secret that nobody will be shown again.
#[derive(Debug)]
pub struct NewCredential {
    pub principal: ServicePrincipal,
    pub secret: PrincipalSecret,
}

/// The service principals of one catalog.
#[derive(Clone)]
pub struct Principals {
    store: Arc<dyn PrincipalStore>,
    key: Option<SecretsKey>,
}

impl Principals {
    /// With a key the signing key is stored encrypted.
    pub fn new(store: Arc<dyn PrincipalStore>, key: Option<SecretsKey>) -> Self {
        Self { store, key }
    }

    /// Makes a principal; `AlreadyExists` where one of that name was not revoked.
    pub async fn create(
        &self,
        name: PrincipalName,
        expires_at_ms: Option<i64>,
        clock: &dyn Clock,
    ) -> Result<NewCredential> {
        let secret = PrincipalSecret::random();
        let principal = ServicePrincipal {
            id: PrincipalId(clock.new_id()),
            name,
            secret_hash: SecretHash::of(secret.reveal()),
            generation: 1,
            created_at_ms: clock.now_ms(),
            expires_at_ms,
            revoked_at_ms: None,
        };
        match self.store.create_principal(&principal).await? {
            PrincipalCreated::Created => {
                tell("principal.create", &principal.name);
                Ok(NewCredential { principal, secret })
            }
            PrincipalCreated::NameTaken => Err(Error::new(
                Kind::AlreadyExists,
                format!("principal already exists: {}: rotate its secret, or revoke it first", principal.name),
            )),
        }
    }

    /// All there ever were, oldest first.
    pub async fn list(&self) -> Result<Vec<ServicePrincipal>> {
        let mut all: Vec<ServicePrincipal> = Vec::new();
        loop {
            let page = self.store.principals(all.last().map(|last| last.id), PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Gives a principal another secret, and another time to expire where one is told; the former secret is worth nothing
    /// from now on.
    pub async fn rotate(
        &self,
        name: &PrincipalName,
        expires_at_ms: Option<i64>,
        clock: &dyn Clock,
    ) -> Result<NewCredential> {
        let found = self.store.principal_named(name).await?.ok_or_else(|| missing(name))?;
        if expires_at_ms.is_none() && found.standing(clock.now_ms()) == Standing::Expired {
            return Err(Error::invalid(format!(
                "principal {name} has expired: say how long it may go on (--expires-in)"
            )));
        }
        let secret = PrincipalSecret::random();
        let rotated = self.store.rotate_principal(found.id, &SecretHash::of(secret.reveal()), expires_at_ms).await?;
        let principal = rotated.ok_or_else(|| missing(name))?;
        tell("principal.rotate", name);
        Ok(NewCredential { principal, secret })
    }

    /// Takes a principal's right to do anything, for ever. Its name is free again.
    pub async fn revoke(&self, name: &PrincipalName, clock: &dyn Clock) -> Result<()> {
        match self.store.revoke_principal(name, clock.now_ms()).await? {
            true => {
                tell("principal.revoke", name);
                Ok(())
            }
            false => Err(missing(name)),
        }
    }

    pub async fn find(&self, id: PrincipalId) -> Result<Option<ServicePrincipal>> {
        Ok(self.store.principal(id).await?)
    }

    /// The key of this catalog; whoever asks first makes it.
    pub async fn signing_key(&self, clock: &dyn Clock) -> Result<SigningKey> {
        let plain = Secret::new(hex::encode(random()));
        let secret = match &self.key {
            Some(key) => plain.seal(KEY_FIELD, Some(key))?,
            None => plain,
        };
        let (id, created_at_ms) = (clock.new_id(), clock.now_ms());
        let stored =
            self.store.signing_key(&StoredKey { id, secret: secret.reveal().to_owned(), created_at_ms }).await?;
        let opened = Secret::new(stored.secret).open(KEY_FIELD, self.key.as_ref()).map_err(unopened)?;
        let bytes = hex::decode(opened.reveal()).ok().and_then(|bytes| bytes.try_into().ok());
        let secret = bytes.ok_or_else(|| unopened(Error::invalid("it is not 32 bytes in hexadecimal digits")))?;
        Ok(SigningKey { id: stored.id, secret })
    }
}

fn tell(action: &'static str, name: &PrincipalName) {
    audit::record(audit::Entry::by_operator(action).subject(Some(name.to_string())));
}

fn random() -> [u8; RANDOM_BYTES] {
    let mut bytes = [0; RANDOM_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

fn missing(name: &PrincipalName) -> Error {
    Error::new(Kind::NotFound, format!("principal does not exist, or was revoked: {name}"))
}

fn unopened(error: Error) -> Error {
    let message = "the key that access tokens are signed with cannot be read: give this server the secrets.key that the \
                   others have, or delete the row of table signing_key, and everybody will log in anew";
    Error::new(Kind::Unavailable, message).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(expires_at_ms: Option<i64>, revoked_at_ms: Option<i64>) -> ServicePrincipal {
        ServicePrincipal {
            id: PrincipalId(Uuid::now_v7()),
            name: PrincipalName::parse("flink").unwrap(),
            secret_hash: SecretHash::of("fs_hush"),
            generation: 1,
            created_at_ms: 0,
            expires_at_ms,
            revoked_at_ms,
        }
    }

    #[test]
    fn an_id_comes_back_from_its_text() {
        let id = PrincipalId(Uuid::now_v7());
        assert_eq!(PrincipalId::parse(&id.to_string()), Some(id));
        for text in ["", "fp_", "fp_x", &id.0.to_string(), &format!("fp_{}", id.0), &format!("fs_{}", id.0.simple())] {
            assert_eq!(PrincipalId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_has_letters_that_any_log_can_hold() {
        for name in ["flink", "Flink-2", "etl@team.example", "a".repeat(128).as_str()] {
            assert_eq!(PrincipalName::parse(name).unwrap().as_str(), name);
        }
        for name in ["", "-x", "a b", "a\nb", "é", "a".repeat(129).as_str()] {
            assert!(PrincipalName::parse(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_principal_stands_until_it_expires_or_is_revoked() {
        assert_eq!(principal(None, None).standing(i64::MAX), Standing::Good);
        assert_eq!(principal(Some(10), None).standing(9), Standing::Good);
        assert_eq!(principal(Some(10), None).standing(10), Standing::Expired);
        assert_eq!(principal(Some(10), Some(5)).standing(20), Standing::Revoked);
    }

    #[test]
    fn a_secret_is_told_apart_and_never_printed() {
        let (one, other) = (PrincipalSecret::random(), PrincipalSecret::random());
        assert_ne!(one.reveal(), other.reveal());
        let named = ServicePrincipal { secret_hash: SecretHash::of(one.reveal()), ..principal(None, None) };
        assert!(named.has_secret(one.reveal()) && !named.has_secret(other.reveal()) && !named.has_secret(""));
        let printed = format!("{one:?} {named:?}");
        let digest = hex::encode(named.secret_hash.0);
        assert!(!printed.contains(one.reveal()) && !printed.contains(&digest[..8]), "{printed}");
    }
}
