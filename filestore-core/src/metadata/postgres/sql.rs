//! One connection in the hands of one call.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Object;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::domain::damage::DamagedRow;
use crate::domain::id::{OrganizationId, OrganizationNumber, StoreId};
use crate::tasks;

use super::fault::Fault;
use super::options::PostgresOptions;

/// The longest run of a statement that reads whole tables, once in a while.
const PATIENCE: Duration = Duration::from_hours(1);

const BE_PATIENT: &str = "SET LOCAL statement_timeout TO '1h'";

/// The limits of the waits for answers. They are longer than what the server is told: it notices first,
/// unless it cannot be heard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The journey to the server and back, with little work on the way.
    pub(super) journey: Duration,
    /// The wait for a connection, which may have to be made and set up.
    pub(super) checkout: Duration,
    /// The answer to a statement.
    pub(super) answer: Duration,
    /// The time for which a caller waits for the fate of a write that was not answered.
    pub(super) fate: Duration,
}

impl Limits {
    pub(super) fn of(options: &PostgresOptions) -> Self {
        let PostgresOptions { connect_timeout, statement_timeout, lock_timeout, .. } = *options;
        let hosts = options.hosts();
        Self {
            journey: connect_timeout,
            checkout: connect_timeout * (hosts + 3),
            answer: statement_timeout + connect_timeout,
            fate: lock_timeout + connect_timeout,
        }
    }

    /// Returns the limit of a short step of an opening.
    pub(super) fn opening(self) -> Duration {
        self.checkout + self.answer * 2
    }

    /// Returns the limit of a statement that may run for [`PATIENCE`].
    pub(super) fn of_patient(self) -> Duration {
        PATIENCE + self.journey
    }
}

/// A value of a parameter.
pub(super) type Param<'p> = &'p (dyn ToSql + Sync);

const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

const LOCK_SHARED: &str = "SELECT pg_advisory_xact_lock_shared($1)";

/// A lock until the end of the transaction, for what no row stands for. They are taken in the order of
/// their declaration, and after those of rows that exist already.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lock<'l> {
    /// The active binding of one organization, also if there is none.
    Binding(OrganizationNumber),
    /// All active bindings.
    Bindings,
    /// The usage of one organization, while it is compared with its quota.
    Usage(&'l OrganizationId),
    /// The holds of snapshots, also if there are none.
    Holds,
    /// The number of keys.
    Keys,
    /// All that write without having joined the servers of the store. Taken first, and shared, by each write.
    Writers,
    /// All that one server writes. Taken first, and shared, by each write.
    WritersOf(&'l str),
    /// The servers of the store.
    Servers,
}

impl Lock<'_> {
    /// Returns the number that stands for the lock. A chance collision makes two calls wait for each other's
    /// end, and does no other harm.
    pub(super) fn number(self, store: StoreId) -> i64 {
        let name = match self {
            Self::Binding(organization) => format!("binding {}", organization.get()),
            Self::Bindings => "bindings".to_owned(),
            Self::Usage(organization) => format!("usage {organization}"),
            Self::Holds => "holds".to_owned(),
            Self::Keys => "keys".to_owned(),
            Self::Writers => "writers".to_owned(),
            Self::WritersOf(server) => format!("writers of {server}"),
            Self::Servers => "servers".to_owned(),
        };
        let digest = Sha256::digest(format!("filestore {store} {name}"));
        i64::from_be_bytes(*digest.first_chunk().expect("a SHA-256 has 32 bytes"))
    }
}

/// Rows that a call has passed over.
#[derive(Default)]
struct PassedOver {
    rows: Vec<DamagedRow>,
    /// The number of those, from the first, that were set aside.
    aside: usize,
}

/// A connection in the hands of one call, within a transaction or without one.
///
/// Dropped within a transaction, or after an answer that did not come in time, it closes the connection, and
/// the server rolls back. Dropped by a caller that gave up while it waited for an answer, it keeps the
/// connection from others until that answer came.
pub(super) struct Sql {
    /// The connection; `None` once it was given up.
    connection: Option<Object>,
    store: StoreId,
    in_transaction: bool,
    /// The longest wait for an answer.
    limit: Mutex<Duration>,
    limits: Limits,
    /// The number of answers that are waited for.
    awaited: AtomicUsize,
    /// Set once an answer did not come in time.
    is_silent: AtomicBool,
    /// Set by a refusal after which nothing of the call is to stay.
    abandoned: AtomicBool,
    passed_over: Mutex<PassedOver>,
}

