//! Connections to the server.
//!
//! # Purpose
//! The number of connections never exceeds the configured number. Further calls wait. If too many wait, or if
//! one waits too long, calls are refused as busy. A broken connection is replaced when it is needed.
//!
//! # Plans
//! Each query reads one index. This must work even if the planner has no statistics, for example right after
//! a table was filled. The connections therefore disable sequential scans, bitmaps and sorts as far as
//! possible (`enable_… = off`), like `INDEXED BY` does in SQLite. Compiling a plan (`jit`) is also off,
//! because it takes longer than running it.
//!
//! # Crash safety
//! A statement of a killed process continues at the server, and holds its locks. The server is therefore
//! configured to check that the client is alive, and to end the session otherwise.

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime,
};
use tokio::time::timeout;

use crate::domain::config::Durability;
use crate::domain::error::{Error, Result};

use super::fault::Fault;
use super::options::PostgresOptions;
use super::sql::Limits;
use super::tls;

/// The oldest server version that supports all used features.
const OLDEST_SERVER: i32 = 140_000;

/// Makes the server detect a dead client even while it works. If its operating system cannot detect this, a
/// statement runs to its end.
const NOTICE_DEATH: &str =
    "SET tcp_keepalives_idle TO 10; SET tcp_keepalives_interval TO 5; SET tcp_keepalives_count TO 3;
     DO $$ BEGIN SET client_connection_check_interval TO '5s';
     EXCEPTION WHEN invalid_parameter_value THEN NULL; END $$";

const SETTINGS: &str = "SELECT current_setting('server_version_num')::integer,
     current_setting('server_encoding'), current_setting('synchronous_commit'), current_setting('fsync'),
     current_setting('full_page_writes')";

/// Prepares the pool. Creates no connections yet.
pub(in crate::metadata::postgres) fn pool(options: &PostgresOptions) -> Result<Pool> {
    let tls = tls::connector(options.root_certificates.as_deref())?;
    // A broken connection is noticed by its task, without a question before each call.
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let mut server = options.server.clone();
    if server.get_connect_timeout().is_none() {
        server.connect_timeout(options.connect_timeout);
    }

    let (set_up, durability) = (set_up(options), options.durability);
    let hook = Hook::async_fn(move |connection: &mut ClientWrapper, _| {
        let set_up = set_up.clone();
        Box::pin(async move {
            connection.batch_execute(&set_up).await.map_err(HookError::Backend)?;
            check(connection, durability).await
        })
    });

    // Each host of several may be one that does not answer.
    let patience = options.connect_timeout;
    Pool::builder(Manager::from_config(server, tls, recycling))
        .max_size(options.pooled())
        .wait_timeout(Some(patience))
        .create_timeout(Some(patience * options.hosts()))
        .recycle_timeout(Some(patience))
        .post_create(hook)
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| Error::internal("preparing connections to the database", error))
}

/// Takes a connection from the pool, and creates it if necessary. Fails if the connection cannot be
/// configured in time.
pub(in crate::metadata::postgres) async fn get(
    pool: &Pool,
    limits: Limits,
) -> Result<Object, Fault> {
    Ok(timeout(limits.checkout, pool.get()).await.map_err(|_| Fault::Silent(limits.checkout))??)
}

fn set_up(options: &PostgresOptions) -> String {
    let PostgresOptions { schema, statement_timeout, lock_timeout, .. } = options;
    let (statement, lock) = (statement_timeout.as_millis(), lock_timeout.as_millis());
    format!(
        "SET search_path TO \"{schema}\"; SET client_encoding TO 'UTF8'; SET statement_timeout TO {statement};
         SET lock_timeout TO {lock}; SET idle_in_transaction_session_timeout TO 60000;
         SET default_transaction_isolation TO 'read committed';
         SET jit TO off; SET enable_seqscan TO off; SET enable_bitmapscan TO off; SET enable_sort TO off;
         SET enable_incremental_sort TO off; SET enable_hashjoin TO off; SET enable_mergejoin TO off;
         {NOTICE_DEATH}"
    )
}

/// The settings of a server that the engine's guarantees depend on.
#[derive(Debug)]
struct Settings {
    version: i32,
    encoding: String,
    synchronous_commit: String,
    fsync: String,
    full_page_writes: String,
}

/// Refuses a server that can lose acknowledged commits, or that cannot store all texts.
async fn check(connection: &ClientWrapper, durability: Durability) -> Result<(), HookError> {
    let row = connection.query_one(SETTINGS, &[]).await.map_err(HookError::Backend)?;
    let settings = Settings {
        version: row.get(0),
        encoding: row.get(1),
        synchronous_commit: row.get(2),
        fsync: row.get(3),
        full_page_writes: row.get(4),
    };
    settings.refusal(durability).map_or(Ok(()), |why| Err(HookError::message(why)))
}

impl Settings {
    /// Returns the reason why the server cannot be used.
    fn refusal(&self, durability: Durability) -> Option<String> {
        let Self { version, encoding, synchronous_commit, fsync, full_page_writes } = self;
        if *version < OLDEST_SERVER {
            return Some("the server of the database must be PostgreSQL 14 or newer".to_owned());
        }
        if encoding != "UTF8" {
            return Some(format!("the database must be encoded in UTF8, it is in {encoding}"));
        }

        // With any durability the database survives a power cut.
        if fsync == "off" || full_page_writes == "off" {
            return Some(format!(
                "a power cut may destroy the database: fsync is {fsync}, full_page_writes is \
                 {full_page_writes}. Switch both on"
            ));
        }
        (durability == Durability::Full && synchronous_commit == "off").then(|| {
            "the database may lose acknowledged commits: synchronous_commit is off. Switch it on, or set durability \
             to process"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(
        synchronous_commit: &str,
        fsync: &str,
        full_page_writes: &str,
    ) -> [Option<String>; 2] {
        let settings = Settings {
            version: OLDEST_SERVER,
            encoding: "UTF8".into(),
            synchronous_commit: synchronous_commit.into(),
            fsync: fsync.into(),
            full_page_writes: full_page_writes.into(),
        };
        [Durability::Full, Durability::Process].map(|durability| settings.refusal(durability))
    }

    #[test]
    fn a_lax_commit_is_for_durability_process_and_an_unsafe_disk_for_none() {
        for sound in ["local", "remote_write", "on", "remote_apply"] {
            assert_eq!(refusal(sound, "on", "on"), [None, None], "{sound}");
        }
        let [full, process] = refusal("off", "on", "on");
        assert!(full.unwrap().contains("synchronous_commit is off"));
        assert_eq!(process, None);

        for (fsync, pages) in [("off", "on"), ("on", "off")] {
            for refused in refusal("on", fsync, pages) {
                let message = refused.unwrap();
                assert!(message.contains(&format!("fsync is {fsync}")), "{message}");
                assert!(message.contains(&format!("full_page_writes is {pages}")), "{message}");
            }
        }
    }
}
