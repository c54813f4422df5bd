//! What a check of a part found, for the one who runs the server.

use serde::Serialize;

/// One line of `frazil doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, as in `database schema` or `warehouse lake`.
    pub check: String,
    pub verdict: Verdict,
    pub told: String,
    /// What to do about it; nothing where all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Ok,
    /// It works, and may hurt later.
    Warning,
    Failed,
}

/// From here on a difference of two clocks is worth a word.
const SKEW_WARNING_MS: u64 = 1_000;
/// From here on times in tables and tokens are wrong.
const SKEW_FAILED_MS: u64 = 30_000;

impl Finding {
    pub fn ok(check: impl Into<String>, told: impl Into<String>) -> Self {
        Self { check: check.into(), verdict: Verdict::Ok, told: told.into(), mend: None }
    }

    pub fn warning(check: impl Into<String>, told: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check: check.into(), verdict: Verdict::Warning, told: told.into(), mend: Some(mend.into()) }
    }

    pub fn failed(check: impl Into<String>, told: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, ..Self::warning(check, told, mend) }
    }

    /// Of another clock, asked while ours went from `before_ms` to `after_ms`. `precision_ms` is its smallest step.
    pub fn of_clock(
        check: impl Into<String>,
        theirs_ms: i64,
        (before_ms, after_ms): (i64, i64),
        precision_ms: i64,
    ) -> Self {
        let ahead_ms = theirs_ms - after_ms;
        let behind_ms = before_ms - (theirs_ms + precision_ms);
        let skew_ms = u64::try_from(ahead_ms.max(behind_ms)).unwrap_or(0);
        let mend = "set the clocks of all machines by NTP";
        let told = format!("differs from this machine's by {skew_ms} ms at least");
        match skew_ms {
            0..SKEW_WARNING_MS => Self::ok(check, "agrees with this machine's"),
            SKEW_WARNING_MS..SKEW_FAILED_MS => Self::warning(check, told, mend),
            SKEW_FAILED_MS.. => Self::failed(check, told, mend),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_judged_by_what_the_question_cannot_explain() {
        let verdict = |theirs_ms| Finding::of_clock("clock", theirs_ms, (100_000, 100_500), 1_000).verdict;
        for agrees in [98_001, 99_000, 100_200, 101_499] {
            assert_eq!(verdict(agrees), Verdict::Ok, "{agrees}");
        }
        for warns in [98_000, 101_500, 130_499] {
            assert_eq!(verdict(warns), Verdict::Warning, "{warns}");
        }
        for fails in [69_000, 130_500] {
            assert_eq!(verdict(fails), Verdict::Failed, "{fails}");
        }
    }
}
