//! The port of service principals.

use std::fmt;

use async_trait::async_trait;
use uuid::Uuid;

use super::{PrincipalId, PrincipalName, SecretHash, ServicePrincipal};
use crate::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrincipalCreated {
    Created,
    /// By one that was not revoked.
    NameTaken,
}

/// The signing key as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    pub id: Uuid,
    /// Sealed, or the key itself in hexadecimal digits.
    pub secret: String,
    pub created_at_ms: i64,
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredKey({})", self.id)
    }
}

#[async_trait]
pub trait PrincipalStore: Send + Sync + 'static {
    async fn principal(&self, id: PrincipalId) -> Result<Option<ServicePrincipal>, StoreError>;

    /// The one of that name that was not revoked.
    async fn principal_named(&self, name: &PrincipalName) -> Result<Option<ServicePrincipal>, StoreError>;

    /// In the order of ids, at most `limit` of those after `after`.
    async fn principals(&self, after: Option<PrincipalId>, limit: u32) -> Result<Vec<ServicePrincipal>, StoreError>;

    async fn create_principal(&self, principal: &ServicePrincipal) -> Result<PrincipalCreated, StoreError>;

    /// Replaces the secret, and the time to expire where one is told; `None` where there is no such principal, or it was
    /// revoked.
    async fn rotate_principal(
        &self,
        id: PrincipalId,
        secret_hash: &SecretHash,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<ServicePrincipal>, StoreError>;

    /// Whether there was one of that name to revoke.
    async fn revoke_principal(&self, name: &PrincipalName, at_ms: i64) -> Result<bool, StoreError>;

    /// The key that is kept; where there is none, `made` is from now on.
    async fn signing_key(&self, made: &StoredKey) -> Result<StoredKey, StoreError>;
}
