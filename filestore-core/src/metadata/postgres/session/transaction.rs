//! Calls: reads, and writes with a known outcome.
//!
//! # Crash safety
//! The COMMIT on the server is the commit point. Each write also leaves a mark: a unique number in a row that
//! no other running transaction changes (`commit_marks`). If the connection breaks between the COMMIT and its
//! answer, another connection reads this row and waits for the end of the transaction. If the row has the
//! number, the transaction was committed. Otherwise it was rolled back. This also works after a crash of the
//! server, and after a failover. `pg_xact_status` cannot tell, because a crashed server reuses the numbers of
//! unflushed transactions. The caller waits for the outcome for a while. After that, the outcome is queried
//! in the background (`fates`).
//!
//! A write holds a shared lock of its server from before its first change to its end. The next process of the
//! server waits until it can take the lock exclusively (`writers`), because a COMMIT of a killed process can
//! still be running at the database. After a write has the lock, it checks that its server is still a member
//! of the store (`member`).
//!
//! # Deadlines
//! The server has limits for the duration of a statement and for the wait for a lock. Each answer also has a
//! limit on this side (`sql`), because a silent network ends no call.
//!
//! # Capacity
//! Some connections are reserved for reads, so that reads continue if commits take long. A write with an
//! unknown outcome can still occupy a session at the server, so it counts among the writes.
//!
//! # Cancellation
//! A write continues to its end even if its caller is dropped, so that no write stays open.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{OrganizationId, StoreId};
use crate::domain::report::erasure::Era;
use crate::domain::report::load::QueueLoad;
use crate::metadata::damaged_rows::DamagedRows;
use crate::tasks;

use super::fates::{Asks, Fates, ask_on};
use super::fault::{self, Class, Fault};
use super::marks::{FATE, FORGET_MARKS, MARK, Mark, Marks};
use super::options::PostgresOptions;
use super::pool;
use super::shares::Shares;
use super::sql::{Limits, Lock, Param, Sql};
use crate::metadata::postgres::members::member::{IS_MEMBER, Member};
use crate::metadata::postgres::members::watch::Watching;

/// The work of a call: a plain function of the connection and the call's arguments. The function can run
/// several times.
pub(in crate::metadata::postgres) type Work<A, T> =
    for<'t> fn(&'t Sql, &'t A) -> BoxFuture<'t, Result<T, Fault>>;

/// The maximum number of concurrent calls, including waiting calls.
const CALLS: usize = 4096;

/// The maximum number of attempts of one call.
const ATTEMPTS: u32 = 6;

/// The share of the connections that is reserved for reads: one in this many.
const READS: usize = 8;

/// The pause between two queries for the outcome of a write.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// The use of a connection by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Each statement separately.
    Read,
    /// All statements from one snapshot.
    Snapshot,
    /// One transaction with changes.
    Write,
}

/// The parts that all calls share.
pub(in crate::metadata::postgres) struct Engine {
    pool: Pool,
    limits: Limits,
    calls: Arc<Semaphore>,
    /// The permits for concurrent writes.
    writes: Arc<Semaphore>,
    marks: Marks,
    shares: Arc<Shares>,
    /// The server of this engine, with its watch. Not set before it has joined the others.
    joined: OnceLock<(Arc<Member>, Watching)>,
    /// The writes with an unknown outcome.
    pub(in crate::metadata::postgres) fates: Fates,
    pub(in crate::metadata::postgres) store: StoreId,
    pub(in crate::metadata::postgres) damaged: DamagedRows,
    /// The last known era.
    era: Arc<AtomicI64>,
}

impl Engine {
    pub(in crate::metadata::postgres) fn new(
        pool: Pool,
        options: &PostgresOptions,
        store: StoreId,
    ) -> Self {
        let writes = most_writes(options.pooled());
        Self {
            pool,
            limits: Limits::of(options),
            calls: Arc::new(Semaphore::new(CALLS)),
            writes: Arc::new(Semaphore::new(writes)),
            marks: Marks::new(),
            shares: Arc::new(Shares::of(writes, options.connect_timeout)),
            joined: OnceLock::new(),
            fates: Fates::default(),
            store,
            damaged: DamagedRows::default(),
            era: Arc::default(),
        }
    }

