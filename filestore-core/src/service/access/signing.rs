//! Creates and verifies signed URLs, and manages the secrets that sign them.
//!
//! # Purpose
//! A browser without a key can read or upload one file through a URL that a key holder created. The store
//! keeps no data for a URL. The URL contains its own rights, and the signature proves them.
//!
//! # Keys
//! If a caller with an API key creates a URL, the URL names this key. It then grants no more than the key
//! grants at the time of use. The URL ends when the key is revoked or expires, and reaches only the key's
//! current organizations. A rotation changes the secret of a key but not its id, so URLs survive a rotation.
//! In the open mode, on the admin socket and in the library there is no key. Such URLs are valid until they
//! expire, or until their signing secret is revoked.
//!
//! # Erasures
//! The URL of an upload also names the era in which it was signed
//! ([`Era`](crate::domain::report::erasure::Era)). An application that signs its own URLs can use the current
//! time in milliseconds instead. A URL without either cannot upload to an organization that was ever erased.
//!
//! # Secrets
//! Secrets are stored in the database, next to the used permits of uploads. They share its directory, lock
//! and backup. Anyone who can read the secrets there can also read all files. The store creates the first
//! secret when it signs the first URL. After a rotation, the old secret stays valid until its last URL has
//! expired.
//!
//! # Locking
//! The configured secrets and the stored secrets are each replaced as a whole, and no lock on them is held
//! across an await. `changing` allows one change of the stored secrets at a time, from reading them to
//! updating memory.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::Mutex;

use super::Access;
use crate::domain::access::key::{ApiKey, KeyScope};
use crate::domain::access::scope::Scope;
use crate::domain::access::signature::{
    MAX_LIFE, MAX_WINDOW, ShownSignature, SignedMethod, SigningSecret, cacheable_for, expiry,
    key_is_over, not_ours,
};
use crate::domain::access::signed_url::{
    SignFile, SignUpload, SignedUrl, SigningSecretInfo, VerifiedUrl,
};
use crate::domain::config::SigningConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, KeyId};
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Metadata, StoredSecret};
use crate::service::FileStore;
use crate::tasks;

/// The maximum number of URLs in one call.
const MAX_URLS: usize = 100;

/// The signing secrets of a store.
#[derive(Debug)]
pub(in crate::service) struct SigningSecrets {
    configured: RwLock<Arc<[SigningSecret]>>,
    stored: RwLock<Arc<[StoredSecret]>>,
    pub(in crate::service) changing: Mutex<()>,
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
/// let url = store.scoped(&Scope::All).sign(record.file_id, &thumbnail).await?;
///
/// let (path, query) = url.path_and_query.split_once('?').unwrap();
/// let verified = store.signing().verify(SignedMethod::Get, path, query)?.expect("it is signed");
/// assert_eq!(verified.expires_at, url.expires_at);
/// assert!(store.signing().verify(SignedMethod::Get, "/another", query).is_err());
/// # store.close().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "a handle does nothing until you call a method"]
#[derive(Debug, Clone, Copy)]
pub struct Signing<'a> {
    pub(in crate::service) store: &'a FileStore,
}

impl<'a> Signing<'a> {
    pub(in crate::service) fn of(store: &'a FileStore) -> Self {
        Self { store }
    }

    /// Signs a URL to read a file. The caller must have looked up the file.
    pub(in crate::service) async fn read_url(
        self,
        id: FileId,
        request: &SignFile,
    ) -> Result<SignedUrl> {
        let (life, target) = (request.life()?, request.target(id)?);
        let expires_at = self.end_of(life, request.key)?;
        let secret = self.signer().await?;
        Ok(SignedUrl::new(&secret, SignedMethod::Get, &target, expires_at))
    }

