//! Leases: runs that work on a provider's snapshots announce themselves to each other.
//!
//! # Locking
//! A provider has no lock that ends with a process. A run therefore stores an object before it begins, its
//! *beat*, and regularly replaces it with a new beat. It also lists the beats of other runs. If a beat is not
//! renewed for [`LEASE`], its run has ended. Ages are differences of the provider's own times, so the clocks
//! of machines do not matter.
//!
//! Each run first stores its beat and then lists the others, so two runs cannot miss each other. For this,
//! listings of the provider must show all earlier writes. S3, Azure and GCS guarantee it.
//!
//! Runs that create or read snapshots can run at the same time. A prune runs alone.
//!
//! # Crash safety
//! A run that is considered dead might only be suspended, and continue later. It cannot do harm then:
//! - A run that creates a snapshot is *revoked* before a prune continues. Its manifest does not count, even
//!   if it arrives later. The run looks for the revocation after it has written its manifest, and fails.
//! - A prune removes no content that a later run uses. Names of contents include the run that stored them, so
//!   a content that is stored again has another name. Contents of the newest snapshot are never on the
//!   prune's list. The list can contain contents of interrupted runs. While an unfinished prune has a beat,
//!   but for at most a day, no run uses such contents.
//!
//! The process with a store's data directory knows that all other runs of this store have ended, and does not
//! wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::names::{BeatName, Part, RUNS};
use super::{RunClaim, RunKind};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{SnapshotId, StoreId};
use crate::domain::time::clock::{Clock, Timestamp};
use crate::storage::Cloud;
use crate::tasks;
use crate::tasks::step::{Step, reached};

/// The age of a beat at which its run is considered dead.
pub(super) const LEASE: Duration = Duration::from_mins(10);

/// The age of a beat at which its own run stops relying on it.
const COUNTED_ON: Duration = Duration::from_mins(5);

/// The pause between two beats, also after a failed beat.
const PAUSE: Duration = Duration::from_mins(3);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(20);

/// The time after which an unfinished prune can no longer remove contents.
pub(super) const LATE_REMOVALS: Duration = Duration::from_hours(24);

/// The runs of this process.
static OWN: Mutex<BTreeSet<SnapshotId>> = Mutex::new(BTreeSet::new());

/// The lease of a run. Dropping it ends the lease.
pub(super) struct Lease {
    held: Arc<Held>,
    renewing: Option<AbortHandle>,
    /// True if the run can use contents of interrupted runs.
    pub(super) may_adopt: bool,
    /// The provider's time when the lease was taken, if the provider tells it.
    pub(super) taken_at: Option<Timestamp>,
}

struct Held {
    cloud: Cloud,
    run: SnapshotId,
    beat: tokio::sync::Mutex<Beat>,
}

/// The last stored beat.
struct Beat {
    /// The name. `None` after the lease has ended.
    name: Option<BeatName>,
    /// The time before sending, by a clock that never jumps, and by a clock that continues during suspension.
    sent_at: (Instant, Timestamp),
}

/// Another run, with its last beat.
struct Other {
    beats: Vec<BeatName>,
    modified_at: Option<Timestamp>,
}

impl Lease {
    /// Takes a run's lease. `Locked` while another run excludes this run.
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

    /// Checks that no other run can consider this run dead.
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

    /// Checks the other runs. Returns an error if one of them excludes this run. Records runs that have
    /// ended.
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
            "{what} at the provider {}. If that process has ended, try again in {left} minutes",
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

    /// Stores the next beat, and then removes the previous beat. Returns false if the lease has ended, or if
    /// another run considers this run dead.
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

    /// Removes the last beat, which ends the lease.
    async fn end(&self) {
        let Some(name) = self.beat.lock().await.name.take() else { return };
        if let Err(error) = self.cloud.remove_object(&name.object()).await {
            tracing::warn!(error = %error.chain(), "the lease of a backup's run ends by itself");
        }
    }

    /// Lists the other runs, and the provider's time of this run's beat.
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
                "the provider {} does not list a new object at once, so it cannot keep concurrent runs apart",
                self.cloud.code()
            );
            return Err(Error::new(ErrorKind::ProviderUnavailable, message));
        }
        Ok((own, others))
    }

    /// Records the end of a run. Later actions of the run do not count.
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
    /// Returns the time since the run's last beat, if the provider tells times.
    fn age(&self, now: Option<Timestamp>) -> Option<Duration> {
        let millis = now?.as_millis().saturating_sub(self.modified_at?.as_millis());
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
    }

    /// Returns true if the run created a snapshot of a store whose data directory this process has, and does
    /// not belong to this process.
    fn is_of_a_dead_process(&self, store: Option<StoreId>) -> bool {
        let beat = self.beats[0];
        let is_of_the_store = store.is_some() && beat.store == store;
        is_of_the_store && beat.kind == RunKind::Create && !OWN.lock().contains(&beat.run)
    }
}
