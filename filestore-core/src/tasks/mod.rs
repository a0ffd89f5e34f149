//! Running work: tasks of the runtime, calls that block, and the one source of chance.
//!
//! # Purpose
//! All strata start work through this module and ask it for random numbers, so that a
//! [`simulation`] can run the whole store on one thread: then a call that blocks is a task that
//! takes simulated time, and every order of events follows from a seed. Outside of a simulation the
//! functions are those of tokio.
//!
//! # Not here
//! Threads that live as long as the store: the writer of the database, the threads of the variant
//! engine, and those of a provider on a mounted file system.

pub mod step;
#[cfg(feature = "sabotage")]
pub mod sabotage;
#[cfg(any(test, feature = "internals"))]
pub mod simulation;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Spawns a task on the current runtime.
pub fn spawn<F>(task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(task)
}

/// Runs `work`, which may block, away from the tasks: on the blocking pool of the current runtime.
///
/// The work runs to its end, also when the handle is dropped.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    blocking_on(&Handle::current(), work)
}

/// Runs `work` on the blocking pool of `runtime`. A runtime that shuts down drops the work.
pub fn blocking_on<T: Send + 'static>(
    runtime: &Handle,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    #[cfg(any(test, feature = "internals"))]
    if let Some(delay) = simulation::delay_of_blocking_work() {
        return runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            work()
        });
    }

    runtime.spawn_blocking(work)
}

/// Tells whether this thread runs a [`simulation`].
pub fn is_simulated() -> bool {
    #[cfg(any(test, feature = "internals"))]
    let is_simulated = simulation::is_under_way();
    #[cfg(not(any(test, feature = "internals")))]
    let is_simulated = false;

    is_simulated
}

/// Draws the random part of an id; within a simulation the number follows from its seed.
pub fn random_part() -> u128 {
    #[cfg(any(test, feature = "internals"))]
    if let Some(part) = simulation::random_part() {
        return part;
    }

    ulid::Ulid::generate().random()
}

/// Draws 256 bits from the operating system, for a secret; within a simulation they follow from its
/// seed.
pub fn random_secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    if is_simulated() {
        let halves = [random_part().to_le_bytes(), random_part().to_le_bytes()];
        bytes.copy_from_slice(halves.as_flattened());
    } else {
        getrandom::fill(&mut bytes).expect("the operating system has random bits once it runs");
    }
    bytes
}

/// Draws a name that nothing else has: 20 hexadecimal digits.
pub fn random_name() -> String {
    format!("{:020x}", random_part() & ((1 << 80) - 1))
}
