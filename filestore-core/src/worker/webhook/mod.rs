//! Webhooks: sends the events of the log to the endpoints.
//!
//! # Purpose
//! Each endpoint has a lane (`lane`), which no other lane can delay. This module claims the lanes of enabled
//! webhooks, starts and stops them, and renews their leases. A lane belongs to one server at a time. A change of a
//! webhook's place or URL takes the lane from its owner, who then ends it without a save.
//!
//! The log is read once for all lanes (`feed`). A lane that is behind reads it for itself.
//!
//! # Order and repeats
//! First deliveries of one file's events arrive in order. Events of other files pass a file whose event fails. An
//! event is delivered at least once. After a crash, events that were under way are sent again, with the same ids.

mod feed;
mod health;
mod lane;
mod lease;
mod window;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep};

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::id::WebhookId;
use crate::metadata::{Lease, WebhookRow};

use feed::Feed;
use lane::{Lane, Shared, Told};
use lease::{LEASE, LaneLease};

/// The maximum time between two looks at the webhooks.
const LOOK: Duration = Duration::from_secs(5);

/// The maximum time until a stop is noticed.
const NOTICE: Duration = Duration::from_millis(200);

/// The number of lanes that have a place for one delivery, whatever other lanes have under way.
const OWN_PLACES: usize = 1000;

/// The maximum number of lanes that read the log for themselves at the same time.
const READS: usize = 4;

/// Sends events as long as there are enabled webhooks, until `stop` returns true.
pub(super) async fn run(store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    let config = store.config();
    if !config.webhooks.enabled || !has_enabled(&webhooks(store).await?) {
        return Ok(());
    }
    let mut lanes = Lanes::new(store, config.webhooks.in_flight);
    let outcome = lanes.run(stop).await;
    lanes.stop().await;
    outcome
}

async fn webhooks(store: &FileStore) -> Result<Vec<WebhookRow>> {
    store.inner().metadata.webhooks(None).await
}

fn has_enabled(rows: &[WebhookRow]) -> bool {
    rows.iter().any(|row| row.disabled.is_none())
}

struct Running {
    task: Id,
    settings: watch::Sender<Told>,
}

impl Running {
    /// Tells the lane something, also if it says the same again: events that were queued again make a lane look,
    /// even if its settings look the same. A lane that is lost stays so.
    fn tell(&self, told: Told) {
        self.settings.send_if_modified(|known| {
            let is_lost = *known == Told::Lost;
            if !is_lost {
                *known = told;
            }
            !is_lost
        });
    }
}

/// The lanes of this server.
struct Lanes {
    shared: Shared,
    /// In the order of the webhooks, so that a simulation repeats.
    running: BTreeMap<WebhookId, Running>,
    tasks: JoinSet<()>,
    /// Follows the log for the lanes. Dropping it ends the task.
    _follower: JoinSet<()>,
}

impl Lanes {
    fn new(store: &FileStore, in_flight: usize) -> Self {
        let feed = Arc::new(Feed::default());
        let mut follower = JoinSet::new();
        let (following, followed) = (Arc::clone(&feed), store.clone());
        follower.spawn(async move { following.follow(&followed).await });
        let shared = Shared {
            store: store.clone(),
            owner: store.inner().metadata.run_name(),
            lease: Arc::new(LaneLease::new()),
            places: Arc::new(Semaphore::new(in_flight)),
            own_places: Arc::new(Semaphore::new(OWN_PLACES)),
            feed,
            reads: Arc::new(Semaphore::new(READS)),
        };
        Self { shared, running: BTreeMap::new(), tasks: JoinSet::new(), _follower: follower }
    }

    /// Runs the lanes until there is no enabled webhook, or `stop` returns true.
    async fn run(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let store = self.shared.store.clone();
        let mut wanted = store.inner().webhooks.wanted.listen();
        let mut look_at = Instant::now();
        while !stop() && store.config().webhooks.enabled {
            self.renew_if_old().await?;
            if Instant::now() >= look_at {
                let rows = webhooks(&store).await?;
                if !has_enabled(&rows) {
                    return Ok(());
                }
                self.adjust(rows).await?;
                look_at = Instant::now() + LOOK;
            }
            tokio::select! {
                biased;
                () = wanted.notified() => look_at = Instant::now(),
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.note_ended(ended);
                    // A lane that was read for other settings begins again.
                    look_at = Instant::now();
                }
                () = sleep(NOTICE) => {}
            }
        }
        Ok(())
    }

    /// Tells the lanes their settings, and begins the lanes that no server has.
    async fn adjust(&mut self, rows: Vec<WebhookRow>) -> Result<()> {
        let enabled: BTreeMap<_, _> = rows
            .into_iter()
            .filter(|row| row.disabled.is_none())
            .map(|row| (row.id, row))
            .collect();
        for (id, running) in &self.running {
            running.tell(match enabled.get(id) {
                None => Told::Stop,
                Some(row) if row.owner.as_ref() != Some(&self.shared.owner) => Told::Lost,
                Some(row) => Told::Settings(Arc::new(row.clone())),
            });
        }
        for (id, row) in enabled {
            if !self.running.contains_key(&id) {
                self.begin(row).await?;
            }
        }
        Ok(())
    }

    async fn begin(&mut self, row: WebhookRow) -> Result<()> {
        let (id, now) = (row.id, self.shared.store.now());
        let lease = Lease { owner: &self.shared.owner, now, until: now.plus(LEASE) };
        let metadata = &self.shared.store.inner().metadata;
        let Some(claimed) = metadata.claim_lane(id, lease).await? else { return Ok(()) };
        // Counted after the claim: a read that began before it can have seen what an erasure then removed.
        let reads = self.shared.feed.reads();

        let row = Arc::new(row);
        let (settings, receiver) = watch::channel(Told::Settings(Arc::clone(&row)));
        let lane = Lane::new(self.shared.clone(), row, (claimed, reads), receiver);
        let task = self.tasks.spawn(lane.run()).id();
        self.running.insert(id, Running { task, settings });
        Ok(())
    }

    /// Renews the leases, and ends the lanes that this server has lost, for example while it slept.
    async fn renew_if_old(&self) -> Result<()> {
        let lease = &self.shared.lease;
        if !lease.is_old() {
            return Ok(());
        }
        let (began, now) = (Instant::now(), self.shared.store.now());
        let until = now.plus(LEASE);
        let renewal = Lease { owner: &self.shared.owner, now, until };
        let kept = self.shared.store.inner().metadata.renew_lanes(renewal).await?;
        // Before the lease counts again: a lane of another server must send nothing here.
        for (id, running) in &self.running {
            if !kept.contains(id) {
                running.tell(Told::Lost);
            }
        }
        lease.renewed(began);
        Ok(())
    }

    fn note_ended(&mut self, ended: Result<(Id, ()), tokio::task::JoinError>) {
        let task = match ended {
            Ok((task, ())) => task,
            Err(error) => {
                tracing::error!(%error, "the lane of a webhook ended badly and begins again");
                error.id()
            }
        };
        self.running.retain(|_, running| running.task != task);
    }

    /// Stops all lanes, each after its deliveries under way.
    async fn stop(mut self) {
        for running in self.running.values() {
            running.tell(Told::Stop);
        }
        while self.tasks.join_next().await.is_some() {}
    }
}
