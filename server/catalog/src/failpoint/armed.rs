//! What the environment arms: `FRAZIL_FAILPOINTS="metadata-written=kill, swap-sent=sleep:50@2"`.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::error::{Error, Kind, Result};

/// The variable of the process; no setting.
pub const VARIABLE: &str = "FRAZIL_FAILPOINTS";

/// Between two looks for the file that holds a point.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

static ARMED: LazyLock<Vec<Armed>> = LazyLock::new(|| {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    parse(&text).unwrap_or_else(|wrong| panic!("{VARIABLE}: {wrong}"))
});

/// A point and what happens there.
#[derive(Debug)]
struct Armed {
    point: String,
    action: Action,
    /// Only this time, counted from 1; `None` for each time.
    at: Option<u64>,
    reached: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// The process is gone at once, with nothing flushed and nothing closed.
    Kill,
    Sleep(Duration),
    /// Makes the file, and waits until somebody has removed it.
    Hold(PathBuf),
    Fail,
}

impl Armed {
    fn is_due(&self, point: &str) -> bool {
        self.point == point && {
            let time = self.reached.fetch_add(1, Ordering::SeqCst) + 1;
            self.at.is_none_or(|at| at == time)
        }
    }
}

pub(super) async fn reach(point: &str) {
    for armed in ARMED.iter().filter(|armed| armed.action != Action::Fail && armed.is_due(point)) {
        match &armed.action {
            Action::Kill => std::process::abort(),
            Action::Sleep(time) => sleep(*time).await,
            Action::Hold(file) => hold(file).await,
            Action::Fail => {}
        }
    }
}

pub(super) async fn reach_or_fail(point: &str) -> Result<()> {
    reach(point).await;
    match ARMED.iter().any(|armed| armed.action == Action::Fail && armed.is_due(point)) {
        true => Err(Error::new(Kind::Unavailable, format!("the point {point} is armed to fail"))),
        false => Ok(()),
    }
}

async fn hold(file: &Path) {
    if std::fs::write(file, b"").is_ok() {
        while file.exists() {
            sleep(LOOK_AGAIN).await;
        }
    }
}

/// The armed points of a text, or what is wrong with it.
fn parse(text: &str) -> std::result::Result<Vec<Armed>, String> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(parse_one).collect()
}

fn parse_one(text: &str) -> std::result::Result<Armed, String> {
    let wrong = || {
        format!("'{text}' is not written like POINT=kill, POINT=kill@2, POINT=sleep:MS, POINT=hold:FILE or POINT=error")
    };
    let (point, action) = text.split_once('=').ok_or_else(wrong)?;
    let (action, at) = match action.rsplit_once('@') {
        Some((action, at)) => (action, Some(at.parse().map_err(|_| wrong())?)),
        None => (action, None),
    };
    let action = match action.split_once(':') {
        None if action == "kill" => Action::Kill,
        None if action == "error" => Action::Fail,
        Some(("sleep", ms)) => Action::Sleep(Duration::from_millis(ms.parse().map_err(|_| wrong())?)),
        Some(("hold", file)) => Action::Hold(file.into()),
        _ => return Err(wrong()),
    };
    Ok(Armed { point: point.to_owned(), action, at, reached: AtomicU64::new(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_armed_by_a_list() {
        let armed = parse("a=kill, b=sleep:50@2,c=hold:/tmp/x,d=error@1").unwrap();
        let told: Vec<_> = armed.iter().map(|one| (one.point.as_str(), one.action.clone(), one.at)).collect();
        let expected = [
            ("a", Action::Kill, None),
            ("b", Action::Sleep(Duration::from_millis(50)), Some(2)),
            ("c", Action::Hold("/tmp/x".into()), None),
            ("d", Action::Fail, Some(1)),
        ];
        assert_eq!(told, expected);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_arming_is_refused() {
        for wrong in ["a", "a=", "a=explode", "a=sleep:soon", "a=kill@x", "a=hold"] {
            assert!(parse(wrong).unwrap_err().contains(wrong));
        }
    }

    #[test]
    fn a_numbered_arming_is_due_once() {
        let armed = parse("a=kill@2").unwrap().remove(0);
        assert_eq!(["a", "b", "a", "a"].map(|point| armed.is_due(point)), [false, false, true, false]);
    }
}
