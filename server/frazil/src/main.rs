//! `frazil`, an Apache Iceberg REST catalog.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match frazil::process::run(frazil::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let causes = std::iter::successors(Some(&*error as &dyn std::error::Error), |error| error.source());
            let chain: Vec<String> = causes.map(ToString::to_string).collect();
            eprintln!("frazil: {}", chain.join(": "));
            ExitCode::FAILURE
        }
    }
}
