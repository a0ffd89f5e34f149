//! The API keys in memory, indexed by the digest of their secret.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::RwLock;
use tokio::sync::Mutex;

use crate::domain::access::key::{ApiKey, KeyDigest};
use crate::domain::error::Result;
use crate::domain::id::KeyId;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Metadata, StoredKey};

/// The minimum time between two recorded uses of a key, in milliseconds. The pause prevents all threads from
/// writing to a busy key on every request.
const USE_STEP_MILLIS: i64 = 1000;

/// All keys in memory.
#[derive(Debug)]
pub(in crate::service) struct KeyRing {
    /// True once a key was created. The value never becomes false again.
    exist: AtomicBool,
    held: RwLock<Held>,
    /// Held during a change, so that changes run one at a time.
    pub(in crate::service) changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Held {
    all: HashMap<KeyId, Arc<HeldKey>>,
    by_digest: HashMap<KeyDigest, Arc<HeldKey>>,
}

/// A key in memory. The value is immutable: a change replaces it.
#[derive(Debug)]
pub(super) struct HeldKey {
    /// The key as callers see it, without its last use.
    pub(in crate::service) key: Arc<ApiKey>,
    digest: KeyDigest,
    former: Option<(KeyDigest, Timestamp)>,
    /// The last use, in milliseconds since the epoch. `NEVER` before the first use.
    used: AtomicI64,
    /// The last use that the database contains.
    written: AtomicI64,
}

const NEVER: i64 = i64::MIN;

impl KeyRing {
    /// Reads all keys from the database.
    pub(in crate::service) async fn read(metadata: &dyn Metadata) -> Result<Self> {
        let exist = metadata.has_keys().await?;
        let mut held = Held::default();
        for stored in metadata.keys().await? {
            held.put(HeldKey::of(stored));
        }

        let (exist, held) = (AtomicBool::new(exist), RwLock::new(held));
        Ok(Self { exist, held, changing: Mutex::new(()) })
    }

    /// Returns true if a key was ever created.
    pub(in crate::service) fn exist(&self) -> bool {
        self.exist.load(Ordering::Acquire)
    }

    /// Finds the valid key with this digest, and records its use.
    pub(in crate::service) fn find(
        &self,
        digest: &KeyDigest,
        now: Timestamp,
    ) -> Option<Arc<ApiKey>> {
        let all = self.held.read();
        let held = all.by_digest.get(digest)?;
        if !held.key.is_good_at(now) || !held.accepts(digest, now) {
            return None;
        }
        held.note_use(now);
        Some(Arc::clone(&held.key))
    }

    /// Replaces the key with the same id, and removes the `forgotten` keys.
    pub(in crate::service) fn put(&self, stored: StoredKey, forgotten: &[KeyId]) {
        let mut held = self.held.write();
        for id in forgotten {
            held.remove(*id);
        }
        held.put(HeldKey::of(stored));
        drop(held);

        self.exist.store(true, Ordering::Release);
    }

    /// Replaces the contents with `other`. Keeps uses that only this ring knows.
    pub(super) fn replace_by(&self, other: Self) {
        let mut new = other.held.into_inner();
        let mut held = self.held.write();
        for (id, old) in &held.all {
            if let Some(key) = new.all.get_mut(id) {
                key.used.fetch_max(old.used.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }

        *held = new;
        drop(held);
        self.exist.fetch_or(other.exist.into_inner(), Ordering::Release);
    }

    /// Refuses a key until `put` stores a new state of the key.
    pub(in crate::service) fn refuse(&self, id: KeyId) {
        self.held.write().by_digest.retain(|_, held| held.key.id != id);
    }

    /// Returns the key with this id, without its last use and the end of its old secret.
    pub(in crate::service) fn get(&self, id: KeyId) -> Option<Arc<ApiKey>> {
        self.held.read().all.get(&id).map(|held| Arc::clone(&held.key))
    }

    /// Returns the key with that id, its last use and the end of its old secret.
    pub(super) fn shown(&self, id: KeyId, now: Timestamp) -> Option<ApiKey> {
        self.held.read().all.get(&id).map(|held| held.shown(now))
    }

    /// Lists all keys, in no order.
    pub(in crate::service) fn list(&self, now: Timestamp) -> Vec<ApiKey> {
        self.held.read().all.values().map(|held| held.shown(now)).collect()
    }

    /// Returns the last uses that the database does not contain yet.
    pub(super) fn unwritten_uses(&self) -> Vec<(KeyId, Timestamp)> {
        let held = self.held.read();
        let used = held.all.values().filter(|key| key.last_use() > key.written_use());
        used.map(|key| (key.key.id, Timestamp::from_millis(key.last_use()))).collect()
    }

    /// Records that the database contains these uses.
    pub(super) fn uses_written(&self, uses: &[(KeyId, Timestamp)]) {
        let held = self.held.read();
        for (id, at) in uses {
            if let Some(key) = held.all.get(id) {
                key.written.fetch_max(at.as_millis(), Ordering::Relaxed);
            }
        }
    }
}

impl Held {
    fn put(&mut self, key: HeldKey) {
        if let Some(before) = self.remove(key.key.id) {
            key.used.fetch_max(before.last_use(), Ordering::Relaxed);
            key.written.fetch_max(before.written_use(), Ordering::Relaxed);
        }

        let key = Arc::new(key);
        if key.key.revoked_at.is_none() {
            let former = key.former.map(|(digest, _)| digest);
            for digest in former.into_iter().chain([key.digest]) {
                self.by_digest.insert(digest, Arc::clone(&key));
            }
        }
        self.all.insert(key.key.id, key);
    }

    fn remove(&mut self, id: KeyId) -> Option<Arc<HeldKey>> {
        let before = self.all.remove(&id)?;
        self.by_digest.retain(|_, held| held.key.id != id);
        Some(before)
    }
}

impl HeldKey {
    fn of(stored: StoredKey) -> Self {
        let used = stored.key.last_used_at.map_or(NEVER, Timestamp::as_millis);
        Self {
            key: Arc::new(stored.key),
            digest: stored.digest,
            former: stored.former,
            used: AtomicI64::new(used),
            written: AtomicI64::new(used),
        }
    }

    /// Returns true if the key accepts this digest. This is the digest of the current secret, or of the
    /// previous secret while a rotation overlaps.
    fn accepts(&self, digest: &KeyDigest, now: Timestamp) -> bool {
        self.digest == *digest
            || self.former.is_some_and(|(former, until)| former == *digest && now < until)
    }

    /// Records a use of the key.
    pub(super) fn note_use(&self, now: Timestamp) {
        let now = now.as_millis();
        if now.saturating_sub(self.last_use()) >= USE_STEP_MILLIS {
            self.used.fetch_max(now, Ordering::Relaxed);
        }
    }

    fn last_use(&self) -> i64 {
        self.used.load(Ordering::Relaxed)
    }

    fn written_use(&self) -> i64 {
        self.written.load(Ordering::Relaxed)
    }

    fn shown(&self, now: Timestamp) -> ApiKey {
        let mut key = (*self.key).clone();
        let used = Some(self.last_use()).filter(|used| *used != NEVER);
        key.last_used_at = used.map(Timestamp::from_millis);
        key.old_valid_until = self.old_valid_until(now);
        key
    }

    /// Returns the time until which the previous secret is valid, if it is valid at `now`.
    fn old_valid_until(&self, now: Timestamp) -> Option<Timestamp> {
        let (_, until) = self.former.filter(|_| self.key.is_good_at(now))?;
        let until = self.key.expires_at.map_or(until, |end| end.min(until));
        Some(until).filter(|until| now < *until)
    }
}
