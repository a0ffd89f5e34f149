//! The identity of a provider: a marker object that holds the id of the store.
//!
//! # Purpose
//! A missing object counts as removed, and an object that arrived as a copy whose source may go. Both
//! conclusions need the place that the records mean: a directory whose disk is not mounted is empty,
//! and a bucket or root that was changed under the same code is another place. So the store writes
//! its id into an object when it first uses a provider, notes that in the database, and reads the
//! marker before it concludes anything.
//!
//! A provider with records of an earlier version has no marker. It gets one only if an object that
//! the records name is really there.
//!
//! # Crash safety
//! The marker is written first and noted afterwards. A crash in between leaves a marker with the
//! right id, which the next use notes.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opendal::options::WriteOptions;
use parking_lot::Mutex;

use super::breaker::Direction;
use super::probe::is_probe;
use super::{Cloud, Scheme, fault};
use crate::domain::clock::Timestamp;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::StoreId;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;

/// Name of the marker below the provider's root. No organization's name begins with a dot.
const MARKER: &str = ".filestore-store";

/// Time for which a marker that was read counts, at a provider that cannot be unmounted. A failure
/// ends it early: what answers afterwards may be another.
const COUNTS_FOR: Duration = Duration::from_mins(1);

/// Objects that are looked for before a provider of an earlier version is marked.
const SAMPLE: usize = 8;

const IDENTIFYING: &str = "reading its marker";

/// The database's part in the identity of providers.
#[async_trait]
pub trait MarkerLedger: Send + Sync {
    /// Tells whether the provider was marked by this store.
    async fn is_marked(&self, provider: &ProviderCode) -> Result<bool>;

    /// Notes that the provider is marked.
    async fn note_marked(&self, provider: &ProviderCode) -> Result<()>;

    /// Lists up to `limit` objects that records say are at the provider, with their sizes.
    async fn some_blobs(
        &self,
        provider: &ProviderCode,
        limit: usize,
    ) -> Result<Vec<(BlobKey, u64)>>;
}

/// The identity of one provider, as far as known.
#[derive(Default)]
pub(super) struct Identity {
    /// The store. Unset where a provider is used without a store, as by tools and tests: then
    /// nothing is checked.
    store: OnceLock<Store>,
    read_at: Mutex<Option<Timestamp>>,
    is_noted: AtomicBool,
    is_swept: AtomicBool,
    /// Held while a provider is marked.
    marking: tokio::sync::Mutex<()>,
}

struct Store {
    id: StoreId,
    ledger: Arc<dyn MarkerLedger>,
}

impl Identity {
    /// Has the marker read again before anything else is concluded.
    pub(super) fn forget(&self) {
        *self.read_at.lock() = None;
    }
}

impl Cloud {
    /// Tells the provider whose it is. Nothing is read or written yet.
    pub(in crate::storage) fn identify(&self, id: StoreId, ledger: Arc<dyn MarkerLedger>) {
        // Objects in memory are this process's whatever happens.
        if self.inner.scheme != Scheme::Memory {
            _ = self.inner.identity.store.set(Store { id, ledger });
        }
    }

    /// Looks at the marker without marking anything, and says in words what was found. `None` where
    /// the provider is used without a store; `Ok(None)` if it is not marked yet.
    pub(super) async fn look_at_marker(&self) -> Option<Result<Option<String>>> {
        let store = self.inner.identity.store.get()?;
        let looked = async {
            match self.read_marker(Direction::Read).await? {
                Some(found) => {
                    self.compare_marker(store, &found, Direction::Read)?;
                    Ok(Some(format!("names this store, {found}")))
                }
                None if store.ledger.is_marked(self.code()).await? => {
                    Err(self.foreign(Direction::Read, &format!("its marker {MARKER} is missing")))
                }
                None => Ok(None),
            }
        };
        Some(looked.await)
    }

    /// Checks that this is the place that the store's records mean, before or after something was done
    /// to the object at `path`, and marks it at its first use. Probe objects mean no place.
    ///
    /// `ProviderUnavailable` says what was found instead: nothing, or another store's marker.
    pub(super) async fn confirm_identity(&self, path: &str, direction: Direction) -> Result<()> {
        let identity = &self.inner.identity;
        let Some(store) = identity.store.get() else { return Ok(()) };
        if is_probe(path) {
            return Ok(());
        }

        let now = self.inner.now.now();
        let is_recent = identity.read_at.lock().is_some_and(|at| now < at.plus(COUNTS_FOR));
        // A disk may have been unmounted a moment ago.
        if is_recent && self.inner.scheme != Scheme::Fs {
            return Ok(());
        }

        match self.read_marker(direction).await? {
            Some(found) => self.compare_marker(store, &found, direction)?,
            None => self.mark(store, direction).await?,
        }
        self.note_marked(store).await?;

        *identity.read_at.lock() = Some(now);
        if !identity.is_swept.swap(true, Ordering::Relaxed) {
            self.sweep_staging();
        }
        Ok(())
    }

