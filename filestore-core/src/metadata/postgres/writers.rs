//! The transactions of an earlier process of the store.
//!
//! # Crash safety
//! A process that was killed may leave a transaction at the server: a COMMIT on its way through the
//! network, or one that waits there for a lock or a standby. Until its end nobody can tell which staged
//! bytes have a record. Each write holds a lock of its server (`transaction`), and had it before the first
//! statement whose answer it waited for: once the lock can be had alone, what a dead process began is over.
//! Programs from before servers had names hold a lock of the whole store, which nobody else takes.
//!
//! # Locking
//! The lock is tried, and not waited for: whoever waits for it alone keeps all other servers from writing.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::domain::error::{Error, ErrorKind, Result};

use super::PostgresMetadata;
use super::fault::Fault;
use super::sql::{Lock, Sql};

/// The longest wait. The server ends a session without a client after a minute in a transaction (`pool`),
/// and what runs by itself before.
const WITHIN: Duration = Duration::from_mins(2);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause between two words in the log.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// Released at the end of the statement.
const TRY: &str = "SELECT pg_try_advisory_xact_lock($1) AND pg_try_advisory_xact_lock($2)";

/// The sessions that hold the lock.
const HOLDERS: &str =
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND ((classid::bigint << 32) | objid::bigint) IN ($1, $2) AND pid <> pg_backend_pid() ORDER BY pid";

impl PostgresMetadata {
    /// Waits for the transactions of an earlier process of `server`, before what it committed is read. The
    /// caller holds its data directory: no other process of the server begins one. Fails with
    /// [`ErrorKind::Unusable`] if they do not end.
    pub(crate) async fn await_writers(&self, server: &str) -> Result<()> {
        self.await_writers_for(server, WITHIN).await
    }

    pub(super) async fn await_writers_for(&self, server: &str, limit: Duration) -> Result<()> {
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

/// Returns the sessions that write; `None` if there is none.
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
