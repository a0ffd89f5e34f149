//! The servers of a store: who they are, whether they live, and what those leave that do not.
//!
//! # Purpose
//! A server joins before it begins anything: it has a row with its name, which is that of its data directory,
//! and an *epoch* that no other start has. It says again and again that it is there (`watch`). One that was
//! not seen for a while is taken for gone: any other server ends what it left, in the same transaction that
//! removes its row.
//!
//! # Owners
//! What a server has under way is owned by a run, whose name begins with the server's name and epoch. So what
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
//! Whether a server lives is decided by the clock of the database alone.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_postgres::{Client, Transaction};

use crate::domain::clock::Timestamp;
use crate::domain::id::StoreId;
use crate::metadata::SecretsVersion;
use crate::tasks;

use super::fault::Fault;
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

pub(super) const GONE: &str =
    "SELECT server FROM servers
     WHERE server <> $1 AND seen_at <= clock_timestamp() - $2::double precision * interval '1 second'
     ORDER BY server";

pub(super) const STILL_GONE: &str = "SELECT 1 FROM servers WHERE server = $1
     AND seen_at <= clock_timestamp() - $2::double precision * interval '1 second' FOR UPDATE SKIP LOCKED";

const TRY: &str = "SELECT pg_try_advisory_xact_lock($1)";

const FORGET: &str = "DELETE FROM servers WHERE server = $1";

/// Of the owners from one name up to another, not included.
pub(super) const END_PURGES: &str = "UPDATE files SET purge_owner = NULL, purge_not_before = 0
     WHERE purge_owner >= $1 AND purge_owner < $2";

pub(super) const END_SYNCS: &str =
    "UPDATE files SET sync_status = 'PENDING', sync_owner = NULL, sync_not_before = 0
     WHERE sync_owner >= $1 AND sync_owner < $2 AND sync_status = 'SYNCING'";

pub(super) const END_DROPPED: &str =
    "UPDATE blob_gc SET owner = NULL, not_before = 0 WHERE owner >= $1 AND owner < $2";

pub(super) const END_NOTES: &str = "WITH noted AS MATERIALIZED (
     SELECT blob_key FROM write_intents WHERE owner >= $1 AND owner < $2 FOR UPDATE
     ), gone AS (
     DELETE FROM write_intents USING noted WHERE write_intents.blob_key = noted.blob_key
     RETURNING write_intents.file_id, write_intents.storage_provider, write_intents.blob_key)
     INSERT INTO blob_gc (file_id, storage_provider, blob_key, not_before, kept_until)
     SELECT file_id, storage_provider, blob_key, $3, $3 FROM gone";

pub(super) const END_ENTRIES: &str = "DELETE FROM under_way WHERE owner >= $1 AND owner < $2";

/// An entry of a server that is gone makes room.
pub(super) const ENTER: &str = "INSERT INTO under_way AS entry (name, owner) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET owner = excluded.owner WHERE NOT EXISTS (
     SELECT 1 FROM servers WHERE server = split_part(entry.owner, '.', 1)
     AND epoch::text = split_part(entry.owner, '.', 2)
     AND seen_at > clock_timestamp() - $3::double precision * interval '1 second')";

pub(super) const LEAVE: &str = "DELETE FROM under_way WHERE name = $1 AND owner = $2";

pub(super) const CLEAR_ENTRIES: &str = "DELETE FROM under_way";

pub(super) const SECRETS: &str = "SELECT version FROM secrets_version";

/// An entry is worth no wait for the disk: at the worst a server that crashed with it is asked to do
/// something twice.
const LAZILY: &str = "SET LOCAL synchronous_commit TO off";

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

    /// Returns the beginning of the names of this server's runs.
    pub(super) fn prefix(&self) -> String {
        format!("{}.{}.", self.name(), self.epoch())
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

/// Owners from one name up to another, not included.
type Owners<'o> = (&'o str, &'o str);

/// Ends what earlier epochs of a server left. No other process has the name.
pub(super) async fn end_earlier(
    sql: &Sql,
    prefix: &str,
    not_before: Timestamp,
) -> Result<(), Fault> {
    let (name, epoch) = split(prefix);
    let (first, last) = (format!("{name}."), format!("{name}/"));
    let behind = format!("{name}.{epoch}/");
    end(sql, (&first, prefix), not_before).await?;
    end(sql, (&behind, &last), not_before).await
}

/// Splits the beginning of names of runs into the server's name and its epoch.
fn split(prefix: &str) -> (&str, &str) {
    let (name, rest) = prefix.split_once('.').expect("a dot behind the name");
    (name, rest.strip_suffix('.').unwrap_or(rest))
}

/// Lists the servers that are gone.
pub(super) async fn gone(
    sql: &Sql,
    member: &str,
    gone_after: Duration,
) -> Result<Vec<String>, Fault> {
    let rows = sql.rows(GONE, &[&member, &gone_after.as_secs_f64()]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Ends what a server left, if it is gone still and none of its writes is under way; returns whether that
/// was done.
pub(super) async fn end_one(
    sql: &Sql,
    server: &str,
    gone_after: Duration,
    not_before: Timestamp,
) -> Result<bool, Fault> {
    if !sql.exists(STILL_GONE, &[&server, &gone_after.as_secs_f64()]).await? {
        return Ok(false);
    }
    let number = Lock::WritersOf(server).number(sql.store());
    let row = sql.first(TRY, &[&number]).await?;
    let is_quiet: bool = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if !is_quiet {
        return Ok(false);
    }

    let (first, last) = (format!("{server}."), format!("{server}/"));
    end(sql, (&first, &last), not_before).await?;
    sql.execute(FORGET, &[&server]).await?;
    Ok(true)
}

async fn end(sql: &Sql, (from, to): Owners<'_>, not_before: Timestamp) -> Result<(), Fault> {
    for statement in [END_PURGES, END_SYNCS, END_DROPPED, END_ENTRIES] {
        sql.execute(statement, &[&from, &to]).await?;
    }
    sql.execute(END_NOTES, &[&from, &to, &not_before.as_millis()]).await.map(drop)
}

pub(super) async fn enter(
    sql: &Sql,
    name: &str,
    owner: &str,
    gone_after: Duration,
) -> Result<bool, Fault> {
    sql.batch(LAZILY).await?;
    Ok(sql.execute(ENTER, &[&name, &owner, &gone_after.as_secs_f64()]).await? > 0)
}

pub(super) async fn leave(sql: &Sql, name: &str, owner: &str) -> Result<(), Fault> {
    sql.batch(LAZILY).await?;
    sql.execute(LEAVE, &[&name, &owner]).await.map(drop)
}

/// Ends all entries.
pub(super) async fn clear(sql: &Sql) -> Result<(), Fault> {
    sql.execute(CLEAR_ENTRIES, &[]).await.map(drop)
}

/// Asks for the version of the secrets.
pub(super) async fn secrets(sql: &Sql) -> Result<SecretsVersion, Fault> {
    let as_of = Instant::now();
    let row = sql.first(SECRETS, &[]).await?;
    let number = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    Ok(SecretsVersion { number, as_of })
}