    async fn note_marked(&self, store: &Store) -> Result<()> {
        let is_noted = &self.inner.identity.is_noted;
        if is_noted.load(Ordering::Relaxed) {
            return Ok(());
        }

        match store.ledger.note_marked(self.code()).await {
            Ok(()) => is_noted.store(true, Ordering::Relaxed),
            // Deletes go on at a full disk. The marker is there, and a later use notes it.
            Err(error) if error.kind() == ErrorKind::StorageFull => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Marks the provider, unless the store has done so before or knows of objects that are not
    /// there.
    async fn mark(&self, store: &Store, direction: Direction) -> Result<()> {
        let _marking = self.inner.identity.marking.lock().await;
        if let Some(found) = self.read_marker(direction).await? {
            return self.compare_marker(store, &found, direction);
        }

        if store.ledger.is_marked(self.code()).await? {
            return Err(self.foreign(direction, &format!("its marker {MARKER} is missing")));
        }
        let blobs = store.ledger.some_blobs(self.code(), SAMPLE).await?;
        if !blobs.is_empty() && !self.holds_one_of(&blobs).await? {
            return Err(self.foreign(
                direction,
                &format!(
                    "it has no marker {MARKER}, and none of {} files looked for is there",
                    blobs.len()
                ),
            ));
        }

        self.write_marker(store.id).await?;
        // Read back, as two stores may have begun to use the same place at once.
        match self.read_marker(direction).await? {
            Some(found) if found.parse::<StoreId>().is_ok() => {
                self.compare_marker(store, &found, direction)?;
            }
            Some(_) => {
                self.remove_marker().await;
                return Err(self.broken(IDENTIFYING, "other bytes arrived than were sent"));
            }
            None => return Err(self.broken(IDENTIFYING, "it is not there after it was stored")),
        }

        self.flush(MARKER).await?;
        tracing::info!(provider = %self.code(), store = %store.id, "the provider is marked as this store's");
        Ok(())
    }

    fn compare_marker(&self, store: &Store, found: &str, direction: Direction) -> Result<()> {
        if found == store.id.to_string() {
            return Ok(());
        }
        let found: String = found.chars().filter(|c| !c.is_control()).take(40).collect();
        Err(self.foreign(direction, &format!("its marker {MARKER} names the store {found}")))
    }

    /// Reads the marker, as a part of an operation that has been let through in that direction.
    ///
    /// Silence and refusals end the operation, and count as its outcome. That the marker could be
    /// read says nothing of writes: a provider that hangs at each put would answer again and again.
    async fn read_marker(&self, direction: Direction) -> Result<Option<String>> {
        let operator = self.inner.operator.clone();
        let answer = self.put_question(0, async move { operator.read(MARKER).await }).await;

        let is_read = match &answer {
            Ok(_) => true,
            Err(error) => fault::is_missing_object(error),
        };
        if direction == Direction::Read || !is_read {
            self.hear(direction, &answer);
        }

        match answer {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes.to_bytes()).trim().to_owned())),
            Err(error) if fault::is_missing_object(&error) => Ok(None),
            Err(error) => Err(self.fault(IDENTIFYING, &error)),
        }
    }

    async fn write_marker(&self, id: StoreId) -> Result<()> {
        let if_not_exists = self.probed().await?.puts_if_absent;
        let options = WriteOptions { if_not_exists, ..WriteOptions::default() };

        let operator = self.inner.operator.clone();
        let write = async move { operator.write_options(MARKER, format!("{id}\n"), options).await };
        match self.ask(Direction::Write, write).await {
            Ok(_) => Ok(()),
            // By another store, or by an earlier attempt: the marker is read next.
            Err(error) if error.kind() == opendal::ErrorKind::ConditionNotMatch => Ok(()),
            Err(error) => Err(self.fault("writing its marker", &error)),
        }
    }

    /// Removes a marker that was damaged on its way: it would keep the store out for ever.
    async fn remove_marker(&self) {
        let operator = self.inner.operator.clone();
        let removed =
            self.ask(Direction::Write, async move { operator.delete(MARKER).await }).await;
        if let Err(error) = removed {
            let (provider, error) = (self.code(), self.inner.faults.text(&error));
            tracing::warn!(%provider, error, "a damaged marker is left: remove it");
        }
    }

    async fn holds_one_of(&self, blobs: &[(BlobKey, u64)]) -> Result<bool> {
        for (key, size_bytes) in blobs {
            let (operator, path) = (self.inner.operator.clone(), key.as_str().to_owned());
            match self.ask(Direction::Read, async move { operator.stat(&path).await }).await {
                Ok(found) if found.content_length() == *size_bytes => return Ok(true),
                Ok(_) => {}
                Err(error) if fault::is_missing_object(&error) => {}
                Err(error) => return Err(self.fault(IDENTIFYING, &error)),
            }
        }
        Ok(false)
    }

    /// Makes the error for another place, whose answer ends the operation.
    fn foreign(&self, direction: Direction, found: &str) -> Error {
        self.inner.identity.forget();
        self.inner.breakers.answered(direction);
        let message = format!(
            "the provider {} is not the place where this store keeps its files: {found}",
            self.code()
        );
        Error::new(ErrorKind::ProviderUnavailable, message)
    }
}
