//! API keys. A key defines the calls that a caller can make, and the organizations with accessible files.
//!
//! # Purpose
//! All keys are in memory and in the database, indexed by the digest of their secret. A server can check a
//! request without a query. A change is first committed, then applied to memory, and then reported to its
//! caller. A key that is reported as revoked is therefore already refused. Changes by other servers arrive by
//! their version (`secrets`).
//!
//! # Locking
//! Changes run one at a time ([`KeyRing::changing`]), so that memory applies them in the order of their
//! commits. A lock protects the map. Readers hold this lock for one look-up.
//!
//! # Crash safety
//! A change runs in its own task, so a disconnected caller cannot interrupt it between the commit and the
//! update of memory. If the outcome of a change is unknown, the store reads all keys again. If this fails
//! too, the store refuses the key. Last uses are written once a minute, and can be lost.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::Access;
use super::key_ring::KeyRing;
use super::secrets::Recency;
use crate::domain::access::key::{ApiKey, KeyDigest, KeySecret, NewKey};
use crate::domain::access::scope::Scope;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::KeyId;
use crate::metadata::{KeyChange, KeyOutcome, Metadata, StoredKey};
use crate::tasks;

/// The maximum number of keys. New keys displace expired and revoked keys.
const MOST: usize = 10_000;

/// The maximum time for which the previous secret stays valid after a rotation.
const LONGEST_OVERLAP: Duration = Duration::from_hours(30 * 24);

/// The API keys of a store; from [`FileStore::keys`](crate::FileStore::keys).
///
/// ```
/// use filestore_core::keys::{KeyScope, NewKey};
/// use filestore_core::{FileStore, Scope};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let store = FileStore::open(dir.path()).await?;
/// let new = NewKey::new("the web shop", Scope::All, [KeyScope::Read, KeyScope::Write]);
/// let (key, secret) = store.keys().create(new).await?;
///
/// let shown = store.keys().authenticate(secret.expose().as_bytes()).expect("it was made just now");
/// assert_eq!(shown.id, key.id);
/// store.keys().revoke(key.id).await?;
/// assert!(store.keys().authenticate(secret.expose().as_bytes()).is_none());
/// # Ok(())
/// # }
/// ```
#[must_use = "a handle does nothing until you call a method"]
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    access: &'a Arc<Access>,
}

impl<'a> Keys<'a> {
    pub(in crate::service) fn of(access: &'a Arc<Access>) -> Self {
        Self { access }
    }
}

