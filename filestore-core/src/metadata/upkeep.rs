//! The database itself: its settings, its health and its end.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::damage::Damage;
use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::domain::load::QueueLoad;

/// The database itself: its settings, its health and its end.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// Reports the stored rows that were found damaged since the engine was opened. They are passed
    /// over by every other call; a look-up of such a file fails with
    /// [`RecordDamaged`](crate::domain::error::ErrorKind::RecordDamaged).
    fn damage(&self) -> Damage;

    /// Returns how many changes wait for the writer.
    fn queued_writes(&self) -> QueueLoad;

    /// Returns the id of the store, which was made with its database and never changes.
    fn store_id(&self) -> StoreId;

    /// Returns all settings, by name.
    async fn settings(&self) -> Result<BTreeMap<String, String>>;

    /// Stores settings, all or none, in the place of earlier values of the same names; other
    /// settings stay. The name `store_id` is refused.
    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()>;

    /// Ends all leases, holds and entries, and SYNCING files are PENDING again: at start, when no other process
    /// can have one ([`Servers::company`](super::Servers::company)).
    async fn clear_leases(&self) -> Result<()>;

    /// Makes failed purges and syncs wait no longer than until `retries`, and dropped blobs no longer
    /// than until `blobs`: at start, as a clock that was ahead may have made them wait for years.
    async fn cap_waits(&self, retries: Timestamp, blobs: Timestamp) -> Result<()>;

    /// Makes all earlier commits durable, if the engine was opened not to flush each of them
    /// ([`Durability::Process`](crate::domain::config::Durability)).
    async fn flush(&self) -> Result<()>;

    /// Waits until of every change that ended in
    /// [`OutcomeUnknown`](crate::domain::error::ErrorKind::OutcomeUnknown) so far it is known whether it
    /// was made. Fails once the engine is closed.
    async fn outcomes_known(&self) -> Result<()> {
        Ok(())
    }

    /// Answers if the database does.
    async fn ping(&self) -> Result<()>;

    /// Resolves once the engine met a fault after which it must be opened again (I/O error or
    /// corruption), with a description of the fault. All calls fail from then on; the process
    /// should end.
    async fn poisoned(&self) -> String;

    /// Finishes queued work, checkpoints and closes. Calls after it fail.
    async fn close(&self);
}