impl Sql {
    pub(super) fn new(connection: Object, store: StoreId, limits: Limits) -> Self {
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

    pub(super) fn connection(&self) -> &Object {
        self.connection.as_ref().expect("taken on drop only")
    }

    pub(super) fn store(&self) -> StoreId {
        self.store
    }

    /// Notes that a transaction begins, before the server is told.
    pub(super) fn begins(&mut self) {
        self.in_transaction = true;
    }

    /// Notes that the transaction has ended.
    pub(super) fn has_ended(&mut self) {
        self.in_transaction = false;
    }

    /// Lets the transaction be rolled back although the call succeeds.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Runs a query and returns its rows.
    pub(super) async fn rows(&self, query: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        let statement = self.prepare(query).await?;
        self.answered(self.connection().query(&statement, params)).await
    }

    /// Runs a query and returns its first row, if it has one.
    pub(super) async fn first(
        &self,
        query: &str,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, Fault> {
        Ok(self.rows(query, params).await?.into_iter().next())
    }

    /// Tells whether a query finds a row.
    pub(super) async fn exists(&self, query: &str, params: &[Param<'_>]) -> Result<bool, Fault> {
        Ok(self.first(query, params).await?.is_some())
    }

    /// Runs `read` on each row of a query. Damaged rows are passed over.
    pub(super) async fn collect<T>(
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

    /// Runs a statement; returns how many rows it changed.
    pub(super) async fn execute(
        &self,
        statement: &str,
        params: &[Param<'_>],
    ) -> Result<u64, Fault> {
        let statement = self.prepare(statement).await?;
        self.answered(self.connection().execute(&statement, params)).await
    }

    /// Runs statements without parameters, as they are.
    pub(super) async fn batch(&self, statements: &str) -> Result<(), Fault> {
        self.answered(self.connection().batch_execute(statements)).await
    }

    /// Prepares a statement, unless that was done before on this connection.
    pub(super) async fn prepare(&self, statement: &str) -> Result<Statement, Fault> {
        self.answered(self.connection().prepare_cached(statement)).await
    }

    /// Waits for the answer of the server, for a limited time.
    pub(super) async fn answered<T>(
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

    /// Lets statements run for long until the end of the transaction: for what reads whole tables, once in
    /// a while.
    pub(super) async fn be_patient(&self) -> Result<(), Fault> {
        *self.limit.lock() = self.limits.of_patient();
        self.batch(BE_PATIENT).await
    }

    /// Waits for answers as long as at the beginning: a COMMIT is none of the long statements.
    pub(super) fn be_usual(&self) {
        *self.limit.lock() = self.limits.answer;
    }

    /// Waits for answers no longer than a journey takes.
    pub(super) fn be_brief(&self) {
        *self.limit.lock() = self.limits.journey;
    }

    /// Waits for a lock, and has it until the end of the transaction.
    pub(super) async fn lock(&self, lock: Lock<'_>) -> Result<(), Fault> {
        self.execute(LOCK, &[&lock.number(self.store)]).await.map(drop)
    }

    /// Waits for a lock that others may have at the same time in this way.
    pub(super) async fn lock_shared(&self, lock: Lock<'_>) -> Result<(), Fault> {
        self.execute(LOCK_SHARED, &[&lock.number(self.store)]).await.map(drop)
    }

    /// Turns the fault of a damaged row into `None`, and notes the row.
    pub(super) fn pass_over<T>(&self, read: Result<T, Fault>) -> Result<Option<T>, Fault> {
        let fault = match read {
            Ok(value) => return Ok(Some(value)),
            Err(fault) => fault,
        };

        let Some(row) = fault.damaged_row() else { return Err(fault) };
        self.passed_over.lock().rows.push(row);
        Ok(None)
    }

    /// Returns the files that were passed over since the last call.
    pub(super) fn newly_passed_over(&self) -> Vec<String> {
        let mut passed = self.passed_over.lock();
        let new = passed.rows[passed.aside..].iter();
        let files = new
            .filter_map(|row| row.row.rsplit_once("file ").map(|(_, id)| id.to_owned()))
            .collect();
        passed.aside = passed.rows.len();
        files
    }

    /// Takes the rows that were passed over.
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

/// Closes a connection, and takes it out of the pool: another call must not get the rest of its transaction,
/// nor wait behind a statement without an answer.
fn close(connection: Object) {
    drop(Object::take(connection));
}

/// Gives a connection back to the pool once the server has answered all that was sent; closes it if that
/// takes too long.
async fn rest(connection: Object, limit: Duration) {
    // Answers come in the order of the questions.
    let is_idle = timeout(limit, connection.batch_execute("")).await;
    if !matches!(is_idle, Ok(Ok(()))) {
        close(connection);
    }
}