impl Keys<'_> {
    /// Returns true if a key was ever created. From then on, a server requires a key from every caller, even
    /// if all keys are gone. Reads memory only.
    pub fn exist(self) -> bool {
        self.access.keys.exist()
    }

    /// Returns the valid key with this secret, and records its use. Reads memory only.
    pub fn authenticate(self, text: &[u8]) -> Option<Arc<ApiKey>> {
        self.access.keys.find(&KeyDigest::of(text), self.access.clock.now())
    }

    /// Creates a key. This is the only time that the store shows the secret.
    pub async fn create(self, new: NewKey) -> Result<(ApiKey, KeySecret)> {
        new.check()?;
        let secret = KeySecret::generate();
        let key = self.insert(new, secret.digest()).await?;
        Ok((key, secret))
    }

    /// Creates the first key from the digest of an existing secret. Returns `None` if the store already had a
    /// key.
    pub async fn adopt_first(self, new: NewKey, digest: KeyDigest) -> Result<Option<ApiKey>> {
        new.check()?;
        if self.exist() {
            return Ok(None);
        }
        match self.insert(new, digest).await {
            // Another server that starts with the same configuration came first.
            Err(_) if self.access.metadata.has_keys().await? => {
                self.access.refresh(Recency::Present).await?;
                Ok(None)
            }
            made => made.map(Some),
        }
    }

    /// Lists all keys, newest first. The list includes revoked and expired keys until new keys displace them.
    pub fn list(self) -> Vec<ApiKey> {
        let mut all = self.access.keys.list(self.access.clock.now());
        all.sort_unstable_by_key(|key| Reverse(key.id));
        all
    }

    /// Returns the key with this id, even if the key is revoked or expired. Reads memory only. The last use
    /// and the end of an old secret are only in [`list`](Self::list).
    pub fn get(self, id: KeyId) -> Option<Arc<ApiKey>> {
        self.access.keys.get(id)
    }

    /// Revokes the key immediately. A second call succeeds and returns the same key. `NotFound` if the id is
    /// unknown.
    pub async fn revoke(self, id: KeyId) -> Result<ApiKey> {
        let at = self.access.clock.now();
        self.change(id, KeyChange::Revoke { at }).await
    }

    /// Sets the key's organizations.
    pub(crate) async fn narrow(self, id: KeyId, organizations: Scope) -> Result<ApiKey> {
        let at = self.access.clock.now();
        self.change(id, KeyChange::Narrow { organizations, at }).await
    }

    /// Replaces the key's secret. The previous secret stays valid for `overlap`, at most 30 days, or ends at
    /// once if `overlap` is zero. `Conflict` if the key is revoked.
    pub async fn rotate(self, id: KeyId, overlap: Duration) -> Result<(ApiKey, KeySecret)> {
        if overlap > LONGEST_OVERLAP {
            let message = "the text before a rotation stays good for 30 days at most";
            return Err(Error::invalid("overlap_s", message).with_limit(LONGEST_OVERLAP.as_secs()));
        }

        let (secret, at) = (KeySecret::generate(), self.access.clock.now());
        let digest = secret.digest();
        let change = KeyChange::Rotate { digest, at, former_until: at.plus(overlap) };
        let key = self.change(id, change).await?;
        Ok((key, secret))
    }

    async fn insert(self, new: NewKey, digest: KeyDigest) -> Result<ApiKey> {
        let now = self.access.clock.now();
        let key = ApiKey {
            id: KeyId::generate(now),
            name: new.name,
            organizations: Arc::new(new.organizations),
            scopes: new.scopes,
            created_at: now,
            expires_at: new.expires_in.map(|time| now.plus(time)),
            rotated_at: None,
            old_valid_until: None,
            revoked_at: None,
            last_used_at: None,
        };
        let stored = StoredKey { key, digest, former: None };
        let id = stored.key.id;
        self.commit(id, async move |metadata| metadata.insert_key(stored, MOST).await).await
    }

    async fn change(self, id: KeyId, change: KeyChange) -> Result<ApiKey> {
        self.commit(id, async move |metadata| metadata.change_key(id, change).await).await
    }

    /// Commits a change of a key and applies it to memory, even if the caller disconnects.
    async fn commit<F>(
        self,
        id: KeyId,
        change: impl FnOnce(Arc<dyn Metadata>) -> F + Send + 'static,
    ) -> Result<ApiKey>
    where
        F: Future<Output = Result<KeyOutcome>> + Send,
    {
        let access = Arc::clone(self.access);
        let work = tasks::spawn(async move {
            let _turn = access.keys.changing.lock().await;
            let outcome = change(Arc::clone(&access.metadata)).await;
            access.take_over(id, outcome).await
        });
        work.await.map_err(|error| Error::internal("changing a key", error))?
    }
}

impl KeySecret {
    /// Creates a new secret from random bits of the operating system.
    pub fn generate() -> Self {
        Self::of(tasks::random_secret())
    }
}

impl Access {
    /// Applies the outcome of a change to memory.
    async fn take_over(&self, id: KeyId, outcome: Result<KeyOutcome>) -> Result<ApiKey> {
        match outcome {
            Ok(KeyOutcome::Done(stored, forgotten)) => {
                let key = stored.key.clone();
                self.keys.put(*stored, &forgotten);
                // Memory knows the last use before the database does.
                Ok(self.keys.shown(id, self.clock.now()).unwrap_or(key))
            }
            Ok(KeyOutcome::Unknown) => Err(Error::not_found("key").with_field("key_id")),
            Ok(KeyOutcome::Revoked) => {
                Err(Error::new(ErrorKind::Conflict, "the key is revoked, and stays so"))
            }
            Ok(KeyOutcome::Full) => {
                let message = "there are as many keys as there may be: revoke one";
                Err(Error::new(ErrorKind::Conflict, message).with_limit(MOST as u64))
            }
            Err(error) => {
                self.read_keys_again(id).await;
                Err(error)
            }
        }
    }

