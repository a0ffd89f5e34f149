//! Signed URLs: making and verifying them, and the secrets that they are signed with.
//!
//! # Purpose
//! A browser that has no key reads one file, or uploads one, with a URL that somebody with a key made
//! for it. Nothing is stored for a URL: what it grants is in its text, and its secret proves it.
//!
//! # Secrets
//! They are in the database, beside the permits that uploads have spent: one directory, one lock, one
//! backup. Whoever can read them there can read all files as well. The first is made when the first
//! URL is signed. Rotation leaves the old one valid until its last URL has expired.
//!
//! # Locking
//! The secrets of the configuration and those of the database are each replaced as a whole, and no lock
//! of them is held across an await. `changing` lets one change of the stored ones run at a time, from
//! reading them to having them in memory.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::Mutex;

use super::{FileStore, Inner};
use crate::domain::clock::Timestamp;
use crate::domain::config::SigningConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::FileId;
use crate::domain::scope::Scope;
use crate::domain::signature::{
    MAX_LIFE, MAX_WINDOW, ShownSignature, SignedMethod, SigningSecret, cacheable_for, expiry,
    not_ours,
};
use crate::domain::signed_url::{SignFile, SignUpload, SignedUrl, SigningSecretInfo};
use crate::metadata::{Metadata, StoredSecret};
use crate::tasks;

/// The secrets of a store.
#[derive(Debug)]
pub(super) struct SigningSecrets {
    configured: RwLock<Arc<[SigningSecret]>>,
    stored: RwLock<Arc<[StoredSecret]>>,
    pub(super) changing: Mutex<()>,
}

/// Signed URLs of a store; from [`FileStore::signing`].
///
/// ```
/// use filestore_core::signing::{SignFile, SignedMethod};
/// use filestore_core::{FileStore, Fit, NewUpload, Scope};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> filestore_core::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let store = FileStore::open(dir.path()).await?;
/// let new = NewUpload::new("42".parse()?, "gallery".parse()?);
/// let record = store.upload(new, &b"hello"[..]).await?;
///
/// let thumbnail = SignFile::variant(200.try_into()?, Fit::Cover);
/// let url = store.signing().file(record.file_id, &Scope::All, &thumbnail).await?;
///
/// let (path, query) = url.path_and_query.split_once('?').unwrap();
/// let until = store.signing().verify(SignedMethod::Get, path, query)?;
/// assert_eq!(until, Some(url.expires_at));
/// assert!(store.signing().verify(SignedMethod::Get, "/another", query).is_err());
/// # store.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Signing<'a> {
    pub(super) store: &'a FileStore,
}

impl FileStore {
    /// Gives access to signed URLs.
    pub fn signing(&self) -> Signing<'_> {
        Signing { store: self }
    }

    /// Forgets what no URL needs any more: retired secrets, and permits that uploads have spent.
    pub(crate) async fn forget_signatures(&self) -> Result<()> {
        let (metadata, now) = (&self.inner.metadata, self.inner.now());
        while metadata.forget_permits(now, 500).await? == 500 {}

        let stored = Arc::clone(&self.inner.signing.stored.read());
        if stored.iter().all(|one| one.is_valid_at(now)) {
            return Ok(());
        }
        self.signing()
            .change(async move |inner: Arc<Inner>| {
                inner.metadata.forget_signing_secrets(now).await?;
                inner.signing.drop_over(now);
                Ok(())
            })
            .await
    }
}

