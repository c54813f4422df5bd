//! What was measured: samples of times and what they come to.

use std::time::Duration;

/// Times in the order they were taken.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn add(&mut self, took: Duration) {
        self.0.push(took);
    }

    pub fn extend(&mut self, other: &Samples) {
        self.0.extend(&other.0);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The smallest sample that `percent` of all do not exceed, in milliseconds; none of no samples.
    pub fn percentile_ms(&self, percent: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
        let found = sorted.get(rank.max(1) - 1)?;
        Some(rounded(found.as_secs_f64() * 1000.0))
    }
}

/// To thousandths: what is beyond them is noise.
pub fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// `of / all`, 0 where there is nothing.
pub fn ratio(of: f64, all: f64) -> f64 {
    if all == 0.0 { 0.0 } else { rounded(of / all) }
}

/// The share of the slowest in what the fastest has; none without anybody.
pub fn fairness(counts: impl IntoIterator<Item = usize> + Clone) -> Option<f64> {
    let least = counts.clone().into_iter().min()?;
    let most = counts.into_iter().max()?;
    Some(ratio(least as f64, most as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(milliseconds: impl IntoIterator<Item = u64>) -> Samples {
        Samples(milliseconds.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn a_percentile_is_a_sample_that_was_taken() {
        let hundred = samples((1..=100).rev());
        assert_eq!(hundred.percentile_ms(50.0), Some(50.0));
        assert_eq!(hundred.percentile_ms(99.0), Some(99.0));
        assert_eq!(samples([7]).percentile_ms(99.0), Some(7.0));
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(samples([]).percentile_ms(50.0), None);
        assert_eq!(fairness([]), None);
    }

    #[test]
    fn a_writer_that_never_wins_is_the_end_of_fairness() {
        assert_eq!(fairness([0, 20]), Some(0.0));
        assert_eq!(fairness([16, 20]), Some(0.8));
        assert_eq!(fairness([0, 0]), Some(0.0));
    }
}
