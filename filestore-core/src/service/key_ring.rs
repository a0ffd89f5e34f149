//! The keys in memory, by the digest of their text.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::RwLock;
use tokio::sync::Mutex;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::KeyId;
use crate::domain::key::{ApiKey, KeyDigest};
use crate::metadata::{Metadata, StoredKey};

/// The least time between two notes of a key's use in memory, so that a busy key is not written by
/// every thread at every request.
const USE_STEP_MILLIS: i64 = 1000;

/// All keys in memory.
#[derive(Debug)]
pub(super) struct KeyRing {
    /// True once a key was made; never false again.
    exist: AtomicBool,
    held: RwLock<Held>,
    /// The turn of the one change that is under way.
    pub(super) changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Held {
    all: HashMap<KeyId, Arc<HeldKey>>,
    by_digest: HashMap<KeyDigest, Arc<HeldKey>>,
}

/// A key in memory. It does not change; a changed key takes its place.
#[derive(Debug)]
pub(super) struct HeldKey {
    /// The key as callers see it, its last use left out.
    pub(super) key: Arc<ApiKey>,
    digest: KeyDigest,
    former: Option<(KeyDigest, Timestamp)>,
    /// The last use, in milliseconds since the epoch; `NEVER` before the first.
    used: AtomicI64,
    /// The last use that the database has.
    written: AtomicI64,
}

const NEVER: i64 = i64::MIN;

impl KeyRing {
    /// Reads all keys from the database.
    pub(super) async fn read(metadata: &dyn Metadata) -> Result<Self> {
        let exist = metadata.has_keys().await?;
        let mut held = Held::default();
        for stored in metadata.keys().await? {
            held.put(HeldKey::of(stored));
        }

        let (exist, held) = (AtomicBool::new(exist), RwLock::new(held));
        Ok(Self { exist, held, changing: Mutex::new(()) })
    }

    /// Tests whether a key was ever made.
    pub(super) fn exist(&self) -> bool {
        self.exist.load(Ordering::Acquire)
    }

    /// Finds the key that is good now and whose text has that digest, and notes its use.
    pub(super) fn find(&self, digest: &KeyDigest, now: Timestamp) -> Option<Arc<ApiKey>> {
        let all = self.held.read();
        let held = all.by_digest.get(digest)?;
        if !held.key.is_good_at(now) || !held.accepts(digest, now) {
            return None;
        }
        held.note_use(now);
        Some(Arc::clone(&held.key))
    }

    /// Puts a key in the place of the one with its id, and forgets those that made room for it.
    pub(super) fn put(&self, stored: StoredKey, forgotten: &[KeyId]) {
        let mut held = self.held.write();
        for id in forgotten {
            held.remove(*id);
        }
        held.put(HeldKey::of(stored));
        drop(held);

        self.exist.store(true, Ordering::Release);
    }

    /// Takes over all that `other` holds. Uses that only this ring knows are kept.
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

    /// Refuses a key until another state of it is put here.
    pub(super) fn refuse(&self, id: KeyId) {
        self.held.write().by_digest.retain(|_, held| held.key.id != id);
    }

    /// Returns the key with that id, its last use left out.
    pub(super) fn get(&self, id: KeyId) -> Option<Arc<ApiKey>> {
        self.held.read().all.get(&id).map(|held| Arc::clone(&held.key))
    }

    /// Lists all keys, in no order.
    pub(super) fn list(&self) -> Vec<ApiKey> {
        self.held.read().all.values().map(|held| held.shown()).collect()
    }

    /// Returns the last uses that the database does not have yet.
    pub(super) fn unwritten_uses(&self) -> Vec<(KeyId, Timestamp)> {
        let held = self.held.read();
        let used = held.all.values().filter(|key| key.last_use() > key.written_use());
        used.map(|key| (key.key.id, Timestamp::from_millis(key.last_use()))).collect()
    }

    /// Records that the database has these uses.
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

    /// Tests whether the text with that digest is accepted: the present one, or the one before a
    /// rotation while both are.
    fn accepts(&self, digest: &KeyDigest, now: Timestamp) -> bool {
        self.digest == *digest
            || self.former.is_some_and(|(former, until)| former == *digest && now < until)
    }

    /// Notes a use of the key.
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

    fn shown(&self) -> ApiKey {
        let mut key = (*self.key).clone();
        let used = Some(self.last_use()).filter(|used| *used != NEVER);
        key.last_used_at = used.map(Timestamp::from_millis);
        key
    }
}
