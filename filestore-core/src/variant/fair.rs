//! Distributes turns and waiting places fairly among organizations.
//!
//! # Purpose
//! Long work has a limited number of turns, and a limited number of places to wait for a turn. Without a
//! rule, a single organization with many requests would take all turns and places, and all other
//! organizations would be told that the service is busy.
//!
//! # Rules
//! 1. A single organization can use all turns and all places while no other organization waits.
//! 2. A free turn goes to the organization with the fewest turns. If several have equally few, it goes to the
//!    organization that has waited longest for a turn. While an organization without a turn waits, no
//!    organization gets a second turn.
//! 3. While another organization waits, an organization gets no further place beyond half of the places.
//! 4. If all places are taken, the newcomer can displace the newest waiting entry of an organization with at
//!    least two entries more. The first request of an organization therefore always finds a place.
//!
//! # Locking
//! [`FairQueue`] is plain data, and its owner locks it. [`Turns`] is a queue for asynchronous callers under
//! one lock, which is held only for look-ups.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::domain::id::OrganizationId;

/// Entries that wait for a turn or have a turn.
pub(super) struct FairQueue<T> {
    /// The maximum number of concurrent turns.
    turns: usize,
    /// The maximum number of waiting entries.
    places: usize,
    /// The number of turns in use.
    taken: usize,
    lanes: HashMap<OrganizationId, Lane<T>>,
    /// A counter of events, which gives them an order.
    clock: u64,
}

/// The entries of one organization.
struct Lane<T> {
    /// The number of its turns.
    turns: usize,
    /// The time of the first entry, or the end of the last turn.
    since: u64,
    /// The waiting entries, oldest first.
    waiting: VecDeque<Entry<T>>,
}

struct Entry<T> {
    number: u64,
    /// The work, once it is known.
    work: Option<T>,
    /// Dropped with the entry. The holder of the ticket notices this.
    _here: oneshot::Sender<Infallible>,
}

/// The right to a place in a queue.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    organization: OrganizationId,
    number: u64,
}

/// A place in the queue.
pub(super) struct Joined<T> {
    pub(super) ticket: Ticket,
    /// The work that lost its place to the new entry.
    pub(super) displaced: Option<T>,
    /// Resolves when the entry no longer waits, because it was removed or has its turn.
    pub(super) here: oneshot::Receiver<Infallible>,
}

/// The answer to a request for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Now,
    /// Other work can begin before it.
    Later,
    /// No other work can begin before it.
    First,
}

impl<T> FairQueue<T> {
    /// Creates a queue with `turns` concurrent turns and `places` waiting entries.
    pub(super) fn new(turns: usize, places: usize) -> Self {
        Self { turns, places, taken: 0, lanes: HashMap::new(), clock: 0 }
    }

    /// Takes a place for an entry of `organization`. `None` if there is no place.
    pub(super) fn join(&mut self, organization: &OrganizationId) -> Option<Joined<T>> {
        let own = self.lanes.get(organization);
        let (waits, held) = own.map_or((0, 0), |lane| (lane.waiting.len(), lane.held()));
        let others = || self.lanes.iter().filter(|(other, _)| *other != organization);
        if waits >= (self.places / 2).max(1) && others().any(|(_, lane)| !lane.waiting.is_empty()) {
            return None;
        }
        let mut displaced = None;
        if self.held() >= self.turns.saturating_add(self.places) {
            let (greedy, lane) = others()
                .filter(|(_, lane)| !lane.waiting.is_empty())
                .max_by_key(|(_, lane)| (lane.held(), lane.since))?;
            if lane.held() <= held + 1 {
                return None;
            }
            let greedy = greedy.clone();
            let newest = self.lanes.get_mut(&greedy).and_then(|lane| lane.waiting.pop_back());
            displaced = newest.and_then(|entry| entry.work);
            self.forget_if_empty(&greedy);
        }

        let number = self.tick();
        let (here, seen) = oneshot::channel();
        let lane = self.lanes.entry(organization.clone()).or_insert_with(|| Lane {
            turns: 0,
            since: number,
            waiting: VecDeque::new(),
        });
        lane.waiting.push_back(Entry { number, work: None, _here: here });
        let ticket = Ticket { organization: organization.clone(), number };
        Some(Joined { ticket, displaced, here: seen })
    }

