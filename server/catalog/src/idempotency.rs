//! Every mutation runs once per `Idempotency-Key`, and to its end even if the client hangs up.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use uuid::Uuid;

use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::ident::WarehouseId;

pub mod store;

use store::{IdempotencyStore, Kept};

/// For how long an answer is kept, from the first submission; told to clients as `idempotency-key-lifetime`.
pub const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// How much longer than promised a receipt is kept, for clocks that differ.
const GRACE: Duration = Duration::from_secs(10 * 60);

/// How many receipts one transaction of forgetting takes, in rows.
const FORGET_MAX: u32 = 10_000;

/// The client's name for one mutation, bound to what it asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: Uuid,
    /// SHA-256 over operation, resource, principal and body.
    pub binding: [u8; 32],
}

/// What a finished mutation answered, small enough to keep: bodies that can be rebuilt are not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// 204.
    Empty,
    /// 200 with this JSON text.
    Body(String),
    /// 200 with the metadata of a table or view: the current one, else the one that lay here.
    Document {
        uuid: Uuid,
        metadata_location: String,
    },
    Refused {
        kind: Kind,
        message: String,
    },
}

impl Answer {
    /// A value that [`Self::read`] gives back.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        Answer::Body(
            serde_json::to_string(value).expect("what is kept is JSON: texts, numbers, lists and maps of texts"),
        )
    }

    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T> {
        match self {
            Answer::Body(text) => serde_json::from_str(&text)
                .map_err(|error| Error::new(Kind::Internal, "a kept answer cannot be read").with_source(error)),
            _ => Err(Error::new(Kind::Internal, "a kept answer is not of this operation")),
        }
    }
}

/// A key with its answer, as the stores keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub warehouse: WarehouseId,
    pub key: Uuid,
    pub binding: [u8; 32],
    pub answer: Answer,
    pub at_ms: i64,
}

/// An answer, and whether it was given before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub answer: Answer,
    /// It was kept with the request's key, and the catalog may have moved on since.
    pub replayed: bool,
    /// The snapshot that holds already what the request brought.
    pub duplicate_of: Option<i64>,
}

/// What one run of a mutation came to.
pub enum Ran {
    /// The answer, and, where there is a key, its receipt was written in the same transaction.
    Done(Answer),
    /// The answer of a request that changed nothing, so that its receipt is still to be written.
    Unchanged(Answer),
    /// The same, of a request whose writer had committed this already, with another snapshot.
    Duplicate { answer: Answer, of: i64 },
    /// Another request with this key was quicker; nothing was done.
    KeyTaken,
}

/// A place for receipts while a mutation runs.
#[derive(Clone)]
pub struct Ticket {
    warehouse: WarehouseId,
    key: Option<IdempotencyKey>,
    at_ms: i64,
    deadline: Instant,
    client: CancellationToken,
}

impl Ticket {
    /// Whether nobody waits for the answer any more.
    pub fn is_abandoned(&self) -> bool {
        self.client.is_cancelled()
    }

    pub fn key(&self) -> Option<Uuid> {
        self.key.as_ref().map(|bound| bound.key)
    }

    /// The receipt to write in the mutation's own transaction; `None` where the client sent no key.
    pub fn receipt(&self, answer: Answer) -> Option<Receipt> {
        self.key.as_ref().map(|bound| Receipt {
            warehouse: self.warehouse,
            key: bound.key,
            binding: bound.binding,
            answer,
            at_ms: self.at_ms,
        })
    }
}

/// A key in its warehouse.
type Place = (WarehouseId, Uuid);

/// Held by the request with that key that runs; the others wait for it.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// The door that every mutation goes through.
#[derive(Clone)]
pub struct Mutations {
    store: Arc<dyn IdempotencyStore>,
    in_flight: Arc<Mutex<HashMap<Place, Turn>>>,
    running: TaskTracker,
}

impl Mutations {
    pub fn new(store: Arc<dyn IdempotencyStore>, running: TaskTracker) -> Self {
        Self { store, in_flight: Arc::default(), running }
    }

    /// Runs `mutate` once for the request's key, detached from the client's connection, or replays its answer.
    pub async fn once<F, Fut>(&self, ctx: &RequestContext, warehouse: WarehouseId, mutate: F) -> Result<Answered>
    where
        F: FnOnce(Ticket) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Ran>> + Send,
    {
        // Cancelled when this future ends, be it with the answer or because the client has hung up.
        let client = CancellationToken::new();
        let _waiting = client.clone().drop_guard();
        let key = ctx.idempotency.clone();
        let (this, ticket) =
            (self.clone(), Ticket { warehouse, key, at_ms: ctx.now_ms(), deadline: ctx.deadline, client });
        let task = async move {
            match ticket.key.clone() {
                None => mutate(ticket).await?.answered(),
                Some(key) => this.once_per_key(key, ticket, mutate).await,
            }
        };
        let answered = self.to_its_end(task).await;
        if matches!(answered, Ok(Answered { replayed: true, .. })) {
            ctx.noted.note("replayed");
        }
        answered
    }

