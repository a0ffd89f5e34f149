//! Runs the workers of a store until told to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use super::progress::NoProgress;
use crate::FileStore;
use crate::domain::error::Error;

/// How often due work is looked for when nothing asks for it.
const PURGE_EVERY: Duration = Duration::from_secs(10);
const SYNC_EVERY: Duration = Duration::from_secs(2);
const UPKEEP_EVERY: Duration = Duration::from_secs(30);

/// The running workers of a store. A worker is stopped between two pieces of work, if those are short.
#[derive(Debug)]
pub struct Workers {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the workers on the current runtime.
    pub fn start(store: &FileStore) -> Self {
        let (stop, stopped) = watch::channel(false);
        let tasks = vec![
            tokio::spawn(purge(store.clone(), stopped.clone())),
            tokio::spawn(sync(store.clone(), stopped.clone())),
            tokio::spawn(upkeep(store.clone(), stopped)),
        ];
        Self { stop, tasks }
    }

    /// Lets each worker finish what it does, then ends. What takes longer than `patience` (a large file on
    /// its way to its provider, say) breaks off as a crash would, and is taken up after the next start.
    pub async fn stop(self, patience: Duration) {
        self.stop.send_replace(true);
        let end = Instant::now() + patience;
        for mut task in self.tasks {
            match timeout_at(end, &mut task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a worker ended badly"),
                Err(_) => {
                    tracing::warn!(
                        "background work breaks off at the stop; it goes on after the next start"
                    );
                    task.abort();
                    // Cancelled, or just done: either way it is over.
                    let _ = task.await;
                }
            }
        }
    }
}

/// Work in a task of its own, which ends with this.
struct Bound<T>(JoinHandle<T>);

impl<T> Drop for Bound<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn purge(store: FileStore, mut stopped: watch::Receiver<bool>) {
    let mut tick = ticks(PURGE_EVERY);
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            () = store.inner().purge_wanted.notified() => {}
            _ = tick.tick() => {}
        }
        let (store, stopped) = (store.clone(), stopped.clone());
        round("purge", async move { store.purge_until(&|| *stopped.borrow(), &NoProgress).await })
            .await;
    }
}

async fn sync(store: FileStore, mut stopped: watch::Receiver<bool>) {
    let mut tick = ticks(SYNC_EVERY);
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            () = store.inner().sync_wanted.notified() => {}
            _ = tick.tick() => {}
        }
        let (store, stopped) = (store.clone(), stopped.clone());
        round("sync", async move {
            store.sync_until(&|| *stopped.borrow(), Arc::new(NoProgress)).await
        })
        .await;
    }
}

async fn upkeep(store: FileStore, mut stopped: watch::Receiver<bool>) {
    let mut tick = ticks(UPKEEP_EVERY);
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            _ = tick.tick() => {}
        }
        let store = store.clone();
        round("upkeep", async move { store.upkeep().await }).await;
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// One round of work, in a task of its own: a panic ends the round, not the worker.
async fn round<T: Send + 'static>(
    worker: &'static str,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) {
    match (&mut Bound(tokio::spawn(work)).0).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            tracing::error!(worker, error = %error.chain(), "background work failed; it will be tried again");
        }
        Err(error) => {
            tracing::error!(worker, %error, "background work broke off; it will be tried again")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_round_and_not_the_worker() {
        round::<()>("test", async { panic!("as a broken row might") }).await;
    }

    #[tokio::test]
    async fn work_that_would_not_end_breaks_off_at_the_stop() {
        struct Held(
            #[expect(dead_code, reason = "dropping it is what counts")]
            tokio::sync::oneshot::Sender<()>,
        );
        let (sender, dropped) = tokio::sync::oneshot::channel();
        let held = Held(sender);
        let task = tokio::spawn(round::<()>("test", async move {
            let _held = held;
            std::future::pending().await
        }));
        let workers = Workers { stop: watch::channel(false).0, tasks: vec![task] };
        workers.stop(Duration::from_millis(10)).await;
        assert!(dropped.await.is_err(), "the work is gone with what it held");
    }
}
