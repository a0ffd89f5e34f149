//! Keeps API keys and signing secrets in memory up to date when other servers change them.
//!
//! # Purpose
//! The store checks requests from memory. If several servers share a database, the contents of memory are
//! valid as long as their version is the current version, checked at most one second ago. If any server
//! revokes a key, all servers refuse the key within one second. A server that misses the news asks the
//! database before it answers.
//!
//! # Locking
//! One request at a time asks the database. Other requests wait for its answer, or give up after 5 seconds,
//! so that requests do not pile up if the database does not answer. While all secrets are read again, this
//! server makes no changes. Memory can therefore not fall back behind a change.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::Access;
use super::key_ring::KeyRing;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::metadata::{Company, Metadata, SecretsVersion};

/// The maximum age of a version check.
const TRUSTED: Duration = Duration::from_secs(1);

/// The maximum wait for a version check, including the wait for other requests.
const PATIENCE: Duration = Duration::from_secs(5);

/// How current the keys and secrets in memory must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recency {
    /// At most one second old. Use this to accept requests.
    Second,
    /// Current: includes every change that was committed before the call.
    Present,
}

/// The version of the secrets in memory.
pub(in crate::service) struct LoadedSecrets {
    number: AtomicI64,
    /// Held by the request that asks the database.
    looking: Mutex<()>,
}

impl LoadedSecrets {
    /// Reads the version. Call it before reading the secrets.
    pub(in crate::service) async fn before_reading(metadata: &dyn Metadata) -> Result<Self> {
        let number = match metadata.servers() {
            Some(servers) => servers.secrets_version().await?.number,
            None => 0,
        };
        Ok(Self { number: AtomicI64::new(number), looking: Mutex::new(()) })
    }

    fn are(&self, version: SecretsVersion) -> bool {
        self.number.load(Ordering::Acquire) == version.number
    }
}

/// The exchange between servers that share one store; from [`FileStore::shared`](crate::FileStore::shared).
///
/// A server calls this exchange before it trusts the keys in memory. A program with its own store needs no
/// exchange.
///
/// ```no_run
/// use filestore_core::keys::Recency;
///
/// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
/// store.shared().refresh_secrets(Recency::Second).await?;
/// let caller = store.keys().authenticate(b"fsk_...");
/// # drop(caller);
/// # Ok(())
/// # }
/// ```
#[must_use = "a handle does nothing until you call a method"]
#[derive(Debug, Clone, Copy)]
pub struct SharedStore<'a> {
    access: &'a Access,
}

impl<'a> SharedStore<'a> {
    pub(in crate::service) fn of(access: &'a Access) -> Self {
        Self { access }
    }
}

impl SharedStore<'_> {
    /// Returns true if other servers can work on the store next to this process.
    pub fn may_have_company(self) -> bool {
        self.access.metadata.company() == Company::Others
    }

    /// Tells the other servers how many requests each client has made here since the last call, and returns
    /// how many it has made at the other servers. Use it for limits that hold for all servers together. A
    /// client must have the same name on all servers. Without other servers, the call returns at once.
    pub async fn exchange_uses(self, own: Vec<(String, u64)>) -> Result<Vec<(String, u64)>> {
        match self.access.metadata.servers() {
            Some(servers) => servers.exchange_uses(own).await,
            None => Ok(Vec::new()),
        }
    }

    /// Returns true if other servers can change the keys and the secrets that sign URLs.
    pub fn shares_secrets(self) -> bool {
        self.access.metadata.servers().is_some()
    }

    /// Returns true if the keys and signing secrets in memory are at most one second old. Without other servers
    /// they always are.
    pub fn has_recent_secrets(self) -> bool {
        self.access.is_recent()
    }

    /// Loads the changes of other servers to keys and signing secrets, if the copy in memory is older than
    /// `recency` allows. `Busy` if the database does not answer in time.
    pub async fn refresh_secrets(self, recency: Recency) -> Result<()> {
        self.access.refresh(recency).await
    }
}

impl Access {
    /// Returns true if the keys and secrets in memory are at most one second old.
    fn is_recent(&self) -> bool {
        self.metadata.servers().is_none_or(|servers| {
            let known = servers.known_secrets();
            known.as_of.elapsed() < TRUSTED && self.loaded.are(known)
        })
    }

    /// Loads the changes of other servers if the copy in memory is too old. `Busy` if the database does not
    /// answer in time.
    pub(super) async fn refresh(&self, recency: Recency) -> Result<()> {
        if recency == Recency::Second && self.is_recent() {
            return Ok(());
        }
        let looked = timeout(PATIENCE, self.take_over_before(Instant::now())).await;
        looked.unwrap_or_else(|_| {
            let message = "the database does not say in time whether keys have changed";
            Err(Error::new(ErrorKind::Busy, message).with_retry_after_secs(1))
        })
    }

    /// Loads all changes that were committed before `since`.
    async fn take_over_before(&self, since: Instant) -> Result<()> {
        let _looking = self.loaded.looking.lock().await;
        let Some(servers) = self.metadata.servers() else { return Ok(()) };
        let known = servers.known_secrets();
        let version = if known.as_of >= since { known } else { servers.secrets_version().await? };
        if self.loaded.are(version) {
            return Ok(());
        }

        let _keys = self.keys.changing.lock().await;
        let _secrets = self.signing.changing.lock().await;
        let ring = KeyRing::read(&*self.metadata).await?;
        self.signing.refresh(&*self.metadata).await?;
        self.keys.replace_by(ring);
        self.loaded.number.store(version.number, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileStore;

    #[tokio::test]
    async fn a_look_that_takes_long_keeps_no_other_request_waiting_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).await.unwrap();
        let _looking = store.inner.access.loaded.looking.lock().await;
        assert!(store.shared().refresh_secrets(Recency::Second).await.is_ok(), "it need not look");

        tokio::time::pause();
        let error = store.shared().refresh_secrets(Recency::Present).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
    }
}
