//! Keys of the API: who may do what on whose files.
//!
//! # Purpose
//! All keys are in memory as well as in the database, by the digest of their text: a request is let in
//! without a query. A change is committed first, then taken over into memory, before its caller hears
//! of it: a key that is reported as revoked is refused already. What other servers change is taken over by its
//! version (`secrets`).
//!
//! # Locking
//! Changes take turns ([`KeyRing::changing`]), so that memory follows them in the order of their
//! commits. The map is behind a lock that readers hold for one look-up.
//!
//! # Crash safety
//! A change runs in a task of its own: a caller that goes away between commit and memory does not part
//! the two. A change whose outcome is unknown is settled by reading all keys again; where that fails as
//! well, the key is refused. Last uses are written once a minute, and may be lost.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::key_ring::KeyRing;
use super::secrets::Recency;
use super::{FileStore, Inner};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::KeyId;
use crate::domain::key::{ApiKey, KeyDigest, KeySecret, NewKey};
use crate::domain::scope::Scope;
use crate::metadata::{KeyChange, KeyOutcome, Metadata, StoredKey};
use crate::tasks;

/// The most keys that may be at one time. Dead ones make room for new ones.
const MOST: usize = 10_000;

/// The longest time for which the text before a rotation may stay good.
const LONGEST_OVERLAP: Duration = Duration::from_hours(30 * 24);

/// The keys of a store; from [`FileStore::keys`].
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
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    store: &'a FileStore,
}

impl FileStore {
    /// Returns the keys of the API, which this store holds for whoever serves it over a network.
    pub fn keys(&self) -> Keys<'_> {
        Keys { store: self }
    }
}

