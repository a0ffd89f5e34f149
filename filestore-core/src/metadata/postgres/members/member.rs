//! The servers of a store: their names, whether they are alive, and the end of dead servers' work.
//!
//! # Purpose
//! A server joins before it begins any work. It has a row with its name, which is the name of its data
//! directory, and a unique *epoch* for each start. It regularly reports that it is alive (`watch`). A server
//! that was not seen for a while counts as gone. Any other server then ends its work, in the transaction that
//! removes its row.
//!
//! # Owners
//! Running work is owned by a run of its server. The run's name begins with the server's name and epoch. The
//! work of one server is therefore one range of an index.
//!
//! # Fences
//! Each write checks that its server's row still has its epoch. Otherwise it is rolled back
//! ([`Fault::Outlived`]). The check runs after the write has taken the lock of its server's writes. A server
//! that ends the work of another server holds this lock exclusively.
//!
//! A suspended server that counts as gone can therefore not apply old decisions. While other servers take
//! over its claims, the server has no open transaction, and begins no new transaction. When it continues, it
//! joins again with a new epoch, and its runs find that their claims are gone.
//!
//! # Clocks
//! Only the database's clock decides if a server is alive.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_postgres::{Client, Transaction};

use crate::domain::id::StoreId;
use crate::metadata::SecretsVersion;
use crate::tasks;

use super::rate_uses::Told;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Lock;

/// Selects a server's row with its epoch. Each write of the server runs this query.
pub(in crate::metadata::postgres) const IS_MEMBER: &str =
    "SELECT 1 FROM servers WHERE server = $1 AND epoch = $2";

const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

/// Selects the other live servers, and whether they accept other servers.
const OTHERS: &str =
    "SELECT server, is_only, extract(epoch FROM seen_at)::double precision FROM servers
     WHERE server <> $1 AND seen_at > clock_timestamp() - $2::double precision * interval '1 second'
     ORDER BY server";

const JOIN: &str = "INSERT INTO servers (server, epoch, is_only, began_at, seen_at)
     VALUES ($1, nextval('server_epochs'), $2, clock_timestamp(), clock_timestamp())
     ON CONFLICT (server) DO UPDATE SET epoch = excluded.epoch, is_only = excluded.is_only,
     began_at = excluded.began_at, seen_at = excluded.seen_at RETURNING epoch";

/// Reports that a server is alive.
const BEAT: &str =
    "UPDATE servers SET seen_at = clock_timestamp() WHERE server = $1 AND epoch = $2";

/// Selects a later epoch of the same name: another process has the same data directory, or a copy of it.
const IS_SUCCEEDED: &str = "SELECT 1 FROM servers WHERE server = $1 AND epoch > $2";

/// Reports that a server has ended.
const PART: &str = "UPDATE servers SET seen_at = '-infinity' WHERE server = $1 AND epoch = $2";

/// Selects the version of the secrets, and the last era of all organizations.
pub(super) const SECRETS: &str =
    "SELECT version, (SELECT coalesce(max(era), 0) FROM erasures) FROM secrets_version";

/// A server, as configured.
#[derive(Debug, Clone)]
pub(crate) struct ServerIdentity {
    /// The name of its data directory.
    pub(crate) name: String,
    /// True if the server is configured as the only one.
    pub(crate) is_only: bool,
}

/// An engine that has joined the servers of its store.
pub(in crate::metadata::postgres) struct Member {
    pub(in crate::metadata::postgres) identity: ServerIdentity,
    epoch: AtomicI64,
    /// The time after which a server that was not seen counts as gone.
    pub(in crate::metadata::postgres) gone_after: Duration,
    joined_at: Instant,
    secrets: Mutex<SecretsVersion>,
    /// The exchanged use counts of rate limits.
    pub(in crate::metadata::postgres) rates: Mutex<Told>,
    /// Wakes the watch to read the servers' table and the secrets again.
    pub(in crate::metadata::postgres) look: Notify,
    /// True once another process uses this server's name.
    pub(in crate::metadata::postgres) is_succeeded: watch::Sender<bool>,
}

/// A server that excludes another server.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::metadata::postgres) struct Rival {
    server: String,
    is_only: bool,
    /// The time of its last report, in seconds of the database's clock.
    seen_at: f64,
}

impl Member {
    pub(in crate::metadata::postgres) fn new(
        identity: ServerIdentity,
        epoch: i64,
        gone_after: Duration,
    ) -> Self {
        let joined_at = Instant::now();
        Self {
            identity,
            epoch: AtomicI64::new(epoch),
            gone_after,
            joined_at,
            secrets: Mutex::new(SecretsVersion { number: 0, as_of: joined_at }),
            rates: Mutex::default(),
            look: Notify::new(),
            is_succeeded: watch::Sender::new(false),
        }
    }

    pub(in crate::metadata::postgres) fn name(&self) -> &str {
        &self.identity.name
    }

