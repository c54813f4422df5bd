//! The public keys of an identity provider, as its key set (JWKS) has them.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use crate::config::SigningAlgorithm;

/// Keys beyond these are passed over.
const KEYS_MAX: usize = 100;

/// A key and the one algorithm that it may be used with.
#[derive(Debug, Clone)]
pub struct VerifyingKey {
    id: Option<String>,
    pub algorithm: Algorithm,
    pub key: DecodingKey,
}

/// The keys that may be used; a set has others too, and they are passed over.
#[derive(Debug, Clone, Default)]
pub struct KeySet(Vec<VerifyingKey>);

impl KeySet {
    /// Fails where there is no set, or no usable key in it.
    pub fn read(body: &[u8], allowed: &[SigningAlgorithm]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_slice(body).map_err(|error| format!("it is no key set: {error}"))?;
        let keys = set.keys.into_iter().filter_map(|key| usable(key, allowed)).take(KEYS_MAX);
        let keys: Vec<VerifyingKey> = keys.collect();
        match keys.is_empty() {
            true => Err("no key in it is for signatures of a configured algorithm".to_owned()),
            false => Ok(Self(keys)),
        }
    }

    pub fn has_ids_of(&self, other: &Self) -> bool {
        self.0.iter().map(|key| &key.id).eq(other.0.iter().map(|key| &key.id))
    }

    /// The key of that id for that algorithm; of a token that names no key, the only one there is.
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&VerifyingKey> {
        let mut fitting = self.0.iter().filter(|key| key.algorithm == algorithm);
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        }
    }
}

/// As the token libraries call it.
pub fn algorithm(configured: SigningAlgorithm) -> Algorithm {
    match configured {
        SigningAlgorithm::Rs256 => Algorithm::RS256,
        SigningAlgorithm::Es256 => Algorithm::ES256,
        SigningAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}

fn usable(key: Value, allowed: &[SigningAlgorithm]) -> Option<VerifyingKey> {
    let key: Jwk = serde_json::from_value(key).ok()?;
    let common = &key.common;
    let for_signatures = common.public_key_use.as_ref().is_none_or(|meant| *meant == PublicKeyUse::Signature);
    let verifies = common.key_operations.as_ref().is_none_or(|operations| operations.contains(&KeyOperations::Verify));
    let algorithm =
        of_kind(&key.algorithm).filter(|kind| allowed.iter().any(|allowed| algorithm(*allowed) == *kind))?;
    let is_its_own = common.key_algorithm.is_none_or(|own| own == KeyAlgorithm::from(algorithm));
    if !(for_signatures && verifies && is_its_own) {
        return None;
    }
    Some(VerifyingKey { id: common.key_id.clone(), algorithm, key: DecodingKey::from_jwk(&key).ok()? })
}

/// The algorithm that a key of this kind is for; of RSA keys any other would have to be configured.
fn of_kind(kind: &AlgorithmParameters) -> Option<Algorithm> {
    match kind {
        AlgorithmParameters::RSA(_) => Some(Algorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Some(Algorithm::ES256),
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Some(Algorithm::EdDSA),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALL: [SigningAlgorithm; 3] = [SigningAlgorithm::Rs256, SigningAlgorithm::Es256, SigningAlgorithm::EdDsa];

    fn rsa(id: &str) -> Value {
        json!({"kty": "RSA", "kid": id, "use": "sig", "alg": "RS256", "n": "AQAB", "e": "AQAB"})
    }

    fn set(keys: &[Value], allowed: &[SigningAlgorithm]) -> Result<KeySet, String> {
        KeySet::read(json!({"keys": keys}).to_string().as_bytes(), allowed)
    }

    fn changed(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    #[test]
    fn a_key_is_found_by_its_id_and_the_algorithm_of_its_kind() {
        let ed = json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": "AQAB"});
        let ec = json!({"kty": "EC", "crv": "P-256", "kid": "ec", "x": "AQAB", "y": "AQAB"});
        let set = set(&[rsa("a"), rsa("b"), ed, ec], &ALL).unwrap();
        for (id, algorithm) in
            [("a", Algorithm::RS256), ("b", Algorithm::RS256), ("ed", Algorithm::EdDSA), ("ec", Algorithm::ES256)]
        {
            assert!(set.find(Some(id), algorithm).is_some(), "{id}");
        }
        for (id, algorithm) in [("a", Algorithm::ES256), ("a", Algorithm::HS256), ("c", Algorithm::RS256)] {
            assert!(set.find(Some(id), algorithm).is_none(), "{id}");
        }
    }

    #[test]
    fn a_token_without_a_key_id_takes_the_only_key() {
        let two = set(&[rsa("a"), rsa("b")], &ALL).unwrap();
        assert!(two.find(None, Algorithm::RS256).is_none());
        let one = set(&[rsa("a")], &ALL).unwrap();
        assert!(one.find(None, Algorithm::RS256).is_some() && one.find(None, Algorithm::ES256).is_none());
    }

    #[test]
    fn keys_for_anything_else_are_passed_over() {
        let secret = json!({"kty": "oct", "kid": "s", "alg": "HS256", "k": "c2VjcmV0"});
        let others = [
            secret,
            changed(rsa("enc"), "use", json!("enc")),
            changed(rsa("ops"), "key_ops", json!(["encrypt"])),
            changed(rsa("pss"), "alg", json!("PS256")),
            changed(rsa("new"), "alg", json!("ML-DSA-65")),
            json!({"kty": "EC", "crv": "P-384", "kid": "384", "x": "AQAB", "y": "AQAB"}),
            json!({"kty": "AKP", "kid": 7}),
            json!("no key"),
        ];
        assert!(set(&others, &ALL).is_err());
        let with_one = [&others[..], &[rsa("a")]].concat();
        assert_eq!(set(&with_one, &ALL).unwrap().0.len(), 1);
    }

    #[test]
    fn what_is_not_configured_is_not_used() {
        assert!(set(&[rsa("a")], &[SigningAlgorithm::Es256]).is_err());
        assert!(KeySet::read(b"<html>", &ALL).is_err());
    }
}
