//! Wrong tokens by the address that they come from: who sends many is told to come back later.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::future::Cache;
use tokio::time::Instant;

/// Addresses that are remembered at one time.
const SOURCES_MAX: u64 = 10_000;

const MINUTE: Duration = Duration::from_secs(60);

/// The part of an IPv6 address that names a network: whoever has one has all addresses in it.
const NETWORK: u128 = !0 << 64;

/// What wrong tokens came from each address in its current minute.
pub struct Refusals {
    per_minute: u32,
    sources: Cache<IpAddr, Arc<Mutex<Minute>>>,
}

/// A minute that began with a wrong token.
#[derive(Debug, Clone, Copy)]
struct Minute {
    began: Instant,
    wrong: u32,
}

impl Refusals {
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, sources: Cache::builder().max_capacity(SOURCES_MAX).time_to_idle(2 * MINUTE).build() }
    }

    /// Counts one more. `Some` where it was one too many: for how long its source is told nothing but to wait.
    pub async fn count(&self, source: IpAddr, now: Instant) -> Option<Duration> {
        let minute = async { Arc::new(Mutex::new(Minute { began: now, wrong: 0 })) };
        let minute = self.sources.get_with(network(source), minute).await;
        let mut minute = minute.lock().unwrap_or_else(PoisonError::into_inner);
        *minute = minute.with_one_more(now);
        (minute.wrong > self.per_minute).then(|| minute.left(now))
    }
}

impl Minute {
    fn with_one_more(self, now: Instant) -> Self {
        match self.left(now).is_zero() {
            true => Self { began: now, wrong: 1 },
            false => Self { wrong: self.wrong.saturating_add(1), ..self },
        }
    }

    fn left(self, now: Instant) -> Duration {
        MINUTE.saturating_sub(now.saturating_duration_since(self.began))
    }
}

fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & NETWORK).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn one_source_does_not_use_up_what_another_has() {
        let (refusals, now) = (Refusals::new(2), Instant::now());
        for expected in [false, false, true, true] {
            assert_eq!(refusals.count(ip("192.0.2.1"), now).await.is_some(), expected);
        }
        assert_eq!(refusals.count(ip("192.0.2.2"), now).await, None);
    }

    #[tokio::test]
    async fn a_minute_later_a_source_begins_anew() {
        let (refusals, began) = (Refusals::new(1), Instant::now());
        let after = |secs| refusals.count(ip("192.0.2.1"), began + Duration::from_secs(secs));
        assert_eq!(after(0).await, None);
        assert_eq!(after(20).await, Some(Duration::from_secs(40)));
        assert_eq!(after(60).await, None);
    }

    #[test]
    fn all_addresses_of_a_network_are_one_source() {
        assert_eq!(network(ip("2001:db8::1:2:3:4")), network(ip("2001:db8::5")));
        assert_ne!(network(ip("2001:db8::1")), network(ip("2001:db9::1")));
        assert_eq!(network(ip("::ffff:192.0.2.1")), ip("192.0.2.1"));
    }
}
