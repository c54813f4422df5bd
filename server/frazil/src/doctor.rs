//! `frazil doctor`: looks at all parts of an installation, and says what to do about those that do not work.

use std::io::Write;

use catalog::context::Clock;
use catalog::finding::{Finding, Verdict};
use clap::Args;

use crate::cli::Flags;
use crate::wiring;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Args)]
pub struct DoctorCommand {
    #[command(flatten)]
    flags: Flags,
    /// Ask for the metadata file of every table and view too, one request to the store for each.
    #[arg(long)]
    tables: bool,
    /// Print JSON: an array with one object for each check.
    #[arg(long)]
    json: bool,
}

impl DoctorCommand {
    /// Prints every finding to `out`. Fails where one of them is a failure.
    pub async fn run(self, clock: &dyn Clock, out: &mut (dyn Write + Send)) -> Result<(), Error> {
        let found = match self.flags.load() {
            Ok(config) => {
                let configuration = Finding::ok("configuration", "can be used");
                [vec![configuration], wiring::examine(&config, clock, self.tables).await].concat()
            }
            Err(error) => {
                vec![Finding::failed("configuration", error.to_string(), "docs/configuration.md has them all")]
            }
        };
        match self.json {
            true => writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?,
            false => write!(out, "{}", text(&found))?,
        }
        match found.iter().filter(|finding| finding.verdict == Verdict::Failed).count() {
            0 => Ok(()),
            failed => Err(format!("{failed} of {} checks failed", found.len()).into()),
        }
    }
}

/// One line for each check, and one for what to do.
fn text(found: &[Finding]) -> String {
    let width = found.iter().map(|finding| finding.check.len()).max().unwrap_or_default();
    let lines = found.iter().map(|Finding { check, verdict, told, mend }| {
        let verdict = match verdict {
            Verdict::Ok => "ok     ",
            Verdict::Warning => "warning",
            Verdict::Failed => "FAILED ",
        };
        let mend = mend.as_ref().map_or_else(String::new, |mend| format!("{:width$}           {mend}\n", ""));
        format!("{verdict}  {check:width$}  {told}\n{mend}")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_done_stands_below_what_was_found() {
        let found = [Finding::ok("database", "answers"), Finding::failed("warehouse w", "is gone", "make it")];
        let expected = "ok       database     answers\n\
                        FAILED   warehouse w  is gone\n                      make it\n";
        assert_eq!(text(&found), expected);
    }
}
