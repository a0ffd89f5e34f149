//! Calls: reads, and writes that are committed or not, and known to be.
//!
//! # Crash safety
//! The COMMIT on the server is the commit point. Each write also leaves a mark: a number of its own, in a
//! row that no other transaction of any server changes meanwhile (`commit_marks`). Where the connection
//! breaks between the COMMIT and its answer, that row is looked at on another connection, which waits for
//! the end of the transaction: it has the number, or the transaction was rolled back. So it is also after
//! a crash of the server, and after a failover. (`pg_xact_status` cannot tell: a server that crashed gives
//! the numbers of transactions of which nothing was flushed to others.) The caller waits a while for that
//! answer; without one the fate is asked for in the background (`fates`).
//!
//! A write holds a lock of its server from before its first change until its end, shared with all others of it:
//! the next process of the server waits until it can have that lock alone (`writers`), as a COMMIT of a killed
//! process may still be under way at the database. Once it has the lock it looks whether the server is
//! still one of those of the store (`servers`).
//!
//! # Deadlines
//! The server is told how long a statement and a wait for a lock may take. Each answer also has a limit on
//! this side (`sql`): a network that is silent ends no call by itself.
//!
//! # Capacity
//! Some connections are left to reads, so that these go on where commits take long. A write of which nobody
//! knows whether it was committed may still occupy a session at the server, so it counts on among the writes.
//!
//! # Cancellation
//! A write goes on when its caller goes away, to its end: so no write is left open in the middle.

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{OrganizationId, StoreId};
use crate::domain::load::QueueLoad;
use crate::metadata::damaged_rows::DamagedRows;
use crate::tasks;

use super::fates::Fates;
use super::fault::{self, Class, Fault};
use super::options::PostgresOptions;
use super::pool;
use super::servers::{self, Member};
use super::shares::Shares;
use super::sql::{Limits, Lock, Param, Sql};
use super::watch::Watching;

/// The work of a call: a plain function of the connection and the call's arguments, as it may run several
/// times.
pub(super) type Work<A, T> = for<'t> fn(&'t Sql, &'t A) -> BoxFuture<'t, Result<T, Fault>>;

/// The most calls at a time, waiting ones included.
const CALLS: usize = 4096;

/// The most runs of one call.
const ATTEMPTS: u32 = 6;

/// The part of the connections that is left to reads: one of so many.
const READS: usize = 8;

/// The pause between two questions for the fate of a write.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// The mark of a write. Also locks the row, so that a question for its fate waits for its end, and before
/// it the store, together with all that write.
const MARK: &str = "INSERT INTO commit_marks AS mark (server, slot, number)
     SELECT $1::text, $2::integer, $3::bigint FROM pg_advisory_xact_lock_shared($4)
     ON CONFLICT (server, slot) DO UPDATE SET number = excluded.number, marked_at = now()";

/// The last mark in a row. Writes as well, or it would not wait for the transaction that makes the row.
const FATE: &str = "INSERT INTO commit_marks AS mark (server, slot, number) VALUES ($1, $2, 0)
     ON CONFLICT (server, slot) DO UPDATE SET number = mark.number RETURNING number";

/// Marks of servers that are gone.
const FORGET_MARKS: &str = "DELETE FROM commit_marks WHERE marked_at < now() - interval '7 days'";

/// The manner in which a call uses its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Each statement by itself.
    Read,
    /// All statements from one snapshot.
    Snapshot,
    /// One transaction that changes something.
    Write,
}

/// The mark of one write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// The row, which nothing else of this engine uses until the fate of the write is known.
    slot: i32,
    /// The number, which no other write of this engine has.
    pub(super) number: i64,
}

/// The marks of an engine.
struct Marks {
    /// A name that no other engine has.
    server: String,
    free: Mutex<Vec<i32>>,
    slots: AtomicI32,
    numbers: AtomicI64,
}

impl Marks {
    fn new() -> Self {
        Self {
            server: tasks::random_name(),
            free: Mutex::default(),
            slots: AtomicI32::new(1),
            numbers: AtomicI64::new(1),
        }
    }

    fn take(&self) -> Mark {
        let free = self.free.lock().pop();
        let slot = free.unwrap_or_else(|| self.slots.fetch_add(1, Ordering::Relaxed));
        Mark { slot, number: self.numbers.fetch_add(1, Ordering::Relaxed) }
    }

    /// Gives the row of a mark to the next write, once the fate of this one is known.
    fn give_back(&self, mark: Mark) {
        self.free.lock().push(mark.slot);
    }
}

/// The parts that all calls share.
pub(super) struct Engine {
    pool: Pool,
    limits: Limits,
    calls: Arc<Semaphore>,
    /// The writes that may run at a time.
    writes: Arc<Semaphore>,
    marks: Marks,
    shares: Arc<Shares>,
    /// The server that this engine is, with its watch; none before it has joined the others.
    joined: OnceLock<(Arc<Member>, Watching)>,
    /// The writes of which nobody knows yet whether they were committed.
    pub(super) fates: Fates,
    pub(super) store: StoreId,
    pub(super) damaged: DamagedRows,
}