    /// Adds the work of the entry. Returns the work if the entry is no longer in the queue.
    pub(super) fn ready(&mut self, ticket: &Ticket, work: T) -> Option<T> {
        let lane = self.lanes.get_mut(&ticket.organization);
        let entry = lane
            .and_then(|lane| lane.waiting.iter_mut().find(|entry| entry.number == ticket.number));
        match entry {
            Some(entry) => entry.work.replace(work),
            None => Some(work),
        }
    }

    /// Removes the next entry for a turn. `fit` tells whether its work can begin now. The turn lasts until
    /// [`end`](Self::end).
    pub(super) fn next(&mut self, fit: impl Fn(&T) -> Fit) -> Option<(OrganizationId, T)> {
        if self.taken >= self.turns {
            return None;
        }
        let (organization, place) = self.find_next(fit)?;
        let lane = self.lanes.get_mut(&organization)?;
        let work = lane.waiting.remove(place)?.work?;
        lane.turns += 1;
        self.taken += 1;
        Some((organization, work))
    }

    /// Finds the next entry for a turn: its organization, and its index among the organization's waiting
    /// entries.
    fn find_next(&self, fit: impl Fn(&T) -> Fit) -> Option<(OrganizationId, usize)> {
        let mut lanes: Vec<_> =
            self.lanes.iter().filter(|(_, lane)| !lane.waiting.is_empty()).collect();
        lanes.sort_unstable_by_key(|(_, lane)| (lane.turns, lane.since));

        for (organization, lane) in lanes {
            for (place, entry) in lane.waiting.iter().enumerate() {
                match entry.work.as_ref().map(&fit) {
                    Some(Fit::Now) => return Some((organization.clone(), place)),
                    Some(Fit::First) => return None,
                    Some(Fit::Later) | None => {}
                }
            }
        }
        None
    }

    /// Ends a turn of `organization`.
    pub(super) fn end(&mut self, organization: &OrganizationId) {
        let now = self.tick();
        if let Some(lane) = self.lanes.get_mut(organization) {
            lane.turns -= 1;
            lane.since = now;
            self.taken -= 1;
        }
        self.forget_if_empty(organization);
    }

    /// Removes the entry if it still waits. Returns its work.
    pub(super) fn leave(&mut self, ticket: &Ticket) -> Option<T> {
        let lane = self.lanes.get_mut(&ticket.organization)?;
        let place = lane.waiting.iter().position(|entry| entry.number == ticket.number)?;
        let left = lane.waiting.remove(place);
        self.forget_if_empty(&ticket.organization);
        left?.work
    }

