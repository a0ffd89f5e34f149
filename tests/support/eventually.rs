//! Waiting for something to become true: a condition with a deadline, never a fixed pause.

use std::time::Duration;

use tokio::time::Instant;

/// The deadline of a condition that nothing but the machine's load delays.
const DEADLINE: Duration = Duration::from_secs(20);

/// The pause in which the server is left alone between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Looks until `condition` gives a value, for 20 seconds at most, and returns it. `what` says what
/// was waited for when it never comes.
pub async fn eventually<T>(what: &str, condition: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(DEADLINE, what, condition).await
}

/// Like [`eventually`], for at most `deadline`: for conditions that the reference gives a time.
pub async fn eventually_within<T>(
    deadline: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> T {
    let until = Instant::now() + deadline;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < until, "not within {deadline:?}: {what}");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
