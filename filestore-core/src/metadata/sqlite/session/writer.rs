//! The only writer: a thread that owns its connection and commits in groups.
//!
//! # Purpose
//! A commit costs one fsync, independently of its contents. While a commit is running, further jobs queue up.
//! They share the next commit, each in its own savepoint, so that a failed job does not affect the others. A
//! single job never waits for others.
//!
//! # Crash safety
//! No reply, not even a refusal, is sent before COMMIT has returned, because it can depend on uncommitted
//! rows of another job. If COMMIT fails, the whole group fails. [`fault`](super::fault) lists the
//! consequences of each error.
//!
//! If the disk is full, the writer frees the reserve ([`OnFull`]) and tries the group once more. If this
//! fails too, each job runs alone, so that a large insert does not make a delete fail.
//!
//! A caller that is dropped does not cancel its job.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::domain::error::{Error, Result};
use crate::domain::id::FileId;
use crate::domain::report::erasure::Era;
use crate::domain::report::load::QueueLoad;
use crate::tasks;
use crate::tasks::step::{Step, reached};

use super::connection::{BUSY_TIMEOUT, PATIENCE};
use super::fault::{self, Fault, Health, Source};
use super::followers::Followers;
use super::room;
use crate::metadata::sqlite::cache::{Caches, Touched};
use crate::metadata::sqlite::tables::damage;

/// Frees reserved space. The writer calls it before its retry if the disk is full. The function runs on the
/// writer's thread, and must not call the engine.
pub type OnFull = Arc<dyn Fn() + Send + Sync>;

/// The maximum number of waiting jobs. Beyond it, callers wait for [`PATIENCE`].
const QUEUE: usize = 1024;

/// The maximum number of jobs in a commit. The maximum limits the wait of the first job.
const GROUP: usize = 256;

/// The number of log pages that triggers a checkpoint (4 MiB with pages of 4 KiB). 16 MiB had no measurable
/// advantage.
const CHECKPOINT_PAGES: i32 = 1024;

/// The number of log pages at which the writer waits for readers, so that the log can start over (64 MiB).
/// The wait is short, because a reader can take minutes, and all commits wait for the checkpoint.
const RESTART_PAGES: i32 = 16 * CHECKPOINT_PAGES;

/// The maximum wait for readers at such a checkpoint. If a reader stays, each further 4 MiB of the log costs
/// this wait once.
const RESTART_PATIENCE: Duration = Duration::from_millis(50);

thread_local! {
    /// The number of log pages after this thread's last commit. The number is static because SQLite's hook
    /// takes a plain function.
    static LOG_PAGES: Cell<i32> = const { Cell::new(0) };
}

/// The transaction of a job.
pub(in crate::metadata::sqlite) struct WriteTx<'c> {
    /// The connection for reads and writes. Do not begin or end a transaction with it.
    pub(in crate::metadata::sqlite) sql: &'c Connection,
    touched: Touched,
}

impl WriteTx<'_> {
    /// Records that the row of `id` was changed or deleted. New rows need no record, because no cache
    /// contains them.
    pub(in crate::metadata::sqlite) fn touch(&mut self, id: FileId) {
        self.touched.files.push(id);
    }

    /// Records that an erasure begins an era. The era is known after the commit.
    pub(in crate::metadata::sqlite) fn begin_era(&mut self, era: Era) {
        self.touched.era = self.touched.era.max(era);
    }

    /// Records that bindings were changed, created or deleted.
    pub(in crate::metadata::sqlite) fn touch_bindings(&mut self) {
        self.touched.bindings = true;
    }
}