    /// Returns the waiting work that could begin.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &T> {
        self.lanes.values().flat_map(|lane| &lane.waiting).filter_map(|entry| entry.work.as_ref())
    }

    /// Counts the entries that wait or have a turn.
    fn held(&self) -> usize {
        self.lanes.values().map(Lane::held).sum()
    }

    fn forget_if_empty(&mut self, organization: &OrganizationId) {
        if self.lanes.get(organization).is_some_and(|lane| lane.held() == 0) {
            self.lanes.remove(organization);
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl<T> Lane<T> {
    fn held(&self) -> usize {
        self.turns + self.waiting.len()
    }
}

/// A queue in which callers wait for a turn. Cheap to clone.
#[derive(Clone)]
pub(super) struct Turns {
    queue: Arc<Mutex<FairQueue<oneshot::Sender<Turn>>>>,
}

/// A turn. Dropping it ends the turn.
pub(super) struct Turn {
    turns: Turns,
    organization: OrganizationId,
}

impl Turns {
    /// Creates a queue with `turns` concurrent turns and `places` waiting callers.
    pub(super) fn new(turns: usize, places: usize) -> Self {
        Self { queue: Arc::new(Mutex::new(FairQueue::new(turns, places))) }
    }

    /// Waits for a turn of `organization`. `None` if there is no place, if another organization got the
    /// place, or after `patience`.
    pub(super) async fn turn(
        &self,
        organization: &OrganizationId,
        patience: Duration,
    ) -> Option<Turn> {
        let mut waiting = self.wait(organization)?;
        self.hand_out();
        timeout(patience, &mut waiting.turn).await.ok()?.ok()
    }

    fn wait(&self, organization: &OrganizationId) -> Option<Waiting> {
        let (give, turn) = oneshot::channel();
        let mut queue = self.queue.lock();
        let Joined { ticket, .. } = queue.join(organization)?;
        queue.ready(&ticket, give);
        Some(Waiting { turns: self.clone(), ticket, turn })
    }

    /// Gives free turns to the next callers.
    fn hand_out(&self) {
        // A turn that nobody takes ends here, after the lock.
        let mut lost = Vec::new();
        let mut queue = self.queue.lock();
        while let Some((organization, give)) = queue.next(|_| Fit::Now) {
            let turn = Turn { turns: self.clone(), organization };
            lost.extend(give.send(turn).err());
        }
        drop(queue);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.queue.lock().end(&self.organization);
        self.turns.hand_out();
    }
}

/// A waiting caller. Dropping it frees the place.
struct Waiting {
    turns: Turns,
    ticket: Ticket,
    turn: oneshot::Receiver<Turn>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Before the receiver is gone: until then no turn is lost.
        let left = self.turns.queue.lock().leave(&self.ticket);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> OrganizationId {
        name.parse().unwrap()
    }

    /// Takes a place for work that is ready; tells who lost one to it.
    #[expect(clippy::option_option, reason = "no place, a free one, or one that another lost")]
    fn join(queue: &mut FairQueue<String>, name: &str) -> Option<Option<String>> {
        let joined = queue.join(&of(name))?;
        let left = queue.ready(&joined.ticket, name.to_owned());
        assert_eq!(left, None);
        Some(joined.displaced)
    }

    fn next(queue: &mut FairQueue<String>) -> Option<String> {
        queue.next(|_| Fit::Now).map(|(_, work)| work)
    }

    #[test]
    fn an_organization_alone_has_all_turns_and_all_places() {
        let mut queue = FairQueue::new(2, 32);
        for _ in 0..34 {
            assert_eq!(join(&mut queue, "greedy"), Some(None));
        }
        assert_eq!(join(&mut queue, "greedy"), None);
        assert_eq!(next(&mut queue).as_deref(), Some("greedy"));
        assert_eq!(next(&mut queue).as_deref(), Some("greedy"));
        assert_eq!(next(&mut queue), None);
    }

    #[test]
    fn the_first_of_another_finds_a_place_and_has_the_next_turn() {
        let mut queue = FairQueue::new(2, 32);
        while join(&mut queue, "greedy").is_some() {
            next(&mut queue);
        }
        assert_eq!(join(&mut queue, "other"), Some(Some("greedy".to_owned())));
        assert_eq!(join(&mut queue, "greedy"), None, "it has more than half of the places");
        queue.end(&of("greedy"));
        assert_eq!(next(&mut queue).as_deref(), Some("other"));
        assert_eq!(next(&mut queue), None);

        // Both have a turn now, and nobody else waits.
        queue.end(&of("greedy"));
        assert_eq!(next(&mut queue).as_deref(), Some("greedy"));
        queue.end(&of("other"));
        assert_eq!(next(&mut queue).as_deref(), Some("greedy"));
    }

    #[test]
    fn while_another_waits_half_of_the_places_are_the_most() {
        let mut queue = FairQueue::new(1, 8);
        assert_eq!(join(&mut queue, "runs"), Some(None));
        assert_eq!(next(&mut queue).as_deref(), Some("runs"));
        assert_eq!(join(&mut queue, "other"), Some(None));
        for _ in 0..4 {
            assert_eq!(join(&mut queue, "greedy"), Some(None));
        }
        assert_eq!(join(&mut queue, "greedy"), None, "three places are free");
        assert_eq!(join(&mut queue, "third"), Some(None));
    }

    #[test]
    fn places_go_from_those_that_have_most_until_all_have_as_many() {
        let mut queue = FairQueue::new(0, 9);
        let mut places = HashMap::from([("a", 9_usize)]);
        while join(&mut queue, "a").is_some() {}
        for name in ["b", "b", "b", "b", "b", "c", "c", "c", "c", "b"] {
            let Some(displaced) = join(&mut queue, name) else { continue };
            *places.entry(name).or_default() += 1;
            if let Some(loser) = displaced {
                *places.get_mut(&*loser).unwrap() -= 1;
            }
        }
        assert_eq!(places, HashMap::from([("a", 3), ("b", 3), ("c", 3)]));
    }

    #[test]
    fn work_that_does_not_fit_waits_in_front_of_others_or_lets_them_pass() {
        let mut queue = FairQueue::new(4, 4);
        let tickets = ["a", "b"].map(|name| queue.join(&of(name)).unwrap().ticket);
        assert_eq!(next(&mut queue), None, "neither says yet what it waits for");
        for (ticket, name) in tickets.iter().zip(["a", "b"]) {
            queue.ready(ticket, name.to_owned());
        }
        let first_is = |fit| move |work: &String| if work == "a" { fit } else { Fit::Now };
        assert!(queue.next(first_is(Fit::First)).is_none());
        assert_eq!(queue.next(first_is(Fit::Later)).unwrap().1, "b");
        assert_eq!(queue.leave(&tickets[0]).as_deref(), Some("a"));
        assert_eq!(queue.leave(&tickets[0]), None);
        assert_eq!(queue.leave(&tickets[1]), None, "it has its turn");
        queue.end(&of("b"));
        assert!(queue.lanes.is_empty() && queue.taken == 0);
    }

    /// Organizations of different greed: each asks again as soon as it may, `load` times at once; each turn
    /// lasts for some rounds. All want more than there is, so each gets its part of the turns.
    #[test]
    fn several_organizations_have_turns_in_equal_parts_whatever_they_ask_for() {
        let mut random = fastrand::Rng::with_seed(7);
        let loads = [("a", 40_usize), ("b", 7), ("c", 3), ("d", 2), ("e", 2)];
        let mut queue = FairQueue::new(3, 32);
        let mut running: Vec<(OrganizationId, u32)> = Vec::new();
        let mut turns: HashMap<String, u32> = HashMap::new();
        let mut longest = HashMap::from(loads.map(|(name, _)| (name.to_owned(), 0_u32)));
        let mut since: HashMap<String, u32> = HashMap::new();

        for round in 0..30_000 {
            for (organization, left) in &mut running {
                *left -= 1;
                if *left == 0 {
                    queue.end(organization);
                }
            }
            running.retain(|(_, left)| *left > 0);

            for (name, load) in loads {
                let held = queue.lanes.get(&of(name)).map_or(0, Lane::held);
                for _ in held..load {
                    let is_in = join(&mut queue, name).is_some();
                    // Refused with nothing in the queue: because of the greed of others.
                    assert!(is_in || queue.lanes.contains_key(&of(name)), "{name} has no place");
                }
            }
            while let Some((organization, work)) = queue.next(|_| Fit::Now) {
                let waited = round - since.insert(work.clone(), round).unwrap_or(round);
                let most = longest.get_mut(&work).unwrap();
                *most = waited.max(*most);
                *turns.entry(work).or_default() += 1;
                running.push((organization, random.u32(1..=9)));
            }
            assert!(queue.taken == 3 && queue.held() <= 35);
        }

        let all: u32 = turns.values().sum();
        for (name, got) in &turns {
            assert!((all / 6..all / 4).contains(got), "{name} got {got} of {all}");
        }
        assert!(longest.values().all(|rounds| *rounds < 40), "{longest:?}");
    }

    #[tokio::test]
    async fn turns_are_waited_for_and_end_when_they_are_dropped() {
        let turns = Turns::new(1, 2);
        let patience = Duration::from_mins(1);
        let (greedy, other) = (of("greedy"), of("other"));
        let first = turns.turn(&greedy, patience).await.unwrap();
        let mut second = Box::pin(turns.turn(&greedy, patience));
        let mut third = Box::pin(turns.turn(&greedy, patience));
        for waits in [&mut second, &mut third] {
            assert!(futures_util::poll!(waits).is_pending());
        }
        assert!(turns.turn(&greedy, patience).await.is_none(), "all places are taken");

        let mut theirs = Box::pin(turns.turn(&other, patience));
        assert!(futures_util::poll!(&mut theirs).is_pending());
        assert!(third.await.is_none(), "it lost its place");
        drop(first);
        let theirs = theirs.await.unwrap();
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(theirs);
        drop(second.await.unwrap());
        assert!(turns.queue.lock().lanes.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_waits_in_vain_or_goes_away_leaves_nothing() {
        let turns = Turns::new(1, 2);
        let organization = of("a");
        let first = turns.turn(&organization, Duration::from_secs(1)).await.unwrap();
        assert!(turns.turn(&organization, Duration::from_secs(1)).await.is_none());
        let mut waits = Box::pin(turns.turn(&organization, Duration::from_secs(1)));
        assert!(futures_util::poll!(&mut waits).is_pending());
        drop(first);
        // It has its turn, and never looks.
        drop(waits);
        assert!(turns.queue.lock().lanes.is_empty());
        assert_eq!(turns.queue.lock().taken, 0);
    }
}