    pub(in crate::metadata::postgres) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Returns the name of this server with its current epoch.
    pub(in crate::metadata::postgres) fn epoch_name(&self) -> String {
        format!("{}.{}", self.name(), self.epoch())
    }

    /// Returns the prefix of this server's run names.
    fn prefix(&self) -> String {
        format!("{}.", self.epoch_name())
    }

    pub(in crate::metadata::postgres) fn run_name(&self) -> String {
        format!("{}{}", self.prefix(), tasks::random_name())
    }

    /// Returns the owner name for the write intents of requests.
    pub(in crate::metadata::postgres) fn request_name(&self) -> String {
        format!("{}request", self.prefix())
    }

    /// Returns the lock that all writes of this server share.
    pub(in crate::metadata::postgres) fn lock(&self) -> Lock<'_> {
        Lock::WritersOf(self.name())
    }

    pub(in crate::metadata::postgres) fn secrets(&self) -> SecretsVersion {
        *self.secrets.lock()
    }

    /// Accepts a version of the secrets, unless a later version is known.
    pub(in crate::metadata::postgres) fn learn(&self, version: SecretsVersion) -> SecretsVersion {
        let mut known = self.secrets.lock();
        known.number = known.number.max(version.number);
        known.as_of = known.as_of.max(version.as_of);
        *known
    }

    /// Records that the secrets may have changed since they were read, and wakes the watch.
    pub(super) fn distrust(&self) {
        self.secrets.lock().as_of = self.joined_at;
        self.look.notify_one();
    }

    /// Reports that this server is alive. Joins again if it counted as gone. Returns the servers that exclude
    /// it, if any. The server then changes nothing until they are gone.
    pub(super) async fn beat(
        &self,
        client: &mut Client,
        store: StoreId,
    ) -> Result<Vec<Rival>, Fault> {
        let (name, epoch) = (self.name(), self.epoch());
        if client.execute(BEAT, &[&name, &epoch]).await? > 0 {
            return Ok(Vec::new());
        }
        if client.query_opt(IS_SUCCEEDED, &[&name, &epoch]).await?.is_some() {
            self.is_succeeded.send_replace(true);
            return Ok(Vec::new());
        }

        let joined = join(client, store, &self.identity, self.gone_after).await?;
        match joined {
            Ok(epoch) => {
                tracing::warn!(
                    server = name,
                    epoch,
                    "this server was not seen for a while, and was taken for gone: it has joined the others again"
                );
                self.epoch.store(epoch, Ordering::Release);
                Ok(Vec::new())
            }
            Err(rivals) => Ok(rivals),
        }
    }

    /// Reports that this server has ended.
    pub(in crate::metadata::postgres) async fn part(&self, client: &Client) -> Result<(), Fault> {
        client.execute(PART, &[&self.name(), &self.epoch()]).await?;
        Ok(())
    }
}

/// Joins the servers of a store. Returns the epoch, or the servers that exclude this one.
pub(in crate::metadata::postgres) async fn join(
    client: &mut Client,
    store: StoreId,
    identity: &ServerIdentity,
    gone_after: Duration,
) -> Result<Result<i64, Vec<Rival>>, Fault> {
    let transaction = client.transaction().await?;
    transaction.execute(LOCK, &[&Lock::Servers.number(store)]).await?;
    let rivals = rivals(&transaction, identity, gone_after).await?;
    if !rivals.is_empty() {
        return Ok(Err(rivals));
    }

    let row = transaction.query_one(JOIN, &[&identity.name, &identity.is_only]).await?;
    let epoch = row.try_get(0)?;
    transaction.commit().await?;
    Ok(Ok(epoch))
}

/// Lists the servers that exclude this server.
async fn rivals(
    transaction: &Transaction<'_>,
    identity: &ServerIdentity,
    gone_after: Duration,
) -> Result<Vec<Rival>, Fault> {
    let mut rivals = Vec::new();
    for row in transaction.query(OTHERS, &[&identity.name, &gone_after.as_secs_f64()]).await? {
        let rival =
            Rival { server: row.try_get(0)?, is_only: row.try_get(1)?, seen_at: row.try_get(2)? };
        if identity.is_only || rival.is_only {
            rivals.push(rival);
        }
    }
    Ok(rivals)
}

impl Rival {
    /// Returns true if a server has reported since then that it is alive.
    pub(super) fn lives_since(&self, before: &[Self]) -> bool {
        before.iter().any(|one| one.server == self.server && one.seen_at < self.seen_at)
    }

    /// Returns the reason why a server is excluded.
    pub(in crate::metadata::postgres) fn refusal(&self) -> &'static str {
        if self.is_only {
            "another server uses the database, and its configuration says that it is the only one (postgres.only_server): \
             stop it, or set local.backend for both, so that they share their files, and take only_server away"
        } else {
            "another server uses the database, and postgres.only_server says that there is none: stop it, or set \
             local.backend for both, so that they share their files, and take only_server away"
        }
    }
}
