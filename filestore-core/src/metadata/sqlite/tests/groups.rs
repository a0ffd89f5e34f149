//! Group commit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{self, BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use rusqlite::{Connection, ffi};

use super::super::cache::Caches;
use super::super::session::followers::Followers;
use crate::domain::error::{ErrorKind, Result};
use crate::metadata::contract::{in_cloud, put as put_record, ready};
use crate::metadata::prelude::*;
use crate::metadata::sqlite::session::fault::{Fault, Health};
use crate::metadata::sqlite::session::writer::{OnFull, WriteTx, Writer};
use crate::tasks::HANG;

/// A writer on a table `t (c UNIQUE)`, with the counters that a test reads.
struct Bench {
    writer: Writer,
    health: Arc<Health>,
    commits: Arc<AtomicUsize>,
    reader: Connection,
    _directory: tempfile::TempDir,
}

fn bench(on_full: Option<OnFull>) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let connection = Connection::open(super::file(&directory)).unwrap();
        connection.busy_timeout(Duration::ZERO).unwrap();
        connection
    };

    let connection = open();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE t (c UNIQUE);",
        )
        .unwrap();
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commits);
    let count = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        false
    };

    connection.commit_hook(Some(count)).unwrap();
    let health = Arc::new(Health::new());
    let writer = Writer::start(
        connection,
        Arc::new(Caches::new()),
        Arc::new(Followers::new()),
        Arc::clone(&health),
        on_full,
    );
    Bench { writer: writer.unwrap(), health, commits, reader: open(), _directory: directory }
}

impl Bench {
    fn rows(&self) -> Vec<i64> {
        let mut statement = self.reader.prepare("SELECT c FROM t ORDER BY c").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// Inserts the values one after another.
    async fn put(&self, values: &[i64]) -> Result<()> {
        let values = values.to_vec();
        self.writer.run("putting", move |tx| put(tx, &values)).await
    }

    /// Returns a job that blocks the writer from when it is polled until the sender is dropped.
    fn block(&self) -> (mpsc::Sender<()>, BoxFuture<'_, Result<()>>) {
        let (go, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let job = self.writer.run("waiting", move |_| {
            // A second run finds the sender gone.
            let _ = gate.lock().unwrap().recv();
            Ok(())
        });
        (go, job.boxed())
    }

    /// Runs `jobs` in one group: the first job waits until all the others are queued.
    async fn together<T>(
        &self,
        jobs: impl IntoIterator<Item = impl Future<Output = Result<T>>>,
    ) -> Vec<Result<T>> {
        let (go, first) = self.block();
        let first = future::maybe_done(first);
        tokio::pin!(first);

        assert!(future::poll_immediate(&mut first).await.is_none());

        let mut jobs = future::join_all(jobs);
        assert!(future::poll_immediate(&mut jobs).await.is_none());

        drop(go);
        let ((), results) = tokio::join!(first, jobs);
        results
    }
}

fn put(tx: &WriteTx<'_>, values: &[i64]) -> Result<(), Fault> {
    for value in values {
        tx.sql.execute("INSERT INTO t VALUES (?1)", [value])?;
    }
    Ok(())
}

fn failure(code: i32) -> Fault {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None).into()
}

#[tokio::test(start_paused = true)]
async fn a_job_that_finds_no_place_in_the_queue_is_refused_after_a_while() {
    let bench = bench(None);
    let (go, mut first) = bench.block();
    assert!(future::poll_immediate(&mut first).await.is_none());

    let put = async |value| (value, bench.put(&[value]).await);
    let mut jobs: FuturesUnordered<_> = (0..2000).map(put).collect();
    let (refused, outcome) = jobs.next().await.unwrap();
    let outcome = outcome.unwrap_err();
    assert_eq!(outcome.kind(), ErrorKind::Busy);
    assert_eq!(outcome.details().retry_after_secs, Some(1));

    drop(go);
    first.await.unwrap();
    let mut stored = jobs
        .filter_map(async |(value, outcome)| outcome.is_ok().then_some(value))
        .collect::<Vec<i64>>()
        .await;
    stored.sort_unstable();
    assert_eq!(bench.rows(), stored, "what is refused is not done");
    assert!(!stored.contains(&refused) && !stored.is_empty());
}

#[tokio::test]
async fn jobs_that_queue_up_share_a_commit() {
    let bench = bench(None);
    let results = bench.together((0..100).map(async |value| bench.put(&[value]).await)).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!((bench.commits(), bench.rows().len()), (1, 100));
}

#[tokio::test]
async fn a_job_that_fails_leaves_its_neighbours_alone() {
    let bench = bench(None);
    let results = bench.together([bench.put(&[1]), bench.put(&[2, 1]), bench.put(&[3])]).await;
    let kinds = results.map_kinds();
    assert_eq!(kinds, [None, Some(ErrorKind::Internal), None]);
    assert_eq!((bench.commits(), bench.rows()), (1, vec![1, 3]), "nothing of the one that failed");
}

#[tokio::test]
async fn a_lone_job_that_fails_leaves_nothing() {
    let bench = bench(None);
    bench.put(&[1]).await.unwrap();
    assert_eq!(bench.put(&[2, 1]).await.unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(bench.rows(), [1]);
    bench.put(&[2]).await.unwrap();
    assert_eq!(bench.rows(), [1, 2]);
}

#[tokio::test]
async fn replies_come_after_the_commit_of_the_whole_group() {
    let bench = bench(None);
    let (go, gate) = mpsc::channel::<()>();
    let (running, runs) = tokio::sync::oneshot::channel();
    let early = bench.put(&[1]);
    let mut running = Some(running);
    let late = bench.writer.run("waiting", move |_| {
        let _ = running.take().map(|running| running.send(()));
        let _ = gate.recv();
        Ok(())
    });
    let both = bench.together([early.boxed_local(), late.boxed_local()]);
    tokio::pin!(both);
    let is_first = tokio::select! { _ = &mut both => false, _ = runs => true };

    assert!(is_first, "answered while a neighbour was still running");
    assert_eq!((bench.commits(), bench.rows()), (0, vec![]));

    drop(go);
    both.await;
    assert_eq!((bench.commits(), bench.rows()), (1, vec![1]));
}

#[tokio::test]
async fn a_lock_of_another_process_is_busy_and_passes() {
    let bench = bench(None);
    bench.reader.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = bench.put(&[1]).await.unwrap_err();
    assert_eq!((error.kind(), error.details().retry_after_secs), (ErrorKind::Busy, Some(1)));
    bench.reader.execute_batch("COMMIT").unwrap();
    bench.put(&[1]).await.unwrap();
    assert_eq!(bench.rows(), [1]);
}

#[tokio::test]
async fn a_full_disk_calls_the_hook_once_and_tries_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let bench = bench(Some(Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    })));
    let hook = Arc::clone(&calls);
    let full = bench.writer.run("filling", move |_| match hook.load(Ordering::SeqCst) {
        0 => Err(failure(ffi::SQLITE_FULL)),
        _ => Ok(()),
    });
    let results = bench.together([bench.put(&[1]).boxed_local(), full.boxed_local()]).await;

    assert_eq!(results.map_kinds(), [None, None]);
    assert_eq!((calls.load(Ordering::SeqCst), bench.rows()), (1, vec![1]));
}

