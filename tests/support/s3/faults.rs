//! Faults, and the requests that meet them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;

use super::Operation;

/// A fault that one request meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed at once: nothing is done, nothing answered.
    Close,
    /// 500 `InternalError`, and nothing is done.
    InternalError,
    /// 403 `AccessDenied`, and nothing is done.
    AccessDenied,
    /// 503 `SlowDown`, and nothing is done.
    SlowDown,
    /// The request is read, and nothing is done or answered until the client gives up.
    Hang,
    /// The body is taken piece by piece with pauses between them, as over a slow line; then the request
    /// is done.
    Trickle,
    /// The request is done, then the connection is closed without an answer.
    LoseReply,
    /// One bit of the body flips on its way in. A body whose checksum was sent along is refused with
    /// `BadDigest`, another is stored as it arrived.
    CorruptBody,
    /// Half of the body is stored and the answer is 200. No checksum is looked at.
    StoreHalf,
    /// The answer announces its whole length, half of it comes, and the connection is closed. An
    /// answer without a body never comes at all.
    CutReply,
}

/// The requests that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum On {
    /// Every request, whatever it asks for.
    Any,
    /// Requests with this method.
    Method(Method),
    /// Requests for this operation.
    Operation(Operation),
}

impl On {
    pub(super) fn matches(&self, method: &Method, operation: Operation) -> bool {
        match self {
            Self::Any => true,
            Self::Method(wanted) => wanted == method,
            Self::Operation(wanted) => *wanted == operation,
        }
    }
}

impl From<Operation> for On {
    fn from(operation: Operation) -> Self {
        Self::Operation(operation)
    }
}

impl From<Method> for On {
    fn from(method: Method) -> Self {
        Self::Method(method)
    }
}

/// The faults of one server, changed while it serves.
///
/// A request meets at most one fault: that of the oldest rule which matches it and has not run out.
/// The clock and the ignored checksums are states of the server and apply beside any fault.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    ignores_checksums: bool,
    clock_off_secs: i64,
}

#[derive(Debug)]
struct Rule {
    on: On,
    fault: Fault,
    left: Left,
    tally: Tally,
}

#[derive(Debug)]
enum Left {
    /// So many matching requests are still to meet it.
    Times(usize),
    /// So many matching requests are still to pass, then each meets it.
    After(usize),
    /// Each matching request meets it with this probability.
    Chance { probability: f64, random: fastrand::Rng },
}

/// The count of requests that a rule was applied to.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<AtomicUsize>);

impl Tally {
    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Faults {
    /// The next `times` matching requests meet `fault`. Rules for the same requests follow one
    /// another in the order they were given.
    pub fn next(&self, times: usize, on: impl Into<On>, fault: Fault) -> Tally {
        self.add(on.into(), fault, Left::Times(times))
    }

    /// Every matching request meets `fault`, until [`Faults::clear`].
    pub fn every(&self, on: impl Into<On>, fault: Fault) -> Tally {
        self.next(usize::MAX, on, fault)
    }

    /// Lets the next `sound` matching requests pass; every one after them meets `fault`, until
    /// [`Faults::clear`].
    pub fn after(&self, sound: usize, on: impl Into<On>, fault: Fault) -> Tally {
        self.add(on.into(), fault, Left::After(sound))
    }

    /// Each matching request meets `fault` with `probability` (0 to 1). One `seed` gives one sequence
    /// of decisions, whatever order the requests come in.
    pub fn sometimes(&self, seed: u64, probability: f64, on: impl Into<On>, fault: Fault) -> Tally {
        self.add(
            on.into(),
            fault,
            Left::Chance { probability, random: fastrand::Rng::with_seed(seed) },
        )
    }

    /// From now on checksums sent along are neither looked at nor returned, as by older clones of S3.
    pub fn ignore_checksums(&self) {
        self.lock().ignores_checksums = true;
    }

    /// From now on the `Date` header is `secs` ahead of the time, or behind it if negative. Signatures
    /// are still judged by the right time.
    pub fn clock_off_by(&self, secs: i64) {
        self.lock().clock_off_secs = secs;
    }

    /// A sound server again. Requests that hang already go on hanging.
    pub fn clear(&self) {
        *self.lock() = State::default();
    }

    fn add(&self, on: On, fault: Fault, left: Left) -> Tally {
        let tally = Tally::default();
        self.lock().rules.push(Rule { on, fault, left, tally: tally.clone() });
        tally
    }

    /// The fault that a request meets, which is spent by asking.
    pub(super) fn meet(&self, method: &Method, operation: Operation) -> Option<Fault> {
        let mut state = self.lock();
        let rule = state.rules.iter_mut().find_map(|rule| {
            (rule.on.matches(method, operation) && rule.left.take()).then_some(rule)
        })?;
        rule.tally.0.fetch_add(1, Ordering::SeqCst);
        Some(rule.fault)
    }

    pub(super) fn ignores_checksums(&self) -> bool {
        self.lock().ignores_checksums
    }

    pub(super) fn clock_off_secs(&self) -> i64 {
        self.lock().clock_off_secs
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Left {
    /// Takes one use of the rule; false if the rule does not apply now.
    fn take(&mut self) -> bool {
        match self {
            Self::Times(0) => false,
            Self::Times(times) => {
                *times -= 1;
                true
            }
            Self::After(0) => true,
            Self::After(sound) => {
                *sound -= 1;
                false
            }
            Self::Chance { probability, random } => random.f64() < *probability,
        }
    }
}
