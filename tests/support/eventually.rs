//! Waiting for something to become true: a condition, never a fixed pause.

use std::time::Duration;

use tokio::time::Instant;

/// The end of a test that hangs. No machine is so slow that anything else takes as long: a test never fails
/// because others need the processor.
pub const HANG: Duration = Duration::from_mins(10);

/// The pause in which the server is left alone between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Looks until `condition` gives a value, and returns it. If the value never comes, the test ends after
/// [`HANG`], and `what` says what was waited for.
pub async fn eventually<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + HANG;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < until, "not within {HANG:?}: {what}");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
