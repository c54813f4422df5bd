//! Frazil's own service principals: who they are is asked everywhere, and they log in as every engine's `credential` does.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use frazil::cli::{Cli, Command};
use frazil::config::Config;
use reqwest::Method;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::document::DOCUMENT;
use crate::server::{Answer, TestServer, append, on_both_stores, schema};

const TOKENS: &str = "/v1/oauth/tokens";
const TABLE: &str = "/namespaces/n/tables/t";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// What anybody may ask.
const OPEN: [&str; 4] = ["/health/live", "/health/ready", "/openapi.yaml", TOKENS];

mod with_principals {
    use super::*;

    on_both_stores! { with super::principals_log_in;
        whoever_is_not_known_gets_401_on_every_route_but_the_open_ones,
        a_principal_logs_in_and_is_named_in_the_log,
        a_principal_logs_in_by_basic_too,
        what_cannot_log_in_is_told_so_in_the_words_of_oauth,
        a_token_is_renewed_alone_or_with_its_credential,
        a_revoked_principal_is_out_within_seconds,
        a_rotated_secret_takes_the_place_of_the_former,
        a_principal_that_has_expired_does_not_log_in,
        commands_show_a_token_or_log_in,
    }
}

mod with_short_tokens {
    use super::*;

    on_both_stores! { with super::tokens_are_short;
        a_commit_that_landed_is_never_refused_for_its_token,
    }
}

fn principals_log_in(config: &mut Config) {
    config.auth.principals = true;
}

/// They hold for a second.
fn tokens_are_short(config: &mut Config) {
    config.auth.principals = true;
    config.auth.token_lifetime_ms = 1_000;
    config.auth.clock_skew_ms = 0;
}

/// What `frazil principal` prints, or the line that it fails with.
async fn principal(server: &TestServer, arguments: &[&str]) -> Result<String, String> {
    let words = ["frazil", "principal"].into_iter().chain(arguments.iter().copied()).map(str::to_owned);
    let line: Vec<String> = words.chain(server.flags()).collect();
    let Some(Command::Principal(command)) = Cli::parse_from(line).command else { panic!("another command") };
    let mut printed = Vec::new();
    command.run(&mut printed).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(printed).unwrap())
}

/// The id and secret of a new principal.
pub async fn created(server: &TestServer, name: &str) -> (String, String) {
    credential(&principal(server, &["create", name]).await.unwrap())
}

fn credential(printed: &str) -> (String, String) {
    let printed: Value = serde_json::from_str(printed).unwrap();
    let (id, secret) = (printed["id"].as_str().unwrap().to_owned(), printed["secret"].as_str().unwrap().to_owned());
    assert_eq!(printed["credential"], format!("{id}:{secret}"));
    (id, secret)
}

async fn form(server: &TestServer, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Answer {
    let form: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    server.send(Method::POST, TOKENS, headers, Some(form.join("&").into())).await
}

pub async fn log_in(server: &TestServer, id: &str, secret: &str) -> Answer {
    let fields =
        [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret), ("scope", "catalog")];
    form(server, &[], &fields).await
}

#[track_caller]
pub fn token(answer: Answer) -> String {
    let given = answer.expect(200).json();
    assert_eq!((&given["token_type"], &given["issued_token_type"]), (&json!("bearer"), &json!(ACCESS_TOKEN)));
    assert!(given["expires_in"].as_i64().unwrap() > 0);
    given["access_token"].as_str().unwrap().to_owned()
}

async fn get(server: &TestServer, token: &str, path: &str) -> Answer {
    server.send(Method::GET, path, &[("authorization", &format!("Bearer {token}"))], None).await
}

async fn post(server: &TestServer, token: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    server.send(Method::POST, path, &[("authorization", &bearer)], Some(body.to_string().into())).await
}

