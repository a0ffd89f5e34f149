//! Runs the workers of a store until told to stop.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use super::progress::NoProgress;
use crate::FileStore;
use crate::domain::error::Result;
use crate::tasks;

/// Background work that the runner repeats.
///
/// [`work`](Self::work) is interrupted only by the end of the process, [`wanted`](Self::wanted) at any
/// time.
#[async_trait]
trait Worker: Send + Sync + 'static {
    /// Returns the worker's name, for the log.
    fn name(&self) -> &'static str;

    /// Returns the pause after which due work is looked for although nothing asks for it.
    fn every(&self) -> Duration;

    /// Waits until something asks for the work.
    async fn wanted(&self, store: &FileStore);

    /// Does what is due; ends early, between two pieces of work, once `stop` returns true.
    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()>;
}

struct PurgeWorker;

#[async_trait]
impl Worker for PurgeWorker {
    fn name(&self) -> &'static str {
        "purge"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn wanted(&self, store: &FileStore) {
        store.inner().purge_wanted.notified().await;
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.purge_until(stop, &NoProgress).await.map(drop)
    }
}

struct SyncWorker;

#[async_trait]
impl Worker for SyncWorker {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn wanted(&self, store: &FileStore) {
        store.inner().sync_wanted.notified().await;
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.sync_until(stop, Arc::new(NoProgress)).await.map(drop)
    }
}

struct UpkeepWorker;

#[async_trait]
impl Worker for UpkeepWorker {
    fn name(&self) -> &'static str {
        "upkeep"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn wanted(&self, _store: &FileStore) {
        // Nothing asks for upkeep.
        std::future::pending::<()>().await;
    }

    async fn work(&self, store: &FileStore, _stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.upkeep().await
    }
}

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
            run(Arc::new(PurgeWorker), store.clone(), stopped.clone()),
            run(Arc::new(SyncWorker), store.clone(), stopped.clone()),
            run(Arc::new(UpkeepWorker), store.clone(), stopped),
        ];

        let tasks = tasks.into_iter().map(tasks::spawn).collect();
        Self { stop, tasks }
    }

    /// Lets each worker finish what it does, then ends. Work that takes longer than `limit` (a
    /// large file on its way to its provider, say) breaks off as a crash would, and is taken up
    /// after the next start.
    pub async fn stop(self, limit: Duration) {
        self.stop.send_replace(true);
        let end = Instant::now() + limit;

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

/// Runs `worker` when its time comes or something asks for its work, until told to stop.
async fn run(worker: Arc<dyn Worker>, store: FileStore, mut stopped: watch::Receiver<bool>) {
    let mut tick = ticks(worker.every());
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            () = worker.wanted(&store) => {}
            _ = tick.tick() => {}
        }

        let name = worker.name();
        let (worker, store, stopped) = (Arc::clone(&worker), store.clone(), stopped.clone());
        round(name, async move { worker.work(&store, &|| *stopped.borrow()).await }).await;
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Does one round of work in a task of its own: a panic ends the round, not the worker.
async fn round<T: Send + 'static>(
    worker: &'static str,
    work: impl Future<Output = Result<T>> + Send + 'static,
) {
    match (&mut Bound(tasks::spawn(work)).0).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            tracing::error!(worker, error = %error.chain(), "background work failed; it will be tried again");
        }
        Err(error) => {
            tracing::error!(worker, %error, "background work broke off; it will be tried again");
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
        let task = tasks::spawn(round::<()>("test", async move {
            let _held = held;
            std::future::pending().await
        }));
        let workers = Workers { stop: watch::channel(false).0, tasks: vec![task] };
        workers.stop(Duration::from_millis(10)).await;
        assert!(dropped.await.is_err(), "the work is gone with what it held");
    }
}
