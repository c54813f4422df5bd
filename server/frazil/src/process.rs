//! What each command does, from its first line to its last.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::{Api, ApiParts, document, router};
use crate::auth::Authenticator;
use crate::cli::{Cli, Command, Flags};
use crate::config::Config;
use crate::serve::{finish, serve};
use crate::telemetry::{self, Telemetry};
use crate::welcome;
use crate::wiring::{self, Wired};
use crate::workers::Workers;

/// How long the work that no client waits for any more may take at the end.
const LAST_WORK: Duration = Duration::from_secs(10);

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
        Some(Command::Warehouse(command)) => on_runtime(command.run(&mut std::io::stdout())),
        Some(Command::Principal(command)) => on_runtime(command.run(&mut std::io::stdout())),
    }
}

fn on_runtime(command: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(command)
}

async fn migrate(flags: Flags) -> Result<(), Error> {
    let config = flags.load()?;
    wiring::migrate(&config).await?;
    println!("{} is up to date", config.database_url());
    Ok(())
}

async fn serve_catalog(config: Config) -> Result<(), Error> {
    let telemetry = Telemetry::begin(&config.log, &config.telemetry)?;
    let metrics = telemetry::install(telemetry::recorder())?;
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
    tokio::spawn(end_on_signal(end.clone()));
    server.run(end).await;
    tracing::info!("ended");
    telemetry.end();
    Ok(())
}

/// A server that is put together and has its address. Who connects now is answered once it runs.
pub struct Server {
    pub address: SocketAddr,
    config: Config,
    listener: TcpListener,
    api: Api,
    workers: Workers,
    running: TaskTracker,
}

impl Server {
    pub async fn open(config: Config, metrics: PrometheusHandle) -> Result<Self, Error> {
        let Wired { catalog, clock, running } = wiring::open(&config).await?;
        let auth = Authenticator::open(&config.auth, &catalog.principals, Arc::clone(&clock)).await?;
        let parts = ApiParts {
            catalog: catalog.clone(),
            auth,
            clock: Arc::clone(&clock),
            commit: config.commit.clone(),
            limits: config.limits.clone(),
            public_url: config.server.public_url.clone(),
            metrics: metrics.clone(),
        };
        let api = Api::new(parts);
        let workers = Workers { catalog, clock, metrics, end: CancellationToken::new() };
        let listener = TcpListener::bind(config.server.listen).await.map_err(|source| unbound(&config, source))?;
        Ok(Self { address: listener.local_addr()?, config, listener, api, workers, running })
    }

    /// Answers until `end` is cancelled, then finishes what it has begun.
    ///
    /// First it says that it is not ready, so that no balancer sends more; then it takes no more.
    pub async fn run(self, end: CancellationToken) {
        let (notice, stop_taking) =
            (Duration::from_millis(self.config.server.drain_notice_ms), CancellationToken::new());
        let (api, stop) = (self.api.clone(), stop_taking.clone());
        tokio::spawn(async move {
            end.cancelled().await;
            api.drain();
            tokio::time::sleep(notice).await;
            stop.cancel();
        });
        let end_workers = self.workers.end.clone();
        let workers = self.workers.begin();
        serve(self.listener, router(self.api), &self.config.server, stop_taking).await;
        end_workers.cancel();
        finish(self.running, LAST_WORK, "changes").await;
        finish(workers, LAST_WORK, "background work").await;
    }
}

async fn end_on_signal(end: CancellationToken) -> Result<(), std::io::Error> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("told to end: finishing what is under way");
    end.cancel();
    Ok(())
}

fn unbound(config: &Config, source: std::io::Error) -> std::io::Error {
    let kind = source.kind();
    std::io::Error::new(kind, format!("cannot listen on {}: {source}", config.server.listen))
}