    /// Returns the last known era, for tasks that learn about later eras.
    pub(in crate::metadata::postgres) fn known_era(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.era)
    }

    /// Returns the last known era: of all erasures through this server, and of recent erasures by others.
    pub(in crate::metadata::postgres) fn era(&self) -> Era {
        Era::from_number(self.era.load(Ordering::Acquire))
    }

    /// Accepts an era that was committed.
    pub(in crate::metadata::postgres) fn learn(&self, era: Era) {
        self.era.fetch_max(era.number(), Ordering::AcqRel);
    }

    /// Returns the server of this engine, after it has joined the others.
    pub(in crate::metadata::postgres) fn member(&self) -> Option<&Arc<Member>> {
        self.joined.get().map(|(member, _)| member)
    }

    /// Records that this engine has joined the servers of its store. A second call changes nothing.
    pub(in crate::metadata::postgres) fn has_joined(
        &self,
        member: Arc<Member>,
        watching: Watching,
    ) {
        let _ = self.joined.set((member, watching));
    }

    /// Takes a connection from the pool.
    pub(in crate::metadata::postgres) async fn connection(&self) -> Result<Object, Fault> {
        pool::get(&self.pool, self.limits).await
    }

    /// Takes a connection from the pool, for a call.
    async fn connect(&self) -> Result<Sql, Fault> {
        Ok(Sql::new(self.connection().await?, self.store, self.limits))
    }

    /// Removes the marks of servers that are gone.
    pub(super) async fn forget_old_marks(&self) -> Result<(), Fault> {
        self.connect().await?.execute(FORGET_MARKS, &[]).await.map(drop)
    }

    /// Reads. For statements that must agree, use [`read_snapshot`](Self::read_snapshot).
    pub(in crate::metadata::postgres) async fn read<A: Sync, T>(
        &self,
        doing: &'static str,
        args: &A,
        work: Work<A, T>,
    ) -> Result<T> {
        let _call = self.admit()?;
        self.run(doing, Manner::Read, args, work).await
    }

    /// Reads from one snapshot.
    pub(in crate::metadata::postgres) async fn read_snapshot<A: Sync, T>(
        &self,
        doing: &'static str,
        args: &A,
        work: Work<A, T>,
    ) -> Result<T> {
        let _call = self.admit()?;
        self.run(doing, Manner::Snapshot, args, work).await
    }

    /// Reads from one snapshot, for as long as it takes: with a place among the writes, so that the connections
    /// that are left to reads stay theirs.
    pub(in crate::metadata::postgres) async fn read_at_length<A: Sync, T>(
        &self,
        doing: &'static str,
        args: &A,
        work: Work<A, T>,
    ) -> Result<T> {
        let _call = self.admit()?;
        let _turn = self.turn().await?;
        self.run(doing, Manner::Snapshot, args, work).await
    }

    /// Runs `work` in a transaction and returns once it is committed. `work` may run several times. Once
    /// the call was polled it runs to its end, also if nobody waits for it.
    pub(in crate::metadata::postgres) async fn write<A, T>(
        self: &Arc<Self>,
        doing: &'static str,
        args: A,
        work: Work<A, T>,
    ) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.write_as(None, doing, args, work).await
    }

    /// Runs `work` like [`write`](Self::write), when the organization's share has a free connection.
    pub(in crate::metadata::postgres) async fn write_of<A, T>(
        self: &Arc<Self>,
        organization: OrganizationId,
        doing: &'static str,
        args: A,
        work: Work<A, T>,
    ) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.write_as(Some(organization), doing, args, work).await
    }

    async fn write_as<A, T>(
        self: &Arc<Self>,
        organization: Option<OrganizationId>,
        doing: &'static str,
        args: A,
        work: Work<A, T>,
    ) -> Result<T>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
    {
        let call = self.admit()?;
        let engine = Arc::clone(self);
        let running = tasks::spawn(async move {
            let place = match &organization {
                Some(organization) => Some(engine.shares.enter(organization).await?),
                None => None,
            };
            let turn = engine.turn().await?;
            let outcome = engine.run(doing, Manner::Write, &args, work).await;

            if matches!(&outcome, Err(error) if error.kind() == ErrorKind::OutcomeUnknown) {
                engine.fates.keep(turn);
            }
            drop((place, call));
            if outcome.is_err() {
                engine.ask_for_fates();
            }
            outcome
        });
        running.await.unwrap_or_else(|lost| Err(Error::internal(doing, lost)))
    }

    /// Waits until a write can begin. `Busy` if this takes too long.
    async fn turn(&self) -> Result<OwnedSemaphorePermit> {
        let turn = timeout(self.limits.journey, Arc::clone(&self.writes).acquire_owned()).await;
        turn.map_err(|_| fault::busy())?.map_err(|_| fault::closed())
    }

    /// Admits a call, unless too many are running or the engine is closed.
    fn admit(&self) -> Result<OwnedSemaphorePermit> {
        if self.pool.is_closed() {
            return Err(fault::closed());
        }
        Arc::clone(&self.calls).try_acquire_owned().map_err(|error| match error {
            TryAcquireError::Closed => fault::closed(),
            TryAcquireError::NoPermits => fault::busy(),
        })
    }

    /// Returns the number of calls that wait for a connection.
    pub(in crate::metadata::postgres) fn load(&self) -> QueueLoad {
        let pool = self.pool.status();
        let (running, working) =
            (CALLS - self.calls.available_permits(), pool.size.saturating_sub(pool.available));
        let waiting = if self.pool.is_closed() { 0 } else { running.saturating_sub(working) };
        QueueLoad::new(waiting, CALLS)
    }

    /// Waits for the running calls, and refuses all others.
    pub(in crate::metadata::postgres) async fn close(&self) {
        // Fair: nobody is let in any more while this waits for all of them.
        let all = u32::try_from(CALLS).expect("a small constant");
        if let Ok(all) = self.calls.acquire_many(all).await {
            all.forget();
        }
        self.calls.close();
        self.part().await;
        self.pool.close();
        self.fates.close();
    }

    /// Reports that this server has ended, so that others need not wait to find out.
    async fn part(&self) {
        let Some((member, watching)) = self.joined.get() else { return };
        watching.stop();
        let parted = async { member.part(&*self.connection().await?).await };
        let parted = timeout(self.limits.journey, parted).await;
        if let Err(fault) = parted.unwrap_or(Err(Fault::Silent(self.limits.journey))) {
            tracing::debug!(%fault, "the other servers find out by themselves that this one is gone");
        }
    }

    /// Runs a call. Repeats it after a temporary fault.
    async fn run<A: Sync, T>(
        &self,
        doing: &'static str,
        manner: Manner,
        args: &A,
        work: Work<A, T>,
    ) -> Result<T> {
        let mut attempt = 1;
        loop {
            let fault = match self.attempt(manner, args, work).await {
                Ok(value) => return Ok(value),
                Err(fault) => fault,
            };
            if fault.class() != Class::Again || attempt == ATTEMPTS {
                self.damaged.report(fault.damaged_row().into_iter().collect());
                return Err(fault.into_error(doing));
            }

            tracing::debug!(doing, attempt, fault = %fault, "a call of the database is run again");
            sleep(pause(attempt)).await;
            attempt += 1;
        }
    }

    async fn attempt<A: Sync, T>(
        &self,
        manner: Manner,
        args: &A,
        work: Work<A, T>,
    ) -> Result<T, Fault> {
        let mut sql = self.connect().await?;
        let mark = (manner == Manner::Write).then(|| self.marks.take());
        let outcome = match self.begin(&mut sql, manner, mark).await {
            Ok(()) => self.work(sql, manner, mark, args, work).await,
            Err(fault) => Err(fault),
        };

        // A row that a lost transaction may still lock or mark is not used again.
        let is_free = match &outcome {
            Ok(_) => true,
            Err(fault) => fault.class() != Class::Unknown && !fault.lost_connection(),
        };
        if let Some(mark) = mark.filter(|_| is_free) {
            self.marks.give_back(mark);
        }
        outcome
    }

    /// Begins the transaction for `manner`. A write is marked.
    async fn begin(&self, sql: &mut Sql, manner: Manner, mark: Option<Mark>) -> Result<(), Fault> {
        if manner == Manner::Read {
            return Ok(());
        }
        sql.begins();
        let Some(Mark { slot, number }) = mark else {
            return sql.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await;
        };

        let member = self.member();
        let lock = member.map_or(Lock::Writers, |member| member.lock()).number(self.store);
        let params: [Param<'_>; 4] = [&self.marks.server, &slot, &number, &lock];
        let statement = sql.prepare(MARK).await?;
        let sql = &*sql;
        let begun = async {
            let (began, connection) = (sql.batch("BEGIN"), sql.connection());
            let marked = sql.answered(connection.execute(&statement, &params));
            futures_util::future::try_join(began, marked).await.map(drop)
        };

        // All at once: one journey to the server.
        match member {
            Some(member) => {
                futures_util::future::try_join(begun, is_member(sql, member)).await.map(drop)
            }
            None => begun.await,
        }
    }

    /// Runs the work in the transaction, and ends it.
    async fn work<A: Sync, T>(
        &self,
        sql: Sql,
        manner: Manner,
        mark: Option<Mark>,
        args: &A,
        work: Work<A, T>,
    ) -> Result<T, Fault> {
        let worked = work(&sql, args).await;
        self.damaged.report(sql.take_passed_over());

        match (worked, mark) {
            (Ok(value), Some(mark)) if !sql.is_abandoned() => {
                self.commit(sql, mark).await?;
                Ok(value)
            }
            (outcome, _) => {
                roll_back(sql, manner).await;
                outcome
            }
        }
    }

    /// Commits, or determines whether the commit happened.
    async fn commit(&self, mut sql: Sql, mark: Mark) -> Result<(), Fault> {
        sql.be_usual();
        let lost = match sql.batch("COMMIT").await {
            Ok(()) => {
                sql.has_ended();
                return Ok(());
            }
            Err(Fault::Sql(error)) if fault::refuses_commit(&error) => {
                return Err(Fault::Commit(error));
            }
            Err(lost) => lost,
        };

        tracing::warn!(%lost, "a commit was not answered: the server is asked whether it was done");
        drop(sql);
        self.fate(mark).await
    }

    /// Queries the outcome of a write for a while. If the outcome stays unknown, the caller is told so, and
    /// the queries continue in the background.
    async fn fate(&self, mark: Mark) -> Result<(), Fault> {
        let end = Instant::now() + self.limits.fate;
        loop {
            let asked = timeout_at(end, self.is_committed(mark)).await;
            let unknown = match asked.unwrap_or(Err(Fault::Silent(self.limits.fate))) {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(Fault::RolledBack),
                Err(fault) => fault.to_string(),
            };
            if Instant::now() >= end {
                self.fates.note(mark);
                return Err(Fault::Unknown(unknown));
            }
            sleep(ASK_AGAIN).await;
        }
    }

    /// Begins to query unknown outcomes in the background.
    fn ask_for_fates(self: &Arc<Self>) {
        if self.fates.begin_to_ask() {
            // Weak: an engine that nobody uses any more has nobody who waits for an answer.
            tasks::spawn(ask_on(Arc::downgrade(self)));
        }
    }
}

