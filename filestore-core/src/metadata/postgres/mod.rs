//! [`Metadata`] in a PostgreSQL database, for any number of servers.
//!
//! # Purpose
//! The records of an installation that outgrows one machine. Servers hold no state: what one has
//! committed, every other one reads.
//!
//! # Locking
//! Each method is one transaction (READ COMMITTED) that locks the rows it decides from, and what no row
//! stands for by advisory locks (`sql`). Claims pass over the rows that another claim has locked.
//! Totals are sums of slots, so that changes do not wait for each other's commits. A deadlock or a
//! serialization failure is tried again a few times, within the call.
//!
//! # Crash safety
//! The server's COMMIT is the commit point; `transaction` says how a lost answer to it is found out, `fates`
//! what waits for it, and `writers` how a start waits for what a killed process left. A server that may lose
//! acknowledged commits is refused at each connection, unless the store was opened with
//! [`Durability::Process`]; one whose database a power cut may destroy always. A failover to a standby that had not all of the log loses what it
//! had not: for [`Durability::Full`] across failovers, replication must be synchronous.
//!
//! # Several servers
//! A server joins the others before it begins anything; `servers` says who lives, what is ended of one that does
//! not, and what keeps one that slept from changing anything.
//!
//! # Caches
//! [`Files::cached_file`] answers nothing, and a binding is read each time: a record in memory would have to be
//! forgotten on all servers before a change of it is acknowledged. The keys and the secrets that sign URLs are
//! in memory all the same, by their version (`watch`): what is known of it is a second old at the most, or it is
//! asked for.
//!
//! # Not here
//! [`Holds::snapshot_to`]: PostgreSQL has backups of its own.
//!
//! # Compatibility
//! PostgreSQL 14 or newer, a database in UTF8; see `schema` for versions. Connections are set up once
//! (`SET`), so a pooler in between must give each client a session of its own.
//!
//! [`Metadata`]: crate::metadata::Metadata
//! [`Files::cached_file`]: crate::metadata::Files::cached_file
//! [`Holds::snapshot_to`]: crate::metadata::Holds::snapshot_to
//! [`Durability::Process`]: crate::domain::config::Durability::Process
//! [`Durability::Full`]: crate::domain::config::Durability::Full

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::time::timeout;

use crate::domain::clock::Clock;
use crate::domain::error::Result;
use crate::domain::id::StoreId;

mod options;
mod tls;
mod pool;
mod fault;
mod sql;
mod shares;
mod servers;
mod leftovers;
mod rate_uses;
mod entries;
mod watch;
mod join;
mod transaction;
mod fates;
mod writers;
mod schema;
mod row;
mod damage;
mod files;
mod inserted_rows;
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
mod settings;
mod signing;
mod waits;
mod inspection;
mod erasure;
mod copying;
mod engine;
#[cfg(test)]
pub(crate) mod tests;

pub use options::PostgresOptions;
pub(crate) use servers::ServerIdentity;

use fault::Fault;
use sql::Limits;
use transaction::Engine;

/// The longest wait for a migration of the schema: it may build indexes of large tables, and wait for a server
/// that does.
const MIGRATION: Duration = Duration::from_hours(24);

/// Metadata in a PostgreSQL database. See the module.
pub struct PostgresMetadata {
    engine: Arc<Engine>,
    options: PostgresOptions,
}

impl PostgresMetadata {
    /// Opens the database: makes or updates the schema, while servers of earlier versions run. Fails with
    /// [`ErrorKind::Unusable`] if the server does not keep what it acknowledges, the schema is not ours or
    /// is newer than this program, and with [`ErrorKind::Busy`] if nobody answers.
    ///
    /// [`ErrorKind::Unusable`]: crate::domain::error::ErrorKind::Unusable
    /// [`ErrorKind::Busy`]: crate::domain::error::ErrorKind::Busy
    pub async fn open(options: &PostgresOptions) -> Result<Self> {
        let fresh = StoreId::generate(Clock::system().now());
        Self::open_known_as(fresh, options).await
    }

    /// Opens the database as [`open`](Self::open) does. A store that has no id yet gets `store`.
    pub async fn open_known_as(store: StoreId, options: &PostgresOptions) -> Result<Self> {
        options.check()?;
        let (pool, limits) = (pool::pool(options)?, Limits::of(options));
        opened(limits.opening(), async {
            let connection = pool::get(&pool, limits).await?;
            schema::refuse_unfinished(&connection, &options.schema).await
        })
        .await?;
        Self::migrated(pool, store, options).await
    }

    /// Opens the database once its schema is up to date.
    async fn migrated(pool: Pool, store: StoreId, options: &PostgresOptions) -> Result<Self> {
        let limits = Limits::of(options);
        let store = opened(MIGRATION, async {
            let mut connection = pool::get(&pool, limits).await?;
            schema::migrate(&mut connection, &options.schema, store).await
        })
        .await?;

        Ok(Self { engine: Arc::new(Engine::new(pool, options, store)), options: options.clone() })
    }
}

/// Waits for a step of an opening, for a limited time.
async fn opened<T>(limit: Duration, step: impl Future<Output = Result<T, Fault>>) -> Result<T> {
    let outcome = timeout(limit, step).await.unwrap_or(Err(Fault::Silent(limit)));
    outcome.map_err(Fault::at_opening)
}
