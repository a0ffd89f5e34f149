//! The runs that work on a provider's snapshots, as they tell each other.
//!
//! # Locking
//! A provider has no lock that ends with a process. So a run stores an object before it begins, its *beat*,
//! stores another in its place again and again, and lists those of the others: what is not renewed for
//! [`LEASE`] belongs to a run that is over. Ages are differences of the provider's own times, so that the
//! clocks of machines do not matter. Who stores first and lists afterwards misses nobody who does the same;
//! this needs a provider whose listings show what was stored before, as those of S3, Azure and GCS do.
//!
//! Runs that make or read snapshots go on beside each other. A prune goes on alone.
//!
//! # Crash safety
//! A run that is taken for dead may only sleep, and wake up. What it does then harms nothing:
//! - One that makes a snapshot is *revoked* before a prune goes on: its manifest does not count, also if it
//!   comes late. It looks for that note after its manifest, and fails.
//! - One that prunes removes nothing that any later run counts on: contents are named by the run that stored
//!   them, so what is stored anew has another name, and what the newest snapshot names is never on its list.
//!   What it may have on its list are contents of runs that broke off. So while the beat of a prune is there
//!   that was not ended, or for a day, no run counts on such contents.
//!
//! The process that has a store's data directory knows that every other run of that store is over, and
//! need not wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::names::{BeatName, Part, RUNS};
use super::{RunClaim, RunKind};
use crate::domain::clock::{Clock, Timestamp};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{SnapshotId, StoreId};
use crate::storage::Cloud;
use crate::tasks;
use crate::tasks::step::{Step, reached};

/// Age of a beat from which its run is taken for dead.
pub(super) const LEASE: Duration = Duration::from_mins(10);

/// Age of a beat from which a run does not count on it any more.
const COUNTED_ON: Duration = Duration::from_mins(5);

/// Pause between two beats, and after one that failed.
const PAUSE: Duration = Duration::from_mins(3);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(20);

/// Time after which a prune that was never ended can remove nothing any more.
pub(super) const LATE_REMOVALS: Duration = Duration::from_hours(24);

/// The runs of this process.
static OWN: Mutex<BTreeSet<SnapshotId>> = Mutex::new(BTreeSet::new());

/// The lease of a run, until it is dropped.
pub(super) struct Lease {
    held: Arc<Held>,
    renewing: Option<AbortHandle>,
    /// True if contents of runs that broke off may be counted on.
    pub(super) may_adopt: bool,
    /// The time of the provider when the lease was taken, where it tells that.
    pub(super) taken_at: Option<Timestamp>,
}

struct Held {
    cloud: Cloud,
    run: SnapshotId,
    beat: tokio::sync::Mutex<Beat>,
}

/// The last beat that was stored.
struct Beat {
    /// `None` once the lease has ended.
    name: Option<BeatName>,
    /// The time before it was sent, by a clock that never leaps and by one that goes on in a sleep.
    sent_at: (Instant, Timestamp),
}

/// Another run, by its last beat.
struct Other {
    beats: Vec<BeatName>,
    modified_at: Option<Timestamp>,
}

impl Lease {
    /// Takes the lease of a run. `Locked` while another run excludes this one.
    pub(super) async fn take(cloud: &Cloud, claim: RunClaim) -> Result<Self> {
        let name = BeatName { run: claim.id, kind: claim.kind, store: claim.store, number: 0 };
        let beat = tokio::sync::Mutex::new(Beat::sent(name));
        let held = Arc::new(Held { cloud: cloud.clone(), run: claim.id, beat });
        OWN.lock().insert(claim.id);
        // From now on the beat is removed whatever happens, also if it comes late.
        let mut lease = Self { held, renewing: None, may_adopt: false, taken_at: None };

        lease.held.put(name).await?;
        reached(Step::DestinationClaimed);
        let renewing = tasks::spawn(Arc::clone(&lease.held).renew_for_ever());
        lease.renewing = Some(renewing.abort_handle());
        let met = lease.meet_others(claim).await;
        if met.is_err() {
            lease.release().await;
        }
        met.map(|()| lease)
    }