impl Signing<'_> {
    /// Signs a URL to read a file, for a caller that may see it. `NotFound` for an unknown, foreign or
    /// deleted file, `InvalidField` for an animated variant where they are switched off. Whether the file has
    /// the variant is not looked at.
    pub async fn file(self, id: FileId, scope: &Scope, request: &SignFile) -> Result<SignedUrl> {
        let (life, target) = (request.life()?, request.target(id)?);
        self.store.expect_motion(request.motion)?;
        self.store.record(id, scope).await?;

        let secret = self.signer().await?;
        let expires_at = self.expiry(life);
        Ok(SignedUrl::new(&secret, SignedMethod::Get, &target, expires_at))
    }

    /// Signs a URL to upload one file. Each URL is another one.
    pub async fn upload(self, request: &SignUpload) -> Result<SignedUrl> {
        let (life, target) = (request.life()?, request.target(&tasks::random_name())?);

        let secret = self.signer().await?;
        let expires_at = self.expiry(life);
        Ok(SignedUrl::new(&secret, SignedMethod::Post, &target, expires_at))
    }

    /// Verifies the signature in a request's query, and returns the end of its URL; `None` if the query
    /// has no parameter `sig`. `path` is below the public prefix, `query` as it was sent.
    ///
    /// `SignatureInvalid` if no secret of the store signed this method, path and query,
    /// `SignatureExpired` for a URL whose end has come.
    pub fn verify(
        self,
        method: SignedMethod,
        path: &str,
        query: &str,
    ) -> Result<Option<Timestamp>> {
        let Some(shown) = ShownSignature::find(query)? else { return Ok(None) };
        let now = self.store.inner.now();
        let secret = self.store.inner.signing.find(shown.kid, now).ok_or_else(not_ours)?;
        shown.verify(&secret, method, path, now).map(Some)
    }

    /// Fails with `SignatureInvalid` if URLs of the secret with that name are refused by now: it was
    /// revoked, or is over. Answered from memory.
    pub fn expect_known(self, kid: &str) -> Result<()> {
        let inner = &self.store.inner;
        inner.signing.find(kid, inner.now()).map(drop).ok_or_else(not_ours)
    }

    /// Returns how long a cache may keep what a URL leads to: until the present window ends.
    pub fn cacheable_for(self, expires_at: Timestamp) -> Duration {
        cacheable_for(self.store.inner.now(), expires_at, self.store.inner.config().signing.window)
    }

    /// Lists the secrets: those of the configuration, then those of the data directory, the oldest
    /// first.
    pub fn secrets(self) -> Vec<SigningSecretInfo> {
        self.store.inner.signing.list(self.store.inner.now())
    }

    /// Makes a new secret in the data directory, which signs from now on unless the configuration has
    /// one. The one before it verifies for as long as a URL that it signed may live.
    pub async fn rotate(self) -> Result<SigningSecretInfo> {
        let secret = self.change(async |inner: Arc<Inner>| inner.replace_secret().await).await?;
        let all = self.secrets();
        let made = all.into_iter().find(|info| !info.is_configured && info.kid == secret.kid());
        made.ok_or_else(|| Error::not_found("signing secret"))
    }

    /// Forgets a secret of the data directory: all URLs that it signed are refused at once. `NotFound`
    /// if there is none of the name.
    pub async fn revoke(self, kid: &str) -> Result<()> {
        let kid = kid.to_owned();
        self.change(async move |inner: Arc<Inner>| {
            let revoked = inner.metadata.revoke_signing_secret(&kid).await;
            // Also after a failure, which does not say if it was committed: then `change` reads again.
            inner.signing.drop_stored(&kid);
            if revoked? { Ok(()) } else { Err(Error::not_found("signing secret")) }
        })
        .await
    }

    fn expiry(self, life: Duration) -> Timestamp {
        expiry(self.store.inner.now(), life, self.store.inner.config().signing.window)
    }

    /// Returns the secret that signs, made now if there is none.
    async fn signer(self) -> Result<SigningSecret> {
        if let Some(secret) = self.store.inner.signing.signer() {
            return Ok(secret);
        }
        self.change(async |inner: Arc<Inner>| match inner.signing.signer() {
            Some(made_meanwhile) => Ok(made_meanwhile),
            None => inner.replace_secret().await,
        })
        .await
    }

    /// Changes the secrets, one change at a time. `change` takes into memory what it committed; after a
    /// failure, which does not say if something was, all are read again. Runs in a task of its own: a
    /// caller that goes away does not part memory from database.
    async fn change<T, F>(self, change: impl FnOnce(Arc<Inner>) -> F + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send,
    {
        let inner = Arc::clone(&self.store.inner);
        let work = tasks::spawn(async move {
            let _changing = inner.signing.changing.lock().await;
            let outcome = change(Arc::clone(&inner)).await;
            if outcome.is_err()
                && let Err(error) = inner.signing.refresh(&*inner.metadata).await
            {
                tracing::error!(
                    error = %error.chain(),
                    "the signing secrets were not read again after a failed change"
                );
            }
            outcome
        });
        work.await.map_err(|error| Error::internal("changing the signing secrets", error))?
    }
}

