//! The clock of a test's runtime, held by the test.

use std::sync::mpsc::{Sender, channel};

/// Holds the clock of the runtime, which must have one thread. Time passes only when the test says so, also by
/// [`tokio::time::advance`]. So a busy machine makes nothing late.
pub(crate) struct HeldClock {
    until_dropped: Option<Sender<()>>,
}

impl HeldClock {
    /// Stops the clock.
    pub(crate) fn hold() -> Self {
        tokio::time::pause();
        Self { until_dropped: Some(held()) }
    }

    /// Lets time pass up to the next deadline whenever all tasks wait, until `work` is done.
    pub(crate) async fn passes_until<T>(&mut self, work: impl Future<Output = T>) -> T {
        drop(self.until_dropped.take());
        let done = work.await;
        self.until_dropped = Some(held());
        done
    }
}

/// Keeps a stopped clock where it is. By itself, it would go on while all tasks wait, but not while a blocking task
/// runs.
fn held() -> Sender<()> {
    let (held, dropped) = channel::<()>();
    tokio::task::spawn_blocking(move || dropped.recv());
    held
}
