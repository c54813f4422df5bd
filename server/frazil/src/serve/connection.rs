//! One connection from its first byte to its last.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Version, header};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;

use crate::api::load::Crowded;
use crate::serve::places::{Place, Places};
use crate::serve::stall::Unstalled;
use crate::serve::tls::Current;
use crate::serve::under_way::{Answering, UnderWay};
use crate::serve::{Bounds, Ending};

/// The head of a request, in bytes: with a token, and with a path of many names.
const HEAD_MAX_BYTES: u32 = 1 << 16;

/// Headers of one request over HTTP/1. Over HTTP/2 the bytes bound them.
const HEADERS_MAX: usize = 100;

/// Streams that one HTTP/2 connection may have at a time.
const STREAMS_MAX: u32 = 128;

/// Streams that a client may begin and take back before anybody looks at them; with more it is sent away.
const RESETS_MAX: usize = 20;

/// How much of bodies that nobody has read yet an HTTP/2 connection keeps, in bytes.
const WINDOW_BYTES: u32 = 1 << 20;

/// How long a connection may last that found no place.
const CROWDED_WITHIN: Duration = Duration::from_secs(5);

/// How long a connection may take to end that nothing is under way on.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// A connection on which requests are under way, and none of them begins or ends for so long, has a client that does
/// not take its answer.
const NO_CHANGE_WITHIN: Duration = Duration::from_secs(300);

type Plain = Unstalled<TcpStream>;

/// What all connections of one listener share.
pub struct Server {
    builder: Builder<TokioExecutor>,
    router: Router,
    tls: Option<Current>,
    bounds: Bounds,
    ending: Ending,
    places: Arc<Places>,
}

/// Who is at the other end.
#[derive(Clone, Copy)]
struct Client {
    peer: SocketAddr,
    /// It found no place, and is told so unless it asks for the server's health.
    crowded: bool,
}

impl Server {
    pub fn new(router: Router, tls: Option<Current>, bounds: Bounds, ending: Ending, places: Arc<Places>) -> Self {
        Self { builder: builder(bounds.idle), router, tls, bounds, ending, places }
    }

    pub async fn receive(&self, stream: TcpStream, peer: SocketAddr, door: OwnedSemaphorePermit) {
        match self.places.enter(door).await {
            Place::Inside(_place) => self.talk(stream, Client { peer, crowded: false }).await,
            Place::AtTheDoor(_door) => {
                let talk = self.talk(stream, Client { peer, crowded: true });
                let _ = timeout(CROWDED_WITHIN, talk).await;
            }
        }
    }

    async fn talk(&self, stream: TcpStream, client: Client) {
        let _ = stream.set_nodelay(true);
        let stream = Unstalled::new(stream, self.bounds.stall);
        match &self.tls {
            None => self.answer(stream, client).await,
            Some(current) => {
                let acceptor = TlsAcceptor::from(current.borrow().clone());
                if let Some(stream) = self.shake_hands(acceptor, stream).await {
                    self.answer(stream, client).await;
                }
            }
        }
    }

    /// `None` where no TLS came about in time.
    async fn shake_hands(&self, acceptor: TlsAcceptor, stream: Plain) -> Option<TlsStream<Plain>> {
        tokio::select! {
            shaken = timeout(self.bounds.idle, acceptor.accept(stream)) => {
                let shaken = shaken.ok()?;
                shaken.inspect_err(|error| tracing::debug!(%error, "a TLS handshake failed")).ok()
            }
            () = self.places.silent.asked() => None,
            () = self.ending.stop.cancelled() => None,
        }
    }

    async fn answer<S>(&self, stream: S, client: Client)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // The count outlives the connection, so that whoever watches it never misses it.
        let (under_way, seen) = UnderWay::new();
        let (mut router, count, told) = (self.router.clone(), under_way.clone(), self.ending.told.clone());
        let service = tower::service_fn(move |request: Request<Incoming>| {
            let (begun, told, version) = (count.begin(), told.clone(), request.version());
            let answer = router.call(client.introduced(request));
            async move {
                let mut response = answer.await.unwrap_or_else(|never| match never {});
                if version < Version::HTTP_2 && (client.crowded || told.is_cancelled()) {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<Response<Answering>, Infallible>(response.map(|body| begun.until_end_of(body)))
            }
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        tokio::pin!(connection);
        let within = tokio::select! {
            ended = connection.as_mut() => return note(ended),
            within = self.end_of(seen) => within,
        };
        connection.as_mut().graceful_shutdown();
        if let Ok(ended) = timeout(within, connection).await {
            note(ended);
        }
    }

    /// Returns when the connection is to end, and how long it may take to.
    async fn end_of(&self, seen: watch::Receiver<usize>) -> Duration {
        tokio::select! {
            () = self.ending.stop.cancelled() => Duration::MAX,
            () = self.told_and_asked(seen.clone()) => Duration::MAX,
            () = self.idle(seen) => LEAVE_WITHIN,
        }
    }

    /// Clients that come with a request while the server is about to end are answered, and go elsewhere with the next.
    async fn told_and_asked(&self, mut seen: watch::Receiver<usize>) {
        self.ending.told.cancelled().await;
        if *seen.borrow_and_update() == 0 {
            // What comes next may be answered at once: it is seen by the change, and not by the count.
            let _ = seen.changed().await;
        }
    }

    /// Returns when nothing happened for too long, or somebody else needs the place.
    async fn idle(&self, mut seen: watch::Receiver<usize>) {
        let mut spare = &self.places.silent;
        loop {
            let under_way = *seen.borrow_and_update() > 0;
            tokio::select! {
                _ = seen.changed() => spare = &self.places.idle,
                () = spare.asked(), if !under_way => return,
                () = sleep(self.bounds.idle), if !under_way => return,
                () = sleep(NO_CHANGE_WITHIN), if under_way => return,
            }
        }
    }
}

impl Client {
    /// The request with what is known of its client.
    fn introduced(self, request: Request<Incoming>) -> Request<Body> {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        if self.crowded {
            request.extensions_mut().insert(Crowded);
        }
        request
    }
}

fn note<E: std::fmt::Display>(ended: Result<(), E>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn builder(idle: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_MAX_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_MAX_BYTES)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .initial_connection_window_size(WINDOW_BYTES)
        .initial_stream_window_size(WINDOW_BYTES)
        .keep_alive_interval(idle)
        .keep_alive_timeout(idle);
    builder
}
