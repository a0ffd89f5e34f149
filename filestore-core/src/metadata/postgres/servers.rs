//! The servers of a store: who they are, whether they live, and what those leave that do not.
//!
//! # Purpose
//! A server joins before it begins anything: it has a row with its name, which is that of its data directory,
//! and an *epoch* that no other start has. It says again and again that it is there (`watch`). One that was
//! not seen for a while is taken for gone: any other server ends what it left, in the same transaction that
//! removes its row.
//!
//! # Owners
//! Work under way is owned by a run of its server, whose name begins with the server's name and epoch. So what
//! belongs to one server is a range of an index.
//!
//! # Fences
//! Each write of a server finds its row with its epoch, or is rolled back ([`Fault::Outlived`]). It looks once it
//! has the lock of the server's writes, which whoever ends what a server left holds alone meanwhile. So a
//! server that slept, and was taken for gone, changes nothing by what it had decided before: neither a
//! transaction of its own is open while its claims are given to others, nor does one begin afterwards. It joins
//! again, with another epoch, and its runs find their claims gone.
//!
//! # Clocks
//! The clock of the database alone decides if a server lives.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_postgres::{Client, Transaction};

use crate::domain::id::StoreId;
use crate::metadata::SecretsVersion;
use crate::tasks;

use super::fault::Fault;
use super::rate_uses::Told;
use super::sql::{Lock, Sql};

/// The row of a server with its epoch, for each of its writes.
pub(super) const IS_MEMBER: &str = "SELECT 1 FROM servers WHERE server = $1 AND epoch = $2";

const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

/// The other servers that are not gone, with what they say of their company.
const OTHERS: &str =
    "SELECT server, is_only, extract(epoch FROM seen_at)::double precision FROM servers
     WHERE server <> $1 AND seen_at > clock_timestamp() - $2::double precision * interval '1 second'
     ORDER BY server";

const JOIN: &str = "INSERT INTO servers (server, epoch, is_only, began_at, seen_at)
     VALUES ($1, nextval('server_epochs'), $2, clock_timestamp(), clock_timestamp())
     ON CONFLICT (server) DO UPDATE SET epoch = excluded.epoch, is_only = excluded.is_only,
     began_at = excluded.began_at, seen_at = excluded.seen_at RETURNING epoch";

/// Says that a server is there.
const BEAT: &str =
    "UPDATE servers SET seen_at = clock_timestamp() WHERE server = $1 AND epoch = $2";

/// A later epoch of the same name: another process has the same data directory, or a copy of it.
const IS_SUCCEEDED: &str = "SELECT 1 FROM servers WHERE server = $1 AND epoch > $2";

/// Says that a server is gone.
const PART: &str = "UPDATE servers SET seen_at = '-infinity' WHERE server = $1 AND epoch = $2";

pub(super) const SECRETS: &str = "SELECT version FROM secrets_version";

/// A server as its configuration describes it.
#[derive(Debug, Clone)]
pub(crate) struct ServerIdentity {
    /// The name of its data directory.
    pub(crate) name: String,
    /// True if the configuration says that there is no other server.
    pub(crate) is_only: bool,
}

/// The part of an engine that has joined the servers of its store.
pub(super) struct Member {
    pub(super) identity: ServerIdentity,
    epoch: AtomicI64,
    /// The time after which a server that was not seen is taken for gone.
    pub(super) gone_after: Duration,
    joined_at: Instant,
    secrets: Mutex<SecretsVersion>,
    /// The account of uses of limits, as this server told and heard them.
    pub(super) rates: Mutex<Told>,
    /// Asks for a look at the servers' table, and for another one at the secrets.
    pub(super) look: Notify,
    /// True once another process has the name of this server.
    pub(super) is_succeeded: watch::Sender<bool>,
}

/// A server that keeps another one out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rival {
    server: String,
    is_only: bool,
    /// The instant of its last word, in seconds by the database's clock.
    seen_at: f64,
}

impl Member {
    pub(super) fn new(identity: ServerIdentity, epoch: i64, gone_after: Duration) -> Self {
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

    pub(super) fn name(&self) -> &str {
        &self.identity.name
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Returns the name of this server since it joined.
    pub(super) fn epoch_name(&self) -> String {
        format!("{}.{}", self.name(), self.epoch())
    }

    /// Returns the beginning of the names of this server's runs.
    fn prefix(&self) -> String {
        format!("{}.", self.epoch_name())
    }

    pub(super) fn run_name(&self) -> String {
        format!("{}{}", self.prefix(), tasks::random_name())
    }

    /// Returns the owner of notes of requests.
    pub(super) fn request_name(&self) -> String {
        format!("{}request", self.prefix())
    }

    /// Returns the name of the lock that writes of this server share.
    pub(super) fn lock(&self) -> Lock<'_> {
        Lock::WritersOf(self.name())
    }

    pub(super) fn secrets(&self) -> SecretsVersion {
        *self.secrets.lock()
    }

    /// Takes over a version of the secrets, unless a later one is known.
    pub(super) fn learn(&self, version: SecretsVersion) -> SecretsVersion {
        let mut known = self.secrets.lock();
        known.number = known.number.max(version.number);
        known.as_of = known.as_of.max(version.as_of);
        *known
    }

    /// Notes that the secrets may have changed since they were looked at, and asks for another look.
    pub(super) fn distrust(&self) {
        self.secrets.lock().as_of = self.joined_at;
        self.look.notify_one();
    }

    /// Says that this server is there; joins again if it was taken for gone. Returns the servers that keep it
    /// out, if some do: then it changes nothing until they are gone.
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

    /// Says that this server is gone.
    pub(super) async fn part(&self, client: &Client) -> Result<(), Fault> {
        client.execute(PART, &[&self.name(), &self.epoch()]).await?;
        Ok(())
    }
}

/// Joins the servers of a store; returns the epoch, or else the servers that keep this one out.
pub(super) async fn join(
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

/// Lists the servers beside which this one may not be.
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
    /// Tells whether a server has said since that it is there.
    pub(super) fn lives_since(&self, before: &[Self]) -> bool {
        before.iter().any(|one| one.server == self.server && one.seen_at < self.seen_at)
    }

    /// Says who keeps a server out.
    pub(super) fn refusal(&self) -> &'static str {
        if self.is_only {
            "another server uses the database, and its configuration says that it is the only one (postgres.only_server): \
             stop it, or set local.backend for both, so that they share their files, and take only_server away"
        } else {
            "another server uses the database, and postgres.only_server says that there is none: stop it, or set \
             local.backend for both, so that they share their files, and take only_server away"
        }
    }
}

/// Asks for the version of the secrets.
pub(super) async fn secrets(sql: &Sql) -> Result<SecretsVersion, Fault> {
    let as_of = Instant::now();
    let row = sql.first(SECRETS, &[]).await?;
    let number = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    Ok(SecretsVersion { number, as_of })
}