/// Asks until the token is refused; it is soon.
async fn until_refused(server: &TestServer, token: &str) {
    for _ in 0..300 {
        if get(server, token, "/namespaces").await.status == 401 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the token still holds");
}

async fn whoever_is_not_known_gets_401_on_every_route_but_the_open_ones(server: &TestServer) {
    let mut asked = 0;
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let named: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect();
            let answer = server.send(method.clone(), &named.join("/"), &[], None).await;
            match OPEN.contains(&path.as_str()) {
                true if path == TOKENS => drop(answer.expect(400)),
                true => drop(answer.expect(200)),
                false => {
                    assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{}", answer.asked);
                    match method {
                        Method::HEAD => drop(answer.expect(401)),
                        _ => drop(answer.refused(401, "NotAuthorizedException")),
                    }
                }
            }
            asked += 1;
        }
    }
    assert!(asked > 40, "only {asked} operations");
    server.get("/docs/").await.expect(200);
    server.get("/v1/no/such/route").await.refused(401, "NotAuthorizedException");
    for wrong in
        ["Bearer garbage", "Bearer", "Basic Zm9vOmJhcg==", "garbage", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.AAAA"]
    {
        let refused = server.send(Method::GET, "/namespaces", &[("authorization", wrong)], None).await;
        let refused = refused.refused(401, "NotAuthorizedException");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{wrong}");
    }
}

async fn a_principal_logs_in_and_is_named_in_the_log(server: &TestServer) {
    let (id, secret) = created(server, "flink-job").await;
    let token = token(log_in(server, &id, &secret).await);
    post(server, &token, "/namespaces", &json!({"namespace": ["n"]})).await.expect(200);
    let made = post(server, &token, "/namespaces/n/tables", &json!({"name": "t", "schema": schema()})).await;
    let metadata = made.expect(200).json()["metadata"].take();
    post(server, &token, TABLE, &append(&metadata, 1)).await.expect(200);
    let log = get(server, &token, "/coordination/v1/default/namespaces/n/tables/t/commits").await.expect(200).json();
    assert_eq!(log["commits"][0]["principal"], "flink-job", "{log}");
    get(server, &token, "/metrics").await.expect(200);
    let listed = principal(server, &["list"]).await.unwrap();
    assert!(listed.contains("flink-job") && listed.contains(&id) && !listed.contains(&secret), "{listed}");
    let again = principal(server, &["create", "flink-job"]).await.unwrap_err();
    assert!(again.contains("already exists"), "{again}");
}

async fn a_principal_logs_in_by_basic_too(server: &TestServer) {
    let (id, secret) = created(server, "trino").await;
    let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let answer = form(server, &[("authorization", &basic)], &[("grant_type", "client_credentials")]).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    get(server, &token(answer), "/namespaces").await.expect(200);
}

async fn what_cannot_log_in_is_told_so_in_the_words_of_oauth(server: &TestServer) {
    let (id, secret) = created(server, "spark").await;
    let nobody = "fp_00000000000000000000000000000000";
    for (id, secret) in [(id.as_str(), "fs_wrong"), (&id, ""), (nobody, &secret), ("spark", &secret), ("", "")] {
        let refused = log_in(server, id, secret).await.expect(401);
        assert_eq!(refused.json()["error"], "invalid_client");
        assert_eq!(refused.header("www-authenticate"), Some("Basic realm=\"frazil\""));
    }
    let password = [("grant_type", "password"), ("client_id", id.as_str()), ("client_secret", &secret)];
    assert_eq!(form(server, &[], &password).await.expect(400).json()["error"], "unsupported_grant_type");
    assert_eq!(form(server, &[], &[]).await.expect(400).json()["error"], "invalid_request");
    let garbage = [("grant_type", EXCHANGE), ("subject_token", "garbage"), ("subject_token_type", ACCESS_TOKEN)];
    assert_eq!(form(server, &[], &garbage).await.expect(400).json()["error"], "invalid_request");
}

fn exchange(token: &str) -> [(&str, &str); 3] {
    [("grant_type", EXCHANGE), ("subject_token", token), ("subject_token_type", ACCESS_TOKEN)]
}

