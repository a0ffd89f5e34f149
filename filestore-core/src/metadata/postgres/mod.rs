//! [`Metadata`] in a PostgreSQL database, for any number of servers.
//!
//! # Purpose
//! This engine is for installations with more than one machine. Servers keep no state of their own: all
//! servers see every commit.
//!
//! # Locking
//! Each method is one transaction (READ COMMITTED). It locks the rows from which it decides, and uses
//! advisory locks for everything without a row (`sql`). Claims skip rows that another claim has locked.
//! Totals are sums of several rows, so that changes do not wait for each other's commits. After a deadlock or
//! a serialization failure, the call tries again a few times.
//!
//! # Crash safety
//! The server's COMMIT is the commit point. `transaction` describes how a lost answer is resolved, `fates`
//! describes which work waits for it, and `writers` describes how a start waits for the writes of a killed
//! process.
//!
//! The engine refuses a server that can lose acknowledged commits, at each connection, unless the store was
//! opened with [`Durability::Process`]. The engine always refuses a server if a power cut can destroy its
//! database. A failover to a standby loses the part of the log that the standby did not receive. For
//! [`Durability::Full`] across failovers, replication must be synchronous.
//!
//! # Several servers
//! A server joins the others before it begins any work. `member` describes how servers are recognized as
//! alive, how the work of a dead server ends, and why a suspended server can change nothing.
//!
//! # Caches
//! [`Files::cached_file`] always returns `None`, and bindings are read each time. A record in memory would
//! have to be removed on all servers before a change is acknowledged. API keys and signing secrets are still
//! cached, by their version (`watch`). The version is at most one second old, or is queried.
//!
//! # Compatibility
//! PostgreSQL 14 or newer, with a database in UTF8. See `schema` for versions. Connections are configured
//! once (`SET`), so a connection pooler must give each client its own session.
//!
//! [`Metadata`]: crate::metadata::Metadata
//! [`Files::cached_file`]: crate::metadata::Files::cached_file
//! [`Durability::Process`]: crate::domain::config::Durability::Process
//! [`Durability::Full`]: crate::domain::config::Durability::Full

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::time::timeout;

use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Clock;
use crate::metadata::{Inspection, Metadata, Servers};

mod session;
mod members;
mod tables;
mod work;
mod inspection;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use members::member::ServerIdentity;
pub use session::options::PostgresOptions;

use members::servers::JoinedServers;
use session::fault::Fault;
use session::fence::Fence;
use session::sql::Limits;
use session::transaction::Engine;

/// The maximum wait for a migration of the schema. A migration can build indexes of large tables, or wait for
/// a server that does.
const MIGRATION: Duration = Duration::from_hours(24);

/// Metadata in a PostgreSQL database. The module documentation has the details.
pub struct PostgresMetadata {
    engine: Arc<Engine>,
    options: PostgresOptions,
    fence: Fence,
    /// Set once this engine has joined the servers of its store.
    servers: OnceLock<JoinedServers>,
}

impl PostgresMetadata {
    /// Opens the database, and creates or updates the schema while servers of earlier versions run. Returns
    /// [`ErrorKind::Unusable`] if the server can lose acknowledged commits, or if the schema is foreign or
    /// newer than this program. Returns [`ErrorKind::Busy`] if the database does not answer.
    ///
    /// [`ErrorKind::Unusable`]: crate::domain::error::ErrorKind::Unusable
    /// [`ErrorKind::Busy`]: crate::domain::error::ErrorKind::Busy
    pub async fn open(options: &PostgresOptions) -> Result<Self> {
        let fresh = StoreId::generate(Clock::system().now());
        Self::open_known_as(fresh, options).await
    }

    /// Opens the database like [`open`](Self::open). A store without an id gets the id `store`.
    pub async fn open_known_as(store: StoreId, options: &PostgresOptions) -> Result<Self> {
        options.check()?;
        let (pool, limits) = (session::pool::pool(options)?, Limits::of(options));
        opened(limits.opening(), async {
            let connection = session::pool::get(&pool, limits).await?;
            session::schema::refuse_unfinished(&connection, &options.schema).await
        })
        .await?;
        Self::migrated(pool, store, options).await
    }

    /// Opens the database after its schema is up to date.
    async fn migrated(pool: Pool, store: StoreId, options: &PostgresOptions) -> Result<Self> {
        let limits = Limits::of(options);
        let (store, era) = opened(MIGRATION, async {
            let mut connection = session::pool::get(&pool, limits).await?;
            let store = session::schema::migrate(&mut connection, &options.schema, store).await?;
            let era = connection.query_one(tables::erasures::LAST, &[]).await?.try_get(0)?;
            Ok((store, Era::from_number(era)))
        })
        .await?;

        let engine = Engine::new(pool, options, store);
        engine.learn(era);
        Ok(Self {
            engine: Arc::new(engine),
            options: options.clone(),
            fence: Fence::new(),
            servers: OnceLock::new(),
        })
    }
}

impl Metadata for PostgresMetadata {
    fn inspection(&self) -> &dyn Inspection {
        self
    }

    fn servers(&self) -> Option<&dyn Servers> {
        self.servers.get().map(|joined| joined as &dyn Servers)
    }
}

/// Waits for a step of an opening, with a time limit.
async fn opened<T>(limit: Duration, step: impl Future<Output = Result<T, Fault>>) -> Result<T> {
    let outcome = timeout(limit, step).await.unwrap_or(Err(Fault::Silent(limit)));
    outcome.map_err(Fault::at_opening)
}
