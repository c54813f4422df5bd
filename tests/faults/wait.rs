//! Waiting for what will be: looks again until it is, up to a bound that only a hang reaches.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// What has not come by then never will.
pub const HANGS_AFTER: Duration = Duration::from_secs(120);

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Asks until there is an answer; `what` says what was waited for in vain.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + HANGS_AFTER;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < end, "waited in vain: {what}");
        sleep(LOOK_AGAIN).await;
    }
}

/// As [`until`], for what blocks.
pub fn until_blocking(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + HANGS_AFTER;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}