/// A queued change. A change can run several times, each time from the start in a new transaction.
trait Job: Send {
    fn run(&mut self, tx: &mut WriteTx<'_>) -> Result<(), Fault>;
    fn fail(&mut self, fault: &Arc<Fault>);
    fn reply(self: Box<Self>);
}

struct Task<T, W> {
    doing: &'static str,
    work: W,
    outcome: Option<Result<T>>,
    caller: oneshot::Sender<Result<T>>,
}

impl<T: Send, W> Job for Task<T, W>
where
    W: FnMut(&mut WriteTx<'_>) -> Result<T, Fault> + Send,
{
    fn run(&mut self, tx: &mut WriteTx<'_>) -> Result<(), Fault> {
        self.outcome = Some(Ok((self.work)(tx)?));
        Ok(())
    }

    fn fail(&mut self, fault: &Arc<Fault>) {
        let source: Source = Box::new(Arc::clone(fault));
        self.outcome = Some(Err(fault::error(fault.class(), self.doing, source)));
    }

    fn reply(self: Box<Self>) {
        let outcome = self.outcome.expect("every job of a finished group was run or failed");
        // The caller may have gone away.
        let _ = self.caller.send(outcome);
    }
}

enum Message {
    Job(Box<dyn Job>),
    Close,
}

/// The handle to the writer's thread. Dropping it finishes the queue and joins the thread.
pub(in crate::metadata::sqlite) struct Writer {
    queue: Option<mpsc::Sender<Message>>,
    ended: watch::Receiver<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, which then owns `connection`.
    pub(in crate::metadata::sqlite) fn start(
        connection: Connection,
        caches: Arc<Caches>,
        followers: Arc<Followers>,
        health: Arc<Health>,
        on_full: Option<OnFull>,
    ) -> Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (end, ended) = watch::channel(false);
        let end = End { end, health: Arc::clone(&health) };
        let writer = Loop {
            connection,
            jobs,
            caches,
            followers,
            health,
            on_full,
            closing: false,
            checkpoint_at: CHECKPOINT_PAGES,
        };

        let thread = if tasks::is_simulated() {
            tasks::spawn(writer.run_simulated(end));
            None
        } else {
            let thread = thread::Builder::new().name("filestore-writer".into());
            let spawned = thread.spawn(move || writer.run(&end));
            Some(spawned.map_err(|error| Error::io("starting the writer", error))?)
        };
        Ok(Self { queue: Some(queue), ended, thread })
    }

    /// Runs `work` in a transaction, and returns after its commit. `work` can run several times.
    ///
    /// # Errors
    /// `Busy` if the queue stays full for [`PATIENCE`]. The job was not queued then. A queued job is always
    /// awaited.
    pub(in crate::metadata::sqlite) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnMut(&mut WriteTx<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T> {
        let (caller, answer) = oneshot::channel();
        let job = Message::Job(Box::new(Task { doing, work, outcome: None, caller }));
        let queued = timeout(PATIENCE, self.queue().send(job)).await;
        queued.map_err(|_| fault::busy())?.map_err(|_| fault::closed())?;
        // The writer ended in the middle of the job, perhaps after its COMMIT: not to be told as a
        // refusal, after which callers take the bytes away.
        answer.await.unwrap_or_else(|lost| Err(Error::internal(doing, lost)))
    }

    /// Returns the number of waiting jobs, without the group that is being committed.
    pub(in crate::metadata::sqlite) fn load(&self) -> QueueLoad {
        let queue = self.queue();
        QueueLoad::new(queue.max_capacity() - queue.capacity(), queue.max_capacity())
    }

    /// Finishes queued jobs, checkpoints, and ends the thread. Later jobs are refused.
    pub(in crate::metadata::sqlite) async fn close(&self) {
        // Fails if it is closed already.
        let _ = self.queue().send(Message::Close).await;
        let mut ended = self.ended.clone();
        // Fails if the thread is gone: ended as well.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    fn queue(&self) -> &mpsc::Sender<Message> {
        self.queue.as_ref().expect("taken on drop only")
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has poisoned the engine and was printed.
            let _ = thread.join();
        }
    }
}

/// Reports the end of the thread, even after a panic.
struct End {
    end: watch::Sender<bool>,
    health: Arc<Health>,
}

impl Drop for End {
    fn drop(&mut self) {
        if thread::panicking() {
            self.health.poison("the writer panicked".into());
        }
        self.end.send_replace(true);
    }
}

/// The state of the writer's thread.
struct Loop {
    connection: Connection,
    jobs: mpsc::Receiver<Message>,
    caches: Arc<Caches>,
    followers: Arc<Followers>,
    health: Arc<Health>,
    on_full: Option<OnFull>,
    closing: bool,
    /// The log length of the next checkpoint.
    checkpoint_at: i32,
}

impl Loop {
    /// Processes the queue until it is closed. When dropped, `_end` reports the end or a panic.
    fn run(mut self, _end: &End) {
        self.count_log_pages();
        while let Some(message) = self.jobs.blocking_recv() {
            self.take(message);
        }
        self.finish();
    }

