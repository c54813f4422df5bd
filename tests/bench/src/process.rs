//! Memory and CPU of the server's processes with their children, as Linux tells them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The unit of CPU times in `/proc`; Linux has it at 100 a second wherever it is read.
const TICK_MS: u64 = 10;
const PAGE_BYTES: u64 = 4096;

/// What processes use at a moment; CPU since their start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub rss_bytes: u64,
    pub cpu_ms: u64,
}

/// A line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    cpu_ms: u64,
    rss_bytes: u64,
}

/// Of these processes and all that they started.
pub fn usage(pids: &[u32]) -> Usage {
    if pids.is_empty() {
        return Usage::default();
    }
    let stats = all();
    let ours = |pid: u32| {
        std::iter::successors(Some(pid), |pid| stats.get(pid).map(|stat| stat.parent)).any(|pid| pids.contains(&pid))
    };
    let mut usage = Usage::default();
    for (_, stat) in stats.iter().filter(|(pid, _)| ours(**pid)) {
        usage.rss_bytes += stat.rss_bytes;
        usage.cpu_ms += stat.cpu_ms;
    }
    usage
}

fn all() -> BTreeMap<u32, Stat> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))).collect()
}

/// The name of a program may hold anything, so fields are counted from the parenthesis that ends it.
fn stat(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        cpu_ms: (number(11)? + number(12)?) * TICK_MS,
        rss_bytes: number(21)? * PAGE_BYTES,
    })
}

/// Looks at processes now and then.
#[derive(Debug)]
pub struct Watch {
    pids: Vec<u32>,
    before: Usage,
    peak_bytes: Arc<AtomicU64>,
    looking: JoinHandle<()>,
}

/// What processes used between two moments.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    pub before: Usage,
    pub after: Usage,
    pub peak_bytes: u64,
}

impl Watch {
    pub fn start(pids: &[u32]) -> Self {
        let before = usage(pids);
        let peak_bytes = Arc::new(AtomicU64::new(before.rss_bytes));
        let (watched, peak) = (pids.to_vec(), peak_bytes.clone());
        let looking = tokio::spawn(async move {
            while !watched.is_empty() {
                tokio::time::sleep(LOOK_AGAIN).await;
                peak.fetch_max(usage(&watched).rss_bytes, Ordering::Relaxed);
            }
        });
        Self { pids: pids.to_vec(), before, peak_bytes, looking }
    }

    pub fn stop(self) -> Used {
        self.looking.abort();
        let after = usage(&self.pids);
        let peak_bytes = self.peak_bytes.load(Ordering::Relaxed).max(after.rss_bytes);
        Used { before: self.before, after, peak_bytes }
    }
}

impl Used {
    pub fn cpu_ms(&self) -> u64 {
        self.after.cpu_ms.saturating_sub(self.before.cpu_ms)
    }
}

pub fn mib(bytes: u64) -> f64 {
    crate::measure::rounded(bytes as f64 / 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let line = "7 (a b) c) S 3 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 1000000 2048 184467";
        assert_eq!(stat(line), Some(Stat { parent: 3, cpu_ms: 3000, rss_bytes: 2048 * 4096 }));
        assert_eq!(stat("7 (a"), None);
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(usage(&[std::process::id()]).rss_bytes > 1_000_000);
        assert_eq!(usage(&[]), Usage::default());
    }
}
