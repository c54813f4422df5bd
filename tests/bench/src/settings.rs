//! The parameters of a run: a preset, and what replaces parts of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Map, Value};

use crate::report::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    Quick,
    Full,
}

impl Preset {
    pub fn name(self) -> &'static str {
        match self {
            Preset::Quick => "quick",
            Preset::Full => "full",
        }
    }
}

#[derive(Debug)]
pub struct Settings {
    pub preset: Preset,
    set: BTreeMap<String, Vec<String>>,
    /// What has been asked for, with what it was.
    used: RefCell<Map<String, Value>>,
}

impl Settings {
    /// `set` has words like `writers=1,8`.
    pub fn new(preset: Preset, set: &[String]) -> Result<Self> {
        let mut settings = Self { preset, set: BTreeMap::new(), used: RefCell::default() };
        for word in set {
            let (key, values) = word.split_once('=').ok_or_else(|| format!("--set {word}: write KEY=VALUE"))?;
            settings.set.insert(key.to_owned(), values.split(',').map(str::to_owned).collect());
        }
        Ok(settings)
    }

    pub fn numbers(&self, key: &str, quick: &[u64], full: &[u64]) -> Result<Vec<u64>> {
        let default = if self.preset == Preset::Quick { quick } else { full };
        let numbers: Vec<u64> = match self.set.get(key) {
            Some(values) => {
                let parsed: std::result::Result<_, _> = values.iter().map(|value| value.parse()).collect();
                parsed.map_err(|error| format!("--set {key}: {error}"))?
            }
            None => default.to_vec(),
        };
        self.used.borrow_mut().insert(key.to_owned(), numbers.clone().into());
        Ok(numbers)
    }

    pub fn number(&self, key: &str, quick: u64, full: u64) -> Result<u64> {
        let numbers = self.numbers(key, &[quick], &[full])?;
        let [number] = numbers.as_slice() else { return Err(format!("--set {key}: one number is wanted").into()) };
        self.used.borrow_mut().insert(key.to_owned(), (*number).into());
        Ok(*number)
    }

    pub fn seconds(&self, key: &str, quick: u64, full: u64) -> Result<Duration> {
        Ok(Duration::from_secs(self.number(key, quick, full)?))
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        let text = self.set.get(key)?.first()?;
        self.used.borrow_mut().insert(key.to_owned(), text.as_str().into());
        Some(text)
    }

    pub fn used(&self) -> Map<String, Value> {
        self.used.borrow().clone()
    }

    /// Keys that were set and that nothing asked for.
    pub fn unused(&self) -> BTreeSet<&str> {
        let used = self.used.borrow();
        self.set.keys().map(String::as_str).filter(|key| !used.contains_key(*key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_replaces_the_preset() {
        let settings = Settings::new(Preset::Quick, &["writers=2,4".to_owned()]).unwrap();
        assert_eq!(settings.numbers("writers", &[1], &[64]).unwrap(), [2, 4]);
        assert_eq!(settings.number("seconds", 10, 20).unwrap(), 10);
        assert_eq!(settings.used()["writers"], serde_json::json!([2, 4]));
    }

    #[test]
    fn a_key_that_means_nothing_is_told() {
        let settings = Settings::new(Preset::Full, &["wirters=2".to_owned()]).unwrap();
        assert_eq!(settings.numbers("writers", &[1], &[64]).unwrap(), [64]);
        assert_eq!(settings.unused(), BTreeSet::from(["wirters"]));
    }
}