    /// Does the same in a task, with simulated time after each message.
    async fn run_simulated(mut self, _end: End) {
        self.count_log_pages();
        while let Some(message) = self.jobs.recv().await {
            // Drawing the delay is all: jobs that come meanwhile join the group.
            _ = tasks::blocking(|| ()).await;
            self.take(message);
        }
        self.finish();
    }

    fn count_log_pages(&self) {
        self.connection.wal_hook(Some(|_, pages| {
            LOG_PAGES.set(pages);
            Ok(())
        }));
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Job(job) => self.group(job),
            Message::Close => self.closing = true,
        }
        if self.closing {
            // Lets what is queued be received, and refuses the rest.
            self.jobs.close();
        }
    }

    fn finish(&mut self) {
        if !self.health.is_poisoned() {
            self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
        }
    }

    /// Runs `first` and all jobs that queue up in the meantime, commits, and replies.
    fn group(&mut self, first: Box<dyn Job>) {
        let mut jobs = vec![first];
        if let Err(error) = self.health.check() {
            fail_all(&mut jobs, Fault::Lost(error.chain()));
        } else if let Err(fault) = self.commit_with_relief(&mut jobs) {
            self.health.note(&fault);
            fail_all(&mut jobs, fault);
        }

        for job in jobs {
            job.reply();
        }
        self.checkpoint_if_long();
    }

    /// Commits the group. If the disk is full, frees space and retries.
    fn commit_with_relief(&mut self, jobs: &mut Vec<Box<dyn Job>>) -> Result<(), Fault> {
        let mut result = self.commit(jobs, Joining::Allowed);
        if is_full(&result) {
            self.make_room();
            result = self.commit(jobs, Joining::Refused);
        }

        if is_full(&result) && jobs.len() > 1 {
            self.commit_each_alone(jobs);
            return Ok(());
        }
        result
    }

    fn commit_each_alone(&mut self, jobs: &mut Vec<Box<dyn Job>>) {
        for job in std::mem::take(jobs) {
            let mut alone = vec![job];
            let result = match self.health.check() {
                Ok(()) => self.commit(&mut alone, Joining::Refused),
                Err(error) => Err(Fault::Lost(error.chain())),
            };

            if let Err(fault) = result {
                self.health.note(&fault);
                fail_all(&mut alone, fault);
            }
            jobs.append(&mut alone);
        }
    }

    fn make_room(&mut self) {
        if let Some(on_full) = &self.on_full {
            on_full();
        }
        // A log that is all in the database can be written over from its start.
        self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
    }

    /// Commits the jobs in one transaction. On an error, rolls back, or poisons the engine if that fails.
    fn commit(&mut self, jobs: &mut Vec<Box<dyn Job>>, joining: Joining) -> Result<(), Fault> {
        self.execute("BEGIN IMMEDIATE").map_err(Fault::Begin)?;
        let result = self.fill(jobs, joining).and_then(|touched| {
            let _changing = self.caches.changing(&touched);
            reached(Step::CommitPrepared);
            self.execute("COMMIT").map_err(Fault::Commit)?;
            reached(Step::Committed);
            self.caches.learn(touched.era);
            self.followers.committed(&self.connection);
            Ok(())
        });
        if result.is_err() && !self.connection.is_autocommit() {
            self.execute("ROLLBACK").map_err(|error| Fault::Lost(error.to_string()))?;
        }
        result.map_err(|fault| self.explained(fault))
    }

    /// Tests if a write was refused because there is no space. With a quota, SQLite reports an I/O error,
    /// after which the process would have to end. The transaction is already rolled back.
    fn explained(&self, fault: Fault) -> Fault {
        let path = self.connection.path().map(Path::new);
        match path {
            Some(path) if fault.is_refused_write() && room::is_used_up(path) => {
                Fault::NoRoom(fault.to_string())
            }
            _ => fault,
        }
    }

