//! What each command does, from its first line to its last.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::{Api, ApiParts, document, metrics_router, router};
use crate::auth::Authenticator;
use crate::cli::{Cli, Command, Flags};
use crate::config::{Config, TelemetryConfig};
use crate::serve::tls::Certificate;
use crate::serve::{Bounds, Ending, Listening, finish, handles, serve};
use crate::telemetry::{self, Telemetry};
use crate::welcome;
use crate::wiring::{self, Machine, Wired};
use crate::workers::Workers;

/// How long the work that no client waits for any more may take at the end.
const LAST_WORK: Duration = Duration::from_secs(10);

/// Whoever asks for metrics and health is one of few.
const CONNECTIONS_ASIDE: usize = 64;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Runs a command to its end.
pub fn run(cli: Cli) -> Result<(), Error> {
    match cli.command {
        None => on_runtime(serve_catalog(cli.flags.load()?)),
        Some(Command::Serve(flags)) => on_runtime(serve_catalog(flags.load()?)),
        Some(Command::Migrate(flags)) => on_runtime(migrate(flags)),
        Some(Command::CheckConfig(flags)) => {
            print!("{}", flags.load()?);
            Ok(())
        }
        Some(Command::Openapi) => {
            print!("{}", document::yaml());
            Ok(())
        }
        Some(Command::Health(command)) => on_runtime(command.run(&mut std::io::stdout())),
        Some(Command::Doctor(command)) => on_runtime(command.run(&Machine, &mut std::io::stdout())),
        Some(Command::Store(command)) => on_runtime(command.run(&Machine, &mut std::io::stdout())),
        Some(Command::Warehouse(command)) => on_runtime(command.run(&mut std::io::stdout())),
        Some(Command::Principal(command)) => {
            // What it changes is told in the audit log.
            Telemetry::begin(&command.flags().load()?.log, &TelemetryConfig::default())?;
            on_runtime(command.run(&mut std::io::stdout()))
        }
    }
}

/// What is not done when the command is, was given up: it is not waited for.
fn on_runtime(command: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}

async fn migrate(flags: Flags) -> Result<(), Error> {
    let config = flags.load()?;
    wiring::migrate(&config).await?;
    println!("{} is up to date", config.database_url());
    Ok(())
}

async fn serve_catalog(mut config: Config) -> Result<(), Error> {
    let telemetry = Telemetry::begin(&config.log, &config.telemetry)?;
    let metrics = telemetry::install(telemetry::recorder())?;
    config.server.connections = handles::room_for(config.server.connections);
    let server = Server::open(config, metrics).await?;
    println!(
        "{}",
        welcome::text(&welcome::catalog_uri(&server.config.server, server.address), &server.config.database_url())
    );
    if server.config.auth.is_on() {
        println!("{}", welcome::ASKS);
    }
    tracing::info!(address = %server.address, database = %server.config.database_url(), "serving");
    let end = CancellationToken::new();
    let outcome = tokio::select! {
        () = server.run(end.clone()) => Ok(()),
        cut = end_on_signals(end) => cut,
    };
    tracing::info!("ended");
    telemetry.end();
    outcome
}

/// A server that is put together and has its addresses. Who connects now is answered once it runs.
pub struct Server {
    pub address: SocketAddr,
    /// Of the listener for metrics and health, where there is one.
    pub metrics_address: Option<SocketAddr>,
    config: Config,
    listener: TcpListener,
    metrics_listener: Option<TcpListener>,
    certificate: Option<Certificate>,
    api: Api,
    workers: Workers,
    running: TaskTracker,
}

impl Server {
    pub async fn open(config: Config, metrics: PrometheusHandle) -> Result<Self, Error> {
        let certificate = match config.server.tls.files()? {
            Some((cert, key)) => Some(Certificate::read(cert, key).await?),
            None => None,
        };
        let Wired { catalog, clock, running } = wiring::open(&config).await?;
        let auth = Authenticator::open(&config.auth, &catalog.principals, Arc::clone(&clock)).await?;
        let parts = ApiParts {
            catalog: catalog.clone(),
            auth,
            clock: Arc::clone(&clock),
            commit: config.commit.clone(),
            limits: config.limits.clone(),
            server: config.server.clone(),
            trusted_proxies: config.server.trusted_networks()?,
            metrics: metrics.clone(),
        };
        let api = Api::new(parts);
        let workers = Workers { catalog, clock, metrics, end: CancellationToken::new() };
        let listener = bind(config.server.listen).await?;
        let metrics_listener = match config.server.metrics_listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let metrics_address = metrics_listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let address = listener.local_addr()?;
        Ok(Self { address, metrics_address, config, listener, metrics_listener, certificate, api, workers, running })
    }

    /// Answers until `end` is cancelled, then finishes what it has begun.
    ///
    /// First it says that it is not ready, so that no balancer sends more; then it takes no more. Metrics and health are
    /// told to the last.
    pub async fn run(self, end: CancellationToken) {
        let (notice, ending) = (Duration::from_millis(self.config.server.drain_notice_ms), Ending::default());
        let bounds = Bounds::of(&self.config);
        let (aside, serve_aside) = aside(self.metrics_listener, &self.api, bounds);
        tokio::spawn(begin_to_end(end, self.api.clone(), notice, ending.clone()));
        let end_workers = self.workers.end.clone();
        let workers = self.workers.begin();
        let tls = self.certificate.as_ref().map(Certificate::current);
        if let Some(certificate) = self.certificate {
            workers.spawn(certificate.keep_fresh(end_workers.clone()));
        }
        serve(Listening { listener: self.listener, router: router(self.api), tls }, bounds, ending).await;
        end_workers.cancel();
        finish(self.running, LAST_WORK, "changes").await;
        finish(workers, LAST_WORK, "background work").await;
        aside.stop.cancel();
        finish(serve_aside, LAST_WORK, "metrics").await;
    }
}

async fn begin_to_end(end: CancellationToken, api: Api, notice: Duration, ending: Ending) {
    end.cancelled().await;
    api.drain();
    ending.told.cancel();
    tokio::time::sleep(notice).await;
    ending.stop.cancel();
}

/// Serves metrics and health on a listener of their own, where there is one.
fn aside(listener: Option<TcpListener>, api: &Api, bounds: Bounds) -> (Ending, TaskTracker) {
    let (ending, running) = (Ending::default(), TaskTracker::new());
    if let Some(listener) = listener {
        let listening = Listening { listener, router: metrics_router(api.clone()), tls: None };
        let bounds = Bounds { connections: CONNECTIONS_ASIDE, drain: Duration::from_secs(1), ..bounds };
        running.spawn(serve(listening, bounds, ending.clone()));
    }
    (ending, running)
}

/// Begins to end with the first signal. Returns with the second, which ends everything at once.
async fn end_on_signals(end: CancellationToken) -> Result<(), Error> {
    let mut signals = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    told_to_end(&mut signals).await;
    tracing::info!("told to end: finishing what is under way; told again, it is cut off");
    end.cancel();
    told_to_end(&mut signals).await;
    Err("told twice to end: what was under way is cut off".into())
}

async fn told_to_end((terminate, interrupt): &mut (Signal, Signal)) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, std::io::Error> {
    let unbound =
        |source: std::io::Error| std::io::Error::new(source.kind(), format!("cannot listen on {address}: {source}"));
    TcpListener::bind(address).await.map_err(unbound)
}
