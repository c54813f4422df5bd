//! `frazil store`: the database as a whole, backed up or copied into another one.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use catalog::context::Clock;
use catalog::transfer::{self, Copied, Progress, Step};
use clap::{Args, Subcommand};

use super::Flags;
use crate::config::{DatabaseUrl, Hidden};
use crate::wiring;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Characters of a bar that is full.
const BAR: usize = 30;

#[derive(Debug, Args)]
pub struct StoreCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write the embedded database into a new file, while the server goes on.
    Backup {
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
        #[command(flatten)]
        flags: Flags,
    },
    /// Copy all of a database into another, empty one, and compare them. No server may use either. A copy that was cut off
    /// goes on where it stopped.
    Copy {
        /// sqlite:PATH or postgres://…
        #[arg(long, value_name = "URL", value_parser = Hidden::parse)]
        from: Hidden,
        /// sqlite:PATH or postgres://…
        #[arg(long, value_name = "URL", value_parser = Hidden::parse)]
        to: Hidden,
    },
}

impl StoreCommand {
    /// Does what is asked for. Its progress goes to standard error, what came of it to `out`.
    pub async fn run(self, clock: &dyn Clock, out: &mut (dyn Write + Send)) -> Result<(), Error> {
        match self.action {
            Action::Backup { to, flags } => {
                wiring::backup(&flags.load()?, &to).await?;
                Ok(writeln!(out, "{} is the backup", to.display())?)
            }
            Action::Copy { from, to } => {
                let [from, to] = [from, to].map(|url| DatabaseUrl::from(url.reveal().to_owned()));
                let mut source = wiring::source(&from).await?;
                let mut target = wiring::target(&to).await?;
                let mut told = Told::new();
                let all = transfer::copy(&mut *source, &mut *target, clock.now_ms(), &mut |progress| {
                    told.tell(progress);
                })
                .await;
                told.end();
                Ok(write!(out, "{}", report(&all?, &from, &to))?)
            }
        }
    }
}

/// The progress as it was told last: a bar on a terminal, else a line for each table.
struct Told {
    on_terminal: bool,
    last: Option<(Step, &'static str)>,
}

impl Told {
    fn new() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), last: None }
    }

    fn tell(&mut self, progress: Progress) {
        let now = (progress.step, progress.table);
        match self.on_terminal {
            true => {
                let begin = if self.last.is_some_and(|last| last != now) { "\n" } else { "\r" };
                eprint!("{begin}{}", bar(&progress));
            }
            false if self.last != Some(now) => eprintln!("{}", line(&progress)),
            false => {}
        }
        self.last = Some(now);
    }

    fn end(&self) {
        if self.on_terminal && self.last.is_some() {
            eprintln!();
        }
    }
}

fn bar(progress: &Progress) -> String {
    let full = match progress.total {
        0 => BAR,
        total => usize::try_from(progress.done.min(total) * BAR as u64 / total).unwrap_or(BAR),
    };
    let (step, rest) = (word(progress.step), BAR - full);
    let Progress { table, done, total, .. } = progress;
    format!("{step} {table:<16} [{}{}] {done} of {total}", "#".repeat(full), "-".repeat(rest))
}

fn line(progress: &Progress) -> String {
    let Progress { table, step, done, total } = progress;
    format!("{} {table}: {done} of {total} rows", word(*step))
}

fn word(step: Step) -> &'static str {
    match step {
        Step::Copy => "copying ",
        Step::Check => "checking",
    }
}

fn report(all: &[Copied], from: &DatabaseUrl, to: &DatabaseUrl) -> String {
    let lines = all.iter().map(|copied| {
        let Copied { table, rows, checksum } = copied;
        format!("{table:<16} {rows:>10} rows  sha256 {checksum}\n")
    });
    let lines: String = lines.collect();
    format!("{lines}{to} holds all of {from}: point database.url at it\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(done: u64, total: u64) -> Progress {
        Progress { table: "writer", step: Step::Copy, done, total }
    }

    #[test]
    fn a_bar_fills_from_nothing_to_all() {
        for (done, total, full) in [(0, 10, 0), (5, 10, 15), (10, 10, 30), (0, 0, 30), (12, 10, 30)] {
            let drawn = bar(&progress(done, total));
            assert_eq!(drawn.matches('#').count(), full, "{drawn}");
            assert_eq!(drawn.matches('-').count(), BAR - full, "{drawn}");
        }
    }

    #[test]
    fn a_report_shows_no_password() {
        let url = |text: &str| DatabaseUrl::from(text.to_owned());
        let copied = Copied { table: "writer", rows: 3, checksum: "ab".to_owned() };
        let report = report(&[copied], &url("sqlite:a.db"), &url("postgres://me:hush@db/x"));
        assert!(report.contains("3 rows  sha256 ab") && !report.contains("hush"), "{report}");
    }
}
