//! Reader connections.
//!
//! # Locking
//! A reader holds a connection only while it runs on the blocking pool, and never across an await. The number
//! of concurrent reads is the number of connections. Further reads wait as tasks, not as threads, and are
//! refused after [`PATIENCE`].

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::domain::error::{Error, Result};
use crate::tasks;

use super::connection::{self, PATIENCE};
use super::fault::{self, Fault, Health};
use crate::metadata::sqlite::tables::damage;

type Pool = r2d2::Pool<SqliteConnectionManager>;

/// The connections for reading.
pub(in crate::metadata::sqlite) struct Readers {
    /// The connections. `None` after closing.
    pool: Mutex<Option<Pool>>,
    slots: Arc<Semaphore>,
    health: Arc<Health>,
}

impl Readers {
    /// Opens all connections, so that missing file descriptors are detected now.
    pub(in crate::metadata::sqlite) fn open(path: &Path, health: Arc<Health>) -> Result<Self> {
        let size = std::thread::available_parallelism().map_or(4, |cpus| cpus.get().max(2) * 2);

        let manager = SqliteConnectionManager::file(path)
            .with_flags(connection::reader_flags())
            .with_init(|connection| connection::set_up_reader(connection));

        let pool = Pool::builder()
            .max_size(u32::try_from(size).unwrap_or(u32::MAX))
            .connection_timeout(PATIENCE)
            .max_lifetime(None)
            .idle_timeout(None)
            .test_on_check_out(false)
            .build(manager)
            .map_err(|error| Error::internal("opening the database for reading", error))?;

        Ok(Self { pool: Mutex::new(Some(pool)), slots: Arc::new(Semaphore::new(size)), health })
    }

    /// Runs `work` on the blocking pool. Run several statements that must agree in one (deferred)
    /// transaction.
    pub(in crate::metadata::sqlite) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T> {
        self.check()?;

        let slot = timeout(PATIENCE, Arc::clone(&self.slots).acquire_owned()).await;
        let slot = slot.map_err(|_| fault::busy())?.map_err(|_| fault::closed())?;
        let pool = self.pool.lock().clone().ok_or_else(fault::closed)?;
        let health = Arc::clone(&self.health);

        let task = tasks::blocking(move || {
            let result = pool.get().map_err(Fault::from).and_then(|connection| work(&connection));
            drop(slot);
            health.damaged.report(damage::take());
            result.map_err(|fault| {
                health.note(&fault);
                fault.into_error(doing)
            })
        });
        task.await.unwrap_or_else(|panic| Err(Error::internal(doing, panic)))
    }

    /// Returns an error after the engine is poisoned or closed.
    pub(in crate::metadata::sqlite) fn check(&self) -> Result<()> {
        if self.slots.is_closed() { Err(fault::closed()) } else { self.health.check() }
    }

    /// Refuses later reads. Running reads keep their connections until they are done.
    pub(in crate::metadata::sqlite) fn close(&self) {
        self.slots.close();
        self.pool.lock().take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::ErrorKind;

    #[tokio::test(start_paused = true)]
    async fn a_read_that_finds_no_connection_is_refused_after_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metadata.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (c)").unwrap();

        let readers = Readers::open(&path, Arc::new(Health::new())).unwrap();
        let all = u32::try_from(readers.slots.available_permits()).unwrap();
        let held = Arc::clone(&readers.slots).acquire_many_owned(all).await.unwrap();

        let refused = readers.run("reading", |_| Ok(())).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert_eq!(refused.details().retry_after_secs, Some(1));

        drop(held);
        readers.run("reading", |_| Ok(())).await.unwrap();
    }
}