async fn a_token_is_renewed_alone_or_with_its_credential(server: &TestServer) {
    let (id, secret) = created(server, "one").await;
    let first = token(log_in(server, &id, &secret).await);
    let bearer = format!("Bearer {first}");
    let second = token(form(server, &[("authorization", &bearer)], &exchange(&first)).await);
    get(server, &second, "/namespaces").await.expect(200);
    let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
    let third = token(form(server, &[("authorization", &basic)], &exchange(&second)).await);
    get(server, &third, "/namespaces").await.expect(200);
    let (other, its_secret) = created(server, "other").await;
    let basic = format!("Basic {}", STANDARD.encode(format!("{other}:{its_secret}")));
    form(server, &[("authorization", &basic)], &exchange(&third)).await.expect(400);
}

async fn a_revoked_principal_is_out_within_seconds(server: &TestServer) {
    let (id, secret) = created(server, "gone").await;
    let token = token(log_in(server, &id, &secret).await);
    get(server, &token, "/namespaces").await.expect(200);
    assert_eq!(principal(server, &["revoke", "gone"]).await.unwrap(), "gone is revoked\n");
    log_in(server, &id, &secret).await.expect(401);
    form(server, &[], &exchange(&token)).await.expect(400);
    until_refused(server, &token).await;
    assert!(principal(server, &["list"]).await.unwrap().contains("revoked 2"));
    assert!(principal(server, &["revoke", "gone"]).await.unwrap_err().contains("does not exist"));
    created(server, "gone").await;
}

async fn a_rotated_secret_takes_the_place_of_the_former(server: &TestServer) {
    let (id, former) = created(server, "one").await;
    let token_of_former = token(log_in(server, &id, &former).await);
    let (same, latter) = credential(&principal(server, &["rotate", "one", "--expires-in", "90d"]).await.unwrap());
    assert_eq!(same, id);
    log_in(server, &id, &former).await.expect(401);
    get(server, &token(log_in(server, &id, &latter).await), "/namespaces").await.expect(200);
    // What was given before holds until it expires, and is not renewed.
    get(server, &token_of_former, "/namespaces").await.expect(200);
    form(server, &[], &exchange(&token_of_former)).await.expect(400);
    assert!(principal(server, &["list"]).await.unwrap().contains("expires 2"));
}

async fn a_principal_that_has_expired_does_not_log_in(server: &TestServer) {
    let (id, secret) = credential(&principal(server, &["create", "brief", "--expires-in", "1s"]).await.unwrap());
    let mut refused = false;
    for _ in 0..300 {
        refused = log_in(server, &id, &secret).await.status == 401;
        if refused {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(refused);
    assert!(principal(server, &["rotate", "brief"]).await.unwrap_err().contains("--expires-in"));
    let (id, secret) = credential(&principal(server, &["rotate", "brief", "--expires-in", "1h"]).await.unwrap());
    log_in(server, &id, &secret).await.expect(200);
}

async fn commands_show_a_token_or_log_in(server: &TestServer) {
    let (id, secret) = created(server, "operator").await;
    let token = token(log_in(server, &id, &secret).await);
    let list = async |arguments: &[&str]| {
        let line = [&["frazil", "warehouse", "list", "--server", &server.base], arguments].concat();
        let Some(Command::Warehouse(command)) = Cli::parse_from(line).command else { panic!("another command") };
        let mut printed = Vec::new();
        command.run(&mut printed).await.map_err(|error| error.to_string())?;
        Ok::<_, String>(String::from_utf8(printed).unwrap())
    };
    for access in [["--token", token.as_str()], ["--credential", &format!("{id}:{secret}")]] {
        assert!(list(&access).await.unwrap().starts_with("default"));
    }
    assert!(list(&[]).await.unwrap_err().contains("access token"));
    let refused = list(&["--credential", &format!("{id}:fs_hush")]).await.unwrap_err();
    assert!(refused.contains("nobody") && !refused.contains("hush"), "{refused}");
}

async fn a_commit_that_landed_is_never_refused_for_its_token(server: &TestServer) {
    let (id, secret) = created(server, "one").await;
    let fresh = async || token(log_in(server, &id, &secret).await);
    post(server, &fresh().await, "/namespaces", &json!({"namespace": ["n"]})).await.expect(200);
    let made = post(server, &fresh().await, "/namespaces/n/tables", &json!({"name": "t", "schema": schema()})).await;
    let metadata = made.expect(200).json()["metadata"].take();
    let mut landed = append(&metadata, 1);
    let old = fresh().await;
    post(server, &fresh().await, TABLE, &landed).await.expect(200);
    until_refused(server, &old).await;
    post(server, &old, TABLE, &landed).await.refused(500, "CommitStateUnknownException");
    landed["identifier"] = json!({"namespace": ["n"], "name": "t"});
    let whole = json!({"table-changes": [landed]});
    post(server, &old, "/transactions/commit", &whole).await.refused(500, "CommitStateUnknownException");
    let mut never = append(&metadata, 2);
    post(server, &old, TABLE, &never).await.refused(401, "NotAuthorizedException");
    never["identifier"] = json!({"namespace": ["n"], "name": "t"});
    let whole = json!({"table-changes": [never]});
    post(server, &old, "/transactions/commit", &whole).await.refused(401, "NotAuthorizedException");
    let properties = json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]});
    post(server, &old, TABLE, &properties).await.refused(401, "NotAuthorizedException");
    let now = get(server, &fresh().await, TABLE).await.expect(200).json();
    assert_eq!(now["metadata"]["current-snapshot-id"], 1);
    assert_eq!(now["metadata"]["properties"]["a"], Value::Null);
}