    /// Signs a URL to upload one file. Each call returns a different URL. If the organization is erased, the
    /// URL is refused.
    pub async fn upload(self, request: &SignUpload) -> Result<SignedUrl> {
        let era = self.store.inner.metadata.era();
        let (life, target) = (request.life()?, request.target(&tasks::random_name(), era)?);

        let expires_at = self.end_of(life, request.key)?;
        let secret = self.signer().await?;
        Ok(SignedUrl::new(&secret, SignedMethod::Post, &target, expires_at))
    }

    /// Signs `count` URLs, 1 to 100, to upload one file each. See [`upload`](Self::upload). `InvalidField` for another
    /// count.
    pub async fn uploads(self, request: &SignUpload, count: usize) -> Result<Vec<SignedUrl>> {
        if !(1..=MAX_URLS).contains(&count) {
            let message = format!("count is 1 to {MAX_URLS}");
            return Err(Error::invalid("count", message).with_limit(MAX_URLS as u64));
        }
        let mut urls = Vec::with_capacity(count);
        for _ in 0..count {
            urls.push(self.upload(request).await?);
        }
        Ok(urls)
    }

    /// Verifies the signature in a request's query, and returns the URL's rights. `None` if the query
    /// has no parameter `sig`. `path` is the path below the public prefix, and `query` is the query exactly
    /// as sent. Reads memory only.
    ///
    /// Returns `SignatureInvalid` if no secret of the store signed this method, path and query, or if the
    /// URL's key no longer grants the right. Returns `SignatureExpired` if the URL has expired.
    pub fn verify(
        self,
        method: SignedMethod,
        path: &str,
        query: &str,
    ) -> Result<Option<VerifiedUrl>> {
        let Some(shown) = ShownSignature::find(query)? else { return Ok(None) };
        let now = self.store.inner.now();
        let secret = self.store.inner.access.signing.find(shown.kid, now).ok_or_else(not_ours)?;
        let end = shown.verify(&secret, method, path, now)?;

        let (kid, key) = (shown.kid.to_owned(), shown.key()?);
        let Some(id) = key else {
            let organizations = Arc::new(Scope::All);
            return Ok(Some(VerifiedUrl { expires_at: end, kid, key, organizations }));
        };
        let good = self.good_key(id, method)?;
        let expires_at = good.expires_at.map_or(end, |its_end| end.min(its_end));
        let organizations = Arc::clone(&good.organizations);
        Ok(Some(VerifiedUrl { expires_at, kid, key, organizations }))
    }

    /// Returns the organizations that a verified URL reaches now. The call does not check the expiry.
    /// `SignatureInvalid` if the secret was removed, or if the API key that requested the URL lost the
    /// right. Reads memory only.
    pub fn verify_again(self, method: SignedMethod, url: &VerifiedUrl) -> Result<Arc<Scope>> {
        let inner = &self.store.inner;
        inner.access.signing.find(&url.kid, inner.now()).ok_or_else(not_ours)?;
        let Some(id) = url.key else { return Ok(Arc::clone(&url.organizations)) };
        Ok(Arc::clone(&self.good_key(id, method)?.organizations))
    }

    /// Returns a URL's key if it still grants the right to such requests.
    fn good_key(self, id: KeyId, method: SignedMethod) -> Result<Arc<ApiKey>> {
        let scope = match method {
            SignedMethod::Get => KeyScope::Read,
            SignedMethod::Post => KeyScope::Write,
        };
        let key = self.store.keys().get(id);
        key.filter(|key| key.is_good_at(self.store.inner.now()) && key.allows(scope))
            .ok_or_else(key_is_over)
    }

    /// Returns how long a cache can keep the response to a URL: until the current time window ends.
    pub fn cacheable_for(self, expires_at: Timestamp) -> Duration {
        cacheable_for(self.store.inner.now(), expires_at, self.store.inner.config().signing.window)
    }

    /// Lists the secrets, oldest first: first the configured secrets, then the stored secrets.
    pub fn secrets(self) -> Vec<SigningSecretInfo> {
        self.store.inner.access.signing.list(self.store.inner.now())
    }

