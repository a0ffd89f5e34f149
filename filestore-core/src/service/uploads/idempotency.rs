//! Idempotency keys: if a request arrives twice, the store processes it once.
//!
//! A key belongs to one caller and one organization. While a request runs, memory and an entry for other
//! servers hold its key ([`IdempotencyGuard`]). The transaction that commits the records also stores the
//! reply.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::reply::StoredReply;
use crate::domain::id::OrganizationId;
use crate::service::Inner;
use crate::service::work::under_way::{Entered, Entry};

/// The maximum length of a key, in bytes.
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
    /// Creates the key `key` of `caller`. The caller is a text that no other caller has, for example the id
    /// of its API key. If there is only one caller, the text is empty.
    ///
    /// `InvalidField` if the key is empty, longer than 255 bytes or not printable ASCII.
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

    /// Joins caller and key to the stored text.
    fn scoped(&self) -> String {
        format!("{}\n{}", self.caller, self.key)
    }
}

/// Keys of running requests.
#[derive(Debug, Default)]
pub(in crate::service) struct KeysInUse(Mutex<HashSet<(OrganizationId, String)>>);

/// The exclusive right to run a request under a key. A drop lets the next request in.
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

/// The answer to the question if a reply is stored under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The store has processed no request under the key yet.
    None,
    /// The store has processed an earlier request. This request stores no data.
    Stored,
}

impl IdempotencyGuard {
    /// Claims `key`, and returns if a reply is stored under the key.
    ///
    /// `IdempotencyInProgress` while a request with the same key is running.
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
            // The request on the other server has just ended, so its reply is available.
            (Entered::Elsewhere, Answer::Stored) => {}
            (Entered::Elsewhere, Answer::None) => return Err(in_progress()),
        }
        Ok((guard, answer))
    }

    /// Finds the reply to an earlier request with the same key and content.
    ///
    /// `IdempotencyMismatch` if a request with other content used the key.
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
