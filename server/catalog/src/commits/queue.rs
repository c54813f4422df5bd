//! One bounded queue for each table and process. Whoever comes to its door first serves all who wait behind it.
//!
//! A queue decides nothing: what is true is in the database, and the swap asks for it. It only saves racing requests of
//! one process from losing to each other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::gauge;
use tokio::sync::{Notify, OwnedMutexGuard, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tracing::Span;

use crate::commits::Change;
use crate::commits::group::{Rebased, Releases, Turns, Waiting, choose};
use crate::commits::identity::Writer;
use crate::commits::journal::Passage;
use crate::context::RequestContext;
use crate::error::{Error, Kind, Result};
use crate::idempotency::{Ran, Ticket};
use crate::ident::TabularId;

/// Requests that wait in this process, over all tables.
pub const QUEUE_DEPTH: &str = "frazil_commit_queue_depth";

/// How long an idle queue is remembered, for its turns: longer than any of them, and than any request waits.
const IDLE: Duration = Duration::from_secs(120);

/// Bound of the queues that are remembered, in tables. One that is forgotten costs a lost swap at worst.
const QUEUES_MAX: u64 = 100_000;

/// Bounds of a queue.
#[derive(Debug, Clone, Copy)]
pub struct QueueOptions {
    /// Requests that may wait for one table.
    pub queue_max: usize,
    /// Requests that go with one swap.
    pub group_max: usize,
    /// How long a branch waits for a request that lost its place to rebased ones.
    pub turn: Duration,
}

/// A request under way, with the place where its answer is waited for.
pub(super) struct Member {
    pub ctx: RequestContext,
    pub ticket: Ticket,
    pub change: Change,
    pub arrived: Instant,
    /// From its arrival until it was first taken.
    pub waited: Duration,
    /// How often it was judged.
    pub judged: u32,
    writer: Option<String>,
    /// Unique in its queue.
    place: u64,
    answer: oneshot::Sender<Said>,
    /// Of its commit, in the trace of its request.
    pub span: Span,
    /// Of its time in the queue; none while it is being served.
    queued: Span,
}

/// An answer, and how long it is held back from whoever waits for it.
pub(super) struct Said {
    ran: Result<Ran>,
    pause: Duration,
}

impl Said {
    pub async fn heard(self) -> Result<Ran> {
        if !self.pause.is_zero() {
            sleep(self.pause).await;
        }
        self.ran
    }
}

impl Member {
    pub fn answer(self, ran: Result<Ran>) {
        self.answer_after(Duration::ZERO, ran);
    }

    /// Whoever waited may have gone; the ledger tells it later.
    pub fn answer_after(self, pause: Duration, ran: Result<Ran>) {
        let pause = pause.min(self.ctx.time_left());
        let _ = self.answer.send(Said { ran, pause });
    }

    pub fn is_overdue(&self) -> bool {
        self.ctx.time_left().is_zero()
    }

    pub fn passage(&self, group_size: usize) -> Passage {
        Passage {
            waited_ms: i64::try_from(self.waited.as_millis()).unwrap_or(i64::MAX),
            group_size: u32::try_from(group_size).unwrap_or(u32::MAX),
            attempts: self.judged,
        }
    }

    fn waiting(&self) -> Waiting<'_> {
        let intent = &self.change.intent;
        Waiting {
            writer: self.writer.as_deref(),
            ref_name: intent.ref_name.as_deref(),
            snapshot_id: intent.moved_to,
            alone: intent.moves_table,
        }
    }
}

/// A place in a queue, and the answer that will come to it.
pub(super) struct Waiter {
    place: u64,
    pub answer: oneshot::Receiver<Said>,
}

/// A request that found no place.
pub(super) struct TurnedAway {
    pub change: Change,
    pub error: Error,
}

/// The queues of all tables.
#[derive(Clone)]
pub struct Queues {
    tables: moka::future::Cache<TabularId, Arc<Queue>>,
    pub(super) options: QueueOptions,
}