#[tokio::test]
async fn on_a_disk_that_stays_full_small_jobs_still_pass() {
    let bench = bench(None);
    let full = bench.writer.run("filling", |_| Err(failure(ffi::SQLITE_FULL)));
    let results = bench.together([bench.put(&[1]).boxed_local(), full.boxed_local()]).await;
    assert_eq!(results.map_kinds(), [None, Some(ErrorKind::StorageFull)]);
    assert_eq!(bench.rows(), [1]);
    bench.put(&[2]).await.unwrap();
}

#[tokio::test]
async fn an_io_error_poisons_and_commits_nothing_more() {
    for code in
        [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB]
    {
        let bench = bench(None);
        let broken =
            bench.writer.run("breaking", move |_| -> Result<(), Fault> { Err(failure(code)) });
        let results = bench.together([bench.put(&[1]).boxed_local(), broken.boxed_local()]).await;
        assert_eq!(results.map_kinds(), [Some(ErrorKind::Internal); 2]);
        assert!(bench.health.poisoned().await.len() > 5, "says what it was");
        assert_eq!(bench.put(&[2]).await.unwrap_err().kind(), ErrorKind::Internal);
        bench.writer.close().await;
        assert_eq!(bench.rows(), [0_i64; 0]);
    }
}

#[tokio::test]
async fn a_panic_in_the_writer_poisons_rather_than_hangs() {
    let bench = bench(None);
    let result =
        bench.writer.run("panicking", |_| -> Result<(), Fault> { panic!("on purpose") }).await;
    assert!(result.is_err());
    assert_eq!(bench.health.poisoned().await, "the writer panicked");
    assert!(bench.put(&[1]).await.is_err());
    bench.writer.close().await;
}

/// Panics when it is dropped, unless that is how it is disarmed.
struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0 || std::thread::panicking(), "on purpose");
    }
}

