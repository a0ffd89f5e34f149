//! Tasks, blocking work and random numbers.
//!
//! # Purpose
//! All layers start work and get random numbers here, so that a [`simulation`] can run the whole
//! store on one thread. In a simulation, a blocking call is a task that takes simulated time, and a
//! seed determines the order of events. Otherwise these functions call tokio.
//!
//! # Not here
//! Threads with the store's lifetime: the writer of the database, the threads of the variant
//! engine, and the threads of a provider on a mounted file system.

pub mod step;
#[cfg(feature = "sabotage")]
pub mod sabotage;
#[cfg(any(test, feature = "internals"))]
pub mod simulation;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Time limit for a test that hangs. The limit is so long that a test never fails because the
/// machine is busy.
#[cfg(test)]
pub const HANG: std::time::Duration = std::time::Duration::from_mins(10);

/// Starts a task on the current runtime.
pub fn spawn<F>(task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(task)
}

/// Starts a task that does a part of the caller's work, within the caller's span. The task is boxed, because a copy of a
/// large future at each step would need much of the stack.
pub fn spawn_in_span<F>(task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    spawn(Box::pin(task).in_current_span())
}

/// Runs `work`, which can block, on the blocking pool of the current runtime.
///
/// The work runs to its end, even if you drop the handle.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    blocking_on(&Handle::current(), work)
}

/// Runs `work` on the blocking pool of `runtime`. If the runtime shuts down, the work is dropped.
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

/// Returns true if this thread runs a [`simulation`].
pub fn is_simulated() -> bool {
    #[cfg(any(test, feature = "internals"))]
    let is_simulated = simulation::is_under_way();
    #[cfg(not(any(test, feature = "internals")))]
    let is_simulated = false;

    is_simulated
}

/// Returns the random part of an id. In a simulation, the seed determines the number.
pub fn random_part() -> u128 {
    #[cfg(any(test, feature = "internals"))]
    if let Some(part) = simulation::random_part() {
        return part;
    }

    ulid::Ulid::generate().random()
}

/// Returns 256 random bits from the operating system, for a secret. In a simulation, the seed
/// determines the bits.
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

/// Returns a unique random name: 20 hexadecimal digits.
pub fn random_name() -> String {
    format!("{:020x}", random_part() & ((1 << 80) - 1))
}
