//! One connection, used by one call.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Object;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::domain::file::damage::DamagedRow;
use crate::domain::id::{OrganizationId, OrganizationNumber, StoreId};
use crate::domain::time::clock::Timestamp;
use crate::metadata::Lease;
use crate::tasks;

use super::fault::Fault;
use super::options::PostgresOptions;

/// The maximum duration of a rare statement that reads whole tables.
const PATIENCE: Duration = Duration::from_hours(1);

const BE_PATIENT: &str = "SET LOCAL statement_timeout TO '1h'";

/// Limits for waiting for answers. These limits are longer than the server's own limits, so that the server
/// reports first, unless it cannot be reached.
#[derive(Debug, Clone, Copy)]
pub(in crate::metadata::postgres) struct Limits {
    /// A round trip to the server with little work.
    pub(in crate::metadata::postgres) journey: Duration,
    /// The wait for a connection, which might have to be created and configured.
    pub(super) checkout: Duration,
    /// The answer to a statement.
    pub(in crate::metadata::postgres) answer: Duration,
    /// The time for which a caller waits for the outcome of an unanswered write.
    pub(super) fate: Duration,
}

impl Limits {
    pub(in crate::metadata::postgres) fn of(options: &PostgresOptions) -> Self {
        let PostgresOptions { connect_timeout, statement_timeout, lock_timeout, .. } = *options;
        let hosts = options.hosts();
        Self {
            journey: connect_timeout,
            checkout: connect_timeout * (hosts + 3),
            answer: statement_timeout + connect_timeout,
            fate: lock_timeout + connect_timeout,
        }
    }

    /// Returns the limit for a short step of an opening.
    pub(in crate::metadata::postgres) fn opening(self) -> Duration {
        self.checkout + self.answer * 2
    }

    /// Returns the limit for a statement that can run for [`PATIENCE`].
    pub(super) fn of_patient(self) -> Duration {
        PATIENCE + self.journey
    }
}

/// A value of a parameter.
pub(in crate::metadata::postgres) type Param<'p> = &'p (dyn ToSql + Sync);

/// A lease that outlives its call.
pub(in crate::metadata::postgres) struct OwnedLease {
    pub(in crate::metadata::postgres) owner: String,
    pub(in crate::metadata::postgres) now: Timestamp,
    pub(in crate::metadata::postgres) until: Timestamp,
}

impl OwnedLease {
    pub(in crate::metadata::postgres) fn of(lease: Lease<'_>) -> Self {
        Self { owner: lease.owner.to_owned(), now: lease.now, until: lease.until }
    }

    pub(in crate::metadata::postgres) fn lease(&self) -> Lease<'_> {
        Lease { owner: &self.owner, now: self.now, until: self.until }
    }
}

const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

const LOCK_SHARED: &str = "SELECT pg_advisory_xact_lock_shared($1)";

