//! A proxy on loopback that hands on what it is given until a fault is due; it is told which, and where.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub mod http;
pub mod postgres;

/// A proxy; `F` is a fault with the place where it is due.
#[derive(Debug)]
pub struct Proxy<F> {
    address: SocketAddr,
    to: watch::Sender<String>,
    faults: Faults<F>,
    serving: JoinHandle<()>,
}

/// The faults that are still to come.
#[derive(Debug)]
pub struct Faults<F>(Arc<Shared<F>>);

#[derive(Debug)]
struct Shared<F> {
    /// Each happens once.
    due: Mutex<Vec<F>>,
    /// Happens until the proxy is to behave again.
    lasting: Mutex<Option<F>>,
    happened: watch::Sender<usize>,
}

impl<F> Clone for Faults<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: Clone> Faults<F> {
    fn none() -> Self {
        let (due, lasting) = (Mutex::default(), Mutex::new(None));
        Self(Arc::new(Shared { due, lasting, happened: watch::Sender::new(0) }))
    }

    /// Takes the first one that belongs here, or the one that lasts.
    fn take(&self, belongs: impl Fn(&F) -> bool) -> Option<F> {
        let mut due = self.0.due.lock().unwrap();
        let once = due.iter().position(&belongs).map(|found| due.remove(found));
        let fault = once.or_else(|| self.0.lasting.lock().unwrap().clone().filter(belongs))?;
        self.0.happened.send_modify(|happened| *happened += 1);
        Some(fault)
    }
}

impl<F: Clone + Send + 'static> Proxy<F> {
    async fn serving<S, C>(to: &str, serve: S) -> Self
    where
        S: Fn(TcpStream, String, Faults<F>) -> C + Send + 'static,
        C: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, faults) = (listener.local_addr().unwrap(), Faults::none());
        let (handed, (to, towards)) = (faults.clone(), watch::channel(to.to_owned()));
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A connection that breaks is what this is for.
                let server = towards.borrow().clone();
                tokio::spawn(serve(client, server, handed.clone()));
            }
        });
        Self { address, to, faults, serving }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// New connections go to another server.
    pub fn redirect(&self, to: &str) {
        self.to.send_replace(to.to_owned());
    }

    pub fn plan(&self, fault: F) {
        self.faults.0.due.lock().unwrap().push(fault);
    }

    /// From now on it happens wherever it belongs; nothing else lasts beside it.
    pub fn plan_for_good(&self, fault: F) {
        *self.faults.0.lasting.lock().unwrap() = Some(fault);
    }

    /// Nothing that was planned happens any more.
    pub fn behave(&self) {
        self.faults.0.due.lock().unwrap().clear();
        *self.faults.0.lasting.lock().unwrap() = None;
    }

    pub fn happened(&self) -> usize {
        *self.faults.0.happened.borrow()
    }

    /// Waits until that many faults have begun.
    pub async fn wait_for(&self, count: usize) {
        let mut happened = self.faults.0.happened.subscribe();
        let waited = tokio::time::timeout(crate::wait::HANGS_AFTER, happened.wait_for(|so_far| *so_far >= count)).await;
        waited.expect("a planned fault happens").unwrap();
    }
}

impl<F> Drop for Proxy<F> {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Holds something back until it is opened; clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn pass(&self) {
        let mut opened = self.0.subscribe();
        // The gate's own sender lives in `self`.
        let _ = opened.wait_for(|open| *open).await;
    }
}