impl Inner {
    /// Puts a new secret in the place of the one that signs. The caller holds `changing`.
    async fn replace_secret(&self) -> Result<SigningSecret> {
        let kid = format!("{:012x}", tasks::random_part() & ((1 << 48) - 1));
        let secret = SigningSecret::new(kid, tasks::random_secret())?;

        let now = self.now();
        let old_until = now.plus(MAX_LIFE).plus(MAX_WINDOW);
        self.metadata.rotate_signing_secret(secret.clone(), now, old_until).await?;
        self.signing.put_stored(secret.clone(), now, old_until);
        tracing::info!(kid = secret.kid(), "a new secret signs URLs");
        Ok(secret)
    }
}

impl SigningSecrets {
    /// Reads the secrets of a store that is being opened.
    pub(super) async fn load(metadata: &dyn Metadata, config: &SigningConfig) -> Result<Self> {
        let secrets = Self {
            configured: RwLock::new(config.secrets.as_slice().into()),
            stored: RwLock::new(Arc::new([])),
            changing: Mutex::new(()),
        };
        secrets.refresh(metadata).await?;
        Ok(secrets)
    }

    /// Reads all stored secrets anew. The caller holds `changing`, or opens the store.
    pub(super) async fn refresh(&self, metadata: &dyn Metadata) -> Result<()> {
        let stored = metadata.signing_secrets().await?;
        *self.stored.write() = stored.into();
        Ok(())
    }

    /// Replaces the secrets of the configuration: URLs of those that are gone are refused from now on.
    pub(super) fn configure(&self, config: &SigningConfig) {
        *self.configured.write() = config.secrets.as_slice().into();
    }

    /// Lets a stored secret sign from `now` on, and the one before it verify until `old_until`.
    fn put_stored(&self, secret: SigningSecret, now: Timestamp, old_until: Timestamp) {
        let mut stored = self.stored.write();
        let mut all = stored.to_vec();
        if let Some(current) = all.iter_mut().find(|one| one.valid_until.is_none()) {
            current.valid_until = Some(old_until);
        }
        all.push(StoredSecret { secret, created_at: now, valid_until: None });
        *stored = all.into();
    }

    /// Forgets a stored secret: all URLs that it signed are refused.
    fn drop_stored(&self, kid: &str) {
        let mut stored = self.stored.write();
        let left: Vec<_> = stored.iter().filter(|one| one.secret.kid() != kid).cloned().collect();
        *stored = left.into();
    }

    /// Forgets the stored secrets that are over at `now`.
    fn drop_over(&self, now: Timestamp) {
        let mut stored = self.stored.write();
        let left: Vec<_> = stored.iter().filter(|one| one.is_valid_at(now)).cloned().collect();
        *stored = left.into();
    }

    /// Returns the secret that signs, if there is one: the first of the configuration comes first.
    fn signer(&self) -> Option<SigningSecret> {
        if let Some(first) = self.configured.read().first() {
            return Some(first.clone());
        }
        let stored = Arc::clone(&self.stored.read());
        stored.iter().find(|one| one.valid_until.is_none()).map(|one| one.secret.clone())
    }

    /// Returns the secret of the name that verifies at `now`.
    fn find(&self, kid: &str, now: Timestamp) -> Option<SigningSecret> {
        if let Some(secret) = self.configured.read().iter().find(|secret| secret.kid() == kid) {
            return Some(secret.clone());
        }
        let stored = Arc::clone(&self.stored.read());
        let found = stored.iter().find(|one| one.secret.kid() == kid)?;
        found.is_valid_at(now).then(|| found.secret.clone())
    }

