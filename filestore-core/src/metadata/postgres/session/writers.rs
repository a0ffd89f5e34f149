//! Waits for transactions of the store's earlier process.
//!
//! # Crash safety
//! A killed process can leave a transaction at the server: a COMMIT on its way through the network, or a
//! COMMIT that waits for a lock or a standby. Until it ends, it is unknown which staged bytes have a record.
//! Each write holds a lock of its server (`transaction`) from before the first statement with an answer. When
//! the lock can be taken exclusively, all writes of a dead process have ended. Programs from before servers
//! had names hold a lock of the whole store, which no other program takes.
//!
//! # Locking
//! The lock is only tried, because an exclusive wait would block the writes of all other servers.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::domain::error::{Error, ErrorKind, Result};

use super::fault::Fault;
use super::sql::{Lock, Sql};
use crate::metadata::postgres::PostgresMetadata;

/// The maximum wait. The server ends a session without a client after one minute in a transaction (`pool`),
/// and other work ends before that.
const WITHIN: Duration = Duration::from_mins(2);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause between two log messages.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// The lock is released at the end of the statement.
const TRY: &str = "SELECT pg_try_advisory_xact_lock($1) AND pg_try_advisory_xact_lock($2)";

/// Selects the sessions that hold the lock.
const HOLDERS: &str =
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND ((classid::bigint << 32) | objid::bigint) IN ($1, $2) AND pid <> pg_backend_pid() ORDER BY pid";

impl PostgresMetadata {
    /// Waits for the transactions of an earlier process of `server`. Call it before reading its commits. The
    /// caller holds the data directory, so no other process of the server begins a transaction. Returns
    /// [`ErrorKind::Unusable`] if they do not end.
    pub(crate) async fn await_writers(&self, server: &str) -> Result<()> {
        self.await_writers_for(server, WITHIN).await
    }

    pub(in crate::metadata::postgres) async fn await_writers_for(
        &self,
        server: &str,
        limit: Duration,
    ) -> Result<()> {
        let began = Instant::now();
        let mut said: Option<Instant> = None;
        loop {
            let writers = self.engine.read("looking for earlier writes", &server, |sql, server| {
                Box::pin(writers(sql, server))
            });
            let Some(writers) = writers.await? else { break };
            if began.elapsed() >= limit {
                return Err(refusal(&writers));
            }

            if said.is_none_or(|instant| instant.elapsed() >= SAY_AGAIN) {
                said = Some(Instant::now());
                tracing::warn!(
                    sessions = ?writers,
                    "an earlier process left transactions at the database: the start waits for their end"
                );
            }
            sleep(PAUSE).await;
        }

        // Not before: the row of a mark is locked as long as its transaction is open.
        let marks = self.engine.forget_old_marks();
        marks.await.map_err(|fault| fault.into_error("forgetting old marks"))
    }
}

/// Returns the sessions that write. `None` if there are none.
async fn writers(sql: &Sql, server: &str) -> Result<Option<Vec<i32>>, Fault> {
    let numbers = [Lock::Writers, Lock::WritersOf(server)].map(|lock| lock.number(sql.store()));
    let row = sql.first(TRY, &[&numbers[0], &numbers[1]]).await?;
    let is_free: bool = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if is_free {
        return Ok(None);
    }

    let holders = sql.rows(HOLDERS, &[&numbers[0], &numbers[1]]).await?;
    let pids: Result<Vec<i32>, _> = holders.iter().map(|row| row.try_get(0)).collect();
    Ok(Some(pids?))
}

fn refusal(writers: &[i32]) -> Error {
    let sessions: Vec<_> = writers.iter().map(ToString::to_string).collect();
    let message = format!(
        "transactions of an earlier process of this store do not end at the database: look at their sessions in \
         pg_stat_activity, end them with pg_terminate_backend, and start again: {}",
        sessions.join(", ")
    );
    Error::new(ErrorKind::Unusable, message)
}
