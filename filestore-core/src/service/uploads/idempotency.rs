//! Idempotency keys: a request that is sent twice is done once.
//!
//! A key is scoped to the caller and the organization. While a request runs its key is held in
//! memory, and by an entry for other servers ([`IdempotencyGuard`]); its reply is committed in the same
//! transaction as its records.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::reply::StoredReply;
use crate::domain::id::OrganizationId;
use crate::service::Inner;
use crate::service::work::under_way::{Entered, Entry};

/// The longest key, in bytes.
const KEY_BYTES: usize = 255;

/// An idempotency key and the caller that chose it. Two callers can use the same key for different uploads.
///
/// ```
/// use filestore_core::uploads::IdempotencyKey;
///
/// assert!(IdempotencyKey::new("", "order-17").is_ok());
/// assert!(IdempotencyKey::new("", "two\nlines").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    caller: String,
    key: String,
}

impl IdempotencyKey {
    /// Names the key `key` of `caller`. The caller is a text that no other caller has, for example the id of
    /// its API key. It is empty if there is only one caller.
    ///
    /// `InvalidField` for a key that is empty, longer than 255 bytes or not printable ASCII.
    pub fn new(caller: impl Into<String>, key: impl Into<String>) -> Result<Self> {
        let key = key.into();
        if key.is_empty()
            || key.len() > KEY_BYTES
            || !key.bytes().all(|b| (0x20..0x7F).contains(&b))
        {
            return Err(Error::invalid(
                "idempotency_key",
                format!("an idempotency key is 1 to {KEY_BYTES} printable ascii characters"),
            )
            .with_limit(KEY_BYTES as u64));
        }
        Ok(Self { caller: caller.into(), key })
    }

    /// Returns the caller that chose the key.
    pub fn caller(&self) -> &str {
        &self.caller
    }

    /// Returns the key as the caller chose it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Joins caller and key to the text that is stored.
    fn scoped(&self) -> String {
        format!("{}\n{}", self.caller, self.key)
    }
}

/// Keys of requests that run now.
#[derive(Debug, Default)]
pub(in crate::service) struct KeysInUse(Mutex<HashSet<(OrganizationId, String)>>);

/// The right to be the one request that runs under a key. Dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct IdempotencyGuard {
    running: Arc<KeysInUse>,
    pub(super) organization: OrganizationId,
    pub(super) key: String,
    entry: Option<Entry>,
}

impl Drop for IdempotencyGuard {
    fn drop(&mut self) {
        let entry = (self.organization.clone(), std::mem::take(&mut self.key));
        self.running.0.lock().remove(&entry);
    }
}

/// An answer to an earlier request under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// No request under the key was carried out yet.
    None,
    /// An earlier request was carried out. This one stores nothing, whatever it sends.
    Stored,
}

impl IdempotencyGuard {
    /// Claims `key`, and tells whether a reply is stored under it.
    ///
    /// `IdempotencyInProgress` while a request with the same key runs.
    pub(super) async fn claim(
        inner: &Inner,
        organization: &OrganizationId,
        key: &IdempotencyKey,
    ) -> Result<(Self, Answer)> {
        let key = key.scoped();
        let running = &inner.uploads.idempotency;
        if !running.0.lock().insert((organization.clone(), key.clone())) {
            return Err(in_progress());
        }

        let mut guard = Self {
            running: Arc::clone(running),
            organization: organization.clone(),
            key,
            entry: None,
        };
        let entered =
            inner.background.enter(format!("idempotency {organization} {}", guard.key)).await?;
        let stored = inner.metadata.idempotency(organization, &guard.key, inner.now()).await?;
        let answer = if stored.is_some() { Answer::Stored } else { Answer::None };
        match (entered, answer) {
            (Entered::Alone(entry), _) => guard.entry = entry,
            // The request on the other server ended just now: its reply can be given again.
            (Entered::Elsewhere, Answer::Stored) => {}
            (Entered::Elsewhere, Answer::None) => return Err(in_progress()),
        }
        Ok((guard, answer))
    }

    /// Finds the reply of an earlier request with the same key and content, if there was one.
    ///
    /// `IdempotencyMismatch` if the key was used with another content.
    pub(super) async fn replay(
        &self,
        inner: &Inner,
        fingerprint: &[u8; 32],
    ) -> Result<Option<StoredReply>> {
        let entry = inner.metadata.idempotency(&self.organization, &self.key, inner.now()).await?;

        match entry {
            None => Ok(None),
            Some(entry) if entry.fingerprint == *fingerprint => {
                Ok(Some(StoredReply::new(entry.file_ids, entry.reply)))
            }
            Some(_) => Err(Error::new(
                ErrorKind::IdempotencyMismatch,
                "this idempotency key was used with another content",
            )
            .with_field("idempotency_key")),
        }
    }
}

fn in_progress() -> Error {
    let message = "a request with this idempotency key still runs";
    Error::new(ErrorKind::IdempotencyInProgress, message).with_retry_after_secs(1)
}