/// Held while pointers are changed, so that this process does not race with itself.
pub struct Doors {
    held: Vec<(Arc<Queue>, OwnedMutexGuard<()>)>,
    /// Whether somebody else was inside before, so that what was read may be old.
    pub waited: bool,
}

impl Queues {
    pub fn new(options: QueueOptions) -> Self {
        Self { tables: moka::future::Cache::builder().max_capacity(QUEUES_MAX).time_to_idle(IDLE).build(), options }
    }

    pub(super) async fn of(&self, table: TabularId) -> Arc<Queue> {
        self.tables.get_with(table, async { Arc::default() }).await
    }

    /// Opens the doors of several tables, in one order for all, so that nobody waits in a circle.
    pub async fn doors(&self, ctx: &RequestContext, tables: impl IntoIterator<Item = TabularId>) -> Result<Doors> {
        let mut tables: Vec<TabularId> = tables.into_iter().collect();
        tables.sort_unstable();
        tables.dedup();
        let mut doors = Doors { held: Vec::with_capacity(tables.len()), waited: false };
        for table in tables {
            let queue = self.of(table).await;
            let held = match queue.door.clone().try_lock_owned() {
                Ok(held) => held,
                Err(_) => {
                    doors.waited = true;
                    timeout_at(ctx.deadline, queue.door()).await.map_err(|_| {
                        Error::new(Kind::Unavailable, "others kept changing the table; nothing was changed")
                    })?
                }
            };
            doors.held.push((queue, held));
        }
        Ok(doors)
    }
}

impl Doors {
    /// The tables inside have changed.
    pub fn changed(&self) {
        self.held.iter().for_each(|(queue, _)| queue.changed([]));
    }
}

/// The requests that wait for one table.
#[derive(Default)]
pub(super) struct Queue {
    door: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
    arrival: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Member>,
    next_place: u64,
    turns: Turns,
    rebased: Rebased,
    changed_at: Option<Instant>,
    releases: Releases,
    /// The snapshots of the group that was taken last.
    under_way: Vec<i64>,
}

impl Queue {
    /// Takes a place at the end; refuses it, before anything is touched, where too many wait already.
    pub fn enter(
        &self,
        ctx: &RequestContext,
        ticket: Ticket,
        change: Change,
        max: usize,
    ) -> Result<Waiter, Box<TurnedAway>> {
        let (answer, waiter) = oneshot::channel();
        let mut state = self.state();
        if state.waiting.len() >= max {
            let message =
                format!("{max} commits wait for this table already: send the same request again after a while");
            return Err(Box::new(TurnedAway { change, error: Error::new(Kind::Overloaded, message) }));
        }
        let place = state.next_place;
        state.next_place += 1;
        let writer = change.intent.identity().map(|identity| named(&identity.writer));
        // It may have waited for the answer to another request with its key.
        let (ctx, arrived) = (ctx.clone(), change.read_at);
        state.waiting.push_back(Member {
            ctx,
            ticket,
            change,
            arrived,
            waited: Duration::ZERO,
            judged: 0,
            writer,
            place,
            answer,
            span: Span::current(),
            queued: tracing::info_span!("commit queue"),
        });
        drop(state);
        gauge!(QUEUE_DEPTH).increment(1);
        self.arrival.notify_waiters();
        Ok(Waiter { place, answer: waiter })
    }

    /// Gives the place up; `None` where the request is being judged already, or shares the fate of one that is.
    pub fn leave(&self, waiter: &Waiter) -> Option<Member> {
        let mut state = self.state();
        let at = state.waiting.iter().position(|member| member.place == waiter.place)?;
        let ids = state.waiting[at].change.request.snapshot_ids();
        if ids.iter().any(|id| state.under_way.contains(id)) {
            return None;
        }
        gauge!(QUEUE_DEPTH).decrement(1);
        state.waiting.remove(at)
    }