impl Engine {
    pub(super) fn new(pool: Pool, options: &PostgresOptions, store: StoreId) -> Self {
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
        }
    }

    /// Returns the server that this engine is, once it has joined the others.
    pub(super) fn member(&self) -> Option<&Arc<Member>> {
        self.joined.get().map(|(member, _)| member)
    }

    /// Notes that this engine has joined the servers of its store. A second call changes nothing.
    pub(super) fn has_joined(&self, member: Arc<Member>, watching: Watching) {
        let _ = self.joined.set((member, watching));
    }

    /// Takes a connection out of the pool.
    pub(super) async fn connection(&self) -> Result<Object, Fault> {
        pool::get(&self.pool, self.limits).await
    }

    /// Takes a connection out of the pool, for a call.
    async fn connect(&self) -> Result<Sql, Fault> {
        Ok(Sql::new(self.connection().await?, self.store, self.limits))
    }

    /// Forgets the marks of servers that are gone.
    pub(super) async fn forget_old_marks(&self) -> Result<(), Fault> {
        self.connect().await?.execute(FORGET_MARKS, &[]).await.map(drop)
    }

    /// Reads; statements that must agree are to be run by [`read_snapshot`](Self::read_snapshot).
    pub(super) async fn read<A: Sync, T>(
        &self,
        doing: &'static str,
        args: &A,
        work: Work<A, T>,
    ) -> Result<T> {
        let _call = self.admit()?;
        self.run(doing, Manner::Read, args, work).await
    }

    /// Reads from one snapshot.
    pub(super) async fn read_snapshot<A: Sync, T>(
        &self,
        doing: &'static str,
        args: &A,
        work: Work<A, T>,
    ) -> Result<T> {
        let _call = self.admit()?;
        self.run(doing, Manner::Snapshot, args, work).await
    }

    /// Runs `work` in a transaction and returns once it is committed. `work` may run several times. Once
    /// the call was polled it runs to its end, also if nobody waits for it.
    pub(super) async fn write<A, T>(
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

    /// Runs `work` as [`write`](Self::write) does, once the organization has a connection left of its share.
    pub(super) async fn write_of<A, T>(
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

    /// Waits until a write may begin; `Busy` if that takes too long.
    async fn turn(&self) -> Result<OwnedSemaphorePermit> {
        let turn = timeout(self.limits.journey, Arc::clone(&self.writes).acquire_owned()).await;
        turn.map_err(|_| fault::busy())?.map_err(|_| fault::closed())
    }

    /// Lets a call in, unless too many run or the engine is closed.
    fn admit(&self) -> Result<OwnedSemaphorePermit> {
        if self.pool.is_closed() {
            return Err(fault::closed());
        }
        Arc::clone(&self.calls).try_acquire_owned().map_err(|error| match error {
            TryAcquireError::Closed => fault::closed(),
            TryAcquireError::NoPermits => fault::busy(),
        })
    }

    /// Returns how many calls wait for a connection, or for their turn to have one.
    pub(super) fn load(&self) -> QueueLoad {
        let pool = self.pool.status();
        let (running, working) =
            (CALLS - self.calls.available_permits(), pool.size.saturating_sub(pool.available));
        let waiting = if self.pool.is_closed() { 0 } else { running.saturating_sub(working) };
        QueueLoad::new(waiting, CALLS)
    }

    /// Waits for the calls under way, and refuses all others.
    pub(super) async fn close(&self) {
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

    /// Says that this server is gone, so that others need not wait to find out.
    async fn part(&self) {
        let Some((member, watching)) = self.joined.get() else { return };
        watching.stop();
        let parted = async { member.part(&*self.connection().await?).await };
        let parted = timeout(self.limits.journey, parted).await;
        if let Err(fault) = parted.unwrap_or(Err(Fault::Silent(self.limits.journey))) {
            tracing::debug!(%fault, "the other servers find out by themselves that this one is gone");
        }
    }

    /// Runs a call, again where a fault passes by itself.
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

    /// Begins what `manner` asks for. A write is marked.
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

    /// Works within what has begun, and ends it.
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

    /// Commits, or finds out whether that was done.
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

    /// Asks for the fate of a write until it is known, for a while. A caller that gets no answer is told
    /// so, and the fate is asked for on and on.
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

    /// Asks once whether a write was committed; waits for its end.
    pub(super) async fn is_committed(&self, mark: Mark) -> Result<bool, Fault> {
        let sql = self.connect().await?;
        let row = sql.first(FATE, &[&self.marks.server, &mark.slot]).await?;
        let number: Option<i64> = row.map(|row| row.try_get(0)).transpose()?;
        Ok(number == Some(mark.number))
    }

    /// Gives the row of a mark to the next write, once the fate of this one is known.
    pub(super) fn give_back(&self, mark: Mark) {
        self.marks.give_back(mark);
    }
}

/// Fails if the server of a write was taken for gone. Sent behind the statement that waits for the lock of the
/// server's writes: so it sees what whoever had that lock before has committed.
async fn is_member(sql: &Sql, member: &Member) -> Result<(), Fault> {
    if sql.exists(servers::IS_MEMBER, &[&member.name(), &member.epoch()]).await? {
        return Ok(());
    }
    member.look.notify_one();
    Err(Fault::Outlived)
}

/// Rolls back. If that cannot be done, the connection is closed, which does it as well.
async fn roll_back(mut sql: Sql, manner: Manner) {
    if manner == Manner::Read {
        return;
    }
    if sql.batch("ROLLBACK").await.is_ok() {
        sql.has_ended();
    }
}

/// Returns how many of the connections writes may have.
fn most_writes(connections: usize) -> usize {
    connections.saturating_sub(connections.div_ceil(READS)).max(1)
}

/// Draws a pause before the next run of a call, so that rivals do not meet again.
fn pause(attempt: u32) -> Duration {
    let most = u128::from(4_u32 << attempt);
    let millis = tasks::random_part() % most;
    Duration::from_millis(u64::try_from(millis).expect("less than its bound"))
}
