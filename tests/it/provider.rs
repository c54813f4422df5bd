//! An OpenID Connect provider on a real socket: it has keys, signs what it is told to, and counts who asks for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Seconds since the epoch.
pub fn now() -> i64 {
    let (secs, _) = Uuid::now_v7().get_timestamp().unwrap().to_unix();
    i64::try_from(secs).unwrap()
}

pub struct Key {
    pub id: String,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Key {
    pub fn rsa(id: &str) -> Self {
        Self { id: id.to_owned(), pair: Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()) }
    }

    pub fn ec(id: &str) -> Self {
        Self { id: id.to_owned(), pair: Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()) }
    }

    pub fn ed(id: &str) -> Self {
        Self { id: id.to_owned(), pair: Pair::Ed(Ed25519KeyPair::generate().unwrap()) }
    }

    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::Ec(_) => "ES256",
            Pair::Ed(_) => "EdDSA",
        }
    }

    pub fn sign(&self, claims: &Value) -> String {
        self.sign_as(&json!({"alg": self.algorithm(), "kid": self.id, "typ": "JWT"}), claims)
    }

    /// Whatever the header says.
    pub fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
            Pair::Ec(pair) => pair.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", encoded(&signature))
    }

    /// What anybody has who knows the public key, taken for the secret of an HMAC.
    pub fn sign_with_public_half(&self, claims: &Value) -> String {
        let Pair::Rsa(pair) = &self.pair else { panic!("not RSA") };
        let message = message(&json!({"alg": "HS256", "kid": self.id}), claims);
        let secret = hmac::Key::new(hmac::HMAC_SHA256, pair.public_key().as_der().unwrap().as_ref());
        format!("{message}.{}", encoded(hmac::sign(&secret, message.as_bytes()).as_ref()))
    }

    fn public(&self) -> Value {
        let mut key = match &self.pair {
            Pair::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "n": encoded(&public.n), "e": encoded(&public.e)})
            }
            Pair::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y)})
            }
            Pair::Ed(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key().as_ref())}),
        };
        key["kid"] = self.id.as_str().into();
        key["use"] = "sig".into();
        key
    }
}

/// Header and claims as they are signed.
pub fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string().as_bytes()), encoded(claims.to_string().as_bytes()))
}

fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub struct Provider {
    pub issuer: String,
    shown: Arc<Shown>,
    serving: JoinHandle<()>,
}

/// What it tells of itself.
struct Shown {
    issuer: String,
    keys: Mutex<Vec<Value>>,
    /// The bearer token that it wants from those who ask.
    wants: Option<&'static str>,
    asked: AtomicUsize,
}

impl Provider {
    pub async fn with(keys: &[&Key]) -> Self {
        Self::begin(keys, None).await
    }

    /// Which tells its keys only to who shows the token.
    pub async fn that_wants(token: &'static str, keys: &[&Key]) -> Self {
        Self::begin(keys, Some(token)).await
    }

    async fn begin(keys: &[&Key], wants: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}/realms/data", listener.local_addr().unwrap());
        let keys = Mutex::new(keys.iter().map(|key| key.public()).collect());
        let shown = Arc::new(Shown { issuer: issuer.clone(), keys, wants, asked: AtomicUsize::new(0) });
        let router = Router::new()
            .route("/realms/data/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(key_set))
            .with_state(shown.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { issuer, shown, serving }
    }

    pub fn show(&self, keys: &[&Key]) {
        *self.shown.keys.lock().unwrap() = keys.iter().map(|key| key.public()).collect();
    }

    /// How often it was asked for its keys.
    pub fn asked(&self) -> usize {
        self.shown.asked.load(Ordering::Relaxed)
    }

    /// From now on nobody answers.
    pub async fn end(&mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn discovery(State(shown): State<Arc<Shown>>, headers: HeaderMap) -> Result<Json<Value>, StatusCode> {
    shown.check(&headers)?;
    let root = shown.issuer.trim_end_matches("/realms/data");
    Ok(Json(json!({"issuer": shown.issuer, "jwks_uri": format!("{root}/keys")})))
}

async fn key_set(State(shown): State<Arc<Shown>>, headers: HeaderMap) -> Result<Json<Value>, StatusCode> {
    shown.check(&headers)?;
    shown.asked.fetch_add(1, Ordering::Relaxed);
    Ok(Json(json!({"keys": *shown.keys.lock().unwrap()})))
}

impl Shown {
    fn check(&self, headers: &HeaderMap) -> Result<(), StatusCode> {
        let shown = headers.get("authorization").and_then(|shown| shown.to_str().ok()?.strip_prefix("Bearer "));
        (self.wants.is_none() || shown == self.wants).then_some(()).ok_or(StatusCode::FORBIDDEN)
    }
}