    /// Creates a new secret in the records database. The new secret signs all further URLs, unless the
    /// configuration contains a secret. The old secret verifies until its last URL has expired.
    pub async fn rotate(self) -> Result<SigningSecretInfo> {
        let secret = self
            .access()
            .change_secrets(async |access: Arc<Access>| access.replace_secret().await)
            .await?;
        let all = self.secrets();
        let made = all.into_iter().find(|info| !info.is_configured && info.kid == secret.kid());
        made.ok_or_else(|| Error::not_found("signing secret"))
    }

    /// Removes a stored secret from the records database. The store immediately refuses all URLs that the
    /// secret signed. `NotFound` if there is no secret with this name.
    pub async fn revoke(self, kid: &str) -> Result<()> {
        let kid = kid.to_owned();
        self.access()
            .change_secrets(async move |access: Arc<Access>| {
                let revoked = access.metadata.revoke_signing_secret(&kid).await;
                // Also after a failure, which does not say if it was committed: then all are read again.
                access.signing.drop_stored(&kid);
                if revoked? { Ok(()) } else { Err(Error::not_found("signing secret")) }
            })
            .await
    }

    /// Returns a URL's expiry: the end of its time window, or its key's expiry if that is earlier.
    /// `NotFound` for an unknown key.
    fn end_of(self, life: Duration, key: Option<KeyId>) -> Result<Timestamp> {
        let inner = &self.store.inner;
        let end = expiry(inner.now(), life, inner.config().signing.window);
        let Some(id) = key else { return Ok(end) };
        let key = self.store.keys().get(id);
        let key = key.ok_or_else(|| Error::not_found("key").with_field("key_id"))?;
        // A URL tells its end in whole seconds.
        let its_end = key.expires_at.map(|at| Timestamp::from_millis(at.as_secs() * 1000));
        Ok(its_end.map_or(end, |its_end| end.min(its_end)))
    }

    /// Returns the secret that signs. Creates a secret if there is none.
    async fn signer(self) -> Result<SigningSecret> {
        if let Some(secret) = self.access().signing.signer() {
            return Ok(secret);
        }
        self.access()
            .change_secrets(async |access: Arc<Access>| match access.signing.signer() {
                Some(made_meanwhile) => Ok(made_meanwhile),
                None => access.replace_secret().await,
            })
            .await
    }

    fn access(self) -> &'a Arc<Access> {
        &self.store.inner.access
    }
}

impl Access {
    /// Removes secrets and permits that no URL needs: retired secrets, and used permits of uploads.
    pub(crate) async fn forget_signatures(self: &Arc<Self>) -> Result<()> {
        let now = self.clock.now();
        while self.metadata.forget_permits(now, 500).await? == 500 {}

        let stored = Arc::clone(&self.signing.stored.read());
        if stored.iter().all(|one| one.is_valid_at(now)) {
            return Ok(());
        }
        self.change_secrets(async move |access: Arc<Self>| {
            access.metadata.forget_signing_secrets(now).await?;
            access.signing.drop_over(now);
            Ok(())
        })
        .await
    }

