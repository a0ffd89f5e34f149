//! The database itself: settings, health and closing.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::file::damage::Damage;
use crate::domain::id::StoreId;
use crate::domain::report::Schema;
use crate::domain::report::load::QueueLoad;

/// The database itself: settings, health and closing.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// Returns the damaged rows found since the engine was opened. All other calls skip them. A look-up of
    /// such a file fails with [`RecordDamaged`](crate::domain::error::ErrorKind::RecordDamaged).
    fn damage(&self) -> Damage;

    /// Returns the number of changes that wait for the writer.
    fn queued_writes(&self) -> QueueLoad;

    /// Returns the engine and the version of the schema that this program works with.
    fn schema(&self) -> Schema;

    /// Returns the store's id, which was made with its database and never changes.
    fn store_id(&self) -> StoreId;

    /// Returns all settings, by name.
    async fn settings(&self) -> Result<BTreeMap<String, String>>;

    /// Stores settings, all or none. Replaces earlier values with the same names, and keeps other settings.
    /// The name `store_id` is refused.
    async fn put_settings(&self, values: BTreeMap<String, String>) -> Result<()>;

    /// Makes all earlier commits durable, if the engine was opened without flushing each of them
    /// ([`Durability::Process`](crate::domain::config::Durability)).
    async fn flush(&self) -> Result<()>;

    /// Waits until the outcome of every earlier change that ended in
    /// [`OutcomeUnknown`](crate::domain::error::ErrorKind::OutcomeUnknown) is known. Fails after the engine
    /// is closed.
    async fn outcomes_known(&self) -> Result<()> {
        Ok(())
    }

    /// Succeeds if the database answers.
    async fn ping(&self) -> Result<()>;

    /// Resolves after a fault that requires a restart (an I/O error or corruption), with a description of the
    /// fault. All calls then fail, and the process should end.
    async fn poisoned(&self) -> String;

    /// Finishes queued work, checkpoints and closes. Later calls fail.
    async fn close(&self);
}
