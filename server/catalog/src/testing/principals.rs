//! Cases of [`crate::principals::store::PrincipalStore`].

use futures::future::join_all;
use uuid::Uuid;

use super::world::{AT_MS, Checked, RACERS};
use crate::principals::store::{PrincipalCreated, StoredKey};
use crate::principals::{PrincipalId, PrincipalName, SecretHash, ServicePrincipal};
use crate::store::Store;

fn named(name: &str) -> Checked<ServicePrincipal> {
    Ok(ServicePrincipal {
        id: PrincipalId(Uuid::now_v7()),
        name: PrincipalName::parse(name)?,
        secret_hash: SecretHash::of(name),
        generation: 1,
        created_at_ms: AT_MS,
        expires_at_ms: Some(AT_MS + 1),
        revoked_at_ms: None,
    })
}

async fn create(store: &dyn Store, name: &str) -> Checked<ServicePrincipal> {
    let principal = named(name)?;
    assert_eq!(store.create_principal(&principal).await?, PrincipalCreated::Created);
    Ok(principal)
}

pub async fn a_principal_comes_back_as_it_was_made(store: &dyn Store) -> Checked {
    let one = create(store, "one").await?;
    let forever = ServicePrincipal { expires_at_ms: None, ..named("forever")? };
    store.create_principal(&forever).await?;
    assert_eq!(store.principal(one.id).await?.as_ref(), Some(&one));
    assert_eq!(store.principal_named(&forever.name).await?, Some(forever));
    assert_eq!(store.principal(PrincipalId(Uuid::now_v7())).await?, None);
    assert_eq!(store.principal_named(&PrincipalName::parse("nobody")?).await?, None);
    Ok(())
}

pub async fn of_racing_principals_of_one_name_one_is_made(store: &dyn Store) -> Checked {
    let racing = (0..RACERS).map(|_| named("one")).collect::<Checked<Vec<_>>>()?;
    let made = join_all(racing.iter().map(|principal| store.create_principal(principal))).await;
    let made = made.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(made.iter().filter(|made| **made == PrincipalCreated::Created).count(), 1, "{made:?}");
    Ok(())
}

pub async fn a_name_is_free_again_once_its_principal_is_revoked(store: &dyn Store) -> Checked {
    let first = create(store, "one").await?;
    assert!(store.revoke_principal(&first.name, AT_MS + 5).await?);
    assert!(!store.revoke_principal(&first.name, AT_MS + 6).await?);
    let revoked = store.principal(first.id).await?.ok_or("a revoked principal stays")?;
    assert_eq!(revoked.revoked_at_ms, Some(AT_MS + 5));
    assert_eq!(store.principal_named(&first.name).await?, None);
    let second = create(store, "one").await?;
    assert_eq!(store.principal_named(&first.name).await?, Some(second));
    Ok(())
}

pub async fn a_rotated_principal_has_another_secret_and_keeps_its_id(store: &dyn Store) -> Checked {
    let before = create(store, "one").await?;
    let hash = SecretHash::of("another");
    let after = store.rotate_principal(before.id, &hash, None).await?.ok_or("it is there")?;
    assert_eq!(after, ServicePrincipal { secret_hash: hash, generation: 2, ..before.clone() });
    let later = store.rotate_principal(before.id, &hash, Some(AT_MS + 9)).await?.ok_or("it is there")?;
    assert_eq!((later.generation, later.expires_at_ms), (3, Some(AT_MS + 9)));
    assert_eq!(store.principal(before.id).await?, Some(later));
    store.revoke_principal(&before.name, AT_MS).await?;
    assert_eq!(store.rotate_principal(before.id, &hash, None).await?, None);
    Ok(())
}

pub async fn principals_are_listed_in_pages_by_age(store: &dyn Store) -> Checked {
    let mut made = Vec::new();
    for name in ["c", "a", "b"] {
        made.push(create(store, name).await?);
    }
    made.sort_by_key(|principal| principal.id);
    assert_eq!(store.principals(None, 2).await?, made[..2]);
    assert_eq!(store.principals(Some(made[1].id), 2).await?, made[2..]);
    assert_eq!(store.principals(Some(made[2].id), 2).await?, []);
    Ok(())
}

pub async fn of_racing_signing_keys_all_get_the_first(store: &dyn Store) -> Checked {
    let made = (0..RACERS).map(|n| StoredKey { id: Uuid::now_v7(), secret: format!("s{n}"), created_at_ms: AT_MS });
    let made: Vec<_> = made.collect();
    let kept = join_all(made.iter().map(|key| store.signing_key(key))).await;
    let kept = kept.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert!(made.contains(&kept[0]) && kept.iter().all(|key| *key == kept[0]), "{kept:?}");
    Ok(())
}
