//! The keys and the secrets that sign URLs, in memory and as other servers have changed them since.
//!
//! # Purpose
//! A request is let in from memory. Where several servers share a database, what is in memory holds as long as
//! its version is known to be the present one: as of a second ago at the most. So a key that was revoked through
//! any server is refused by every one a second later, also by one that cannot hear of it: that one asks the
//! database before it answers.
//!
//! # Locking
//! One request looks at a time, and the others take over what it found, or give up after a while: so a database
//! that does not answer lets no requests pile up. While all is read anew no change is made here, so that memory
//! never goes back behind one.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::key_ring::KeyRing;
use super::{FileStore, Inner};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::metadata::{Company, Metadata, SecretsVersion};

/// The longest time for which a version is taken for the present one.
const TRUSTED: Duration = Duration::from_secs(1);

/// The longest wait for a look, that of others included.
const PATIENCE: Duration = Duration::from_secs(5);

/// The age that what is in memory may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recency {
    /// A second: for what is let in as it was a second ago.
    Second,
    /// None: all that was committed before the call counts.
    Present,
}

/// The version of the secrets in memory.
pub(super) struct LoadedSecrets {
    number: AtomicI64,
    /// Held by the one request that looks.
    looking: Mutex<()>,
}

impl LoadedSecrets {
    /// Notes the version before all secrets are read.
    pub(super) async fn before_reading(metadata: &dyn Metadata) -> Result<Self> {
        let version = metadata.secrets_version().await?;
        let number = AtomicI64::new(version.map_or(0, |version| version.number));
        Ok(Self { number, looking: Mutex::new(()) })
    }

    fn are(&self, version: SecretsVersion) -> bool {
        self.number.load(Ordering::Acquire) == version.number
    }
}

impl FileStore {
    /// Tells other servers of the same store how many requests clients have made here since the last call, and returns
    /// how many they have made elsewhere: for limits that hold for all servers together. A client has the same name on
    /// all of them. Nothing is told, and none are returned, where no other server can be.
    pub async fn exchange_uses(&self, own: Vec<(String, u64)>) -> Result<Vec<(String, u64)>> {
        self.inner.metadata.exchange_uses(own).await
    }

    /// Tells whether other servers may work on the store beside this process.
    pub fn may_have_company(&self) -> bool {
        self.inner.metadata.company() == Company::Others
    }

    /// Tells whether other servers may change the keys and the secrets that sign URLs.
    pub fn shares_secrets(&self) -> bool {
        self.inner.metadata.known_secrets().is_some()
    }

    /// Tells whether the keys and signing secrets in memory are those of a second ago or later. Where no
    /// other server may change them they always are.
    pub fn has_recent_secrets(&self) -> bool {
        self.inner.metadata.known_secrets().is_none_or(|known| {
            known.as_of.elapsed() < TRUSTED && self.inner.loaded_secrets.are(known)
        })
    }

    /// Takes over what other servers have changed of the keys and the signing secrets, if what is in memory may
    /// be older than asked for. `Busy` if the database does not say in time.
    pub async fn refresh_secrets(&self, recency: Recency) -> Result<()> {
        if recency == Recency::Second && self.has_recent_secrets() {
            return Ok(());
        }
        let looked = timeout(PATIENCE, self.inner.refresh_secrets(Instant::now())).await;
        looked.unwrap_or_else(|_| {
            let message = "the database does not say in time whether keys have changed";
            Err(Error::new(ErrorKind::Busy, message).with_retry_after_secs(1))
        })
    }
}

impl Inner {
    /// Takes over what was committed before `since`.
    async fn refresh_secrets(&self, since: Instant) -> Result<()> {
        let _looking = self.loaded_secrets.looking.lock().await;
        let Some(known) = self.metadata.known_secrets() else { return Ok(()) };
        let version = if known.as_of >= since {
            known
        } else {
            self.metadata.secrets_version().await?.unwrap_or(known)
        };
        if self.loaded_secrets.are(version) {
            return Ok(());
        }

        let _keys = self.keys.changing.lock().await;
        let _secrets = self.signing.changing.lock().await;
        let ring = KeyRing::read(&*self.metadata).await?;
        self.signing.refresh(&*self.metadata).await?;
        self.keys.replace_by(ring);
        self.loaded_secrets.number.store(version.number, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_look_that_takes_long_keeps_no_other_request_waiting_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let _looking = store.inner.loaded_secrets.looking.lock().await;
        assert!(store.refresh_secrets(Recency::Second).await.is_ok(), "it need not look");

        tokio::time::pause();
        let error = store.refresh_secrets(Recency::Present).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
    }
}
