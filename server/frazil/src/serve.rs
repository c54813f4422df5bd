//! The process while it serves: it accepts connections, and ends without cutting off what it has begun.

use std::convert::Infallible;
use std::io::{Cursor, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, join};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::config::ServerConfig;

/// How long to wait after the system refused a connection, as it does when it is out of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Streams that one HTTP/2 connection may have at a time.
const STREAMS_MAX: u32 = 250;

/// What every HTTP/2 connection begins with, and no other.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves until `end` is cancelled, then until what was begun is done, or for [`ServerConfig::drain_timeout_ms`].
pub async fn serve(listener: TcpListener, router: Router, config: &ServerConfig, end: CancellationToken) {
    let server = Arc::new(Server { builder: builder(config), router, header_timeout: header_timeout(config), end });
    let (connections, places) = (TaskTracker::new(), Arc::new(Semaphore::new(config.connections)));
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            () = server.end.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let server = server.clone();
                connections.spawn(async move {
                    server.answer(stream, peer).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    finish(connections, Duration::from_millis(config.drain_timeout_ms), "connections").await;
}

/// Waits for what is under way, up to a deadline that no client can move.
pub async fn finish(running: TaskTracker, within: Duration, what: &'static str) {
    running.close();
    if timeout(within, running.wait()).await.is_err() {
        tracing::warn!(left = running.len(), what, "the time to finish is over");
    }
}

struct Server {
    builder: Builder<TokioExecutor>,
    router: Router,
    header_timeout: Duration,
    end: CancellationToken,
}

impl Server {
    async fn answer(&self, mut stream: TcpStream, peer: SocketAddr) {
        // Until the version is known no time-out of a version is at work: a client that says nothing, or too little for
        // that, holds its place no longer than one that says half a head.
        let Ok(Ok(opening)) = timeout(self.header_timeout, opening(&mut stream)).await else {
            return;
        };
        let _ = stream.set_nodelay(true);
        let mut router = self.router.clone();
        let service = tower::service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            let answer = router.call(request);
            async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
        });
        let (rest, answers) = stream.into_split();
        let io = TokioIo::new(join(Cursor::new(opening).chain(rest), answers));
        let connection = self.builder.serve_connection(io, TowerToHyperService::new(service));
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.end.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error, "a connection ended early");
        }
    }
}

/// What a client says first, up to where it is certain which version of HTTP it speaks.
async fn opening(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut said = Vec::with_capacity(HTTP2_PREFACE.len());
    while said.len() < HTTP2_PREFACE.len() && HTTP2_PREFACE.starts_with(&said) {
        if stream.read_buf(&mut said).await? == 0 {
            break;
        }
    }
    Ok(said)
}

fn builder(config: &ServerConfig) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(header_timeout(config));
    let keep_alive = header_timeout(config);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(keep_alive)
        .keep_alive_timeout(keep_alive);
    builder
}

fn header_timeout(config: &ServerConfig) -> Duration {
    Duration::from_millis(config.header_timeout_ms)
}
