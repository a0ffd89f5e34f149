//! Holds: protection of the data in running snapshots.

use std::path::Path;

use async_trait::async_trait;

use crate::domain::error::Result;
use crate::domain::time::clock::Timestamp;

/// Holds for running snapshots. A hold prevents the removal of data in the snapshot.
#[async_trait]
pub trait Holds: Send + Sync + 'static {
    /// Takes a hold before a snapshot is read. Until it ends, no further deleted file is claimed, and no
    /// dropped blob becomes due. Removes holds that have ended at `now`.
    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()>;

    /// Extends a hold to `until`. Returns false if it has ended at `now`, so that its data may be gone.
    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool>;

    /// Releases the deleted files behind `last_row`, which are not in the snapshot.
    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()>;

    /// Ends a hold.
    async fn release_hold(&self, id: &str) -> Result<()>;

    /// Copies the whole database, at one instant, to the new file `path`, while other calls read and write.
    /// Does not flush it. Only the same kind of engine reads the file.
    async fn snapshot_to(&self, path: &Path) -> Result<()>;
}