    /// Reads all keys again, after a change with an unknown outcome. If reading fails, refuses the changed
    /// key.
    async fn read_keys_again(&self, id: KeyId) {
        match KeyRing::read(&*self.metadata).await {
            Ok(ring) => self.keys.replace_by(ring),
            Err(error) => {
                self.keys.refuse(id);
                tracing::error!(error = %error.chain(), %id, "the keys were not read again after a failed change");
            }
        }
    }

    /// Writes the key uses since the last call.
    pub(crate) async fn note_key_uses(&self) -> Result<()> {
        let uses = self.keys.unwritten_uses();
        if uses.is_empty() {
            return Ok(());
        }

        self.metadata.note_key_uses(uses.clone()).await?;
        self.keys.uses_written(&uses);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileStore;
    use crate::domain::access::key::KeyScope;
    use crate::domain::access::scope::Scope;
    use crate::domain::time::clock::{ManualClock, Timestamp};

    const MINUTE: Duration = Duration::from_mins(1);

    fn new() -> NewKey {
        NewKey::new("k", Scope::All, [KeyScope::Read])
    }

    async fn store() -> (tempfile::TempDir, ManualClock, FileStore) {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::from_millis(1_795_248_930_123));
        let store = FileStore::builder(dir.path()).clock(clock.clock()).open().await.unwrap();
        (dir, clock, store)
    }

    fn is_good(store: &FileStore, secret: &KeySecret) -> bool {
        store.keys().authenticate(secret.expose().as_bytes()).is_some()
    }

    #[tokio::test]
    async fn a_key_is_good_from_its_making_to_its_revocation_and_after_a_reopening() {
        let (dir, _clock, store) = store().await;
        assert!(!store.keys().exist());
        let (key, secret) = store.keys().create(new()).await.unwrap();
        let (other, others_secret) = store.keys().create(new()).await.unwrap();
        assert!(store.keys().exist() && is_good(&store, &secret));
        assert!(store.keys().authenticate(b"fsk_").is_none());

        store.keys().revoke(key.id).await.unwrap();
        assert!(!is_good(&store, &secret) && is_good(&store, &others_secret));
        store.keys().revoke(other.id).await.unwrap();
        assert!(store.keys().exist(), "also when none is left");

        let shown = store.keys().list();
        store.close().await;
        drop(store);
        let store = FileStore::open(dir.path()).await.unwrap();
        assert!(store.keys().exist() && !is_good(&store, &secret));
        assert_eq!(store.keys().list(), shown);
    }

    #[tokio::test]
    async fn a_changed_key_shows_its_last_use_before_the_database_has_it() {
        let (_dir, _clock, store) = store().await;
        let (key, secret) = store.keys().create(new()).await.unwrap();
        assert!(is_good(&store, &secret));
        let (rotated, _) = store.keys().rotate(key.id, MINUTE).await.unwrap();
        assert_eq!(rotated.last_used_at, Some(store.now()));
        let revoked = store.keys().revoke(key.id).await.unwrap();
        assert_eq!(revoked.last_used_at, Some(store.now()));
    }

    #[tokio::test]
    async fn a_key_expires_by_the_clock_of_the_store() {
        let (_dir, clock, store) = store().await;
        let expiring = NewKey { expires_in: Some(MINUTE), ..new() };
        let (_, secret) = store.keys().create(expiring).await.unwrap();
        clock.advance(MINUTE / 2);
        assert!(is_good(&store, &secret));
        clock.advance(MINUTE / 2);
        assert!(!is_good(&store, &secret));
    }

