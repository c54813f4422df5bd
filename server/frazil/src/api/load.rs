//! How much may be under way at one time: requests at work, and what large bodies take of the memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use catalog::error::{Error, Kind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::error::ApiError;
use crate::api::place::warehouse_name;
use crate::api::places::{Place, Places};
use crate::config::LimitsConfig;
use crate::telemetry;

/// Bodies are counted in blocks, and the first one is free: who sends large bodies slowly is in nobody's way who sends
/// small ones.
const BLOCK_BYTES: usize = 1 << 16;

/// A request that came on a connection for which there was no place.
#[derive(Debug, Clone, Copy)]
pub struct Crowded;

/// What there is for all requests.
#[derive(Clone)]
pub struct Load {
    at_work: Arc<Places>,
    bodies: Arc<Semaphore>,
}

/// What one request has of it, until it is answered.
#[derive(Clone)]
pub struct Share(Arc<Mutex<Held>>);

struct Held {
    load: Load,
    /// What the request goes to, whose share it is.
    warehouse: Option<String>,
    place: Option<Place>,
    body: Option<OwnedSemaphorePermit>,
}

impl Load {
    pub fn new(limits: &LimitsConfig) -> Self {
        let blocks = (limits.bodies_bytes / BLOCK_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Self { at_work: Arc::new(Places::new(limits.concurrent_requests)), bodies: Arc::new(Semaphore::new(blocks)) }
    }

    fn enter(&self, warehouse: Option<String>) -> Option<Share> {
        let place = Some(self.at_work.take(warehouse.clone())?);
        Some(Share(Arc::new(Mutex::new(Held { load: self.clone(), warehouse, place, body: None }))))
    }
}

impl Share {
    /// Gives the place to others, while a client is waited for: places are for work.
    pub fn rest(&self) {
        self.held().place = None;
    }

    /// Takes a place again, if there is one.
    pub fn resume(&self) -> Result<(), Error> {
        let mut held = self.held();
        if held.place.is_none() {
            held.place = Some(held.load.at_work.take(held.warehouse.clone()).ok_or_else(too_many)?);
        }
        Ok(())
    }

    /// Counts a body that has grown to this size.
    pub fn grow(&self, body_bytes: usize) -> Result<(), Error> {
        let mut held = self.held();
        let counted = held.body.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = (body_bytes / BLOCK_BYTES).saturating_sub(counted);
        if more > 0 {
            let more =
                u32::try_from(more).ok().and_then(|more| held.load.bodies.clone().try_acquire_many_owned(more).ok());
            let more = more.ok_or_else(|| Error::new(Kind::Overloaded, "the bodies under way fill their memory"))?;
            match &mut held.body {
                Some(body) => body.merge(more),
                none => *none = Some(more),
            }
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns a request away before it has touched anything, where too many are under way.
pub async fn shed(State(load): State<Load>, mut request: Request, next: Next) -> Response {
    let crowded = request.extensions().get::<Crowded>().is_some();
    let Some(share) = load.enter(warehouse_name(&request)).filter(|_| !crowded) else {
        telemetry::count_shed();
        return ApiError::from(too_many()).into_response();
    };
    request.extensions_mut().insert(share.clone());
    let response = next.run(request).await;
    drop(share);
    response
}

fn too_many() -> Error {
    Error::new(Kind::Overloaded, "too many requests are under way: come back after Retry-After seconds")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(concurrent_requests: usize, blocks: usize) -> Load {
        Load::new(&LimitsConfig { concurrent_requests, bodies_bytes: blocks * BLOCK_BYTES, ..LimitsConfig::default() })
    }

    #[test]
    fn a_place_is_for_work_and_not_for_waiting() {
        let load = load(1, 1);
        let first = load.enter(None).unwrap();
        assert!(load.enter(None).is_none());
        first.rest();
        let second = load.enter(None).unwrap();
        assert_eq!(first.resume().unwrap_err().kind(), Kind::Overloaded);
        drop(second);
        first.resume().unwrap();
        assert!(load.enter(None).is_none());
    }

    #[test]
    fn large_bodies_share_a_bound_and_small_ones_are_free() {
        let load = load(3, 2);
        let [one, two, small] = [(); 3].map(|()| load.enter(None).unwrap());
        one.grow(BLOCK_BYTES).unwrap();
        one.grow(2 * BLOCK_BYTES + 1).unwrap();
        assert_eq!(two.grow(BLOCK_BYTES).unwrap_err().kind(), Kind::Overloaded);
        small.grow(BLOCK_BYTES - 1).unwrap();
        drop(one);
        two.grow(BLOCK_BYTES).unwrap();
    }
}