    /// Does the work to its end, also where the client does not wait for it.
    pub async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.running.spawn(work.in_current_span()).await.unwrap_or_else(|panic| {
            Err(Error::new(Kind::StateUnknown, "the request ended without an answer").with_source(panic))
        })
    }

    async fn once_per_key<F, Fut>(&self, bound: IdempotencyKey, ticket: Ticket, mutate: F) -> Result<Answered>
    where
        F: FnOnce(Ticket) -> Fut,
        Fut: Future<Output = Result<Ran>>,
    {
        let place = (ticket.warehouse, bound.key);
        let turn = self.turn(place);
        let answer = match timeout_at(ticket.deadline, turn.lock()).await {
            Ok(_mine) => self.run_or_replay(&bound, ticket, mutate).await,
            Err(_) => Err(under_way()),
        };
        self.leave(place, turn);
        answer
    }

    async fn run_or_replay<F, Fut>(&self, bound: &IdempotencyKey, ticket: Ticket, mutate: F) -> Result<Answered>
    where
        F: FnOnce(Ticket) -> Fut,
        Fut: Future<Output = Result<Ran>>,
    {
        if let Some(receipt) = self.store.receipt(ticket.warehouse, bound.key).await? {
            return replay(receipt, bound);
        }
        let ran = mutate(ticket.clone()).await;
        let unwritten = match &ran {
            Ok(Ran::Done(_)) => return ran?.answered(),
            Ok(Ran::KeyTaken) => None,
            Ok(Ran::Unchanged(answer) | Ran::Duplicate { answer, .. }) => ticket.receipt(answer.clone()),
            Err(error) if error.kind().is_deterministic() => {
                ticket.receipt(Answer::Refused { kind: error.kind(), message: error.message().to_owned() })
            }
            Err(_) => return ran?.answered(),
        };
        if let Some(receipt) = unwritten
            && self.store.keep(&receipt).await? == Kept::Kept
        {
            return ran?.answered();
        }
        match self.store.receipt(ticket.warehouse, bound.key).await? {
            Some(receipt) => replay(receipt, bound),
            None => Err(under_way()),
        }
    }

    /// Whether a request with this key has been answered for good.
    pub async fn is_kept(&self, warehouse: WarehouseId, key: Uuid) -> Result<bool> {
        Ok(self.store.receipt(warehouse, key).await?.is_some())
    }

    /// Forgets what nobody may ask for any more.
    pub async fn forget_expired(&self, now_ms: i64) -> Result<()> {
        let kept_ms = i64::try_from((LIFETIME + GRACE).as_millis()).expect("minutes fit into i64");
        while self.store.forget_receipts(now_ms - kept_ms, FORGET_MAX).await? == u64::from(FORGET_MAX) {}
        Ok(())
    }

    fn turn(&self, place: Place) -> Turn {
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        in_flight.entry(place).or_default().clone()
    }

    fn leave(&self, place: Place, turn: Turn) {
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        drop(turn);
        if in_flight.get(&place).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            in_flight.remove(&place);
        }
    }
}

fn under_way() -> Error {
    Error::new(Kind::Unavailable, "another request with this Idempotency-Key is under way: send it again after a while")
}

impl Ran {
    fn answered(self) -> Result<Answered> {
        let (answer, duplicate_of) = match self {
            Ran::Done(answer) | Ran::Unchanged(answer) => (answer, None),
            Ran::Duplicate { answer, of } => (answer, Some(of)),
            Ran::KeyTaken => return Err(Error::new(Kind::Internal, "a request without a key met a key")),
        };
        Ok(Answered { answer, replayed: false, duplicate_of })
    }
}

/// The kept answer, if the key was used for this very request.
fn replay(receipt: Receipt, bound: &IdempotencyKey) -> Result<Answered> {
    if receipt.binding != bound.binding {
        return Err(Error::unprocessable(
            "this Idempotency-Key was used for another request: send each new request with a key of its own",
        ));
    }
    match receipt.answer {
        Answer::Refused { kind, message } => Err(Error::new(kind, message)),
        answer => Ok(Answered { answer, replayed: true, duplicate_of: None }),
    }
}