    #[tokio::test]
    async fn a_rotation_refuses_the_text_before_at_once_or_after_the_overlap() {
        let (_dir, clock, store) = store().await;
        let (key, first) = store.keys().create(new()).await.unwrap();
        let (rotated, second) = store.keys().rotate(key.id, Duration::ZERO).await.unwrap();
        assert_eq!((rotated.id, rotated.rotated_at), (key.id, Some(store.now())));
        assert!(!is_good(&store, &first) && is_good(&store, &second));

        assert_eq!(rotated.old_valid_until, None);

        let (rotated, third) = store.keys().rotate(key.id, MINUTE).await.unwrap();
        assert!(is_good(&store, &second) && is_good(&store, &third));
        let until = Some(store.now().plus(MINUTE));
        assert_eq!(rotated.old_valid_until, until);
        assert_eq!(store.keys().list()[0].old_valid_until, until);
        clock.advance(MINUTE);
        assert!(!is_good(&store, &second) && is_good(&store, &third));
        assert_eq!(store.keys().list()[0].old_valid_until, None);

        store.keys().rotate(key.id, MINUTE).await.unwrap();
        let revoked = store.keys().revoke(key.id).await.unwrap();
        assert_eq!(revoked.old_valid_until, None);
        assert!(!is_good(&store, &third));
        let error = store.keys().rotate(key.id, MINUTE).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let error = store.keys().rotate(key.id, LONGEST_OVERLAP + MINUTE).await.unwrap_err();
        assert_eq!(error.details().field.as_deref(), Some("overlap_s"));
    }

    #[tokio::test]
    async fn a_revocation_whose_caller_went_away_holds_all_the_same() {
        let (_dir, _clock, store) = store().await;
        let (key, secret) = store.keys().create(new()).await.unwrap();
        let mut revoking = Box::pin(store.keys().revoke(key.id));
        assert!(futures_util::future::poll_immediate(&mut revoking).await.is_none());
        drop(revoking);

        // Changes take turns: this one comes after it.
        store.keys().create(new()).await.unwrap();
        assert!(!is_good(&store, &secret));
    }

    #[tokio::test]
    async fn the_first_key_is_adopted_once() {
        let (_dir, _clock, store) = store().await;
        let secret = KeySecret::of([7; 32]);
        let adopted = store.keys().adopt_first(new(), secret.digest()).await.unwrap();
        assert!(adopted.is_some() && is_good(&store, &secret));
        let again = KeySecret::of([8; 32]);
        assert_eq!(store.keys().adopt_first(new(), again.digest()).await.unwrap(), None);
        assert!(!is_good(&store, &again));
    }

    #[tokio::test]
    async fn the_last_use_is_shown_at_once_and_written_for_the_next_start() {
        let (dir, clock, store) = store().await;
        let (key, secret) = store.keys().create(new()).await.unwrap();
        assert_eq!(store.keys().list()[0].last_used_at, None);
        clock.advance(MINUTE);
        assert!(is_good(&store, &secret));
        let used = Some(store.now());
        assert_eq!(store.keys().list()[0].last_used_at, used);

        store.keys().rotate(key.id, MINUTE).await.unwrap();
        assert_eq!(store.keys().list()[0].last_used_at, used, "a rotation keeps it");
        store.inner.access.note_key_uses().await.unwrap();
        assert!(store.inner.access.keys.unwritten_uses().is_empty());

        store.close().await;
        drop(store);
        let store = FileStore::open(dir.path()).await.unwrap();
        assert_eq!(store.keys().list()[0].last_used_at, used);
    }

    #[tokio::test]
    async fn a_key_whose_change_has_an_unknown_outcome_is_refused_if_nothing_can_be_read_again() {
        let (_dir, _clock, store) = store().await;
        let (key, secret) = store.keys().create(new()).await.unwrap();
        let (_, others_secret) = store.keys().create(new()).await.unwrap();
        store.close().await;

        store.keys().revoke(key.id).await.unwrap_err();
        assert!(!is_good(&store, &secret) && is_good(&store, &others_secret));
    }

    #[tokio::test]
    async fn keys_are_read_again_after_a_change_of_unknown_outcome() {
        let (_dir, _clock, store) = store().await;
        let (key, secret) = store.keys().create(new()).await.unwrap();
        assert!(is_good(&store, &secret));
        let used = store.keys().list()[0].last_used_at;

        let at = store.now();
        store.inner.metadata.change_key(key.id, KeyChange::Revoke { at }).await.unwrap();
        let unknown = Err(Error::internal("committing", "no answer"));
        assert!(store.inner.access.take_over(key.id, unknown).await.is_err());
        assert!(!is_good(&store, &secret));
        assert_eq!(store.keys().list()[0].last_used_at, used);
    }
}
