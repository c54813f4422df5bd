//! What each command does, from its first line to its last.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, ApiParts, document, router};
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
    }
}

fn on_runtime(command: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(command)
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
    let Wired {
        catalog,
        clock,
        running,
    } = wiring::open(&config).await?;
    let parts = ApiParts {
        catalog: catalog.clone(),
        clock: Arc::clone(&clock),
        commit: config.commit.clone(),
        limits: config.limits.clone(),
        public_url: config.server.public_url.clone(),
        metrics: metrics.clone(),
    };
    let api = Api::new(parts);
    let listener = TcpListener::bind(config.server.listen)
        .await
        .map_err(|source| unbound(&config, source))?;
    let address = listener.local_addr()?;
    println!("{}", welcome::text(&welcome::catalog_uri(&config.server, address)));
    tracing::info!(%address, database = %config.database_url(), "serving");

    let (stop_taking, end) = (CancellationToken::new(), CancellationToken::new());
    let workers = Workers {
        catalog,
        clock,
        metrics,
        end: end.clone(),
    }
    .begin();
    tokio::spawn(drain_on_signal(
        api.clone(),
        Duration::from_millis(config.server.drain_notice_ms),
        stop_taking.clone(),
    ));
    serve(listener, router(api), &config.server, stop_taking).await;
    end.cancel();
    finish(running, LAST_WORK, "changes").await;
    finish(workers, LAST_WORK, "background work").await;
    tracing::info!("ended");
    telemetry.end();
    Ok(())
}

/// First the server says that it is not ready, so that no balancer sends more; then it takes no more.
async fn drain_on_signal(api: Api, notice: Duration, stop_taking: CancellationToken) -> Result<(), std::io::Error> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("told to end: finishing what is under way");
    api.drain();
    tokio::time::sleep(notice).await;
    stop_taking.cancel();
    Ok(())
}

fn unbound(config: &Config, source: std::io::Error) -> std::io::Error {
    let kind = source.kind();
    std::io::Error::new(kind, format!("cannot listen on {}: {source}", config.server.listen))
}