/// A lock until the end of the transaction, for things without a row. Locks are taken in the order of their
/// declaration, and after the locks of existing rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::metadata::postgres) enum Lock<'l> {
    /// The number of the next era.
    Erasures,
    /// The era of one organization, even if it was never erased. Inserts share it, and take it before any
    /// row.
    Erasure(&'l OrganizationId),
    /// The active binding of one organization, even if there is none.
    Binding(OrganizationNumber),
    /// All active bindings.
    Bindings,
    /// The usage of one organization, while it is compared with the quota.
    Usage(&'l OrganizationId),
    /// The holds of snapshots, even if there are none.
    Holds,
    /// The number of keys.
    /// The bounds of live uploads.
    Uploads,
    Keys,
    /// The number of webhooks.
    Webhooks,
    /// All writes of engines that have not joined the servers of the store. Each write takes it first,
    /// shared.
    Writers,
    /// All writes of one server. Each write takes it first, shared.
    WritersOf(&'l str),
    /// The servers of the store.
    Servers,
}

impl Lock<'_> {
    /// Returns the number of the lock. If two locks have the same number by chance, their calls wait for each
    /// other, without other harm.
    pub(in crate::metadata::postgres) fn number(self, store: StoreId) -> i64 {
        let name = match self {
            Self::Erasures => "erasures".to_owned(),
            Self::Erasure(organization) => format!("erasure {organization}"),
            Self::Binding(organization) => format!("binding {}", organization.get()),
            Self::Bindings => "bindings".to_owned(),
            Self::Usage(organization) => format!("usage {organization}"),
            Self::Holds => "holds".to_owned(),
            Self::Keys => "keys".to_owned(),
            Self::Uploads => "uploads".to_owned(),
            Self::Webhooks => "webhooks".to_owned(),
            Self::Writers => "writers".to_owned(),
            Self::WritersOf(server) => format!("writers of {server}"),
            Self::Servers => "servers".to_owned(),
        };
        let digest = Sha256::digest(format!("filestore {store} {name}"));
        i64::from_be_bytes(*digest.first_chunk().expect("a SHA-256 has 32 bytes"))
    }
}

/// Rows that a call has skipped.
#[derive(Default)]
struct PassedOver {
    rows: Vec<DamagedRow>,
    /// The number of these rows, from the first, that were set aside.
    aside: usize,
}

/// A connection that one call uses, within a transaction or without one.
///
/// If the value is dropped within a transaction or after a late answer, the connection closes, and the server
/// rolls back. If the caller gives up before an answer, the connection stays reserved until the answer
/// arrives.
pub(in crate::metadata::postgres) struct Sql {
    /// The connection. `None` after it was given up.
    connection: Option<Object>,
    store: StoreId,
    in_transaction: bool,
    /// The maximum wait for an answer.
    limit: Mutex<Duration>,
    limits: Limits,
    /// The number of pending answers.
    awaited: AtomicUsize,
    /// Set after an answer was late.
    is_silent: AtomicBool,
    /// Set by a refusal after which the call must leave no changes.
    abandoned: AtomicBool,
    passed_over: Mutex<PassedOver>,
}

impl Sql {
    pub(in crate::metadata::postgres) fn new(
        connection: Object,
        store: StoreId,
        limits: Limits,
    ) -> Self {
        Self {
            connection: Some(connection),
            store,
            in_transaction: false,
            limit: Mutex::new(limits.answer),
            limits,
            awaited: AtomicUsize::new(0),
            is_silent: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            passed_over: Mutex::default(),
        }
    }

    pub(in crate::metadata::postgres) fn connection(&self) -> &Object {
        self.connection.as_ref().expect("taken on drop only")
    }

    pub(in crate::metadata::postgres) fn store(&self) -> StoreId {
        self.store
    }

    /// Records that a transaction begins, before the server is told.
    pub(in crate::metadata::postgres) fn begins(&mut self) {
        self.in_transaction = true;
    }

    /// Records that the transaction has ended.
    pub(super) fn has_ended(&mut self) {
        self.in_transaction = false;
    }

    /// Rolls the transaction back even though the call succeeds.
    pub(in crate::metadata::postgres) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Runs a query and returns its rows.
    pub(in crate::metadata::postgres) async fn rows(
        &self,
        query: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Fault> {
        let statement = self.prepare(query).await?;
        self.answered(self.connection().query(&statement, params)).await
    }

    /// Runs a query and returns its first row, if any.
    pub(in crate::metadata::postgres) async fn first(
        &self,
        query: &str,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, Fault> {
        Ok(self.rows(query, params).await?.into_iter().next())
    }

    /// Returns true if a query finds a row.
    pub(in crate::metadata::postgres) async fn exists(
        &self,
        query: &str,
        params: &[Param<'_>],
    ) -> Result<bool, Fault> {
        Ok(self.first(query, params).await?.is_some())
    }

    /// Runs `read` on each row of a query. Skips damaged rows.
    pub(in crate::metadata::postgres) async fn collect<T>(
        &self,
        query: &str,
        params: &[Param<'_>],
        mut read: impl FnMut(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut all = Vec::new();
        for row in self.rows(query, params).await? {
            all.extend(self.pass_over(read(&row))?);
        }
        Ok(all)
    }

    /// Runs a statement. Returns the number of changed rows.
    pub(in crate::metadata::postgres) async fn execute(
        &self,
        statement: &str,
        params: &[Param<'_>],
    ) -> Result<u64, Fault> {
        let statement = self.prepare(statement).await?;
        self.answered(self.connection().execute(&statement, params)).await
    }

    /// Runs statements without parameters, unchanged.
    pub(in crate::metadata::postgres) async fn batch(&self, statements: &str) -> Result<(), Fault> {
        self.answered(self.connection().batch_execute(statements)).await
    }

    /// Prepares a statement, unless this connection has already prepared it.
    pub(in crate::metadata::postgres) async fn prepare(
        &self,
        statement: &str,
    ) -> Result<Statement, Fault> {
        self.answered(self.connection().prepare_cached(statement)).await
    }

    /// Waits for the answer of the server, with a time limit.
    pub(in crate::metadata::postgres) async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Fault> {
        let limit = *self.limit.lock();
        self.awaited.fetch_add(1, Ordering::Relaxed);
        let answer = timeout(limit, answer).await;

        // Not where the caller gives up: then it stays awaited.
        self.awaited.fetch_sub(1, Ordering::Relaxed);
        let Ok(answer) = answer else {
            self.is_silent.store(true, Ordering::Relaxed);
            return Err(Fault::Silent(limit));
        };
        Ok(answer?)
    }

    /// Allows long statements until the end of the transaction, for rare statements that read whole tables.
    pub(in crate::metadata::postgres) async fn be_patient(&self) -> Result<(), Fault> {
        *self.limit.lock() = self.limits.of_patient();
        self.batch(BE_PATIENT).await
    }

    /// Restores the initial limit for answers, because a COMMIT is not a long statement.
    pub(super) fn be_usual(&self) {
        *self.limit.lock() = self.limits.answer;
    }

    /// Limits the wait for answers to a round trip.
    pub(in crate::metadata::postgres) fn be_brief(&self) {
        *self.limit.lock() = self.limits.journey;
    }

    /// Waits for a lock, and holds it until the end of the transaction.
    pub(in crate::metadata::postgres) async fn lock(&self, lock: Lock<'_>) -> Result<(), Fault> {
        self.execute(LOCK, &[&lock.number(self.store)]).await.map(drop)
    }

    /// Waits for a shared lock.
    pub(in crate::metadata::postgres) async fn lock_shared(
        &self,
        lock: Lock<'_>,
    ) -> Result<(), Fault> {
        self.execute(LOCK_SHARED, &[&lock.number(self.store)]).await.map(drop)
    }

    /// Converts the fault of a damaged row to `None`, and records the row.
    pub(in crate::metadata::postgres) fn pass_over<T>(
        &self,
        read: Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let fault = match read {
            Ok(value) => return Ok(Some(value)),
            Err(fault) => fault,
        };

        let Some(row) = fault.damaged_row() else { return Err(fault) };
        self.passed_over.lock().rows.push(row);
        Ok(None)
    }

    /// Returns the files that were skipped since the last call.
    pub(in crate::metadata::postgres) fn newly_passed_over(&self) -> Vec<String> {
        let mut passed = self.passed_over.lock();
        let new = passed.rows[passed.aside..].iter();
        let files = new
            .filter_map(|row| row.row.rsplit_once("file ").map(|(_, id)| id.to_owned()))
            .collect();
        passed.aside = passed.rows.len();
        files
    }

    /// Removes and returns the skipped rows.
    pub(super) fn take_passed_over(&self) -> Vec<DamagedRow> {
        std::mem::take(&mut *self.passed_over.lock()).rows
    }
}

impl Drop for Sql {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.in_transaction || self.is_silent.load(Ordering::Relaxed) {
            return close(connection);
        }
        if self.awaited.load(Ordering::Relaxed) == 0 {
            return;
        }

        match Handle::try_current() {
            Ok(_) => drop(tasks::spawn(rest(connection, self.limits.journey))),
            Err(_) => close(connection),
        }
    }
}

/// Closes a connection and removes it from the pool. Another call must not get the rest of its transaction,
/// nor wait behind an unanswered statement.
fn close(connection: Object) {
    drop(Object::take(connection));
}

/// Returns a connection to the pool after the server has answered everything. Closes it if this takes too
/// long.
async fn rest(connection: Object, limit: Duration) {
    // Answers come in the order of the questions.
    let is_idle = timeout(limit, connection.batch_execute("")).await;
    if !matches!(is_idle, Ok(Ok(()))) {
        close(connection);
    }
}
