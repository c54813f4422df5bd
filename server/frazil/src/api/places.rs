//! Places for requests at work: so many for the process, and of these not all for one warehouse, so that one whose store
//! hangs leaves some for the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A warehouse gets another place as long as it holds fewer than so many times those that are free. One alone comes to
/// three quarters of all; of several that hang each comes to less, and a part of all stays free whatever their number.
const TIMES_FREE: usize = 3;

/// All places; those that are taken are known by warehouse.
#[derive(Debug)]
pub struct Places {
    all: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    count: usize,
    /// No warehouse is here that holds none, so there are never more than places.
    by_warehouse: HashMap<String, usize>,
}

/// A place that is taken until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    warehouse: Option<String>,
}

impl Places {
    pub fn new(all: usize) -> Self {
        Self { all, taken: Mutex::default() }
    }

    /// A place for a request to this warehouse, or to none.
    pub fn take(self: &Arc<Self>, warehouse: Option<String>) -> Option<Place> {
        let mut taken = self.taken();
        let free = self.all - taken.count;
        let held = warehouse.as_ref().and_then(|name| taken.by_warehouse.get(name)).copied().unwrap_or(0);
        if held >= TIMES_FREE.saturating_mul(free) {
            return None;
        }
        taken.count += 1;
        if let Some(name) = &warehouse {
            *taken.by_warehouse.entry(name.clone()).or_default() += 1;
        }
        Some(Place { places: self.clone(), warehouse })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.count -= 1;
        let Some(name) = self.warehouse.take() else { return };
        if let Some(held) = taken.by_warehouse.get_mut(&name) {
            *held -= 1;
            if *held == 0 {
                taken.by_warehouse.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(places: &Arc<Places>, warehouse: &str) -> Vec<Place> {
        std::iter::from_fn(|| places.take(Some(warehouse.to_owned()))).take(10_000).collect()
    }

    #[test]
    fn one_warehouse_leaves_places_for_every_other() {
        let places = Arc::new(Places::new(1024));
        let mut held = fill(&places, "first");
        assert_eq!(held.len(), 768);
        for name in ["second", "third", "fourth"] {
            let more = fill(&places, name);
            assert!(!more.is_empty(), "{name}");
            held.extend(more);
        }
        assert!(places.take(None).is_some(), "what names no warehouse is served all the same");
    }

    #[test]
    fn few_places_are_places_too() {
        for all in 1..=3 {
            assert_eq!(fill(&Arc::new(Places::new(all)), "w").len(), all);
        }
        let places = Arc::new(Places::new(1));
        let only = places.take(None).unwrap();
        assert!(places.take(None).is_none() && places.take(Some("w".to_owned())).is_none());
        drop(only);
        assert!(places.take(None).is_some());
    }

    #[test]
    fn a_place_that_is_free_again_is_nobodys() {
        let places = Arc::new(Places::new(8));
        let held = fill(&places, "w");
        assert_eq!(held.len(), 6);
        drop(held);
        let taken = places.taken();
        assert!(taken.count == 0 && taken.by_warehouse.is_empty());
    }
}
