//! Runs the workers of a store until told to stop.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use super::outage::Outages;
use super::progress::NoProgress;
use crate::FileStore;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::provider::ProviderCode;
use crate::service::wake::Listener;
use crate::storage::Cloud;
use crate::tasks;

/// Background work that the runner repeats.
///
/// [`work`](Self::work) is interrupted only by the end of the process, the wait for it at any time.
#[async_trait]
trait Worker: Send + Sync + 'static {
    /// Returns the worker's name, for the log.
    fn name(&self) -> String;

    /// Returns the pause after which due work is looked for although nothing asks for it.
    fn every(&self) -> Duration;

    /// Tests whether the store has a place for the work: a provider's lane rests while the provider is not
    /// configured.
    fn is_wanted(&self, store: &FileStore) -> bool {
        let _ = store;
        true
    }

    /// Begins to listen to what asks for the work, if anything does.
    fn listen(&self, store: &FileStore) -> Option<Listener> {
        let _ = store;
        None
    }

    /// Does what is due; ends early, between two pieces of work, once `stop` returns true.
    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()>;
}

/// Marks expired TEMP files.
struct ExpiryWorker;

#[async_trait]
impl Worker for ExpiryWorker {
    fn name(&self) -> String {
        "expiry".to_owned()
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.expire_temp(stop).await.map(drop)
    }
}

/// Purges the deleted files of one holder.
struct PurgeWorker(ProviderCode);

#[async_trait]
impl Worker for PurgeWorker {
    fn name(&self) -> String {
        format!("purge of {}", self.0)
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn listen(&self, store: &FileStore) -> Option<Listener> {
        Some(store.inner().purge_wanted.listen())
    }

    fn is_wanted(&self, store: &FileStore) -> bool {
        store.holders().contains(&self.0)
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.purge_files_of(&self.0, stop).await
    }
}

/// Removes the dropped blobs of one holder.
struct DroppedWorker(ProviderCode);

#[async_trait]
impl Worker for DroppedWorker {
    fn name(&self) -> String {
        format!("dropped blobs of {}", self.0)
    }

    fn is_wanted(&self, store: &FileStore) -> bool {
        store.holders().contains(&self.0)
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.remove_dropped_of(&self.0, stop).await
    }
}

/// Settles files that have no provider to go to.
struct SettleWorker;

#[async_trait]
impl Worker for SettleWorker {
    fn name(&self) -> String {
        "settling".to_owned()
    }

    fn every(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn listen(&self, store: &FileStore) -> Option<Listener> {
        Some(store.inner().sync_wanted.listen())
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.settle(stop, &NoProgress).await.map(drop)
    }
}

/// Copies files to one provider.
struct SyncWorker(ProviderCode);

#[async_trait]
impl Worker for SyncWorker {
    fn name(&self) -> String {
        format!("sync to {}", self.0)
    }

    fn is_wanted(&self, store: &FileStore) -> bool {
        store.providers().active_clouds().contains(&self.0)
    }

    fn every(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn listen(&self, store: &FileStore) -> Option<Listener> {
        Some(store.inner().sync_wanted.listen())
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.sync_to(&self.0, stop).await
    }
}

/// Aborts what killed processes left of uploads in parts at one provider.
struct PartUploadsWorker {
    holder: ProviderCode,
    /// True once the log says that the provider does not let them be listed.
    is_said: AtomicBool,
}

#[async_trait]
impl Worker for PartUploadsWorker {
    fn name(&self) -> String {
        format!("unfinished uploads at {}", self.holder)
    }

    fn is_wanted(&self, store: &FileStore) -> bool {
        store.providers().cloud(&self.holder).is_ok_and(Cloud::lists_uploads)
    }

    fn every(&self) -> Duration {
        Duration::from_hours(1)
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        match store.abort_left_uploads(&self.holder, stop).await {
            // A state that somebody may have chosen.
            Err(error) if error.kind() == ErrorKind::Unusable => {
                if !self.is_said.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        error = %error.chain(),
                        "what killed processes leave of uploads stays: allow s3:ListBucketMultipartUploads, or give \
                         the bucket a lifecycle rule"
                    );
                }
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }
}

/// Looks for providers that answer again.
struct OutageWorker(Outages);

#[async_trait]
impl Worker for OutageWorker {
    fn name(&self) -> String {
        "end of outages".to_owned()
    }

    fn every(&self) -> Duration {
        Duration::from_secs(2)
    }

    async fn work(&self, store: &FileStore, _stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        self.0.end_waits(store).await
    }
}

/// Writes the last uses of keys.
struct KeyUseWorker;

#[async_trait]
impl Worker for KeyUseWorker {
    fn name(&self) -> String {
        "uses of keys".to_owned()
    }