    fn list(&self, now: Timestamp) -> Vec<SigningSecretInfo> {
        let signer = self.signer();

        let configured = Arc::clone(&self.configured.read());
        let configured = configured.iter().map(|secret| SigningSecretInfo {
            kid: secret.kid().to_owned(),
            is_configured: true,
            signs: signer.as_ref() == Some(secret),
            created_at: None,
            valid_until: None,
        });

        let stored = Arc::clone(&self.stored.read());
        let valid = stored.iter().filter(|one| one.is_valid_at(now));
        let stored = valid.map(|one| SigningSecretInfo {
            kid: one.secret.kid().to_owned(),
            is_configured: false,
            signs: signer.as_ref() == Some(&one.secret),
            created_at: Some(one.created_at),
            valid_until: one.valid_until,
        });
        configured.chain(stored).collect()
    }
}

/// Makes the error of a second upload with one signed URL.
pub(super) fn permit_spent() -> Error {
    let message =
        "the upload that this signed URL was for has been made: each is good for one file";
    Error::new(ErrorKind::SignatureUsed, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::ManualClock;
    use crate::service::NewUpload;

    const NOW: Timestamp = Timestamp::from_millis(1_795_248_930_123);

    async fn store_at(dir: &std::path::Path, clock: &ManualClock) -> FileStore {
        FileStore::builder(dir).clock(clock.clock()).open().await.unwrap()
    }

    async fn file(store: &FileStore) -> FileId {
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        store.upload(new, &b"bytes"[..]).await.unwrap().file_id
    }

    fn check(store: &FileStore, url: &SignedUrl) -> Result<Option<Timestamp>> {
        let (path, query) = url.path_and_query.split_once('?').unwrap();
        store.signing().verify(SignedMethod::Get, path, query)
    }

    #[tokio::test]
    async fn the_first_url_makes_the_secret_and_a_restart_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let store = store_at(dir.path(), &clock).await;
        let id = file(&store).await;
        assert!(store.signing().secrets().is_empty());

        let content = SignFile::content();
        let urls = tokio::join!(
            store.signing().file(id, &Scope::All, &content),
            store.signing().file(id, &Scope::All, &content),
        );
        let url = urls.0.unwrap();
        assert_eq!(urls.1.unwrap(), url, "two first URLs make one secret");
        assert_eq!(store.signing().secrets().len(), 1);

        store.close().await;
        drop(store);
        let store = store_at(dir.path(), &clock).await;
        assert_eq!(check(&store, &url).unwrap(), Some(url.expires_at));
        assert_eq!(store.signing().file(id, &Scope::All, &content).await.unwrap(), url);
    }

    #[tokio::test]
    async fn a_rotated_secret_verifies_until_its_last_url_is_over_and_is_then_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let store = store_at(dir.path(), &clock).await;
        let id = file(&store).await;
        let longest = SignFile::content().expires_in(MAX_LIFE);
        let before = store.signing().file(id, &Scope::All, &longest).await.unwrap();

        let made = store.signing().rotate().await.unwrap();
        assert!(made.signs);
        let after = store.signing().file(id, &Scope::All, &longest).await.unwrap();
        assert!(after.path_and_query.contains(&made.kid) && after != before);
        assert!(check(&store, &before).is_ok() && check(&store, &after).is_ok());

        clock.set(Timestamp::from_millis(before.expires_at.as_millis() - 1));
        assert!(check(&store, &before).is_ok());
        clock.advance(Duration::from_secs(1));
        assert_eq!(check(&store, &before).unwrap_err().kind(), ErrorKind::SignatureExpired);

        clock.advance(MAX_WINDOW);
        assert_eq!(check(&store, &before).unwrap_err().kind(), ErrorKind::SignatureInvalid);
        assert_eq!(store.signing().secrets().len(), 1);
        store.forget_signatures().await.unwrap();
        assert_eq!(store.inner.metadata.signing_secrets().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_revoked_secret_takes_its_urls_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_at(dir.path(), &ManualClock::at(NOW)).await;
        let id = file(&store).await;
        let url = store.signing().file(id, &Scope::All, &SignFile::content()).await.unwrap();
        let kid = store.signing().secrets()[0].kid.clone();

        store.signing().revoke(&kid).await.unwrap();
        assert_eq!(check(&store, &url).unwrap_err().kind(), ErrorKind::SignatureInvalid);
        assert_eq!(store.signing().revoke(&kid).await.unwrap_err().kind(), ErrorKind::NotFound);

        let again = store.signing().file(id, &Scope::All, &SignFile::content()).await.unwrap();
        assert!(check(&store, &again).is_ok() && again != url);
    }

    #[tokio::test]
    async fn a_revocation_of_unknown_outcome_refuses_the_urls_if_nothing_can_be_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_at(dir.path(), &ManualClock::at(NOW)).await;
        let id = file(&store).await;
        let url = store.signing().file(id, &Scope::All, &SignFile::content()).await.unwrap();
        let kid = store.signing().secrets()[0].kid.clone();

        store.close().await;
        assert_ne!(store.signing().revoke(&kid).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(check(&store, &url).unwrap_err().kind(), ErrorKind::SignatureInvalid);
    }

    #[tokio::test]
    async fn a_secret_of_the_configuration_signs_first_and_leaves_the_others_valid() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let store = store_at(dir.path(), &clock).await;
        let id = file(&store).await;
        let stored = store.signing().file(id, &Scope::All, &SignFile::content()).await.unwrap();
        store.close().await;
        drop(store);

        let mut config = crate::domain::config::StoreConfig::default();
        config.signing.secrets = vec![
            SigningSecret::new("new", [1; 32]).unwrap(),
            SigningSecret::new("old", [2; 32]).unwrap(),
        ];
        let store = FileStore::builder(dir.path()).config(config).clock(clock.clock());
        let store = store.open().await.unwrap();
        let url = store.signing().file(id, &Scope::All, &SignFile::content()).await.unwrap();
        assert!(url.path_and_query.contains("kid=new"));

        let shown: Vec<_> = store.signing().secrets().into_iter().map(|one| one.signs).collect();
        assert_eq!(shown, [true, false, false]);
        assert!(check(&store, &stored).is_ok());
        let (path, _) = url.path_and_query.split_once('?').unwrap();
        let old = SigningSecret::new("old", [2; 32]).unwrap();
        let of_an_application =
            old.sign(SignedMethod::Get, path, "", NOW.plus(Duration::from_mins(1)));
        let (path, query) = of_an_application.split_once('?').unwrap();
        assert!(store.signing().verify(SignedMethod::Get, path, query).unwrap().is_some());
    }

    #[tokio::test]
    async fn secrets_of_the_configuration_come_and_go_with_a_reload() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_at(dir.path(), &ManualClock::at(NOW)).await;
        let id = file(&store).await;
        let sign = async || store.signing().file(id, &Scope::All, &SignFile::content()).await;
        let stored = sign().await.unwrap();

        let mut config = crate::domain::config::StoreConfig::default();
        config.signing.secrets = vec![SigningSecret::new("leaked", [1; 32]).unwrap()];
        assert!(store.reload(config.clone()).await.unwrap().waiting.is_empty());
        let leaked = sign().await.unwrap();
        assert!(leaked.path_and_query.contains("kid=leaked"));

        config.signing.secrets = vec![SigningSecret::new("next", [2; 32]).unwrap()];
        store.reload(config).await.unwrap();
        assert_eq!(check(&store, &leaked).unwrap_err().kind(), ErrorKind::SignatureInvalid);
        let next = sign().await.unwrap();
        assert!(next.path_and_query.contains("kid=next"));
        assert!(check(&store, &next).is_ok() && check(&store, &stored).is_ok());
    }

    #[tokio::test]
    async fn only_a_file_that_the_caller_sees_is_signed_for() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_at(dir.path(), &ManualClock::at(NOW)).await;
        let id = file(&store).await;
        let foreign = Scope::Organizations(vec!["other".parse().unwrap()]);
        let refused = store.signing().file(id, &foreign, &SignFile::content()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFound);
        assert!(store.signing().secrets().is_empty());
    }
}
