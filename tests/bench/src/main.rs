//! Load for a server of the Iceberg REST protocol: does what stock clients do, measures it, and verifies what came of it.

mod bench;
mod clock;
mod counters;
mod crowd;
mod floor;
mod history;
mod ledger;
mod measure;
mod process;
mod report;
mod rest;
mod settings;
mod store;
mod target;
mod workloads;
mod writer;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};

use bench::Bench;
use floor::Floor;
use report::{Report, Result, Row};
use settings::{Preset, Settings};
use store::Store;
use target::Target;
use workloads::{w1, w2, w3, w4, w5, w6, w7, w8};

#[derive(Debug, Parser)]
#[command(name = "frazil-bench", about, version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure what no catalog can do without: a PUT, a guarded UPDATE, and both one after the other
    Floor {
        #[command(flatten)]
        options: Options,
        /// Sizes of the file
        #[arg(long, value_delimiter = ',', default_value = "20000")]
        bytes: Vec<u64>,
        #[arg(long)]
        postgres: String,
    },
    /// Run one workload against one server
    Run {
        /// W1 to W8: W9 is what they tell of memory and processor time
        workload: String,
        #[command(flatten)]
        options: Options,
    },
}

#[derive(Debug, Args)]
struct Options {
    /// A JSON file that tells of the server
    #[arg(long)]
    target: PathBuf,
    #[arg(long, value_enum, default_value = "quick")]
    preset: Preset,
    /// Replaces a parameter of the preset, as in --set writers=8,32; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Where the figures go, as JSON
    #[arg(long)]
    out: PathBuf,
}

const VERIFICATION_FAILED: u8 = 1;
const COULD_NOT_RUN: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse().command).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(VERIFICATION_FAILED),
        Err(error) => {
            eprintln!("frazil-bench: {error}");
            ExitCode::from(COULD_NOT_RUN)
        }
    }
}

/// True where everything was verified.
async fn run(command: Command) -> Result<bool> {
    let (report, out) = match command {
        Command::Floor { options, bytes, postgres } => (measure_floor(&options, &bytes, &postgres).await?, options.out),
        Command::Run { workload, options } => (put_under_load(&options, &workload.to_uppercase()).await?, options.out),
    };
    report.write(&out)?;
    Ok(!report.has_failed())
}

async fn put_under_load(options: &Options, workload: &str) -> Result<Report> {
    let settings = Settings::new(options.preset, &options.set)?;
    let bench = Bench::new(Target::read(&options.target)?, settings, workload).await?;
    match workload {
        "W1" => w1::run(&bench).await,
        "W2" => w2::run(&bench).await,
        "W3" => w3::run(&bench).await,
        "W4" => w4::run(&bench).await,
        "W5" => w5::run(&bench).await,
        "W6" => w6::run(&bench).await,
        "W7" => w7::run(&bench).await,
        "W8" => w8::run(&bench).await,
        other => Err(format!("{other} is no workload: W1 to W8 are").into()),
    }?;
    Ok(bench.into_report())
}

async fn measure_floor(options: &Options, sizes: &[u64], postgres: &str) -> Result<Report> {
    let target = Target::read(&options.target)?;
    let settings = Settings::new(options.preset, &options.set)?;
    let turns = settings.number("turns", 100, 300)?;
    let store = Arc::new(Store::open(&target.store)?);
    let mut report = Report::new("floor", &target, &settings);
    report.parameters = settings.used();
    for &bytes in sizes {
        let mut floor = Floor::new(&store, &target.store.root, Some(postgres)).await?;
        for _ in 0..turns {
            floor.measure(bytes).await?;
        }
        store.sweep().await;
        report.add(Row::of("bytes", bytes).with("turns", turns).merged(floor.row()));
    }
    Ok(report)
}