    fn every(&self) -> Duration {
        Duration::from_mins(1)
    }

    async fn work(&self, store: &FileStore, _stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.note_key_uses().await
    }
}

struct UpkeepWorker;

#[async_trait]
impl Worker for UpkeepWorker {
    fn name(&self) -> String {
        "upkeep".to_owned()
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn work(&self, store: &FileStore, _stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.upkeep().await
    }
}

/// Looks for damage once in a while.
struct ScrubWorker;

#[async_trait]
impl Worker for ScrubWorker {
    fn name(&self) -> String {
        "scrub".to_owned()
    }

    fn every(&self) -> Duration {
        Duration::from_mins(1)
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        store.scrub_if_due(stop).await
    }
}

/// Lists all workers of a store: those of the whole, and the lanes of each provider.
fn workers_of(store: &FileStore) -> Vec<Arc<dyn Worker>> {
    let mut workers: Vec<Arc<dyn Worker>> = vec![
        Arc::new(ExpiryWorker),
        Arc::new(SettleWorker),
        Arc::new(OutageWorker(Outages::default())),
        Arc::new(UpkeepWorker),
        Arc::new(KeyUseWorker),
        Arc::new(ScrubWorker),
    ];

    for holder in store.holders() {
        workers.push(Arc::new(PurgeWorker(holder.clone())));
        workers.push(Arc::new(DroppedWorker(holder.clone())));
        workers.push(Arc::new(PartUploadsWorker { holder, is_said: AtomicBool::new(false) }));
    }
    for target in store.providers().active_clouds() {
        workers.push(Arc::new(SyncWorker(target)));
    }
    workers
}

/// The running workers of a store. A worker is stopped between two pieces of work, if those are short.
#[derive(Debug)]
pub struct Workers {
    stop: watch::Sender<bool>,
    /// The names of the workers that have been started.
    started: HashSet<String>,
    tasks: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the workers on the current runtime.
    pub fn start(store: &FileStore) -> Self {
        let mut workers =
            Self { stop: watch::channel(false).0, started: HashSet::new(), tasks: Vec::new() };
        workers.refresh(store);
        workers
    }

    /// Starts the lanes of providers that have come into the configuration. Those of providers that
    /// have left it rest until the provider is back.
    pub fn refresh(&mut self, store: &FileStore) {
        for worker in workers_of(store) {
            if self.started.insert(worker.name()) {
                let stopped = self.stop.subscribe();
                self.tasks.push(tasks::spawn(run(worker, store.clone(), stopped)));
            }
        }
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
    let mut listener = worker.listen(&store);
    loop {
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stop| *stop) => return,
            () = wanted(&mut listener) => {}
            _ = tick.tick() => {}
        }
        if !worker.is_wanted(&store) {
            continue;
        }

        let name = worker.name();
        let (worker, store, stopped) = (Arc::clone(&worker), store.clone(), stopped.clone());
        round(name, async move { worker.work(&store, &|| *stopped.borrow()).await }).await;
    }
}

/// Waits until something asks for the work, if anything does.
async fn wanted(listener: &mut Option<Listener>) {
    match listener {
        Some(listener) => listener.notified().await,
        None => std::future::pending().await,
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Does one round of work in a task of its own: a panic ends the round, not the worker.
async fn round<T: Send + 'static>(
    worker: String,
    work: impl Future<Output = Result<T>> + Send + 'static,
) {
    match (&mut Bound(tasks::spawn(work)).0).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            tracing::error!(%worker, error = %error.chain(), "background work failed; it will be tried again");
        }
        Err(error) => {
            tracing::error!(%worker, %error, "background work broke off; it will be tried again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_round_and_not_the_worker() {
        round::<()>("test".to_owned(), async { panic!("as a broken row might") }).await;
    }

    #[tokio::test]
    async fn work_that_would_not_end_breaks_off_at_the_stop() {
        struct Held(
            #[expect(dead_code, reason = "dropping it is what counts")]
            tokio::sync::oneshot::Sender<()>,
        );
        let (sender, dropped) = tokio::sync::oneshot::channel();
        let held = Held(sender);
        let task = tasks::spawn(round::<()>("test".to_owned(), async move {
            let _held = held;
            std::future::pending().await
        }));
        let workers =
            Workers { stop: watch::channel(false).0, started: HashSet::new(), tasks: vec![task] };
        workers.stop(Duration::from_millis(10)).await;
        assert!(dropped.await.is_err(), "the work is gone with what it held");
    }
}