impl Asks for Engine {
    fn fates(&self) -> &Fates {
        &self.fates
    }

    async fn is_committed(&self, mark: Mark) -> Result<bool, Fault> {
        let sql = self.connect().await?;
        let row = sql.first(FATE, &[&self.marks.server, &mark.slot]).await?;
        let number: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(number == Some(mark.number))
    }

    fn give_back(&self, mark: Mark) {
        self.marks.give_back(mark);
    }
}

/// Fails if the write's server counted as gone. This statement is sent after the one that waits for the lock
/// of the server's writes. The statement therefore sees the commits of the lock's earlier holder.
async fn is_member(sql: &Sql, member: &Member) -> Result<(), Fault> {
    if sql.exists(IS_MEMBER, &[&member.name(), &member.epoch()]).await? {
        return Ok(());
    }
    member.look.notify_one();
    Err(Fault::Outlived)
}

/// Rolls back. If this fails, the connection is closed, which also rolls back.
async fn roll_back(mut sql: Sql, manner: Manner) {
    if manner == Manner::Read {
        return;
    }
    if sql.batch("ROLLBACK").await.is_ok() {
        sql.has_ended();
    }
}

/// Returns the maximum number of connections for writes.
fn most_writes(connections: usize) -> usize {
    connections.saturating_sub(connections.div_ceil(READS)).max(1)
}

/// Returns a random pause before the next attempt of a call, so that competing calls separate.
fn pause(attempt: u32) -> Duration {
    let most = u128::from(4_u32 << attempt);
    let millis = tasks::random_part() % most;
    Duration::from_millis(u64::try_from(millis).expect("less than its bound"))
}
