//! Holds: the rights of snapshots under way to what they name.

use std::path::Path;

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;

/// The rights of snapshots under way: nobody removes what they name.
#[async_trait]
pub trait Holds: Send + Sync + 'static {
    /// Takes a hold before a snapshot is read: until it ends, no deleted file is claimed that was not
    /// claimed before, and no dropped blob is listed as due. Holds that have ended by `now` are
    /// forgotten.
    async fn take_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<()>;

    /// Makes a hold last until `until`; false if it has ended by `now`, so that what it held may be gone.
    async fn renew_hold(&self, id: &str, now: Timestamp, until: Timestamp) -> Result<bool>;

    /// Frees the deleted files behind `last_row`, which the snapshot does not name.
    async fn narrow_hold(&self, id: &str, last_row: i64) -> Result<()>;

    /// Ends a hold.
    async fn release_hold(&self, id: &str) -> Result<()>;

    /// Copies all that the engine holds, as it is at one instant, to the new file `path`, while others
    /// read and write. Nothing is flushed. The file is read by the engine's own kind of reader.
    async fn snapshot_to(&self, path: &Path) -> Result<()>;
}
