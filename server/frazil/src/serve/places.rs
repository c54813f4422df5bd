//! How many connections there may be, and who makes room where all places are taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Connections beyond the cap: they wait for a place, and without one they are answered about the server's health alone.
const AT_THE_DOOR: usize = 64;

/// How long one that was asked to leave may take to be gone.
const ROOM_WITHIN: Duration = Duration::from_millis(250);

/// The places of one listener.
pub struct Places {
    inside: Arc<Semaphore>,
    door: Arc<Semaphore>,
    /// Connections that have not asked anything yet.
    pub silent: Spare,
    /// Connections that have been answered, and may ask again.
    pub idle: Spare,
}

/// What a connection holds for as long as it lasts.
pub enum Place {
    Inside(OwnedSemaphorePermit),
    AtTheDoor(OwnedSemaphorePermit),
}

impl Places {
    pub fn new(connections: usize) -> Self {
        let (inside, door) = (Arc::new(Semaphore::new(connections)), Arc::new(Semaphore::new(AT_THE_DOOR)));
        Self { inside, door, silent: Spare::default(), idle: Spare::default() }
    }

    /// Where every connection begins.
    pub async fn at_the_door(&self) -> OwnedSemaphorePermit {
        self.door.clone().acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Goes inside. Where that is full, one that does nothing leaves.
    pub async fn enter(&self, door: OwnedSemaphorePermit) -> Place {
        if let Ok(place) = self.inside.clone().try_acquire_owned() {
            return Place::Inside(place);
        }
        self.ask_one_to_leave();
        match timeout(ROOM_WITHIN, self.inside.clone().acquire_owned()).await {
            Ok(place) => Place::Inside(place.expect("the semaphore is never closed")),
            Err(_) => Place::AtTheDoor(door),
        }
    }

    /// Who never said anything goes before those who may come back with a request.
    pub fn ask_one_to_leave(&self) {
        let _ = self.silent.ask_one() || self.idle.ask_one();
    }
}

/// Connections that can be spared. Who has waited longest is asked first.
#[derive(Default)]
pub struct Spare {
    waiting: AtomicUsize,
    asked: Notify,
}

impl Spare {
    /// Returns when this one is asked to leave.
    pub async fn asked(&self) {
        let _counted = Counted::among(&self.waiting);
        self.asked.notified().await;
    }

    /// Whether there was anyone to ask.
    fn ask_one(&self) -> bool {
        let anyone = self.waiting.load(Ordering::Relaxed) > 0;
        if anyone {
            self.asked.notify_one();
        }
        anyone
    }
}

struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn among(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_has_waited_longest_is_asked_first() {
        let spare = Spare::default();
        assert!(!spare.ask_one());
        let (mut first, mut second) = (Box::pin(spare.asked()), Box::pin(spare.asked()));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        assert!(spare.ask_one());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(first.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_finds_no_place_and_nobody_to_leave_stays_at_the_door() {
        let places = Places::new(1);
        let first = places.enter(places.at_the_door().await).await;
        assert!(matches!(first, Place::Inside(_)));
        let second = places.enter(places.at_the_door().await).await;
        assert!(matches!(second, Place::AtTheDoor(_)));
    }

    #[tokio::test]
    async fn who_was_never_heard_leaves_before_who_was_answered() {
        let places = Places::new(1);
        let (mut idle, mut silent) = (Box::pin(places.idle.asked()), Box::pin(places.silent.asked()));
        assert!(idle.as_mut().now_or_never().is_none() && silent.as_mut().now_or_never().is_none());
        places.ask_one_to_leave();
        assert!(idle.as_mut().now_or_never().is_none());
        assert!(silent.as_mut().now_or_never().is_some());
        drop(silent);
        places.ask_one_to_leave();
        assert!(idle.as_mut().now_or_never().is_some());
    }
}