    pub async fn door(&self) -> OwnedMutexGuard<()> {
        self.door.clone().lock_owned().await
    }

    /// Those that go next. While a turn holds back all who wait, it waits with them; empty where `until` comes first.
    pub async fn next_group(&self, max: usize, until: Instant) -> Vec<Member> {
        loop {
            let arrival = self.arrival.notified();
            tokio::pin!(arrival);
            arrival.as_mut().enable();
            let now = Instant::now();
            let group = self.take(max, now);
            if !group.is_empty() || now >= until {
                return group;
            }
            let pause = self.state().turns.next_end(now).map_or(until, |end| end.min(until));
            tokio::select! {
                () = arrival => {}
                () = sleep_until(pause) => {}
            }
        }
    }

    fn take(&self, max: usize, now: Instant) -> Vec<Member> {
        let mut state = self.state();
        let views: Vec<Waiting<'_>> = state.waiting.iter().map(Member::waiting).collect();
        let mut chosen = choose(&views, &state.turns, now, max);
        // A group asks once what its name means, and around a rename requests come under two.
        if let Some(name) = chosen.first().map(|at| state.waiting[*at].change.ident.clone()) {
            chosen.retain(|at| state.waiting[*at].change.ident == name);
        }
        let mut waiting: Vec<Option<Member>> = std::mem::take(&mut state.waiting).into_iter().map(Some).collect();
        let mut group: Vec<Member> = chosen.iter().filter_map(|at| waiting[*at].take()).collect();
        state.waiting = waiting.into_iter().flatten().collect();
        for member in &mut group {
            member.queued = Span::none();
            if member.judged == 0 {
                member.waited = now.saturating_duration_since(member.arrived);
            }
        }
        let ids = group.iter().flat_map(|member| member.change.request.snapshot_ids());
        state.under_way = ids.copied().collect();
        gauge!(QUEUE_DEPTH).decrement(group.len() as f64);
        group
    }

    /// The group that was taken last has come to its end.
    pub fn served(&self) {
        self.state().under_way.clear();
    }

    /// A group was written and swapped in so long.
    pub fn wrote(&self, took: Duration) {
        self.state().releases.pace(took);
    }

    /// How long one who has lost is to wait until it hears of it.
    pub fn pause(&self) -> Duration {
        self.state().releases.pause(Instant::now())
    }

    /// Lets members wait again, before all others.
    pub fn put_back(&self, members: Vec<Member>) {
        gauge!(QUEUE_DEPTH).increment(members.len() as f64);
        let mut state = self.state();
        members.into_iter().rev().for_each(|member| state.waiting.push_front(member));
    }

    /// The request needs its turn no more, if it had one.
    pub fn end_turn(&self, member: &Member) {
        if let (Some(name), Some(snapshot_id)) = (&member.change.intent.ref_name, member.change.intent.moved_to) {
            self.state().turns.take(name, snapshot_id, Instant::now());
        }
    }

    pub fn reserve_turn(&self, ref_name: &str, snapshot_id: i64, length: Duration) {
        self.state().turns.reserve(ref_name, snapshot_id, Instant::now(), length);
    }

    /// The table has changed; these of its new snapshots were rebased.
    pub fn changed(&self, rebased: impl IntoIterator<Item = i64>) {
        let mut state = self.state();
        state.changed_at = Some(Instant::now());
        rebased.into_iter().for_each(|id| state.rebased.add(id));
    }

    /// Whether what was read at this time may still be true, as far as this process knows.
    pub fn is_newer(&self, read_at: Instant) -> bool {
        self.state().changed_at.is_none_or(|changed_at| changed_at < read_at)
    }

    pub fn was_rebased(&self, snapshot_id: i64) -> bool {
        self.state().rebased.contains(snapshot_id)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(writer: &Writer) -> String {
    format!("{}\0{}\0{}", writer.kind.as_str(), writer.id, writer.part)
}
