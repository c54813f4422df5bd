//! Which of the waiting requests go together: in their order, none of them starved, and not past a reserved turn.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// A waiting request, as the choice sees it.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'a> {
    /// Whose it is, where that is known. The order of one writer's requests is kept.
    pub writer: Option<&'a str>,
    /// The branch that it moves.
    pub ref_name: Option<&'a str>,
    /// What it moves that branch to.
    pub snapshot_id: Option<i64>,
    /// It goes with nobody else.
    pub alone: bool,
}

/// The places of those that go next, at most `max` of them, in the order in which they are judged.
///
/// Writers take turns, so that one that sends many does not push the others back. What moves a branch on which somebody
/// else has a turn stays where it is.
pub fn choose(waiting: &[Waiting<'_>], turns: &Turns, now: Instant, max: usize) -> Vec<usize> {
    let may_go = |one: &Waiting<'_>| one.ref_name.is_none_or(|name| turns.admits(name, one.snapshot_id, now));
    let (first, rest): (Vec<usize>, Vec<usize>) =
        (0..waiting.len()).filter(|at| may_go(&waiting[*at])).partition(|at| turns.is_for(&waiting[*at], now));
    let order = first.into_iter().chain(in_turn(waiting, &rest));
    let mut chosen = Vec::new();
    for at in order.take(max) {
        if waiting[at].alone && !chosen.is_empty() {
            break;
        }
        chosen.push(at);
        if waiting[at].alone {
            break;
        }
    }
    chosen
}

/// One request of each writer, then a second one of each, and so on; the anonymous are writers of their own.
fn in_turn(waiting: &[Waiting<'_>], places: &[usize]) -> Vec<usize> {
    let mut rounds: Vec<(usize, usize)> = Vec::with_capacity(places.len());
    let mut before: HashMap<&str, usize> = HashMap::new();
    for at in places {
        let round = match waiting[*at].writer {
            Some(writer) => {
                let count = before.entry(writer).or_default();
                *count += 1;
                *count
            }
            None => 1,
        };
        rounds.push((round, *at));
    }
    rounds.sort_unstable();
    rounds.into_iter().map(|(_, at)| at).collect()
}

/// How many times its length a turn may take for a request that was late before.
const LENGTHENED_MAX: u32 = 8;

/// Turns on branches: for a while a branch waits for one request that lost to commits which never lose.
#[derive(Debug, Default)]
pub struct Turns {
    of_ref: HashMap<String, Turn>,
}

#[derive(Debug)]
struct Turn {
    snapshot_id: i64,
    since: Instant,
    /// When it ended, or is to end at the latest.
    until: Instant,
    /// The request came in time.
    is_taken: bool,
}

impl Turn {
    fn is_open(&self, now: Instant) -> bool {
        now < self.until
    }

    /// Turns may take half of the time: after one, nobody waits for as long as it took.
    fn rest_until(&self) -> Instant {
        self.until + (self.until - self.since)
    }
}

impl Turns {
    /// Reserves a turn, if the branch has none and none has just ended.
    ///
    /// A request that came too late for its last turn has twice as long for the next one, up to [`LENGTHENED_MAX`] times
    /// `length`: it is not slower for being late again.
    pub fn reserve(&mut self, ref_name: &str, snapshot_id: i64, now: Instant, length: Duration) {
        let before = self.of_ref.get(ref_name);
        if before.is_some_and(|turn| now < turn.rest_until()) {
            return;
        }
        let missed = before.filter(|turn| turn.snapshot_id == snapshot_id && !turn.is_taken);
        let lengthened = missed.map_or(length, |turn| ((turn.until - turn.since) * 2).min(length * LENGTHENED_MAX));
        let turn = Turn { snapshot_id, since: now, until: now + lengthened, is_taken: false };
        self.of_ref.retain(|_, turn| now < turn.rest_until());
        self.of_ref.insert(ref_name.to_owned(), turn);
    }

    /// The request got through, or was refused for good, so its turn is over. One that loses in its turn, to a group that
    /// was under way when it got it, keeps what is left.
    pub fn take(&mut self, ref_name: &str, snapshot_id: i64, now: Instant) {
        if let Some(turn) = self.of_ref.get_mut(ref_name).filter(|turn| turn.snapshot_id == snapshot_id) {
            turn.is_taken |= now < turn.until;
            turn.until = turn.until.min(now);
        }
    }

    /// When the first of the open turns ends.
    pub fn next_end(&self, now: Instant) -> Option<Instant> {
        self.of_ref.values().filter(|turn| turn.is_open(now)).map(|turn| turn.until).min()
    }

    fn open(&self, ref_name: &str, now: Instant) -> Option<&Turn> {
        self.of_ref.get(ref_name).filter(|turn| turn.is_open(now))
    }

    fn admits(&self, ref_name: &str, snapshot_id: Option<i64>, now: Instant) -> bool {
        self.open(ref_name, now).is_none_or(|turn| Some(turn.snapshot_id) == snapshot_id)
    }

    fn is_for(&self, one: &Waiting<'_>, now: Instant) -> bool {
        let turn = one.ref_name.and_then(|name| self.open(name, now));
        turn.is_some_and(|turn| Some(turn.snapshot_id) == one.snapshot_id)
    }
}

/// When losers hear that they have lost: one by one, each a few groups after the one before.
///
/// All at once would come back at once, all but one of them to lose again, and would take from the winners what processor
/// time they need.
#[derive(Debug, Default)]
pub struct Releases {
    /// How long the last group was written and swapped.
    pace: Duration,
    next: Option<Instant>,
}

impl Releases {
    /// How many groups go by from one to the next.
    const EVERY: u32 = 4;

    /// Bound of the time by which a refusal is put off.
    const PAUSE_MAX: Duration = Duration::from_secs(1);

    /// A group was written and swapped in so long.
    pub fn pace(&mut self, took: Duration) {
        self.pace = took;
    }

    /// How long the next one is to wait.
    pub fn pause(&mut self, now: Instant) -> Duration {
        let free = self.next.map_or(now, |next| next.clamp(now, now + Self::PAUSE_MAX));
        self.next = Some(free + self.pace * Self::EVERY);
        free - now
    }
}

/// The last snapshots that were rebased: what lost to one of them may have a turn.
#[derive(Debug, Default)]
pub struct Rebased(VecDeque<i64>);

impl Rebased {
    /// How many are remembered.
    const MAX: usize = 1_024;

    pub fn add(&mut self, snapshot_id: i64) {
        if self.0.len() == Self::MAX {
            self.0.pop_front();
        }
        self.0.push_back(snapshot_id);
    }

    pub fn contains(&self, snapshot_id: i64) -> bool {
        self.0.contains(&snapshot_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_secs(1);

    fn of(writer: &str) -> Waiting<'_> {
        Waiting { writer: Some(writer), ref_name: Some("main"), snapshot_id: None, alone: false }
    }

    fn moving(ref_name: &str, snapshot_id: i64) -> Waiting<'_> {
        Waiting { writer: None, ref_name: Some(ref_name), snapshot_id: Some(snapshot_id), alone: false }
    }

    #[test]
    fn writers_take_turns_and_keep_their_own_order() {
        let waiting = [of("a"), of("a"), of("a"), of("b"), of("c"), of("b")];
        assert_eq!(choose(&waiting, &Turns::default(), Instant::now(), 10), [0, 3, 4, 1, 5, 2]);
        assert_eq!(choose(&waiting, &Turns::default(), Instant::now(), 3), [0, 3, 4]);
    }

    #[test]
    fn what_moves_the_table_goes_alone() {
        let lone = Waiting { alone: true, ..moving("main", 1) };
        assert_eq!(choose(&[lone, of("a")], &Turns::default(), Instant::now(), 10), [0]);
        assert_eq!(choose(&[of("a"), lone, of("b")], &Turns::default(), Instant::now(), 10), [0]);
    }

    #[test]
    fn a_turn_holds_its_branch_back_and_nothing_else() {
        let (now, mut turns) = (Instant::now(), Turns::default());
        turns.reserve("main", 7, now, TURN);
        let unmoved = Waiting { ref_name: None, ..of("a") };
        let waiting = [moving("main", 1), moving("audit", 2), unmoved];
        assert_eq!(choose(&waiting, &turns, now, 10), [1, 2]);
        let with_its_own = [moving("main", 1), moving("audit", 2), moving("main", 7)];
        assert_eq!(choose(&with_its_own, &turns, now, 10), [2, 1]);
        assert_eq!(choose(&waiting, &turns, now + TURN, 10), [0, 1, 2]);
    }

    #[test]
    fn the_first_loser_has_the_turn_and_then_the_branch_rests_as_long() {
        let (now, mut turns) = (Instant::now(), Turns::default());
        turns.reserve("main", 7, now, TURN);
        turns.reserve("main", 8, now, TURN);
        assert!(turns.admits("main", Some(7), now) && !turns.admits("main", Some(8), now));
        let taken = now + TURN / 4;
        turns.take("main", 7, taken);
        turns.reserve("main", 8, taken + TURN / 8, TURN);
        assert!(turns.admits("main", Some(9), taken + TURN / 8), "the branch rests");
        turns.reserve("main", 8, taken + TURN / 4, TURN);
        assert!(!turns.admits("main", Some(9), taken + TURN / 4), "and then waits again");
    }

    #[test]
    fn a_request_that_was_late_for_its_turn_has_longer_for_the_next() {
        let (mut now, mut turns) = (Instant::now(), Turns::default());
        turns.reserve("main", 7, now, TURN);
        for length in [TURN * 2, TURN * 4, TURN * 8, TURN * 8] {
            now += TURN * 20;
            turns.take("main", 7, now);
            turns.reserve("main", 7, now, TURN);
            assert_eq!(turns.next_end(now), Some(now + length));
        }
        now += TURN * 20;
        turns.reserve("main", 8, now, TURN);
        assert_eq!(turns.next_end(now), Some(now + TURN), "another one has its own");
    }

    #[test]
    fn losers_are_let_go_one_by_one_and_the_first_of_them_at_once() {
        let (now, mut releases) = (Instant::now(), Releases::default());
        releases.pace(Duration::from_millis(10));
        let pauses: Vec<u128> = (0..3).map(|_| releases.pause(now).as_millis()).collect();
        assert_eq!(pauses, [0, 40, 80]);
        assert_eq!(releases.pause(now + Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn no_loser_waits_longer_than_a_second() {
        let (now, mut releases) = (Instant::now(), Releases::default());
        releases.pace(Duration::from_secs(5));
        releases.pause(now);
        assert_eq!(releases.pause(now), Releases::PAUSE_MAX);
        assert_eq!(releases.pause(now), Releases::PAUSE_MAX);
    }

    #[test]
    fn an_open_turn_says_when_it_ends() {
        let (now, mut turns) = (Instant::now(), Turns::default());
        assert_eq!(turns.next_end(now), None);
        turns.reserve("main", 7, now, TURN);
        assert_eq!(turns.next_end(now), Some(now + TURN));
        assert_eq!(turns.next_end(now + TURN), None);
    }
}