#[tokio::test]
async fn who_sends_many_wrong_tokens_is_told_to_wait_and_nobody_else_is() {
    let server = TestServer::with(|config| {
        config.auth.principals = true;
        config.auth.refusals_per_minute = 3;
    })
    .await;
    let (id, secret) = created(&server, "one").await;
    let right = token(log_in(&server, &id, &secret).await);
    get(&server, "wrong", "/namespaces").await.expect(401);
    log_in(&server, &id, "wrong").await.expect(401);
    get(&server, "wrong", "/namespaces").await.expect(401);
    let limited = get(&server, "wrong", "/namespaces").await.refused(429, "TooManyRequestsException");
    let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");
    log_in(&server, &id, "wrong").await.refused(429, "TooManyRequestsException");
    get(&server, &right, "/namespaces").await.expect(200);
    log_in(&server, &id, &secret).await.expect(200);
    server.get("/namespaces").await.refused(401, "NotAuthorizedException");
    server.end().await;
}

#[tokio::test]
async fn tokens_hold_after_a_restart() {
    let server = TestServer::with(principals_log_in).await;
    let (id, secret) = created(&server, "one").await;
    let token = token(log_in(&server, &id, &secret).await);
    let server = server.again_with(principals_log_in).await;
    get(&server, &token, "/namespaces").await.expect(200);
    server.end().await;
}

#[tokio::test]
async fn without_authentication_nobody_logs_in_and_nobody_needs_to() {
    let server = TestServer::on_sqlite().await;
    log_in(&server, "a", "b").await.refused(404, "NoSuchEndpointException");
    get(&server, "any-token", "/namespaces").await.expect(200);
    server.end().await;
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_line_of_the_log_holds_a_token_or_a_secret() {
    let lines = Lines::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(lines.clone()).finish();
    let logging = tracing::subscriber::set_default(subscriber);
    let server = TestServer::with(principals_log_in).await;
    let (id, secret) = created(&server, "one").await;
    let right = token(log_in(&server, &id, &secret).await);
    get(&server, &right, "/namespaces").await.expect(200);
    let damaged = format!("{right}x");
    get(&server, &damaged, "/namespaces").await.expect(401);
    form(&server, &[], &exchange(&damaged)).await.expect(400);
    log_in(&server, &id, "fs_wrong_secret").await.expect(401);
    server.end().await;
    drop(logging);
    let logged = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    // Of the server's own words; what the client of this test says of itself is not of interest.
    let logged: Vec<&str> =
        logged.lines().filter(|line| !line.contains("reqwest") && !line.contains("hyper")).collect();
    assert!(logged.iter().any(|line| line.contains("answered")), "nothing was logged");
    let (_, signature) = right.rsplit_once('.').unwrap();
    for hidden in [secret.as_str(), signature, "fs_wrong_secret"] {
        assert!(!logged.iter().any(|line| line.contains(hidden)), "a line holds {hidden}");
    }
}
