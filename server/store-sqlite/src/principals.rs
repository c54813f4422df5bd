//! Service principals in table `service_principal`, and the key of their tokens in `signing_key`.

use async_trait::async_trait;
use catalog::principals::store::{PrincipalCreated, PrincipalStore, StoredKey};
use catalog::principals::{PrincipalId, PrincipalName, SecretHash, ServicePrincipal};
use catalog::store::{StoreError, kept, sent};
use uuid::Uuid;

use crate::error::{aborted, in_transaction};
use crate::{SqliteStore, give_back};

#[async_trait]
impl PrincipalStore for SqliteStore {
    async fn principal(&self, id: PrincipalId) -> Result<Option<ServicePrincipal>, StoreError> {
        let row = sqlx::query_as!(
            kept::Principal,
            r#"SELECT id AS "id: Uuid", name, secret_hash, generation, created_at_ms, expires_at_ms, revoked_at_ms
               FROM service_principal WHERE id = $1"#,
            id.0
        )
        .fetch_optional(sent("principal", &self.readers))
        .await
        .map_err(aborted)?;
        row.map(ServicePrincipal::try_from).transpose()
    }

    async fn principal_named(&self, name: &PrincipalName) -> Result<Option<ServicePrincipal>, StoreError> {
        let row = sqlx::query_as!(
            kept::Principal,
            r#"SELECT id AS "id: Uuid", name, secret_hash, generation, created_at_ms, expires_at_ms, revoked_at_ms
               FROM service_principal WHERE name = $1 AND revoked_at_ms IS NULL"#,
            name.as_str()
        )
        .fetch_optional(sent("principal-named", &self.readers))
        .await
        .map_err(aborted)?;
        row.map(ServicePrincipal::try_from).transpose()
    }

    async fn principals(&self, after: Option<PrincipalId>, limit: u32) -> Result<Vec<ServicePrincipal>, StoreError> {
        let after = after.map(|id| id.0);
        let rows = sqlx::query_as!(
            kept::Principal,
            r#"SELECT id AS "id: Uuid", name, secret_hash, generation, created_at_ms, expires_at_ms, revoked_at_ms
               FROM service_principal WHERE $1 IS NULL OR id > $1 ORDER BY id LIMIT +$2"#,
            after,
            limit
        )
        .fetch_all(sent("principals", &self.readers))
        .await
        .map_err(aborted)?;
        rows.into_iter().map(ServicePrincipal::try_from).collect()
    }

    async fn create_principal(&self, principal: &ServicePrincipal) -> Result<PrincipalCreated, StoreError> {
        let (name, secret_hash) = (principal.name.as_str(), principal.secret_hash.0.as_slice());
        let mut conn = self.writer().await?;
        let inserted = sqlx::query!(
            "INSERT INTO service_principal
                 (id, name, secret_hash, generation, created_at_ms, expires_at_ms, revoked_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (name) WHERE revoked_at_ms IS NULL DO NOTHING",
            principal.id.0,
            name,
            secret_hash,
            principal.generation,
            principal.created_at_ms,
            principal.expires_at_ms,
            principal.revoked_at_ms
        )
        .execute(sent("create-principal", &mut *conn))
        .await
        .map_err(in_transaction);
        match give_back(conn, inserted)?.rows_affected() {
            0 => Ok(PrincipalCreated::NameTaken),
            _ => Ok(PrincipalCreated::Created),
        }
    }

    async fn rotate_principal(
        &self,
        id: PrincipalId,
        secret_hash: &SecretHash,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<ServicePrincipal>, StoreError> {
        let secret_hash = secret_hash.0.as_slice();
        let mut conn = self.writer().await?;
        let row = sqlx::query_as!(
            kept::Principal,
            r#"UPDATE service_principal
                SET secret_hash = $2, generation = generation + 1, expires_at_ms = COALESCE($3, expires_at_ms)
              WHERE id = $1 AND revoked_at_ms IS NULL
              RETURNING id AS "id: Uuid", name, secret_hash, generation, created_at_ms, expires_at_ms, revoked_at_ms"#,
            id.0,
            secret_hash,
            expires_at_ms
        )
        .fetch_optional(sent("rotate-principal", &mut *conn))
        .await
        .map_err(in_transaction);
        give_back(conn, row)?.map(ServicePrincipal::try_from).transpose()
    }

    async fn revoke_principal(&self, name: &PrincipalName, at_ms: i64) -> Result<bool, StoreError> {
        let mut conn = self.writer().await?;
        let name = name.as_str();
        let revoked = sqlx::query!(
            "UPDATE service_principal SET revoked_at_ms = $2 WHERE name = $1 AND revoked_at_ms IS NULL",
            name,
            at_ms
        )
        .execute(sent("revoke-principal", &mut *conn))
        .await
        .map_err(in_transaction);
        Ok(give_back(conn, revoked)?.rows_affected() > 0)
    }

    async fn signing_key(&self, made: &StoredKey) -> Result<StoredKey, StoreError> {
        let mut conn = self.writer().await?;
        let inserted = sqlx::query!(
            "INSERT INTO signing_key (the_only, id, secret, created_at_ms) VALUES (1, $1, $2, $3)
             ON CONFLICT (the_only) DO NOTHING",
            made.id,
            made.secret,
            made.created_at_ms
        )
        .execute(sent("make-signing-key", &mut *conn))
        .await
        .map_err(in_transaction);
        give_back(conn, inserted)?;
        sqlx::query_as!(StoredKey, r#"SELECT id AS "id: Uuid", secret, created_at_ms FROM signing_key"#)
            .fetch_one(sent("signing-key", &self.readers))
            .await
            .map_err(aborted)
    }
}
