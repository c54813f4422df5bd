//! The process while it serves: it accepts connections, and ends without cutting off what it has begun.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::serve::connection::Server;
use crate::serve::places::Places;
use crate::serve::tls::Current;

mod connection;
pub mod handles;
mod places;
mod stall;
pub mod tls;
mod under_way;

/// How long to wait after the system refused a connection, as it does when it is out of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket, and what is answered there.
pub struct Listening {
    pub listener: TcpListener,
    pub router: Router,
    /// Without it HTTP is spoken as it is.
    pub tls: Option<Current>,
}

/// Bounds that hold for each connection of a listener, and for all of them.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub connections: usize,
    /// For the head of a request, for a TLS handshake, and for a connection without a request.
    pub idle: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub stall: Duration,
    /// How long connections may last once no new ones are taken.
    pub drain: Duration,
}

/// The two steps in which a listener ends.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// It is still asked, but clients are told with their next answer to go elsewhere.
    pub told: CancellationToken,
    /// It takes no more connections, and no more requests on those that there are.
    pub stop: CancellationToken,
}

impl Bounds {
    pub fn of(config: &Config) -> Self {
        Self {
            connections: config.server.connections,
            idle: Duration::from_millis(config.server.header_timeout_ms),
            stall: Duration::from_millis(config.limits.body_timeout_ms),
            drain: Duration::from_millis(config.server.drain_timeout_ms),
        }
    }
}

/// Serves until it is to stop, then until what was begun is done, or for [`Bounds::drain`].
pub async fn serve(listening: Listening, bounds: Bounds, ending: Ending) {
    let Listening { listener, router, tls } = listening;
    let places = Arc::new(Places::new(bounds.connections));
    let server = Arc::new(Server::new(router, tls, bounds, ending.clone(), places.clone()));
    let (connections, cut) = (TaskTracker::new(), CancellationToken::new());
    let next = || async { (places.at_the_door().await, listener.accept().await) };
    while let Some((door, accepted)) = ending.stop.run_until_cancelled(next()).await {
        match accepted {
            Ok((stream, peer)) => {
                let (server, cut) = (server.clone(), cut.clone());
                connections
                    .spawn(async move { cut.run_until_cancelled_owned(server.receive(stream, peer, door)).await });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                places.ask_one_to_leave();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    finish(connections, bounds.drain, "connections").await;
    cut.cancel();
}

/// Waits for what is under way, up to a deadline that no client can move.
pub async fn finish(running: TaskTracker, within: Duration, what: &'static str) {
    running.close();
    if timeout(within, running.wait()).await.is_err() {
        tracing::warn!(left = running.len(), what, "the time to finish is over");
    }
}