#[tokio::test]
async fn an_answer_lost_after_the_commit_is_not_told_as_a_refusal() {
    let bench = bench(None);
    let (go, gate) = mpsc::channel::<()>();
    // Its caller is gone when the answer comes, so that the answer is dropped on the writer's thread.
    let gone = bench.writer.run("waiting", move |_| {
        let _ = gate.recv();
        Ok(Bomb(true))
    });
    let mut gone = Box::pin(gone);

    assert!(future::poll_immediate(&mut gone).await.is_none());

    let put = bench.put(&[1]);
    tokio::pin!(put);
    assert!(future::poll_immediate(&mut put).await.is_none());

    drop(gone);
    drop(go);
    assert_eq!(put.await.unwrap_err().kind(), ErrorKind::Internal);

    // The thread's connection locks the database while it closes, and the reader does not wait for locks.
    bench.writer.close().await;
    assert_eq!(bench.rows(), [1], "it was committed");
}

#[tokio::test]
async fn a_commit_that_fails_for_an_unknown_reason_poisons() {
    let bench = bench(None);
    let veto = |tx: &mut WriteTx<'_>| {
        put(tx, &[1])?;
        tx.sql.commit_hook(Some(|| true))?;
        Ok(())
    };

    assert_eq!(bench.writer.run("vetoing", veto).await.unwrap_err().kind(), ErrorKind::Internal);
    assert!(bench.health.is_poisoned());
    assert_eq!(bench.rows(), [0_i64; 0]);
}

#[tokio::test]
async fn closing_finishes_what_is_queued() {
    let bench = bench(None);
    let close = async {
        bench.writer.close().await;
        Ok(())
    };

    let results = bench.together([
        bench.put(&[1]).boxed_local(),
        close.boxed_local(),
        bench.put(&[2]).boxed_local(),
    ]);

    assert_eq!(results.await.map_kinds(), [None, None, None]);
    assert_eq!(bench.put(&[3]).await.unwrap_err().kind(), ErrorKind::Unusable);
    assert_eq!(bench.rows(), [1, 2]);
}

/// The outcome of each job: `None` for success.
trait Kinds {
    fn map_kinds(&self) -> Vec<Option<ErrorKind>>;
}

impl<T> Kinds for Vec<Result<T>> {
    fn map_kinds(&self) -> Vec<Option<ErrorKind>> {
        self.iter()
            .map(|result| result.as_ref().err().map(crate::domain::error::Error::kind))
            .collect()
    }
}

#[tokio::test]
async fn looking_for_files_to_queue_does_not_hold_the_writer() {
    let (metadata, _directory) = super::fresh();
    for _ in 0..3 {
        put_record(&metadata, in_cloud(ready("7"), "s3")).await;
    }
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let held = metadata.writer.run("waiting", move |_| {
        // A second run finds the sender gone.
        let _ = gate.lock().unwrap().recv();
        Ok(())
    });

    // The writer is held, and files that are there already need no writing.
    let (organization, s3) = ("7".parse().unwrap(), "s3".parse().unwrap());
    let look = async {
        let found = metadata.enqueue_sync(&organization, &s3, None, 2);
        let found = tokio::time::timeout(HANG, found).await;
        drop(go);
        found
    };
    let (held, found) = future::join(held, look).await;
    held.unwrap();
    assert_eq!(found.expect("no wait for the writer").unwrap(), (0, None));
}

#[tokio::test]
async fn commits_do_not_wait_for_a_reader_that_takes_long() {
    let bench = bench(None);
    // 1 MB in the table and again in its index: 40 of them fill 64 MiB of log.
    let insert = || {
        bench.writer.run("test", |tx: &mut WriteTx<'_>| {
            Ok(tx.sql.execute("INSERT INTO t VALUES (randomblob(1000000))", [])?)
        })
    };
    let patient = format!("PRAGMA busy_timeout = {}", 2 * HANG.as_millis());
    let patience = move |tx: &mut WriteTx<'_>| Ok(tx.sql.query_row(&patient, [], |_| Ok(()))?);
    bench.writer.run("test", patience).await.unwrap();
    insert().await.unwrap();
    bench.reader.execute_batch("BEGIN").unwrap();
    let seen: i64 = bench.reader.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 1);

    // If a commit waited for the reader, it would wait until the reader ends.
    for _ in 0..45 {
        tokio::time::timeout(HANG, insert()).await.expect("no wait for the reader").unwrap();
    }
    bench.reader.execute_batch("COMMIT").unwrap();
}
