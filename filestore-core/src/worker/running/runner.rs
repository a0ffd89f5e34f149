//! Runs the workers of a store until they are told to stop.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use super::lane;
use super::progress::NoProgress;
use crate::FileStore;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::provider::ProviderCode;
use crate::domain::report::PurgeOptions;
use crate::service::work::wake::Listener;
use crate::storage::Cloud;
use crate::tasks;
use crate::worker::upkeep::outage::Outages;
use crate::worker::{purge, scrub, sync, upkeep};

/// Background work that the runner repeats.
///
/// Only the end of the process interrupts [`work`](Self::work). The wait for it can be interrupted at any
/// time.
#[async_trait]
trait Worker: Send + Sync + 'static {
    /// Returns the worker's name for the log.
    fn name(&self) -> String;

    /// Returns the maximum pause between two searches for due work.
    fn every(&self) -> Duration;

    /// Returns true if the store has a place for the work. A provider's lane rests while the provider is not
    /// configured.
    fn is_wanted(&self, store: &FileStore) -> bool {
        let _ = store;
        true
    }

    /// Starts to listen for signals that request the work, if there are any.
    fn listen(&self, store: &FileStore) -> Option<Listener> {
        let _ = store;
        None
    }

    /// Does all due work. Ends early, between two pieces of work, once `stop` returns true.
    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()>;
}

/// Deletes expired TEMP files.
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
        upkeep::expiry::mark_expired(store, None, stop).await.map(drop)
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
        Some(store.inner().background.purge_wanted.listen())
    }

    fn is_wanted(&self, store: &FileStore) -> bool {
        lane::holders(store).contains(&self.0)
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        purge::run_files(store, &self.0, &PurgeOptions::default(), stop).await
    }
}

/// Removes the replaced blobs of one holder.
struct DroppedWorker(ProviderCode);

#[async_trait]
impl Worker for DroppedWorker {
    fn name(&self) -> String {
        format!("dropped blobs of {}", self.0)
    }

    fn is_wanted(&self, store: &FileStore) -> bool {
        lane::holders(store).contains(&self.0)
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        purge::run_dropped(store, &self.0, stop).await
    }
}

/// Settles files that need no copy to a provider.
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
        Some(store.inner().background.sync_wanted.listen())
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        sync::settle(store, stop, &NoProgress).await.map(drop)
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
        Some(store.inner().background.sync_wanted.listen())
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        sync::run_lane(store, &self.0, stop).await
    }
}

/// Aborts multipart uploads that killed processes left at one provider.
struct PartUploadsWorker {
    holder: ProviderCode,
    /// True once the log contains that the provider refuses to list them.
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
        match upkeep::part_uploads::abort(store, &self.holder, stop).await {
            // A state that somebody may have chosen.
            Err(error) if error.kind() == ErrorKind::Unusable => {
                if !self.is_said.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        error = %error.chain(),
                        "the unfinished uploads of killed processes remain: allow s3:ListBucketMultipartUploads, or \
                         give the bucket a lifecycle rule"
                    );
                }
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }
}

/// Detects providers that answer again.
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

/// Stores the last uses of keys.
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
        store.inner().access.note_key_uses().await
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
        upkeep::run(store).await
    }
}

/// Runs the periodic scrub.
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
        scrub::run_if_due(store, stop).await
    }
}

/// Sends events to webhooks. Without a webhook, this costs one query in each period.
#[cfg(feature = "webhooks")]
struct WebhookWorker;

#[cfg(feature = "webhooks")]
#[async_trait]
impl Worker for WebhookWorker {
    fn name(&self) -> String {
        "webhooks".to_owned()
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn listen(&self, store: &FileStore) -> Option<Listener> {
        Some(store.inner().webhooks.wanted.listen())
    }

    async fn work(&self, store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        crate::worker::webhook::run(store, stop).await
    }
}

/// Lists all workers of a store: the common workers, and the lanes of each provider.
fn workers_of(store: &FileStore) -> Vec<Arc<dyn Worker>> {
    let mut workers: Vec<Arc<dyn Worker>> = vec![
        Arc::new(ExpiryWorker),
        Arc::new(SettleWorker),
        Arc::new(OutageWorker(Outages::default())),
        Arc::new(UpkeepWorker),
        Arc::new(KeyUseWorker),
        Arc::new(ScrubWorker),
        #[cfg(feature = "webhooks")]
        Arc::new(WebhookWorker),
    ];

    for holder in lane::holders(store) {
        workers.push(Arc::new(PurgeWorker(holder.clone())));
        workers.push(Arc::new(DroppedWorker(holder.clone())));
        workers.push(Arc::new(PartUploadsWorker { holder, is_said: AtomicBool::new(false) }));
    }
    for target in store.providers().active_clouds() {
        workers.push(Arc::new(SyncWorker(target)));
    }
    workers
}

/// A store's running workers. Keep this value: a drop stops the workers, each between two pieces of work, if
/// those are short.
///
/// ```no_run
/// use filestore_core::{FileStore, Workers};
///
/// # async fn example(store: &FileStore) {
/// let workers = Workers::start(store);
/// // ... serve requests ...
/// workers.stop(std::time::Duration::from_secs(30)).await;
/// # }
/// ```
#[must_use = "a drop stops the workers: keep them in a variable, and call `stop` at the end"]
#[derive(Debug)]
pub struct Workers {
    stop: watch::Sender<bool>,
    /// The names of the started workers.
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

    /// Starts the lanes of new providers after a change of the configuration. The lanes of removed providers
    /// rest until the provider is configured again.
    pub fn refresh(&mut self, store: &FileStore) {
        for worker in workers_of(store) {
            if self.started.insert(worker.name()) {
                let stopped = self.stop.subscribe();
                self.tasks.push(tasks::spawn(run(worker, store.clone(), stopped)));
            }
        }
    }

    /// Lets each worker finish its current work, then stops. Work that takes longer than `limit` is
    /// interrupted, for example the copy of a large file. Interrupted work resumes after the next start, like
    /// after a crash.
    pub async fn stop(self, limit: Duration) {
        self.stop.send_replace(true);
        let end = Instant::now() + limit;

        for mut task in self.tasks {
            match timeout_at(end, &mut task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a worker ended badly"),
                Err(_) => {
                    tracing::warn!(
                        "the stop interrupts background work, which continues after the next start"
                    );
                    task.abort();
                    // Cancelled, or just done: either way it is over.
                    let _ = task.await;
                }
            }
        }
    }
}

/// Work in its own task. Dropping the value ends the task.
struct Bound<T>(JoinHandle<T>);

impl<T> Drop for Bound<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs `worker` regularly, and when a signal requests its work, until it is told to stop.
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

/// Waits for a signal that requests the work, if there is a listener.
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

/// Runs one round of work in its own task. A panic ends the round, not the worker.
async fn round<T: Send + 'static>(
    worker: String,
    work: impl Future<Output = Result<T>> + Send + 'static,
) {
    match (&mut Bound(tasks::spawn(work)).0).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            tracing::error!(%worker, error = %error.chain(), "background work failed and will be retried");
        }
        Err(error) => {
            tracing::error!(%worker, %error, "background work panicked and will be retried");
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
