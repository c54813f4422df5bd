//! Something between the catalog and its store: it hands on late, or not at all.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::places::setting;

pub struct Proxy {
    pub endpoint: String,
    accepted: watch::Receiver<usize>,
}

impl Proxy {
    /// Hands on every answer late.
    pub async fn to_store(delay: Duration) -> Self {
        let store = setting("S3_ENDPOINT").strip_prefix("http://").expect("the store is on loopback").to_owned();
        Self::serving(move |client| {
            let store = store.clone();
            async move {
                let server = TcpStream::connect(store).await.unwrap();
                let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                    (client.into_split(), server.into_split());
                tokio::join!(
                    hand_on(&mut from_client, &mut to_server, Duration::ZERO),
                    hand_on(&mut from_server, &mut to_client, delay)
                );
            }
        })
        .await
    }

    /// Takes connections and never answers.
    pub async fn that_stalls() -> Self {
        Self::serving(|client| async move {
            let _held = client;
            std::future::pending::<()>().await;
        })
        .await
    }

    /// Waits until that many connections have been taken.
    pub async fn holds(&self, connections: usize) {
        self.accepted.clone().wait_for(|accepted| *accepted >= connections).await.unwrap();
    }

    async fn serving<F: Future<Output = ()> + Send + 'static>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (count, accepted) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                count.send_modify(|accepted| *accepted += 1);
                tokio::spawn(serve(client));
            }
        });
        Self { endpoint, accepted }
    }
}

/// Until one side ends.
async fn hand_on(from: &mut (impl AsyncRead + Unpin), to: &mut (impl AsyncWrite + Unpin), delay: Duration) {
    let mut chunk = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut chunk).await {
        tokio::time::sleep(delay).await;
        if to.write_all(&chunk[..n]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