    /// Runs the jobs, and further jobs as they arrive. Returns the changed rows.
    fn fill(&mut self, jobs: &mut Vec<Box<dyn Job>>, joining: Joining) -> Result<Touched, Fault> {
        // Nothing to protect from this job: spares the savepoint.
        let alone = jobs.len() == 1 && (joining == Joining::Refused || self.jobs.is_empty());
        let mut touched = Touched::default();
        let mut next = 0;

        loop {
            if next == jobs.len() {
                match self.next_job(joining, jobs.len()) {
                    Some(job) => jobs.push(job),
                    None => return Ok(touched),
                }
            }

            let mut tx = WriteTx { sql: &self.connection, touched: Touched::default() };
            if alone && next == 0 {
                self.run_one(&mut jobs[next], &mut tx)?;
                touched.add(tx.touched);
            } else if self.run_in_savepoint(&mut jobs[next], &mut tx)? {
                touched.add(tx.touched);
            }
            next += 1;
        }
    }

    /// Runs a job, and reports the damaged rows that it skipped.
    fn run_one(&self, job: &mut Box<dyn Job>, tx: &mut WriteTx<'_>) -> Result<(), Fault> {
        let outcome = job.run(tx);
        self.health.damaged.report(damage::take());
        outcome
    }

    /// Runs a job in a savepoint. Returns true if its changes stay. A fault that affects the whole group is
    /// an error.
    fn run_in_savepoint(
        &self,
        job: &mut Box<dyn Job>,
        tx: &mut WriteTx<'_>,
    ) -> Result<bool, Fault> {
        self.execute("SAVEPOINT job")?;
        let fault = match self.run_one(job, tx) {
            Ok(()) => {
                self.execute("RELEASE job")?;
                return Ok(true);
            }
            Err(fault) => fault,
        };

        if matches!(fault.class(), fault::Class::Full | fault::Class::Poison) {
            return Err(fault);
        }
        if self.connection.is_autocommit() {
            return Err(Fault::Lost(fault.to_string()));
        }

        self.execute("ROLLBACK TO job")?;
        self.execute("RELEASE job")?;
        self.health.note(&fault);
        job.fail(&Arc::new(fault));
        Ok(false)
    }

    /// Returns a job that queued up in the meantime.
    fn next_job(&mut self, joining: Joining, so_far: usize) -> Option<Box<dyn Job>> {
        if joining == Joining::Refused || self.closing || so_far >= GROUP {
            return None;
        }

        match self.jobs.try_recv() {
            Ok(Message::Job(job)) => Some(job),
            Ok(Message::Close) => {
                self.closing = true;
                None
            }
            Err(_) => None,
        }
    }

    fn checkpoint_if_long(&mut self) {
        let pages = LOG_PAGES.get();
        if pages + CHECKPOINT_PAGES < self.checkpoint_at {
            // The log started over.
            self.checkpoint_at = CHECKPOINT_PAGES;
        }
        if pages < self.checkpoint_at || self.health.is_poisoned() {
            return;
        }

        // The next one only after as much again: if a reader keeps the log from starting over, each
        // commit would pay for one.
        self.checkpoint_at = pages + CHECKPOINT_PAGES;
        if pages < RESTART_PAGES {
            self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
        } else {
            self.restart_log();
        }
    }

    /// Checkpoints the log and starts it over, unless a reader still needs its end.
    fn restart_log(&self) {
        self.set_patience(RESTART_PATIENCE);
        self.checkpoint("PRAGMA wal_checkpoint(RESTART)");
        self.set_patience(BUSY_TIMEOUT);
    }

    fn set_patience(&self, longest: Duration) {
        if let Err(error) = self.connection.busy_timeout(longest) {
            tracing::warn!(%error, "the database's patience could not be set");
        }
    }

    /// Checkpoints the log. A failure is harmless, because the log contains everything.
    fn checkpoint(&self, sql: &str) {
        if let Err(error) = self.connection.query_row(sql, [], |_| Ok(())) {
            let fault = self.explained(Fault::from(error));
            tracing::warn!(error = %fault, "the log was not checkpointed");
            self.health.note(&fault);
        }
        reached(Step::Checkpointed);
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// The state of a group: open for further jobs, or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Joining {
    Allowed,
    Refused,
}

fn is_full(result: &Result<(), Fault>) -> bool {
    result.as_ref().is_err_and(|fault| fault.class() == fault::Class::Full)
}

fn fail_all(jobs: &mut [Box<dyn Job>], fault: Fault) {
    let fault = Arc::new(fault);
    for job in jobs {
        job.fail(&fault);
    }
}
