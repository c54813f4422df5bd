//! Who calls, by when an answer is wanted, and what time it is: the first argument of every feature method.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::error::{Error, Kind};
use crate::idempotency::IdempotencyKey;

/// Time and ids as the rules see them: handed in, so that a test can hold them still.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
    /// A new id, ordered by time.
    fn new_id(&self) -> Uuid;
}

/// Who calls. Where nobody is asked who they are, everybody is anonymous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    Anonymous,
    Named(String),
    /// Was known by that name until the token expired or was revoked. Nothing is done for it, and nothing told but that
    /// what it asks for may have landed: it gets as far as [`crate::commits`], and no further.
    Lapsed(String),
}

impl Principal {
    pub fn name(&self) -> &str {
        match self {
            Principal::Anonymous => "anonymous",
            Principal::Named(name) | Principal::Lapsed(name) => name,
        }
    }

    /// The refusal of one that is known no more.
    pub fn lapse(&self) -> Option<Error> {
        matches!(self, Principal::Lapsed(_)).then(lapsed)
    }
}

/// What is told to who is known no more.
pub fn lapsed() -> Error {
    let message = "the access token has expired or was revoked: get a new one, and send the request again";
    Error::new(Kind::Unauthorized, message)
}

/// What became of a request, for the line of the log that tells of its answer. What is noted first stays.
#[derive(Debug, Clone, Default)]
pub struct Noted(Arc<OnceLock<&'static str>>);

impl Noted {
    pub fn note(&self, outcome: &'static str) {
        self.0.get_or_init(|| outcome);
    }

    /// `None` where nobody said more than the answer's status does.
    pub fn outcome(&self) -> Option<&'static str> {
        self.0.get().copied()
    }
}

/// One request as the rules see it.
#[derive(Clone)]
pub struct RequestContext {
    pub principal: Principal,
    pub request_id: String,
    /// After this instant no new attempt is begun.
    pub deadline: Instant,
    pub clock: Arc<dyn Clock>,
    /// The client's own name for this mutation, where it sent one.
    pub idempotency: Option<IdempotencyKey>,
    pub noted: Noted,
}

impl RequestContext {
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    pub fn new_id(&self) -> Uuid {
        self.clock.new_id()
    }

    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
