//! Connections to the server.
//!
//! # Purpose
//! There are never more than the configured number, whatever is asked of the engine: further calls wait,
//! and are refused as busy when too many wait or one waits too long. A connection that broke is replaced
//! when it is needed.
//!
//! # Plans
//! Each query is answered from one index, and must be from the first day on, also where the planner has
//! no statistics yet: just after a table was filled. So sequential scans, bitmaps and sorts are the last
//! resort of our connections (`enable_… = off`), as `INDEXED BY` says it to SQLite. Compiling a plan
//! (`jit`) takes longer than running one of ours.

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime,
};

use crate::domain::config::Durability;
use crate::domain::error::{Error, Result};

use super::options::PostgresOptions;
use super::tls;

/// The oldest server that is known to have all that is used here.
const OLDEST_SERVER: i32 = 140_000;

const SETTINGS: &str = "SELECT current_setting('server_version_num')::integer, \
     current_setting('server_encoding'), current_setting('synchronous_commit'), current_setting('fsync')";

/// Prepares connections; makes none yet.
pub(super) fn pool(options: &PostgresOptions) -> Result<Pool> {
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

    let patience = Some(options.connect_timeout);
    Pool::builder(Manager::from_config(server, tls, recycling))
        .max_size(options.connections)
        .wait_timeout(patience)
        .create_timeout(patience)
        .recycle_timeout(patience)
        .post_create(hook)
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| Error::internal("preparing connections to the database", error))
}

fn set_up(options: &PostgresOptions) -> String {
    let PostgresOptions { schema, statement_timeout, lock_timeout, .. } = options;
    let (statement, lock) = (statement_timeout.as_millis(), lock_timeout.as_millis());
    format!(
        "SET search_path TO \"{schema}\"; SET client_encoding TO 'UTF8'; SET statement_timeout TO {statement};
         SET lock_timeout TO {lock}; SET idle_in_transaction_session_timeout TO 60000;
         SET default_transaction_isolation TO 'read committed'; SET default_transaction_read_only TO off;
         SET jit TO off; SET enable_seqscan TO off; SET enable_bitmapscan TO off; SET enable_sort TO off;
         SET enable_incremental_sort TO off; SET enable_hashjoin TO off; SET enable_mergejoin TO off"
    )
}

/// Refuses a server with which acknowledged commits could be lost, or that cannot hold our texts.
async fn check(connection: &ClientWrapper, durability: Durability) -> Result<(), HookError> {
    let row = connection.query_one(SETTINGS, &[]).await.map_err(HookError::Backend)?;
    let (version, encoding): (i32, &str) = (row.get(0), row.get(1));
    let (synchronous, fsync): (&str, &str) = (row.get(2), row.get(3));

    if version < OLDEST_SERVER {
        return Err(HookError::message(
            "the server of the database must be PostgreSQL 14 or newer",
        ));
    }
    if encoding != "UTF8" {
        return Err(HookError::message(format!(
            "the database must be encoded in UTF8, it is in {encoding}"
        )));
    }
    if durability == Durability::Full && (synchronous == "off" || fsync == "off") {
        return Err(HookError::message(format!(
            "the database may lose acknowledged commits: synchronous_commit is {synchronous}, fsync is {fsync}; \
             switch both on, or set durability to process"
        )));
    }
    Ok(())
}
