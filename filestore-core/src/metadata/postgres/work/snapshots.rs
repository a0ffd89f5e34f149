//! The copy of the records for a snapshot.
//!
//! # Consistency
//! One REPEATABLE READ transaction that changes nothing reads all tables, a page after the other: the copy is of the
//! instant of its first statement. Other calls, of all servers, read and write meanwhile.
//!
//! # Cost
//! Until the transaction ends, the database cannot clean up the row versions that others replace. So it lasts
//! only while rows are read: the indexes of the copy are made afterwards, and after [`LONGEST`] the copy is
//! given up.
//!
//! # Not `pg_dump`
//! Its text could be verified, narrowed to what a copy of a store may know, and restored by PostgreSQL alone, and
//! its program must be as new as the server. The copy has the format of all snapshots instead (`SnapshotWriter`).

use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::StoreId;
use crate::metadata::copying::{Cells, TABLES, Table, size_of_row};
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;
use crate::metadata::postgres::tables::copying;
use crate::metadata::sqlite::SnapshotWriter;
use crate::tasks;

const COPYING: &str = "copying the database";

/// The longest transaction of a copy.
const LONGEST: Duration = Duration::from_hours(2);

/// The fewest connections for calls: one reads the copy, and each of the others has what it needs.
const LEAST_CONNECTIONS: usize = 3;

/// Pages that wait to be written.
const PAGES_AHEAD: usize = 2;

/// The memory that a page takes, about.
const PAGE_BYTES: usize = 8 << 20;

/// The rows of the first page of a table, and of the largest one.
const ROWS: (usize, usize) = (64, 1000);

/// Between two pages the session waits for the disk of the copy.
const WAIT_FOR_THE_DISK: &str = "SET LOCAL idle_in_transaction_session_timeout TO '10min'";

/// Rows of a table on their way into the copy.
type Page = (&'static Table, Vec<Cells>);

/// A copy without its indexes, and the number of the last binding.
type Copied = (SnapshotWriter, i64);

impl PostgresMetadata {
    /// Copies all records, as they are at one instant, to the new file `path`.
    pub(super) async fn write_snapshot(&self, path: &Path) -> Result<()> {
        self.check_connections()?;
        let wanted = (path, self.engine.store);
        let reading = self.engine.read_at_length(COPYING, &wanted, |sql, (path, store)| {
            Box::pin(copy(sql, path, *store))
        });
        let (writer, last_binding) =
            timeout(LONGEST, reading).await.map_err(|_| too_slow())???;

        let finished = tasks::blocking(move || writer.finish(last_binding)).await;
        finished.unwrap_or_else(|lost| Err(Error::internal(COPYING, lost)))
    }

    fn check_connections(&self) -> Result<()> {
        if self.options.pooled() >= LEAST_CONNECTIONS {
            return Ok(());
        }
        let message = "a snapshot reads through a connection of its own: postgres.connections must be at least 4";
        Err(Error::new(ErrorKind::Unusable, message).with_field("postgres.connections"))
    }
}

fn too_slow() -> Error {
    let hours = LONGEST.as_secs() / 3600;
    let message = format!(
        "the database could not be copied within {hours} hours, for which it kept all replaced row versions: look at \
         the speed of the database and of the disk of the snapshot"
    );
    Error::new(ErrorKind::Busy, message)
}

/// Copies all rows. Retries from the beginning after a fault of the database, but not after a fault of the
/// file.
async fn copy(sql: &Sql, path: &Path, store: StoreId) -> Result<Result<Copied>, Fault> {
    sql.batch(WAIT_FOR_THE_DISK).await?;
    let (pages, received) = mpsc::channel(PAGES_AHEAD);
    let path = path.to_owned();
    let writing = tasks::blocking(move || write(&path, store, received));

    let read = read(sql, pages).await;
    // Its file is another run's from here on.
    let written = writing.await.unwrap_or_else(|lost| Err(Error::internal(COPYING, lost)));
    let last_binding = read?;
    Ok(written.map(|writer| (writer, last_binding)))
}

/// Reads all rows, as long as somebody writes them; returns the number of the last binding.
async fn read(sql: &Sql, pages: mpsc::Sender<Page>) -> Result<i64, Fault> {
    for table in TABLES {
        let (mut behind, mut limit): (Option<Cells>, _) = (None, ROWS.0);
        loop {
            let rows = copying::rows(sql, table, behind.as_deref(), limit).await?;
            let Some(last) = rows.last() else { break };
            behind = Some(last[..table.key].to_vec());
            limit = next_limit(&rows);
            if pages.send((table, rows)).await.is_err() {
                return Ok(0);
            }
        }
    }
    copying::last_binding(sql).await
}

/// Returns how many rows the next page can have, if they are like those of the last.
fn next_limit(rows: &[Cells]) -> usize {
    let largest = rows.iter().map(size_of_row).max().unwrap_or_default();
    (PAGE_BYTES / largest.max(1)).clamp(1, ROWS.1)
}

/// Writes the pages that come. Blocks.
fn write(path: &Path, store: StoreId, mut pages: mpsc::Receiver<Page>) -> Result<SnapshotWriter> {
    let writer = SnapshotWriter::create(path, store)?;
    while let Some((table, rows)) = pages.blocking_recv() {
        writer.put(table, &rows)?;
    }
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::copying::Cell;

    #[test]
    fn a_page_of_large_rows_has_few_of_them() {
        let row = |bytes| vec![Cell::Bytes(vec![0; bytes])];
        assert_eq!(next_limit(&[row(10), row(20)]), ROWS.1);
        let few = next_limit(&[row(10), row(1 << 20)]);
        assert!((1..=8).contains(&few), "{few}");
        assert_eq!(next_limit(&[row(PAGE_BYTES * 2)]), 1);
    }
}