    /// Makes sure that no other run may have taken this one for dead.
    pub(super) async fn confirm(&self) -> Result<()> {
        let beat = self.held.beat.lock().await;
        let is_there = match beat.name {
            Some(name) => self.held.cloud.object_size(&name.object()).await?.is_some(),
            None => false,
        };
        if is_there && beat.is_counted_on() {
            return Ok(());
        }
        let message = format!(
            "the run was paused for so long that another may have taken it for dead: do it again at {}",
            self.held.cloud.code()
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Ends the lease.
    pub(super) async fn release(&self) {
        self.held.end().await;
        // Not before: a beat that is on its way would come late.
        self.renewing.iter().for_each(AbortHandle::abort);
    }

    /// Looks at the other runs: refuses to go on beside one that excludes this one, and takes note of those
    /// that are over.
    async fn meet_others(&mut self, claim: RunClaim) -> Result<()> {
        let (own, others) = self.held.list().await?;
        self.taken_at = own;
        self.may_adopt = true;
        for (run, other) in others {
            let kind = other.beats[0].kind;
            let age = other.age(own);
            let is_over =
                age.is_some_and(|age| age >= LEASE) || other.is_of_a_dead_process(claim.store);
            let excludes = kind == RunKind::Prune || claim.kind == RunKind::Prune;
            if excludes && !is_over {
                return Err(self.locked(kind, age));
            }

            let may_remove = kind == RunKind::Prune && age.is_none_or(|age| age < LATE_REMOVALS);
            self.may_adopt &= !may_remove;
            if claim.kind == RunKind::Prune && is_over && !may_remove {
                self.held.bury(run, &other).await?;
            }
        }
        Ok(())
    }

    fn locked(&self, kind: RunKind, age: Option<Duration>) -> Error {
        let what = match kind {
            RunKind::Create => "a snapshot is being made",
            RunKind::Verify | RunKind::Restore => "a snapshot is being read",
            RunKind::Prune => "snapshots are being removed",
        };
        let left = LEASE.saturating_sub(age.unwrap_or_default()).as_secs().div_ceil(60);
        let message = format!(
            "{what} at the provider {}; if that process has ended, try again in {left} minutes",
            self.held.cloud.code()
        );
        Error::new(ErrorKind::Locked, message)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        OWN.lock().remove(&self.held.run);
        if Handle::try_current().is_ok() {
            let (held, renewing) = (Arc::clone(&self.held), self.renewing.take());
            tasks::spawn(async move {
                held.end().await;
                renewing.iter().for_each(AbortHandle::abort);
            });
        }
    }
}

impl Beat {
    fn sent(name: BeatName) -> Self {
        Self { name: Some(name), sent_at: (Instant::now(), Clock::system().now()) }
    }

    fn is_counted_on(&self) -> bool {
        let (sent, at) = self.sent_at;
        sent.elapsed() < COUNTED_ON && Clock::system().now() < at.plus(COUNTED_ON)
    }
}

impl Held {
    async fn put(&self, name: BeatName) -> Result<()> {
        self.cloud.put_text(&name.object(), "a run is under way\n".to_owned()).await
    }

    /// Stores the next beat, then removes the one before; false once the lease has ended, or another run has
    /// taken this one for dead, and must not be told otherwise.
    async fn renew(&self) -> Result<bool> {
        let mut beat = self.beat.lock().await;
        let Some(last) = beat.name else { return Ok(false) };
        if self.cloud.object_size(&last.object()).await?.is_none() {
            return Ok(false);
        }

        let next = BeatName { number: last.number + 1, ..last };
        let sent = Beat::sent(next);
        self.put(next).await?;
        *beat = sent;
        self.cloud.remove_object(&last.object()).await?;
        Ok(true)
    }

    async fn renew_for_ever(self: Arc<Self>) {
        let mut pause = PAUSE;
        loop {
            sleep(pause).await;
            pause = match self.renew().await {
                Ok(true) => PAUSE,
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(error = %error.chain(), "the lease of a backup's run could not be renewed");
                    PAUSE_AFTER_FAILURE
                }
            };
        }
    }

    /// Removes the last beat, and so ends the lease.
    async fn end(&self) {
        let Some(name) = self.beat.lock().await.name.take() else { return };
        if let Err(error) = self.cloud.remove_object(&name.object()).await {
            tracing::warn!(error = %error.chain(), "the lease of a backup's run ends by itself");
        }
    }

    /// Lists the other runs, beside the provider's time of the own beat.
    async fn list(&self) -> Result<(Option<Timestamp>, BTreeMap<SnapshotId, Other>)> {
        let (mut own, mut is_there) = (None, false);
        let mut others = BTreeMap::new();
        for object in self.cloud.list_objects(RUNS).await? {
            let Some(beat) = BeatName::parse(&object.name) else { continue };
            if beat.run == self.run {
                (own, is_there) = (own.max(object.modified_at), true);
                continue;
            }
            let other = others
                .entry(beat.run)
                .or_insert_with(|| Other { beats: Vec::new(), modified_at: object.modified_at });
            other.beats.push(beat);
            other.modified_at = other.modified_at.max(object.modified_at);
        }

        if !is_there {
            let message = format!(
                "the provider {} does not list what was just stored: runs cannot be kept apart there",
                self.cloud.code()
            );
            return Err(Error::new(ErrorKind::ProviderUnavailable, message));
        }
        Ok((own, others))
    }

    /// Takes note of a run's end: whatever it may still do does not count.
    async fn bury(&self, run: SnapshotId, other: &Other) -> Result<()> {
        let may_finish = other.beats[0].kind == RunKind::Create
            && self.cloud.object_size(&Part::Manifest.object(run)).await?.is_none();
        if may_finish {
            self.cloud.put_text(&Part::Revoked.object(run), "revoked\n".to_owned()).await?;
        }
        for beat in &other.beats {
            self.cloud.remove_object(&beat.object()).await?;
        }
        Ok(())
    }
}

impl Other {
    /// Returns the time for which the run has given no sign, where the provider tells times.
    fn age(&self, now: Option<Timestamp>) -> Option<Duration> {
        let millis = now?.as_millis().saturating_sub(self.modified_at?.as_millis());
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }

    /// Tells whether the run made a snapshot of a store whose data directory this process has, and is not
    /// one of this process.
    fn is_of_a_dead_process(&self, store: Option<StoreId>) -> bool {
        let beat = self.beats[0];
        let is_of_the_store = store.is_some() && beat.store == store;
        is_of_the_store && beat.kind == RunKind::Create && !OWN.lock().contains(&beat.run)
    }
}
