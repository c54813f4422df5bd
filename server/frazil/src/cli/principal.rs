//! `frazil principal`: who may log in with an id and a secret. It works on the database, so that a first principal can be
//! made before anybody could log in.

use std::io::Write;
use std::time::Duration;

use catalog::principals::{NewCredential, PrincipalName, Principals, ServicePrincipal, Standing};
use clap::{Args, Subcommand};
use serde_json::json;

use super::Flags;
use crate::wiring;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Args)]
pub struct PrincipalCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a principal, and print its id and its secret. The secret is never shown again.
    Create {
        name: String,
        /// For how long it may log in, as in 90d, 12h or 30m; for ever where nothing is said.
        #[arg(long, value_name = "TIME", value_parser = duration)]
        expires_in: Option<Duration>,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Print all principals and what became of them, without secrets.
    List {
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Give a principal another secret, and print it. Nobody logs in with the former one any more.
    Rotate {
        name: String,
        /// For how long it may log in from now on; as before where nothing is said.
        #[arg(long, value_name = "TIME", value_parser = duration)]
        expires_in: Option<Duration>,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Take a principal's right to do anything, at once and for ever.
    Revoke {
        name: String,
        #[command(flatten)]
        flags: Box<Flags>,
    },
}

impl PrincipalCommand {
    /// Which database it works on, among other things.
    pub fn flags(&self) -> &Flags {
        let (Action::Create { flags, .. }
        | Action::List { flags }
        | Action::Rotate { flags, .. }
        | Action::Revoke { flags, .. }) = &self.action;
        flags
    }

    pub async fn run(self, out: &mut impl Write) -> Result<(), Error> {
        let (principals, clock) = wiring::principals(&self.flags().load()?).await?;
        let until = |expires_in: Option<Duration>| expires_in.map(|time| clock.now_ms() + time.as_millis() as i64);
        match self.action {
            Action::Create { name, expires_in, .. } => {
                let made = principals.create(PrincipalName::parse(&name)?, until(expires_in), clock.as_ref()).await?;
                print_credential(&made, out)
            }
            Action::Rotate { name, expires_in, .. } => {
                let made = principals.rotate(&PrincipalName::parse(&name)?, until(expires_in), clock.as_ref()).await?;
                print_credential(&made, out)
            }
            Action::List { .. } => print_all(&principals, clock.now_ms(), out).await,
            Action::Revoke { name, .. } => {
                principals.revoke(&PrincipalName::parse(&name)?, clock.as_ref()).await?;
                Ok(writeln!(out, "{name} is revoked")?)
            }
        }
    }
}

fn print_credential(made: &NewCredential, out: &mut impl Write) -> Result<(), Error> {
    let (principal, secret) = (&made.principal, made.secret.reveal());
    let id = principal.id.to_string();
    let printed = json!({
        "name": principal.name.as_str(),
        "id": id,
        "secret": secret,
        "credential": format!("{id}:{secret}"),
        "expires": principal.expires_at_ms.map(utc),
    });
    Ok(writeln!(out, "{printed:#}")?)
}

async fn print_all(principals: &Principals, now_ms: i64, out: &mut impl Write) -> Result<(), Error> {
    let all = principals.list().await?;
    let width = all.iter().map(|principal| principal.name.as_str().len()).max().unwrap_or_default();
    for principal in all {
        let (name, id, state) = (principal.name.as_str(), principal.id, state(&principal, now_ms));
        writeln!(out, "{name:width$}  {id}  created {}  {state}", utc(principal.created_at_ms))?;
    }
    Ok(())
}

fn state(principal: &ServicePrincipal, now_ms: i64) -> String {
    let at = |ms: Option<i64>| ms.map_or_else(String::new, utc);
    match principal.standing(now_ms) {
        Standing::Revoked => format!("revoked {}", at(principal.revoked_at_ms)),
        Standing::Expired => format!("expired {}", at(principal.expires_at_ms)),
        Standing::Good if principal.expires_at_ms.is_some() => format!("expires {}", at(principal.expires_at_ms)),
        Standing::Good => "does not expire".to_owned(),
    }
}

/// A number and `d`, `h`, `m` or `s`.
fn duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("'{text}' is no time like 90d, 12h, 30m or 45s");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(refused)?;
    let secs = match unit {
        "d" => 24 * 60 * 60,
        "h" => 60 * 60,
        "m" => 60,
        "s" => 1,
        _ => return Err(refused()),
    };
    let number: u32 = number.parse().map_err(|_| refused())?;
    match number {
        0 => Err(refused()),
        number => Ok(Duration::from_secs(u64::from(number) * secs)),
    }
}

/// As in `2026-11-30T10:08:38Z`.
fn utc(ms: i64) -> String {
    let (days, secs) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000) / 1_000);
    // Counted from the first of March of the year 0, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (secs / 3_600, secs / 60 % 60, secs % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_796_033_318_000, "2026-11-30T10:08:38Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(ms), text);
        }
    }

    #[test]
    fn a_time_to_expire_has_a_unit() {
        assert_eq!(duration("90d"), Ok(Duration::from_secs(90 * 24 * 60 * 60)));
        assert_eq!(duration("45s"), Ok(Duration::from_secs(45)));
        for text in ["", "d", "90", "0d", "-1d", "1y", "9999999999d", "é"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
