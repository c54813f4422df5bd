//! Tokens of identity providers: which are taken, which are not, and what becomes of them while a provider changes its keys
//! or is gone.

use frazil::config::{IssuerConfig, SigningAlgorithm};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::provider::{Key, Provider, message, now};
use crate::server::{Answer, TestServer, append};

const NAMESPACES: &str = "/namespaces";

fn issuer(provider: &Provider) -> IssuerConfig {
    IssuerConfig {
        issuer: provider.issuer.clone(),
        audiences: vec!["frazil".to_owned()],
        algorithms: vec![SigningAlgorithm::Rs256, SigningAlgorithm::Es256, SigningAlgorithm::EdDsa],
        jwks_url: None,
        ca_file: None,
        token_file: None,
        principal_claim: "sub".to_owned(),
        groups_claim: Some("groups".to_owned()),
    }
}

async fn server_for(provider: &Provider) -> TestServer {
    let issuer = issuer(provider);
    TestServer::with(|config| {
        config.auth.issuers = vec![issuer];
        config.auth.clock_skew_ms = 0;
        config.auth.refusals_per_minute = 1_000;
    })
    .await
}

fn claims(provider: &Provider) -> Value {
    json!({"iss": provider.issuer, "aud": ["frazil"], "sub": "etl", "exp": now() + 600, "groups": ["writers"]})
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

async fn ask(server: &TestServer, token: &str) -> Answer {
    server.send(Method::GET, NAMESPACES, &[("authorization", &format!("Bearer {token}"))], None).await
}

async fn post(server: &TestServer, token: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    server.send(Method::POST, path, &[("authorization", &bearer)], Some(body.to_string().into())).await
}

#[tokio::test]
async fn a_token_of_each_algorithm_is_taken() {
    let keys = [Key::rsa("r"), Key::ec("e"), Key::ed("d")];
    let provider = Provider::with(&keys.each_ref()).await;
    let server = server_for(&provider).await;
    for key in &keys {
        ask(&server, &key.sign(&claims(&provider))).await.expect(200);
    }
    assert_eq!(provider.asked(), 1);
    server.end().await;
}

#[tokio::test]
async fn what_a_token_claims_must_be_meant_for_this_server() {
    let key = Key::ec("e");
    let provider = Provider::with(&[&key]).await;
    let server = server_for(&provider).await;
    let right = claims(&provider);
    ask(&server, &key.sign(&right)).await.expect(200);
    for (name, value, told) in [
        ("aud", json!("another"), "aud"),
        ("aud", Value::Null, "aud"),
        ("iss", json!("https://another.example"), "issuer"),
        ("iss", json!(format!("{}/", provider.issuer)), "issuer"),
        ("iss", json!("frazil"), "issuer"),
        ("nbf", json!(now() + 300), "nbf"),
        ("exp", Value::Null, "exp"),
        ("sub", Value::Null, "sub"),
    ] {
        let refused = ask(&server, &key.sign(&with(right.clone(), name, value))).await;
        let refused = refused.refused(401, "NotAuthorizedException");
        assert!(refused.message().contains(told), "{name}: {}", refused.text);
        assert_eq!(refused.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
    }
    let expired = ask(&server, &key.sign(&with(right, "exp", json!(now() - 1)))).await;
    assert!(expired.refused(401, "NotAuthorizedException").message().contains("expired"));
    server.end().await;
}

#[tokio::test]
async fn the_algorithm_is_that_of_the_key_and_never_the_tokens_choice() {
    let (rsa, ec, stranger) = (Key::rsa("r"), Key::ec("e"), Key::rsa("r"));
    let provider = Provider::with(&[&rsa, &ec]).await;
    let server = server_for(&provider).await;
    let right = claims(&provider);
    let unsigned = format!("{}.", message(&json!({"alg": "none", "kid": "r"}), &right));
    let stripped = rsa.sign(&right);
    let (stripped, _) = stripped.rsplit_once('.').unwrap();
    for token in [
        unsigned,
        format!("{stripped}."),
        stripped.to_owned(),
        rsa.sign_with_public_half(&right),
        rsa.sign_as(&json!({"alg": "ES256", "kid": "r"}), &right),
        rsa.sign_as(&json!({"alg": "PS256", "kid": "r"}), &right),
        rsa.sign_as(&json!({"alg": "RS384", "kid": "r"}), &right),
        ec.sign_as(&json!({"alg": "RS256", "kid": "e"}), &right),
        stranger.sign(&right),
        stranger.sign_as(&json!({"alg": "RS256", "kid": "r", "jku": "http://127.0.0.1:1/keys"}), &right),
        rsa.sign_as(&json!({"alg": "RS256", "kid": "r", "crit": ["exp"], "exp": 1}), &right),
    ] {
        ask(&server, &token).await.refused(401, "NotAuthorizedException");
    }
    ask(&server, &rsa.sign(&right)).await.expect(200);
    server.end().await;
}

#[tokio::test]
async fn an_algorithm_that_is_not_configured_is_not_taken() {
    let (rsa, ec) = (Key::rsa("r"), Key::ec("e"));
    let provider = Provider::with(&[&rsa, &ec]).await;
    let issuer = IssuerConfig { algorithms: vec![SigningAlgorithm::Es256], ..issuer(&provider) };
    let server = TestServer::with(|config| config.auth.issuers = vec![issuer]).await;
    ask(&server, &rsa.sign(&claims(&provider))).await.refused(401, "NotAuthorizedException");
    ask(&server, &ec.sign(&claims(&provider))).await.expect(200);
    server.end().await;
}

#[tokio::test]
async fn a_provider_may_change_its_keys_under_way() {
    let (old, new) = (Key::ec("old"), Key::ed("new"));
    let provider = Provider::with(&[&old]).await;
    let server = server_for(&provider).await;
    ask(&server, &old.sign(&claims(&provider))).await.expect(200);
    ask(&server, &new.sign(&claims(&provider))).await.refused(401, "NotAuthorizedException");
    provider.show(&[&new]);
    // It is not asked again at once, as anybody can invent ids of keys.
    let mut taken = false;
    for _ in 0..300 {
        taken = ask(&server, &new.sign(&claims(&provider))).await.status == 200;
        if taken {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(taken);
    ask(&server, &old.sign(&claims(&provider))).await.refused(401, "NotAuthorizedException");
    server.end().await;
}

#[tokio::test]
async fn keys_that_are_known_serve_while_the_provider_is_gone() {
    let (known, other) = (Key::ec("known"), Key::ec("other"));
    let mut provider = Provider::with(&[&known]).await;
    let server = server_for(&provider).await;
    ask(&server, &known.sign(&claims(&provider))).await.expect(200);
    provider.end().await;
    ask(&server, &other.sign(&claims(&provider))).await.refused(401, "NotAuthorizedException");
    ask(&server, &known.sign(&claims(&provider))).await.expect(200);
    server.end().await;
}

#[tokio::test]
async fn a_provider_that_was_never_there_makes_tokens_unverifiable_and_not_wrong() {
    let key = Key::ec("e");
    let mut provider = Provider::with(&[&key]).await;
    provider.end().await;
    let server = server_for(&provider).await;
    ask(&server, &key.sign(&claims(&provider))).await.refused(503, "ServiceUnavailableException");
    server.get(NAMESPACES).await.refused(401, "NotAuthorizedException");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_invents_key_ids_does_not_make_the_server_ask_for_them() {
    let key = Key::ec("e");
    let provider = Provider::with(&[&key]).await;
    let server = server_for(&provider).await;
    let right = key.sign(&claims(&provider));
    let first = join_all((0..20).map(|_| ask(&server, &right))).await;
    first.into_iter().for_each(|answer| drop(answer.expect(200)));
    assert_eq!(provider.asked(), 1, "one asks for all");
    for _ in 0..20 {
        let invented = json!({"alg": "ES256", "kid": Uuid::now_v7().to_string()});
        ask(&server, &key.sign_as(&invented, &claims(&provider))).await.expect(401);
    }
    // At most once in a few seconds; twenty answers take no longer than that many times a few seconds.
    assert!(provider.asked() < 10, "asked {} times", provider.asked());
    server.end().await;
}

#[tokio::test]
async fn a_provider_that_wants_a_token_gets_the_one_in_the_file() {
    let key = Key::rsa("r");
    let provider = Provider::that_wants("of-the-cluster", &[&key]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "of-the-cluster\n").unwrap();
    let root = provider.issuer.trim_end_matches("/realms/data");
    let jwks_url = Some(format!("{root}/keys"));
    let issuer = IssuerConfig { token_file: Some(file), jwks_url, ..issuer(&provider) };
    let server = TestServer::with(|config| config.auth.issuers = vec![issuer]).await;
    ask(&server, &key.sign(&claims(&provider))).await.expect(200);
    server.end().await;
}

#[tokio::test]
async fn a_commit_that_landed_is_not_refused_when_its_token_has_expired() {
    let key = Key::ed("d");
    let provider = Provider::with(&[&key]).await;
    let server = server_for(&provider).await;
    let token = key.sign(&claims(&provider));
    post(&server, &token, NAMESPACES, &json!({"namespace": ["n"]})).await.expect(200);
    let table = json!({"name": "t", "schema": crate::server::schema()});
    let made = post(&server, &token, "/namespaces/n/tables", &table).await.expect(200).json();
    let commit = append(&made["metadata"], 1);
    post(&server, &token, "/namespaces/n/tables/t", &commit).await.expect(200);
    let expired = key.sign(&with(claims(&provider), "exp", json!(now() - 1)));
    let again = post(&server, &expired, "/namespaces/n/tables/t", &commit).await;
    again.refused(500, "CommitStateUnknownException");
    let never = append(&made["metadata"], 2);
    post(&server, &expired, "/namespaces/n/tables/t", &never).await.refused(401, "NotAuthorizedException");
    server.end().await;
}

#[tokio::test]
async fn java_is_told_to_log_in_again_where_a_provider_might_not_exchange_tokens() {
    let key = Key::ec("e");
    let provider = Provider::with(&[&key]).await;
    let server = server_for(&provider).await;
    let bearer = format!("Bearer {}", key.sign(&claims(&provider)));
    let told = server.send(Method::GET, "/v1/config", &[("authorization", &bearer)], None).await.expect(200).json();
    assert_eq!(told["defaults"]["token-exchange-enabled"], "false");
    server.end().await;
}

#[tokio::test]
async fn the_claim_that_names_the_principal_is_configured() {
    let key = Key::ec("e");
    let provider = Provider::with(&[&key]).await;
    let issuer = IssuerConfig { principal_claim: "azp".to_owned(), ..issuer(&provider) };
    let server = TestServer::with(|config| config.auth.issuers = vec![issuer]).await;
    ask(&server, &key.sign(&claims(&provider))).await.refused(401, "NotAuthorizedException");
    let token = key.sign(&with(claims(&provider), "azp", json!("flink-job")));
    post(&server, &token, NAMESPACES, &json!({"namespace": ["n"]})).await.expect(200);
    let table = json!({"name": "t", "schema": crate::server::schema()});
    let made = post(&server, &token, "/namespaces/n/tables", &table).await.expect(200).json();
    post(&server, &token, "/namespaces/n/tables/t", &append(&made["metadata"], 1)).await.expect(200);
    server.end().await;
}
