//! TLS: what is spoken, and certificates that change.

use std::path::Path;

use clap::Parser;
use frazil::cli::{Cli, Command};
use frazil::config::Config;
use reqwest::{Certificate, Client, ClientBuilder, Version};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use crate::raw::{connection, rest};
use crate::server::TestServer;

/// A certificate that is its own authority, in files.
struct Pair {
    dir: TempDir,
    pem: String,
}

impl Pair {
    fn new() -> Self {
        let pair = Self { dir: tempfile::tempdir().unwrap(), pem: String::new() };
        pair.renewed()
    }

    /// Another one in the same files.
    fn renewed(mut self) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        self.pem = made.cert.pem();
        std::fs::write(self.file("key.pem"), made.signing_key.serialize_pem()).unwrap();
        std::fs::write(self.file("cert.pem"), &self.pem).unwrap();
        self
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn set(&self, config: &mut Config) {
        config.server.tls.cert_file = Some(self.file("cert.pem"));
        config.server.tls.key_file = Some(self.file("key.pem"));
    }

    /// A client that trusts nothing else.
    fn client(&self) -> ClientBuilder {
        Client::builder().tls_certs_only([Certificate::from_pem(self.pem.as_bytes()).unwrap()])
    }
}

fn url(server: &TestServer, path: &str) -> String {
    let (_, port) = server.address().rsplit_once(':').unwrap();
    format!("https://localhost:{port}{path}")
}

#[tokio::test]
async fn both_versions_of_http_are_spoken_over_tls() {
    let pair = Pair::new();
    let server = TestServer::with(|config| pair.set(config)).await;
    let (any, old) = (pair.client().build().unwrap(), pair.client().http1_only().build().unwrap());
    for (client, version) in [(any, Version::HTTP_2), (old, Version::HTTP_11)] {
        for path in ["/health/ready", "/v1/default/namespaces"] {
            let answer = client.get(url(&server, path)).send().await.unwrap();
            assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        }
    }
    let huge = pair.client().build().unwrap().get(url(&server, "/health/live")).header("token", "x".repeat(70_000));
    // It is answered, or the connection is ended before it is read to its end.
    assert!(huge.send().await.map_or(true, |answer| answer.status() == 431));
    server.end().await;
}

#[tokio::test]
async fn who_does_not_shake_hands_is_not_waited_for() {
    let pair = Pair::new();
    let server = TestServer::with(|config| {
        pair.set(config);
        config.server.header_timeout_ms = 100;
    })
    .await;
    for said in [&b""[..], b"\x16\x03\x01", b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n"] {
        let mut begun = connection(&server).await;
        begun.write_all(said).await.unwrap();
        assert!(!rest(&mut begun).await.contains("HTTP/1.1 200"));
    }
    server.end().await;
}

#[tokio::test]
async fn a_certificate_that_changes_is_taken_without_a_restart() {
    let pair = Pair::new();
    let server = TestServer::with(|config| pair.set(config)).await;
    let first = pair.client().build().unwrap();
    first.get(url(&server, "/health/live")).send().await.unwrap();
    let pair = pair.renewed();
    // It is looked for from time to time: until then the old one is shown, which this client does not trust.
    let answer = loop {
        let second = pair.client().build().unwrap();
        if let Ok(answer) = second.get(url(&server, "/health/live")).send().await {
            break answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert_eq!(answer.status(), 200);
    // A connection that there is goes on.
    assert_eq!(first.get(url(&server, "/health/live")).send().await.unwrap().status(), 200);
    server.end().await;
}

async fn health(arguments: &[&str]) -> Result<String, String> {
    let line = [&["frazil", "health"], arguments].concat();
    let Some(Command::Health(command)) = Cli::parse_from(line).command else { panic!("another command") };
    let mut printed = Vec::new();
    command.run(&mut printed).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(printed).unwrap())
}

fn setting(key: &str, file: &Path) -> String {
    format!("--set=server.tls.{key}={}", file.display())
}

#[tokio::test]
async fn health_is_asked_where_the_settings_let_the_server_listen() {
    let pair = Pair::new();
    let server = TestServer::with(|config| {
        pair.set(config);
        config.server.base_path = Some("/catalog".into());
        config.server.drain_notice_ms = 60_000;
    })
    .await;
    let (cert, key) = (setting("cert_file", &pair.file("cert.pem")), setting("key_file", &pair.file("key.pem")));
    let configured = ["--listen", server.address(), "--set=server.base_path=/catalog", &cert, &key];
    assert_eq!(health(&configured).await.unwrap(), "ready\n");
    // By a URL that somebody gives, the certificate must be one that is trusted.
    assert!(health(&["--url", &server.base]).await.unwrap_err().contains("certificate"));
    server.begin_to_end();
    let reason = loop {
        if let Err(reason) = health(&configured).await {
            break reason;
        }
    };
    assert!(reason.contains("about to end"), "{reason}");
}

#[tokio::test]
async fn health_without_tls_is_asked_by_its_url() {
    let server = TestServer::on_sqlite().await;
    assert_eq!(health(&["--url", &server.base]).await.unwrap(), "ready\n");
    assert_eq!(health(&["--listen", server.address()]).await.unwrap(), "ready\n");
    let base = server.base.clone();
    server.end().await;
    let reason = health(&["--url", &base]).await.unwrap_err();
    assert!(reason.contains("no answer from"), "{reason}");
}
