//! Credentials of the environment: whom a pod with a web identity asks for them, as a proxy on the way sees it.

use std::env;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use catalog::files::{Files, FilesOptions, Place, Storage};
use catalog::location::Location;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

/// Set in the process that plays the pod.
const POD: &str = "POD_OF_THE_TEST";

#[tokio::test]
async fn a_pod_with_a_web_identity_asks_the_token_service_of_its_region() {
    if env::var_os(POD).is_some() {
        return be_the_pod().await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    tokio::spawn(refuse_all(listener, asked.clone()));
    let pod = tokio::task::spawn_blocking(move || pod(&proxy)).await.unwrap();
    assert!(pod.status.success(), "{}", String::from_utf8_lossy(&pod.stdout));
    let asked = asked.lock().unwrap();
    assert!(!asked.is_empty());
    for request in asked.iter() {
        assert!(request.starts_with("CONNECT sts.eu-north-1.amazonaws.com:443 HTTP/1.1\r\n"), "{request}");
    }
}

/// This test once more, in an environment such as Kubernetes makes for a service account with a role.
fn pod(proxy: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "token").expect("a file");
    let inherited = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "NO_PROXY", "no_proxy"];
    let mut pod = Command::new(env::current_exe().expect("this test is a file"));
    inherited.iter().for_each(|name| {
        pod.env_remove(name);
    });
    pod.env(POD, "1")
        .env("AWS_ROLE_ARN", "arn:aws:iam::000000000000:role/frazil")
        .env("AWS_WEB_IDENTITY_TOKEN_FILE", token)
        .env("AWS_REGION", "eu-north-1")
        .env("HTTPS_PROXY", proxy)
        .env("https_proxy", proxy)
        .output()
        .expect("the test runs once more")
}

async fn be_the_pod() {
    let root = Location::parse("s3://bucket/w").expect("a location");
    let place = Place { storage: Storage::for_location(&root), root, allowed: Vec::new() };
    let probed = Files::new(FilesOptions::default(), None).probe(&place, Uuid::from_u128(1)).await;
    let message = probed.expect_err("there is no token service").message().to_owned();
    assert!(message.contains("could not get credentials"), "{message}");
}

async fn refuse_all(listener: TcpListener, asked: Arc<Mutex<Vec<String>>>) {
    loop {
        let (mut client, _) = listener.accept().await.expect("a connection");
        let mut request = vec![0; 4096];
        let n = client.read(&mut request).await.expect("a request");
        asked.lock().expect("nobody panics with it").push(String::from_utf8_lossy(&request[..n]).into_owned());
        let _ = client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    }
}