impl Keys<'_> {
    /// Tests whether a key was ever made. From then on a server asks every caller for one, also when
    /// none is left. Answered from memory.
    pub fn exist(self) -> bool {
        self.ring().exist()
    }

    /// Finds the key with that text, if it is good now, and notes its use. Answered from memory.
    pub fn authenticate(self, text: &[u8]) -> Option<Arc<ApiKey>> {
        self.ring().find(&KeyDigest::of(text), self.store.now())
    }

    /// Makes a key. The secret is shown this once.
    pub async fn create(self, new: NewKey) -> Result<(ApiKey, KeySecret)> {
        new.check()?;
        let secret = KeySecret::generate();
        let key = self.insert(new, secret.digest()).await?;
        Ok((key, secret))
    }

    /// Makes the first key, from the digest of a text that was made elsewhere; `None` if there were
    /// keys before.
    pub async fn adopt_first(self, new: NewKey, digest: KeyDigest) -> Result<Option<ApiKey>> {
        new.check()?;
        if self.exist() {
            return Ok(None);
        }
        match self.insert(new, digest).await {
            // Another server that starts with the same configuration came first.
            Err(_) if self.store.inner.metadata.has_keys().await? => {
                self.store.refresh_secrets(Recency::Present).await?;
                Ok(None)
            }
            made => made.map(Some),
        }
    }

    /// Lists all keys, newest first: also those that are revoked or have expired, until others take
    /// their place.
    pub fn list(self) -> Vec<ApiKey> {
        let mut all = self.ring().list();
        all.sort_unstable_by_key(|key| Reverse(key.id));
        all
    }

    /// Returns the key with that id, whether or not it is good. Answered from memory.
    pub fn get(self, id: KeyId) -> Option<Arc<ApiKey>> {
        self.ring().get(id)
    }

    /// Refuses the key from now on. A second call finds it revoked and answers the same. `NotFound` if
    /// no key has that id.
    pub async fn revoke(self, id: KeyId) -> Result<ApiKey> {
        let at = self.store.now();
        self.change(id, KeyChange::Revoke { at }).await
    }

    /// Gives the key other organizations.
    pub(crate) async fn narrow(self, id: KeyId, organizations: Scope) -> Result<ApiKey> {
        self.change(id, KeyChange::Narrow { organizations }).await
    }

    /// Gives the key another text. The one before is refused from now on, or after `overlap`, of 30
    /// days at most. `Conflict` if the key is revoked.
    pub async fn rotate(self, id: KeyId, overlap: Duration) -> Result<(ApiKey, KeySecret)> {
        if overlap > LONGEST_OVERLAP {
            let message = "the text before a rotation stays good for 30 days at most";
            return Err(Error::invalid("overlap_s", message).with_limit(LONGEST_OVERLAP.as_secs()));
        }

        let (secret, at) = (KeySecret::generate(), self.store.now());
        let digest = secret.digest();
        let change = KeyChange::Rotate { digest, at, former_until: at.plus(overlap) };
        let key = self.change(id, change).await?;
        Ok((key, secret))
    }

    fn ring(&self) -> &KeyRing {
        &self.store.inner.keys
    }

    async fn insert(self, new: NewKey, digest: KeyDigest) -> Result<ApiKey> {
        let now = self.store.now();
        let key = ApiKey {
            id: KeyId::generate(now),
            name: new.name,
            organizations: Arc::new(new.organizations),
            scopes: new.scopes,
            created_at: now,
            expires_at: new.expires_in.map(|time| now.plus(time)),
            rotated_at: None,
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

    /// Commits a change of a key and takes it over into memory, whether the caller stays or not.
    async fn commit<F>(
        self,
        id: KeyId,
        change: impl FnOnce(Arc<dyn Metadata>) -> F + Send + 'static,
    ) -> Result<ApiKey>
    where
        F: Future<Output = Result<KeyOutcome>> + Send,
    {
        let inner = Arc::clone(&self.store.inner);
        let work = tasks::spawn(async move {
            let _turn = inner.keys.changing.lock().await;
            let outcome = change(Arc::clone(&inner.metadata)).await;
            inner.take_over(id, outcome).await
        });
        work.await.map_err(|error| Error::internal("changing a key", error))?
    }
}

impl KeySecret {
    /// Makes a text that no store knows yet, of random bits from the operating system.
    pub fn generate() -> Self {
        Self::of(tasks::random_secret())
    }
}

impl Inner {
    /// Takes the outcome of a change of a key over into memory.
    async fn take_over(&self, id: KeyId, outcome: Result<KeyOutcome>) -> Result<ApiKey> {
        match outcome {
            Ok(KeyOutcome::Done(stored, forgotten)) => {
                let key = stored.key.clone();
                self.keys.put(*stored, &forgotten);
                Ok(key)
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

    /// Reads all keys, after a change of which nobody knows whether it was made. Refuses the key that it
    /// was about if they cannot be read.
    async fn read_keys_again(&self, id: KeyId) {
        match KeyRing::read(&*self.metadata).await {
            Ok(ring) => self.keys.replace_by(ring),
            Err(error) => {
                self.keys.refuse(id);
                tracing::error!(error = %error.chain(), %id, "the keys were not read again after a failed change");
            }
        }
    }
}

impl FileStore {
    /// Writes the last uses of keys that were used since they were written last.
    pub(crate) async fn note_key_uses(&self) -> Result<()> {
        let uses = self.inner.keys.unwritten_uses();
        if uses.is_empty() {
            return Ok(());
        }

        self.inner.metadata.note_key_uses(uses.clone()).await?;
        self.inner.keys.uses_written(&uses);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::{ManualClock, Timestamp};
    use crate::domain::key::KeyScope;
    use crate::domain::scope::Scope;

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

        let (_, third) = store.keys().rotate(key.id, MINUTE).await.unwrap();
        assert!(is_good(&store, &second) && is_good(&store, &third));
        clock.advance(MINUTE);
        assert!(!is_good(&store, &second) && is_good(&store, &third));

        store.keys().revoke(key.id).await.unwrap();
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
        store.note_key_uses().await.unwrap();
        assert!(store.inner.keys.unwritten_uses().is_empty());

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
        assert!(store.inner.take_over(key.id, unknown).await.is_err());
        assert!(!is_good(&store, &secret));
        assert_eq!(store.keys().list()[0].last_used_at, used);
    }
}
