//! [`Metadata`] in a SQLite database file.
//!
//! # Purpose
//! One file beside the blobs, no server to run. Writes go through one thread that commits in groups
//! (`writer`); reads run on a pool of connections (`pool`) or are answered from memory (`cache`).
//!
//! # Crash safety
//! A write-ahead log with `synchronous = FULL`: an acknowledged commit survives power loss, on a
//! device that honours flush. At open SQLite replays the log, from the disk, and what it holds is
//! flushed again before anything is acknowledged upon it (`reread`). With [`Durability::Process`]
//! (`synchronous = NORMAL`) a power cut may take the last commits, and the database stays sound.
//!
//! # Errors
//! [`ErrorKind::StorageFull`] and [`ErrorKind::Busy`] mean that nothing of the call was committed.
//! [`ErrorKind::Internal`] from a write does not say whether it was. After an I/O error or
//! corruption every call is [`ErrorKind::Internal`] and [`Upkeep::poisoned`] resolves: open again.
//! After [`Upkeep::close`] every call is [`ErrorKind::Unusable`].
//!
//! # Compatibility
//! The file carries an application id and a schema version; files of other programs and of newer
//! versions of this one are refused untouched.
//!
//! [`Metadata`]: crate::metadata::Metadata
//! [`Upkeep::poisoned`]: crate::metadata::Upkeep::poisoned
//! [`Upkeep::close`]: crate::metadata::Upkeep::close
//! [`ErrorKind::StorageFull`]: crate::domain::error::ErrorKind::StorageFull
//! [`ErrorKind::Busy`]: crate::domain::error::ErrorKind::Busy
//! [`ErrorKind::Internal`]: crate::domain::error::ErrorKind::Internal
//! [`ErrorKind::Unusable`]: crate::domain::error::ErrorKind::Unusable

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::clock::Clock;
use crate::domain::config::Durability;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::id::{FileId, StoreId};
use crate::domain::record::FileRecord;
use crate::domain::scope::Scope;

mod connection;
mod reread;
mod schema;
mod fault;
mod damage;
mod room;
mod writer;
mod pool;
mod cache;
mod row;
mod files;
mod listing;
mod terms;
mod idempotency;
mod bindings;
mod keys;
mod dropped;
mod purge;
mod receipts;
mod backlog;
mod sync;
mod holdings;
mod intents;
mod holds;
#[cfg(feature = "postgres")]
mod copying;
mod snapshot;
mod settings;
mod signing;
mod waits;
mod inspection;
mod erasure;
mod engine;
#[cfg(test)]
mod tests;

pub use snapshot::{NamedBytes, SnapshotDatabase, prepare_restored};
pub use writer::OnFull;

use cache::Caches;
use fault::Health;
use pool::Readers;
use writer::Writer;

/// Metadata in a SQLite file. See the module.
pub struct SqliteMetadata {
    readers: Readers,
    writer: Writer,
    caches: Arc<Caches>,
    health: Arc<Health>,
    store_id: StoreId,
    path: PathBuf,
    durability: Durability,
}

impl SqliteMetadata {
    /// Opens the database at `path`, creating it if it is not there, in a directory on a local file
    /// system that no other process uses. `on_full` is called when the disk is full, before the one
    /// retry of the opening or of the writer. Blocks; fails with [`ErrorKind::Unusable`] if the file is not ours, is
    /// newer than this program, or is no database.
    ///
    /// [`ErrorKind::Unusable`]: crate::domain::error::ErrorKind::Unusable
    pub fn open(path: &Path, durability: Durability, on_full: Option<OnFull>) -> Result<Self> {
        let fresh = StoreId::generate(Clock::system().now());
        Self::open_known_as(fresh, path, durability, on_full)
    }

    /// Opens the database as [`open`](Self::open) does. A store that has no id yet, because it is
    /// new or was written by an earlier version, gets `store_id`.
    pub fn open_known_as(
        store_id: StoreId,
        path: &Path,
        durability: Durability,
        on_full: Option<OnFull>,
    ) -> Result<Self> {
        let connection = match connection::open_writer(path, durability, store_id) {
            Err(full) if full.kind() == ErrorKind::StorageFull => {
                let Some(make_room) = &on_full else { return Err(full) };
                make_room();
                connection::open_writer(path, durability, store_id)?
            }
            outcome => outcome?,
        };
        let store_id = settings::id(&connection)
            .map_err(|fault| fault.into_error("reading the id of the store"))?;

        let caches = Arc::new(Caches::new());
        let health = Arc::new(Health::new());
        let readers = Readers::open(path, Arc::clone(&health))?;
        let writer = Writer::start(connection, Arc::clone(&caches), Arc::clone(&health), on_full)?;
        Ok(Self { readers, writer, caches, health, store_id, path: path.to_owned(), durability })
    }

    /// Reads a record within `scope` from the database and keeps it in memory.
    async fn read_file(&self, id: FileId, scope: &Scope) -> Result<Option<Arc<FileRecord>>> {
        let (caches, health) = (Arc::clone(&self.caches), Arc::clone(&self.health));
        let scope = scope.clone();
        self.readers
            .run("reading a record", move |sql| {
                if !files::is_within(sql, id, &scope)? {
                    return Ok(None);
                }

                let ticket = caches.records.ticket(id);
                let record = files::by_id(sql, id)?.map(Arc::new);
                health.damaged.forget(|| format!("file {id}"));
                if let Some(record) = &record {
                    caches.records.insert(ticket, record);
                }
                Ok(record)
            })
            .await
    }
}
