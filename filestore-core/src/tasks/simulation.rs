//! A simulation: the whole store on one thread, with an order of events that a seed determines.
//!
//! # Purpose
//! Simulated time passes only while all tasks wait, so an hour of work takes only its processor
//! time. The same seed gives the same events, down to the last random number. If a seed finds a
//! failure, run the seed again to repeat the failure.
//!
//! # Use
//! Call [`Simulation::enter`] on the thread of a current-thread runtime with paused time, before
//! you open the store. Use the clock [`Clock::of_runtime`](crate::Clock::of_runtime) for the store.
//!
//! # Limits
//! Variants are made on other threads, outside the simulation. Assertions must not depend on other
//! threads.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::time::Duration;

use sha2::{Digest, Sha256};

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

struct State {
    random: fastrand::Rng,
    trace: Sha256,
    events: u64,
    log: Option<String>,
}

/// A running simulation of this thread. Drop the value to end the simulation.
#[derive(Debug)]
pub struct Simulation(PhantomData<*const ()>);

impl Simulation {
    /// Starts a simulation on this thread. For example, `let simulation = Simulation::enter(7);`
    /// repeats the run of seed 7.
    ///
    /// # Panics
    /// Panics if a simulation is already running.
    #[must_use = "the simulation ends with the value"]
    pub fn enter(seed: u64) -> Self {
        let state = State {
            random: fastrand::Rng::with_seed(seed),
            trace: Sha256::new(),
            events: 0,
            log: None,
        };

        // Libraries that jitter their pauses draw from the thread's own generator.
        fastrand::seed(seed);
        let before = STATE.replace(Some(state));
        assert!(before.is_none(), "a thread runs one simulation at a time");
        Self(PhantomData)
    }

    /// Keeps each later event as a line, for [`log`](Self::log).
    pub fn keep_log(&self) {
        with(|state| state.log = Some(String::new()));
    }

    /// Returns the kept lines.
    pub fn log(&self) -> String {
        with(|state| state.log.clone().unwrap_or_default()).unwrap_or_default()
    }

    /// Returns the number of events and the digest of all events, in hexadecimal digits.
    pub fn digest(&self) -> (u64, String) {
        with(|state| (state.events, hex::encode(state.trace.clone().finalize())))
            .expect("the value lives as long as the simulation")
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        STATE.take();
    }
}

/// Adds an event to the trace, if this process is a simulation.
pub fn note(event: impl FnOnce() -> String) {
    if is_under_way() {
        let event = event();
        with(|state| state.note(&event));
    }
}

/// Returns a number below `limit` from the seed. 0 outside a simulation.
pub fn below(limit: u64) -> u64 {
    with(|state| state.random.u64(..limit.max(1))).unwrap_or(0)
}

/// Returns true if this thread runs a simulation.
pub fn is_under_way() -> bool {
    with(|_| ()).is_some()
}

/// Returns the random part of an id. `None` outside a simulation.
pub(super) fn random_part() -> Option<u128> {
    with(|state| state.random.u128(..))
}

/// Returns the simulated duration of blocking work. `None` outside a simulation. Most durations are
/// short. One in 64 is long, like on a busy disk.
pub(super) fn delay_of_blocking_work() -> Option<Duration> {
    with(|state| {
        let limit_micros = if state.random.u8(..64) == 0 { 200_000 } else { 3_000 };
        let delay = Duration::from_micros(state.random.u64(..limit_micros));
        state.note("blocking work");
        delay
    })
}

impl State {
    fn note(&mut self, event: &str) {
        self.trace.update(event.as_bytes());
        self.trace.update(self.random.get_seed().to_le_bytes());
        self.events += 1;

        if let Some(log) = &mut self.log {
            // With the state of the numbers: it shows where two runs of one seed part.
            let state = self.random.get_seed();
            writeln!(log, "{state:016x} {event}").expect("a string takes everything");
        }
    }
}

fn with<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    // A destructor at the end of the thread may run after the state is gone.
    STATE.try_with(|state| state.borrow_mut().as_mut().map(act)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_digest() {
        let [first, again, other] = [7, 7, 8].map(|seed| {
            let simulation = Simulation::enter(seed);
            note(|| format!("drew {}", below(1000)));
            (random_part(), simulation.digest())
        });

        assert_eq!(first, again);
        assert_ne!(first, other);
        assert!(!is_under_way());
    }

    #[tokio::test(start_paused = true)]
    async fn blocking_work_takes_simulated_time_and_runs_although_its_handle_is_dropped() {
        let _simulation = Simulation::enter(1);
        let (done, is_done) = tokio::sync::oneshot::channel();

        drop(super::super::blocking(move || done.send(std::thread::current().id())));

        assert_eq!(is_done.await, Ok(std::thread::current().id()));
    }
}
