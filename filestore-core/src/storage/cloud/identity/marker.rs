//! The identity of a provider: a marker object with the store's id.
//!
//! # Purpose
//! The store treats a missing object as removed. It treats an object that arrived as a copy, and removes the
//! source. Both conclusions are correct only if the provider is the right place. A directory is empty if its
//! disk is not mounted. A changed bucket or root under the same code is another place.
//!
//! The store therefore writes its id into an object when it first uses a provider, and records this in the
//! database. The store reads the marker before it draws conclusions. A provider with records of an earlier
//! version has no marker. Such a provider gets a marker only if an object that the records name really
//! exists.
//!
//! # Format
//! The id, followed by a line with the first half of its SHA-256. Without it, an id with a damaged letter
//! would look like the id of another store. A marker without the second line is valid.
//!
//! # Crash safety
//! The marker is written first and recorded later. After a crash in between, the marker has the right id, and
//! the next use records it.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opendal::options::WriteOptions;
use parking_lot::Mutex;
use sha2::Digest;

use super::probe_objects::is_probe;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::{Sha256, StoreId};
use crate::domain::time::clock::Timestamp;
use crate::storage::MarkerLedger;
use crate::storage::cloud::line::breaker::Direction;
use crate::storage::cloud::object::objects::SNAPSHOTS;
use crate::storage::cloud::opening::fault;
use crate::storage::cloud::{Cloud, Scheme};

/// The name of the marker below the provider's root. Names of organizations never begin with a dot.
pub(in crate::storage::cloud) const MARKER: &str = ".filestore-store";

/// The time for which a read marker is valid, at a provider that cannot be unmounted. A failure ends it
/// early, because another place might answer afterwards.
const COUNTS_FOR: Duration = Duration::from_mins(1);

/// The number of objects to look for before a provider of an earlier version is marked.
const SAMPLE: usize = 8;

const IDENTIFYING: &str = "reading its marker";

/// The known identity of a provider.
#[derive(Default)]
pub(in crate::storage::cloud) struct Identity {
    /// The store. Not set if tools and tests use a provider without a store. The identity is then not
    /// checked.
    store: OnceLock<Store>,
    read_at: Mutex<Option<Timestamp>>,
    is_noted: AtomicBool,
    is_swept: AtomicBool,
    /// Held while a provider is being marked.
    marking: tokio::sync::Mutex<()>,
}

/// The marker's contents.
enum Marker {
    /// The id of a store.
    Names(StoreId),
    /// Bytes that no store has written. The value is their beginning, for a message.
    Damaged(String),
}

impl Marker {
    /// Parses a marker's bytes.
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (id, check) = match text.trim().split_once('\n') {
            Some((id, check)) => (id.trim(), Some(check.trim())),
            None => (text.trim(), None),
        };

        match id.parse::<StoreId>() {
            Ok(named) if check.is_none_or(|check| check == check_of(named)) => Self::Names(named),
            _ => Self::Damaged(text.chars().filter(|c| !c.is_control()).take(40).collect()),
        }
    }

    /// Returns the bytes of a store's marker.
    fn bytes_of(id: StoreId) -> String {
        format!("{id}\n{}\n", check_of(id))
    }
}

/// Returns the second line of a store's marker.
fn check_of(id: StoreId) -> String {
    let mut check = Sha256(sha2::Sha256::digest(id.to_string()).into()).to_hex();
    check.truncate(32);
    check
}

struct Store {
    id: StoreId,
    ledger: Arc<dyn MarkerLedger>,
}

impl Identity {
    /// Makes the next check read the marker again.
    pub(in crate::storage::cloud) fn forget(&self) {
        *self.read_at.lock() = None;
    }
}

impl Cloud {
    /// Sets the store that owns the provider. Does not read or write yet.
    pub(in crate::storage) fn identify(&self, id: StoreId, ledger: Arc<dyn MarkerLedger>) {
        // Objects in memory are this process's whatever happens.
        if self.inner.scheme != Scheme::Memory {
            _ = self.inner.identity.store.set(Store { id, ledger });
        }
    }

    /// Returns the database's record. `None` if the provider is used without a store.
    pub(in crate::storage::cloud) fn ledger(&self) -> Option<&dyn MarkerLedger> {
        self.inner.identity.store.get().map(|store| &*store.ledger)
    }

    /// Describes the marker in words, without marking the provider. `None` if the provider is used without a
    /// store. `Ok(None)` if the provider is not marked yet.
    pub(in crate::storage::cloud) async fn look_at_marker(&self) -> Option<Result<Option<String>>> {
        let store = self.inner.identity.store.get()?;
        let looked = async {
            match self.read_marker(Direction::Read).await? {
                Some(found) => {
                    self.compare_marker(store, &found)?;
                    self.inner.breakers.placed();
                    Ok(Some(format!("names this store, {}", store.id)))
                }
                None if store.ledger.is_marked(self.code()).await? => {
                    Err(self.foreign(&format!("its marker {MARKER} is missing")))
                }
                None => Ok(None),
            }
        };
        Some(looked.await)
    }

