//! Idempotency keys: a request that is sent twice is done once.
//!
//! A key is scoped to the caller and the organization. While a request runs its key is held in
//! memory, and by an entry for other servers ([`IdempotencyGuard`]); its reply is committed in the same
//! transaction as its records.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256 as Hasher};

use super::FileStore;
use super::under_way::{Entered, Entry};
use super::upload::Uploads;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::OrganizationId;
use crate::domain::reply::StoredReply;

/// The longest key, in bytes.
const KEY_BYTES: usize = 255;

/// Keys of requests that run now.
#[derive(Debug, Default)]
pub(super) struct KeysInUse(Mutex<HashSet<(OrganizationId, String)>>);

/// The right to be the one request that runs under a key. Dropping it lets the next one in.
#[derive(Debug)]
pub struct IdempotencyGuard {
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

impl Uploads<'_> {
    /// Enters the request with `key` of `caller` (a text that only this caller has, such as the id of its
    /// API key; empty without keys) for `organization`. Call it as soon as the organization is known, and
    /// hand the guard to the upload.
    ///
    /// `IdempotencyInProgress` while a request with the same key runs; `InvalidField` for a key
    /// that is empty, longer than 255 bytes or not printable ASCII.
    pub async fn begin_idempotent(
        self,
        organization: &OrganizationId,
        caller: &str,
        key: &str,
    ) -> Result<IdempotencyGuard> {
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

        let key = format!("{caller}\n{key}");
        let running = &self.store.inner.idempotency;
        if !running.0.lock().insert((organization.clone(), key.clone())) {
            return Err(in_progress());
        }

        let mut guard = IdempotencyGuard {
            running: Arc::clone(running),
            organization: organization.clone(),
            key,
            entry: None,
        };
        let name = format!("idempotency {organization} {}", guard.key);
        match self.store.inner.enter(name).await? {
            Entered::Alone(entry) => guard.entry = entry,
            // The other one may have come to its end: then there is a reply to give again.
            Entered::Elsewhere if self.is_repeated(&guard).await? => {}
            Entered::Elsewhere => return Err(in_progress()),
        }
        Ok(guard)
    }
}

fn in_progress() -> Error {
    let message = "a request with this idempotency key still runs";
    Error::new(ErrorKind::IdempotencyInProgress, message).with_retry_after_secs(1)
}

impl Uploads<'_> {
    /// Tells whether a request under this key was carried out before. Then this one stores nothing,
    /// whatever it sends.
    pub async fn is_repeated(self, guard: &IdempotencyGuard) -> Result<bool> {
        let inner = &self.store.inner;
        let entry =
            inner.metadata.idempotency(&guard.organization, &guard.key, inner.now()).await?;
        Ok(entry.is_some())
    }
}

impl FileStore {
    /// Finds the reply of an earlier request with the same key and content, if there was one.
    ///
    /// `IdempotencyMismatch` if the key was used with another content.
    pub(super) async fn replay(
        &self,
        guard: &IdempotencyGuard,
        fingerprint: &[u8; 32],
    ) -> Result<Option<StoredReply>> {
        let now = self.inner.now();
        let entry = self.inner.metadata.idempotency(&guard.organization, &guard.key, now).await?;

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

/// A digest over a request's fields, each with its length, so that no two requests run together.
#[derive(Debug, Default)]
pub(super) struct Fingerprint(Hasher);

impl Fingerprint {
    pub(super) fn field(&mut self, value: Option<&str>) {
        match value {
            None => self.0.update([0]),
            Some(text) => {
                self.0.update([1]);
                self.0.update((text.len() as u64).to_le_bytes());
                self.0.update(text);
            }
        }
    }

    pub(super) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