    /// Changes the secrets, one change at a time. `change` applies its commit to memory. After a failure the
    /// outcome is unknown, so all secrets are read again. The change runs in its own task, so that a
    /// disconnected caller cannot separate memory from the database.
    async fn change_secrets<T, F>(
        self: &Arc<Self>,
        change: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send,
    {
        let access = Arc::clone(self);
        let work = tasks::spawn(async move {
            let _changing = access.signing.changing.lock().await;
            let outcome = change(Arc::clone(&access)).await;
            if outcome.is_err()
                && let Err(error) = access.signing.refresh(&*access.metadata).await
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

    /// Replaces the secret that signs. The caller holds `changing`.
    async fn replace_secret(&self) -> Result<SigningSecret> {
        let kid = format!("{:012x}", tasks::random_part() & ((1 << 48) - 1));
        let secret = SigningSecret::new(kid, tasks::random_secret())?;

        let now = self.clock.now();
        let old_until = now.plus(MAX_LIFE).plus(MAX_WINDOW);
        self.metadata.rotate_signing_secret(secret.clone(), now, old_until).await?;
        self.signing.put_stored(secret.clone(), now, old_until);
        tracing::info!(kid = secret.kid(), "a new secret signs URLs");
        Ok(secret)
    }
}

impl SigningSecrets {
    /// Loads the secrets while the store is opened.
    pub(in crate::service) async fn load(
        metadata: &dyn Metadata,
        config: &SigningConfig,
    ) -> Result<Self> {
        let secrets = Self {
            configured: RwLock::new(config.secrets.as_slice().into()),
            stored: RwLock::new(Arc::new([])),
            changing: Mutex::new(()),
        };
        secrets.refresh(metadata).await?;
        Ok(secrets)
    }

    /// Reads all stored secrets again. The caller holds `changing`, or opens the store.
    pub(in crate::service) async fn refresh(&self, metadata: &dyn Metadata) -> Result<()> {
        let stored = metadata.signing_secrets().await?;
        *self.stored.write() = stored.into();
        Ok(())
    }

    /// Replaces the configured secrets. The store then refuses URLs of removed secrets.
    pub(in crate::service) fn configure(&self, config: &SigningConfig) {
        *self.configured.write() = config.secrets.as_slice().into();
    }

    /// Makes a stored secret sign from `now` on. The previous secret verifies until `old_until`.
    fn put_stored(&self, secret: SigningSecret, now: Timestamp, old_until: Timestamp) {
        let mut stored = self.stored.write();
        let mut all = stored.to_vec();
        if let Some(current) = all.iter_mut().find(|one| one.valid_until.is_none()) {
            current.valid_until = Some(old_until);
        }
        all.push(StoredSecret { secret, created_at: now, valid_until: None });
        *stored = all.into();
    }

    /// Removes a stored secret. The store then refuses all URLs that it signed.
    fn drop_stored(&self, kid: &str) {
        let mut stored = self.stored.write();
        let left: Vec<_> = stored.iter().filter(|one| one.secret.kid() != kid).cloned().collect();
        *stored = left.into();
    }

    /// Removes the stored secrets that have expired at `now`.
    fn drop_over(&self, now: Timestamp) {
        let mut stored = self.stored.write();
        let left: Vec<_> = stored.iter().filter(|one| one.is_valid_at(now)).cloned().collect();
        *stored = left.into();
    }

    /// Returns the secret that signs, if any. A configured secret has priority.
    fn signer(&self) -> Option<SigningSecret> {
        if let Some(first) = self.configured.read().first() {
            return Some(first.clone());
        }
        let stored = Arc::clone(&self.stored.read());
        stored.iter().find(|one| one.valid_until.is_none()).map(|one| one.secret.clone())
    }

    /// Returns the secret with this name, if it verifies at `now`.
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

/// Returns the error for a second upload with one signed URL.
pub(in crate::service) fn permit_spent() -> Error {
    let message =
        "the upload that this signed URL was for has been made: each is good for one file";
    Error::new(ErrorKind::SignatureUsed, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::key::NewKey;
    use crate::domain::time::clock::ManualClock;
    use crate::service::NewUpload;

    const NOW: Timestamp = Timestamp::from_millis(1_795_248_930_123);

    async fn store_at(dir: &std::path::Path, clock: &ManualClock) -> FileStore {
        FileStore::builder(dir).clock(clock.clock()).open().await.unwrap()
    }

    async fn file(store: &FileStore) -> FileId {
        let new = NewUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        store.upload(new, &b"bytes"[..]).await.unwrap().file_id
    }

    fn check(store: &FileStore, url: &SignedUrl) -> Result<Option<VerifiedUrl>> {
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
            store.scoped(&Scope::All).sign(id, &content),
            store.scoped(&Scope::All).sign(id, &content),
        );
        let url = urls.0.unwrap();
        assert_eq!(urls.1.unwrap(), url, "two first URLs make one secret");
        assert_eq!(store.signing().secrets().len(), 1);

        store.close().await;
        drop(store);
        let store = store_at(dir.path(), &clock).await;
        let verified = check(&store, &url).unwrap().unwrap();
        assert_eq!((verified.expires_at, verified.key), (url.expires_at, None));
        assert_eq!(store.scoped(&Scope::All).sign(id, &content).await.unwrap(), url);
    }

    #[tokio::test]
    async fn a_rotated_secret_verifies_until_its_last_url_is_over_and_is_then_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let store = store_at(dir.path(), &clock).await;
        let id = file(&store).await;
        let longest = SignFile::content().expires_in(MAX_LIFE);
        let before = store.scoped(&Scope::All).sign(id, &longest).await.unwrap();

        let made = store.signing().rotate().await.unwrap();
        assert!(made.signs);
        let after = store.scoped(&Scope::All).sign(id, &longest).await.unwrap();
        assert!(after.path_and_query.contains(&made.kid) && after != before);
        assert!(check(&store, &before).is_ok() && check(&store, &after).is_ok());

        clock.set(Timestamp::from_millis(before.expires_at.as_millis() - 1));
        assert!(check(&store, &before).is_ok());
        clock.advance(Duration::from_secs(1));
        assert_eq!(check(&store, &before).unwrap_err().kind(), ErrorKind::SignatureExpired);

        clock.advance(MAX_WINDOW);
        assert_eq!(check(&store, &before).unwrap_err().kind(), ErrorKind::SignatureInvalid);
        assert_eq!(store.signing().secrets().len(), 1);
        store.inner.access.forget_signatures().await.unwrap();
        assert_eq!(store.inner.metadata.signing_secrets().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_revoked_secret_takes_its_urls_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_at(dir.path(), &ManualClock::at(NOW)).await;
        let id = file(&store).await;
        let url = store.scoped(&Scope::All).sign(id, &SignFile::content()).await.unwrap();
        let kid = store.signing().secrets()[0].kid.clone();

        store.signing().revoke(&kid).await.unwrap();
        assert_eq!(check(&store, &url).unwrap_err().kind(), ErrorKind::SignatureInvalid);
        assert_eq!(store.signing().revoke(&kid).await.unwrap_err().kind(), ErrorKind::NotFound);

        let again = store.scoped(&Scope::All).sign(id, &SignFile::content()).await.unwrap();
        assert!(check(&store, &again).is_ok() && again != url);
    }

    #[tokio::test]
    async fn a_revocation_of_unknown_outcome_refuses_the_urls_if_nothing_can_be_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_at(dir.path(), &ManualClock::at(NOW)).await;
        let id = file(&store).await;
        let url = store.scoped(&Scope::All).sign(id, &SignFile::content()).await.unwrap();
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
        let stored = store.scoped(&Scope::All).sign(id, &SignFile::content()).await.unwrap();
        store.close().await;
        drop(store);

        let mut config = crate::domain::config::StoreConfig::default();
        config.signing.secrets = vec![
            SigningSecret::new("new", [1; 32]).unwrap(),
            SigningSecret::new("old", [2; 32]).unwrap(),
        ];
        let store = FileStore::builder(dir.path()).config(config).clock(clock.clock());
        let store = store.open().await.unwrap();
        let url = store.scoped(&Scope::All).sign(id, &SignFile::content()).await.unwrap();
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
        let sign = async || store.scoped(&Scope::All).sign(id, &SignFile::content()).await;
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
        let refused = store.scoped(&foreign).sign(id, &SignFile::content()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFound);
        assert!(store.signing().secrets().is_empty());
    }

    async fn key(store: &FileStore, scope: KeyScope, organizations: Scope) -> KeyId {
        let new = NewKey::new("k", organizations, [scope]);
        store.keys().create(new).await.unwrap().0.id
    }

    fn only(organizations: &[&str]) -> Scope {
        Scope::Organizations(organizations.iter().map(|one| one.parse().unwrap()).collect())
    }

    #[tokio::test]
    async fn a_url_reaches_what_its_key_reaches_by_now_and_dies_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_at(dir.path(), &ManualClock::at(NOW)).await;
        let id = file(&store).await;
        let read = key(&store, KeyScope::Read, only(&["acme", "other"])).await;
        let request = SignFile::content().on_behalf_of(read);
        let url = store.scoped(&Scope::All).sign(id, &request).await.unwrap();
        let again = store.scoped(&Scope::All).sign(id, &request).await.unwrap();
        assert_eq!(url, again, "within a window");

        let good = check(&store, &url).unwrap().unwrap();
        assert_eq!((good.key, &*good.organizations), (Some(read), &only(&["acme", "other"])));
        store.keys().rotate(read, Duration::ZERO).await.unwrap();
        assert!(check(&store, &url).is_ok(), "a rotation keeps it");

        store.keys().narrow(read, only(&["other"])).await.unwrap();
        let narrowed = check(&store, &url).unwrap().unwrap();
        assert_eq!(*narrowed.organizations, only(&["other"]));
        let rechecked = store.signing().verify_again(SignedMethod::Get, &good).unwrap();
        assert_eq!(*rechecked, only(&["other"]));

        store.keys().revoke(read).await.unwrap();
        for refused in [
            check(&store, &url).unwrap_err(),
            store.signing().verify_again(SignedMethod::Get, &good).unwrap_err(),
        ] {
            assert_eq!(refused.kind(), ErrorKind::SignatureInvalid);
        }
    }

    #[tokio::test]
    async fn a_url_needs_the_scope_of_what_it_is_for() {
        let dir = tempfile::tempdir().unwrap();
        let store = store_at(dir.path(), &ManualClock::at(NOW)).await;
        let id = file(&store).await;
        let write = key(&store, KeyScope::Write, Scope::All).await;
        let reading = SignFile::content().on_behalf_of(write);
        let url = store.scoped(&Scope::All).sign(id, &reading).await.unwrap();
        assert_eq!(check(&store, &url).unwrap_err().kind(), ErrorKind::SignatureInvalid);

        let upload = SignUpload::new("acme".parse().unwrap(), "docs".parse().unwrap());
        let url = store.signing().upload(&upload.on_behalf_of(write)).await.unwrap();
        let (path, query) = url.path_and_query.split_once('?').unwrap();
        assert!(store.signing().verify(SignedMethod::Post, path, query).unwrap().is_some());
        store.keys().revoke(write).await.unwrap();
        assert!(store.signing().verify(SignedMethod::Post, path, query).is_err());

        let unknown = SignFile::content().on_behalf_of(KeyId::generate(NOW));
        let refused = store.scoped(&Scope::All).sign(id, &unknown).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn a_url_ends_with_its_key_and_no_cache_keeps_it_longer() {
        let dir = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(NOW);
        let store = store_at(dir.path(), &clock).await;
        let id = file(&store).await;
        let mut new = NewKey::new("k", Scope::All, [KeyScope::Read]);
        new.expires_in = Some(Duration::from_secs(20));
        let (short, _) = store.keys().create(new).await.unwrap();

        let request = SignFile::content().on_behalf_of(short.id);
        let url = store.scoped(&Scope::All).sign(id, &request).await.unwrap();
        let end = short.expires_at.unwrap();
        assert_eq!(url.expires_at.as_secs(), end.as_secs());
        let verified = check(&store, &url).unwrap().unwrap();
        assert!(store.signing().cacheable_for(verified.expires_at) <= Duration::from_secs(20));

        // One that does not say so by itself ends all the same.
        let secret = store.signing().signer().await.unwrap();
        let target = request.target(id).unwrap();
        let long = SignedUrl::new(&secret, SignedMethod::Get, &target, NOW.plus(MAX_LIFE));
        assert_eq!(check(&store, &long).unwrap().unwrap().expires_at, end);
        clock.advance(Duration::from_secs(20));
        assert!(check(&store, &url).is_err() && check(&store, &long).is_err());
    }
}