    /// Checks that this is the right place for the store's records, before or after an operation on the
    /// object at `path`. Marks the provider at its first use. Probe objects need no check, and snapshots have
    /// their own marker.
    ///
    /// Returns `ProviderUnavailable` if the marker is missing or belongs to another store.
    pub(in crate::storage::cloud) async fn confirm_identity(
        &self,
        path: &str,
        direction: Direction,
    ) -> Result<()> {
        let identity = &self.inner.identity;
        let Some(store) = identity.store.get() else { return Ok(()) };
        if is_probe(path) || path.starts_with(SNAPSHOTS) {
            return Ok(());
        }

        let now = self.inner.now.now();
        let is_recent = identity.read_at.lock().is_some_and(|at| now < at.plus(COUNTS_FOR));
        // A disk may have been unmounted a moment ago.
        let may_change = self.inner.scheme == Scheme::Fs || self.inner.breakers.is_misplaced();
        if is_recent && !may_change {
            return Ok(());
        }

        match self.read_marker(direction).await? {
            Some(found) => self.compare_marker(store, &found)?,
            None => self.mark(store, direction).await?,
        }
        self.inner.breakers.placed();
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
            Err(error) if error.is_lack_of_room() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Marks the provider. Fails if the store has marked it before, or if recorded objects are missing.
    async fn mark(&self, store: &Store, direction: Direction) -> Result<()> {
        let _marking = self.inner.identity.marking.lock().await;
        if let Some(found) = self.read_marker(direction).await? {
            return self.compare_marker(store, &found);
        }

        if store.ledger.is_marked(self.code()).await? {
            return Err(self.foreign(&format!("its marker {MARKER} is missing")));
        }
        let blobs = store.ledger.some_blobs(self.code(), SAMPLE).await?;
        if !blobs.is_empty() && !self.holds_one_of(&blobs).await? {
            return Err(self.foreign(&format!(
                "it has no marker {MARKER}, and all {} sampled files are missing",
                blobs.len()
            )));
        }

        self.write_marker(store.id).await?;
        // Read back, as two stores may have begun to use the same place at once.
        match self.read_marker(direction).await? {
            Some(found @ Marker::Names(_)) => self.compare_marker(store, &found)?,
            Some(Marker::Damaged(_)) => {
                self.remove_marker().await;
                return Err(self.broken(IDENTIFYING, "other bytes arrived than were sent"));
            }
            None => return Err(self.broken(IDENTIFYING, "it is not there after it was stored")),
        }

        self.flush(MARKER).await?;
        tracing::info!(provider = %self.code(), store = %store.id, "the provider is marked as this store's");
        Ok(())
    }

    fn compare_marker(&self, store: &Store, found: &Marker) -> Result<()> {
        match found {
            Marker::Names(id) if *id == store.id => Ok(()),
            Marker::Names(id) => {
                Err(self.foreign(&format!("its marker {MARKER} names the store {id}")))
            }
            Marker::Damaged(text) => {
                Err(self.foreign(&format!("its marker {MARKER} is damaged and says {text:?}")))
            }
        }
    }

    /// Reads the marker as a part of an operation that was admitted in this direction.
    async fn read_marker(&self, direction: Direction) -> Result<Option<Marker>> {
        let operator = self.inner.operator.clone();
        match self.ask_within(direction, async move { operator.read(MARKER).await }).await {
            Ok(bytes) => Ok(Some(Marker::parse(&bytes.to_bytes()))),
            Err(error) if fault::is_missing_object(&error) => Ok(None),
            Err(error) => Err(self.fault(IDENTIFYING, &error)),
        }
    }

    async fn write_marker(&self, id: StoreId) -> Result<()> {
        let if_not_exists = self.probed().await?.puts_if_absent;
        let options = WriteOptions { if_not_exists, ..WriteOptions::default() };

        let operator = self.inner.operator.clone();
        let write =
            async move { operator.write_options(MARKER, Marker::bytes_of(id), options).await };
        match self.ask(Direction::Write, write).await {
            Ok(_) => Ok(()),
            // By another store, or by an earlier attempt: the marker is read next.
            Err(error) if error.kind() == opendal::ErrorKind::ConditionNotMatch => Ok(()),
            Err(error) => Err(self.fault("writing its marker", &error)),
        }
    }

    /// Removes a marker that was damaged while it was written, because it would exclude the store forever.
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

    fn foreign(&self, found: &str) -> Error {
        self.inner.identity.forget();
        let message = format!(
            "the provider {} is not the place where this store keeps its files: {found}",
            self.code()
        );
        self.inner.breakers.misplaced(&message);
        Error::new(ErrorKind::ProviderUnavailable, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_with_any_bit_flipped_or_its_end_missing_names_no_other_store() {
        let id: StoreId = "01JD0000000000000000000000".parse().unwrap();
        let whole = Marker::bytes_of(id).into_bytes();
        let names = |bytes: &[u8]| match Marker::parse(bytes) {
            Marker::Names(named) => Some(named),
            Marker::Damaged(_) => None,
        };
        assert_eq!((names(&whole), names(b"01JD0000000000000000000000")), (Some(id), Some(id)));

        for length in 0..whole.len() {
            assert!(names(&whole[..length]).is_none_or(|named| named == id), "{length} bytes");
        }
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(names(&bytes).is_none_or(|named| named == id), "bit {bit}");
        }
    }
}
