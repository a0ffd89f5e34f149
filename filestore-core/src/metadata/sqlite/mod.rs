//! [`Metadata`] in a SQLite database file.
//!
//! # Purpose
//! The database is one file in the data directory, without a server. Writes use one thread that commits in
//! groups (`writer`). Reads use a pool of connections (`pool`), or come from memory (`cache`).
//!
//! # Crash safety
//! The engine uses a write-ahead log with `synchronous = FULL`. An acknowledged commit survives power loss if
//! the device honours flushes. At opening, SQLite replays the log from the disk, and flushes its contents
//! again before anything new is acknowledged (`reread`). With [`Durability::Process`]
//! (`synchronous = NORMAL`), a power cut can lose the last commits, but the database stays intact.
//!
//! # Errors
//! After [`ErrorKind::StorageFull`] and [`ErrorKind::Busy`], the call committed nothing. After
//! [`ErrorKind::Internal`] from a write, the outcome is unknown. After an I/O error or corruption, every call
//! returns [`ErrorKind::Internal`], and [`Upkeep::poisoned`] resolves. Open the engine again. After
//! [`Upkeep::close`], every call returns [`ErrorKind::Unusable`].
//!
//! # Compatibility
//! The file has an application id and a schema version. Files of other programs and of newer versions are
//! refused without changes.
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

use crate::domain::config::Durability;
use crate::domain::error::{ErrorKind, Result};
use crate::domain::id::StoreId;
use crate::domain::time::clock::Clock;
use crate::metadata::{Inspection, Metadata, Servers};

mod session;
mod tables;
mod work;
mod cache;
mod inspection;
#[cfg(test)]
mod tests;

pub(crate) use session::peek::has_keys;
pub use session::snapshot::{GoodAccess, NamedBytes, SnapshotDatabase, prepare_restored};
#[cfg(feature = "postgres")]
pub use session::snapshot_writer::SnapshotWriter;
pub use session::writer::OnFull;

use cache::Caches;
use session::fault::Health;
use session::followers::Followers;
use session::pool::Readers;
use session::writer::Writer;

/// Metadata in a SQLite file. The module documentation has the details.
pub struct SqliteMetadata {
    readers: Readers,
    writer: Writer,
    caches: Arc<Caches>,
    followers: Arc<Followers>,
    health: Arc<Health>,
    store_id: StoreId,
    path: PathBuf,
    durability: Durability,
}

impl SqliteMetadata {
    /// Opens the database at `path`, and creates it if necessary. The directory must be on a local file
    /// system, and no other process can use it. If the disk is full, `on_full` is called before the single
    /// retry of the opening or of the writer. Blocks. Returns [`ErrorKind::Unusable`] if the file is foreign,
    /// newer than this program, or not a database.
    ///
    /// [`ErrorKind::Unusable`]: crate::domain::error::ErrorKind::Unusable
    pub fn open(path: &Path, durability: Durability, on_full: Option<OnFull>) -> Result<Self> {
        let fresh = StoreId::generate(Clock::system().now());
        Self::open_known_as(fresh, path, durability, on_full)
    }

    /// Opens the database like [`open`](Self::open). A store without an id, because it is new or from an
    /// earlier version, gets `store_id`.
    pub fn open_known_as(
        store_id: StoreId,
        path: &Path,
        durability: Durability,
        on_full: Option<OnFull>,
    ) -> Result<Self> {
        let connection = match session::connection::open_writer(path, durability, store_id) {
            Err(full) if full.kind() == ErrorKind::StorageFull => {
                let Some(make_room) = &on_full else { return Err(full) };
                make_room();
                session::connection::open_writer(path, durability, store_id)?
            }
            outcome => outcome?,
        };
        let store_id = session::store_id::read(&connection)
            .map_err(|fault| fault.into_error("reading the id of the store"))?;
        let era = tables::erasures::last_era(&connection)
            .map_err(|fault| fault.into_error("reading the erasures"))?;

        let caches = Arc::new(Caches::new());
        caches.learn(era);
        let health = Arc::new(Health::new());
        let readers = Readers::open(path, Arc::clone(&health))?;
        let followers = Arc::new(Followers::new());
        let writer = Writer::start(
            connection,
            Arc::clone(&caches),
            Arc::clone(&followers),
            Arc::clone(&health),
            on_full,
        )?;
        Ok(Self {
            readers,
            writer,
            caches,
            followers,
            health,
            store_id,
            path: path.to_owned(),
            durability,
        })
    }
}

impl Metadata for SqliteMetadata {
    fn inspection(&self) -> &dyn Inspection {
        self
    }

    /// Returns `None`, because one process has the data directory and its database.
    fn servers(&self) -> Option<&dyn Servers> {
        None
    }
}
