//! Webhooks: sends the events of the log to the endpoints.
//!
//! # Purpose
//! Each endpoint has a lane (`lane`), which no other lane can delay. This module claims the lanes of enabled
//! webhooks, starts and stops them, and renews their leases. A lane belongs to one server at a time.
//!
//! # Order and repeats
//! First deliveries of one file's events arrive in order. Events of other files pass a file whose event fails. An
//! event is delivered at least once. After a crash, events that were under way are sent again, with the same ids.

mod health;
mod lane;
mod lease;
mod window;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep};

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::id::WebhookId;
use crate::metadata::{Lease, WebhookRow};

use lane::{Lane, Shared};
use lease::{LEASE, LaneLease};

/// The maximum time between two looks at the webhooks.
const LOOK: Duration = Duration::from_secs(5);

/// The maximum time until a stop is noticed.
const NOTICE: Duration = Duration::from_millis(200);

/// The age from which failed events are forgotten.
const KEEP_FAILURES: Duration = Duration::from_hours(14 * 24);

/// Sends events as long as there are enabled webhooks, until `stop` returns true.
pub(super) async fn run(store: &FileStore, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
    forget_failures(store).await?;
    let config = store.config();
    if !config.webhooks.enabled || !has_enabled(&webhooks(store).await?) {
        return Ok(());
    }
    let mut lanes = Lanes::new(store, config.webhooks.in_flight);
    let outcome = lanes.run(stop).await;
    lanes.stop().await;
    outcome
}

async fn forget_failures(store: &FileStore) -> Result<()> {
    let before = store.now().minus(KEEP_FAILURES);
    while store.inner().metadata.forget_failures(before, 500).await? == 500 {}
    Ok(())
}

async fn webhooks(store: &FileStore) -> Result<Vec<WebhookRow>> {
    store.inner().metadata.webhooks(None).await
}

fn has_enabled(rows: &[WebhookRow]) -> bool {
    rows.iter().any(|row| row.disabled.is_none())
}

struct Running {
    task: Id,
    settings: watch::Sender<Option<Arc<WebhookRow>>>,
}

/// The lanes of this server.
struct Lanes {
    shared: Shared,
    running: HashMap<WebhookId, Running>,
    tasks: JoinSet<()>,
}

impl Lanes {
    fn new(store: &FileStore, in_flight: usize) -> Self {
        let shared = Shared {
            store: store.clone(),
            owner: store.inner().metadata.run_name(),
            lease: Arc::new(LaneLease::new()),
            places: Arc::new(Semaphore::new(in_flight)),
        };
        Self { shared, running: HashMap::new(), tasks: JoinSet::new() }
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
        let enabled: HashMap<_, _> = rows
            .into_iter()
            .filter(|row| row.disabled.is_none())
            .map(|row| (row.id, row))
            .collect();
        for (id, running) in &self.running {
            let row = enabled.get(id).cloned().map(Arc::new);
            // Always told: events that were queued again make a lane look, even if the rows look the same.
            running.settings.send_replace(row);
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

        let (settings, receiver) = watch::channel(Some(Arc::new(row)));
        let Some(lane) = Lane::new(self.shared.clone(), claimed, receiver) else { return Ok(()) };
        let task = self.tasks.spawn(lane.run()).id();
        self.running.insert(id, Running { task, settings });
        Ok(())
    }

    async fn renew_if_old(&self) -> Result<()> {
        let lease = &self.shared.lease;
        if !lease.is_old() {
            return Ok(());
        }
        let (began, now) = (Instant::now(), self.shared.store.now());
        let until = now.plus(LEASE);
        let renewal = Lease { owner: &self.shared.owner, now, until };
        self.shared.store.inner().metadata.renew_lanes(renewal).await?;
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
            running.settings.send_replace(None);
        }
        while self.tasks.join_next().await.is_some() {}
    }
}
