//! Lost connections, timeouts, and answers that never come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, poll_immediate};
use tokio::task::JoinHandle;

use super::proxy::{AtCommit, Proxy, SlowCommits};
use super::*;
use crate::domain::access::scope::Scope;
use crate::domain::file::record::FileRecord;
use crate::metadata::Inserted;
use crate::metadata::contract::{at, change, deleted, get, insert, put, ready};
use crate::metadata::postgres::session::sql::Lock;
use crate::metadata::prelude::*;
use crate::tasks::HANG;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_commit_whose_answer_was_lost_counts_once() {
    let (direct, schema) = fresh();
    let proxy = Proxy::before(&schema).await;
    let metadata = PostgresMetadata::open(&proxy.options).await.unwrap();

    proxy.set(AtCommit::CutAfter);
    let record = ready("acme");
    let outcome = metadata.insert_files(insert([record.clone()])).await.unwrap();
    assert_eq!(outcome, Inserted::Done, "a second run would fail: the id is taken");
    assert_eq!(proxy.cuts(), 1, "the commit was not run again");
    proxy.set(AtCommit::Forward);

    assert_eq!(get(&direct, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_commit_that_never_arrived_is_run_again() {
    let (direct, schema) = fresh();
    let proxy = Proxy::before(&schema).await;
    let metadata = Arc::new(PostgresMetadata::open(&proxy.options).await.unwrap());

    proxy.set(AtCommit::CutBefore);
    let record = ready("acme");
    let (inserting, inserted) = (Arc::clone(&metadata), record.clone());
    let call = tokio::spawn(async move { inserting.insert_files(insert([inserted])).await });
    while proxy.cuts() == 0 {
        tokio::task::yield_now().await;
    }
    proxy.set(AtCommit::Forward);

    assert_eq!(call.await.unwrap().unwrap(), Inserted::Done);
    assert_eq!(get(&direct, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(direct.usage(&record.organization_id).await.unwrap().total().files, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_that_is_away_makes_calls_wait_and_is_found_again() {
    let (_direct, schema) = fresh();
    let proxy = Proxy::before(&schema).await;
    let metadata = PostgresMetadata::open(&proxy.options).await.unwrap();
    let record = put(&metadata, ready("acme")).await;

    proxy.set(AtCommit::Refuse);
    for _ in 0..3 {
        let error = metadata.file(record.file_id, &Scope::All).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
        assert_eq!(error.details().retry_after_secs, Some(1));
        let error = metadata.insert_files(insert([ready("acme")])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
    }

    proxy.set(AtCommit::Forward);
    assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record));
    put(&metadata, ready("acme")).await;
    assert_eq!(metadata.usage(&record.organization_id).await.unwrap().total().files, 2);
}

/// Alone, as it takes the server from all others:
/// `FILESTORE_TEST_POSTGRES_FSYNC=on tests/services/postgres/run cargo test … -- --ignored killed_server`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "kills the server that other tests use"]
async fn a_killed_server_loses_nothing_that_was_acknowledged() {
    let (metadata, schema) = fresh();
    let metadata = Arc::new(metadata);
    let over = Arc::new(AtomicU8::new(0));
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (metadata, over) = (Arc::clone(&metadata), Arc::clone(&over));
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                while over.load(Ordering::Acquire) == 0 {
                    let record = ready("acme");
                    match metadata.insert_files(insert([record.clone()])).await {
                        Ok(outcome) => {
                            assert_eq!(outcome, Inserted::Done);
                            acknowledged.push(record);
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
                        }
                    }
                }
                acknowledged
            })
        })
        .collect();

    for how in ["kill", "stop", "kill", "stop"] {
        let before = metadata.usage(&"acme".parse().unwrap()).await.unwrap().total().files;
        loop {
            let now = metadata.usage(&"acme".parse().unwrap()).await;
            if now.is_ok_and(|usage| usage.total().files > before + 50) {
                break;
            }
        }
        service(&[how]).await;
        service(&["start"]).await;
        while metadata.ping().await.is_err() {
            tokio::task::yield_now().await;
        }
    }
    over.store(1, Ordering::Release);

    let mut acknowledged = 0;
    for writer in writers {
        for record in writer.await.unwrap() {
            acknowledged += 1;
            assert_eq!(get(&*metadata, record.file_id).await.as_deref(), Some(&record));
        }
    }
    assert!(acknowledged > 200, "{acknowledged}");
    let stored = metadata.usage(&"acme".parse().unwrap()).await.unwrap().total().files;
    assert_eq!(
        stored, acknowledged,
        "what was refused is not there, and what is there was not refused"
    );
    assert_eq!(metadata.inspection().drifted_totals(Some("acme")).await.unwrap(), []);
    assert!(schema.name().starts_with("test"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_lock_that_is_not_given_makes_a_call_busy() {
    let schema = Schema::new();
    let mut options = schema.options();
    options.lock_timeout = Duration::from_millis(50);
    let metadata = PostgresMetadata::open(&options).await.unwrap();
    let record = put(&metadata, ready("acme")).await;

    let pool = crate::metadata::postgres::session::pool::pool(&options).unwrap();
    let other = pool.get().await.unwrap();
    other.batch_execute("BEGIN; SELECT 1 FROM files FOR UPDATE").await.unwrap();
    let removal = change(&record, deleted(&record, at(1)));
    let error = metadata.update_file(removal.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());

    other.batch_execute("ROLLBACK").await.unwrap();
    metadata.update_file(removal).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_cancelled_read_leaves_no_transaction_open() {
    let (metadata, schema) = fresh();
    for _ in 0..20 {
        let mut call = metadata.backlog(at(0), at(0));
        // As far as it goes without waiting, and a little further.
        for _ in 0..3 {
            let _ = futures_util::future::poll_immediate(&mut call).await;
            tokio::task::yield_now().await;
        }
        drop(call);
    }
    put(&metadata, ready("acme")).await;
    assert_eq!(metadata.backlog(at(0), at(0)).await.unwrap(), []);
    metadata.close().await;
    drop(schema);
}

/// The options of an engine that waits for nothing for long. A call that it should answer may be late on a machine that
/// does much else, so it is made [while it is busy](while_busy).
fn hasty(options: PostgresOptions) -> PostgresOptions {
    PostgresOptions {
        statement_timeout: Duration::from_secs(2),
        lock_timeout: Duration::from_millis(1500),
        connect_timeout: Duration::from_secs(2),
        ..options
    }
}

/// The options of an engine that soon stops to ask for the outcome of a write, and is patient otherwise.
fn soon_at_a_loss(options: PostgresOptions) -> PostgresOptions {
    PostgresOptions { lock_timeout: Duration::from_secs(1), ..options }
}

/// Inserts a file once a hasty engine has the time for it.
async fn put_while_busy(metadata: &PostgresMetadata, record: &FileRecord) -> Inserted {
    while_busy(async || metadata.insert_files(insert([record.clone()])).await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_silent_network_ends_every_call_in_time() {
    let (direct, schema) = fresh();
    let proxy = Proxy::before(&schema).await;
    let options = hasty(proxy.options.clone());
    let metadata = while_busy(async || PostgresMetadata::open(&options).await).await;
    let record = ready("acme");
    assert_eq!(put_while_busy(&metadata, &record).await, Inserted::Done);

    proxy.set(AtCommit::Silent);
    let calls = async {
        for round in 0..2 {
            let errors = [
                metadata.file(record.file_id, &Scope::All).await.unwrap_err(),
                metadata.insert_files(insert([ready("acme")])).await.unwrap_err(),
                metadata.backlog(at(0), at(0)).await.unwrap_err(),
                metadata.ping().await.unwrap_err(),
                PostgresMetadata::open(&options).await.err().unwrap(),
            ];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::Busy, "{round}: {}", error.chain());
            }
        }
    };
    tokio::time::timeout(HANG, calls).await.expect("no call waits on");

    proxy.set(AtCommit::Forward);
    let found = while_busy(async || metadata.file(record.file_id, &Scope::All).await).await;
    assert_eq!(found.as_deref(), Some(&record));
    assert_eq!(put_while_busy(&metadata, &ready("acme")).await, Inserted::Done);
    assert_eq!(direct.usage(&record.organization_id).await.unwrap().total().files, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_commit_whose_answer_never_comes_counts_once() {
    let (direct, schema) = fresh();
    let proxy = Proxy::before(&schema).await;
    // The answer is soon given up on, and the outcome is asked for with patience.
    let options = PostgresOptions { lock_timeout: HANG, ..hasty(proxy.options.clone()) };
    let metadata = while_busy(async || PostgresMetadata::open(&options).await).await;

    proxy.set(AtCommit::SilentAfter);
    let record = ready("acme");
    let outcome = tokio::time::timeout(HANG, put_while_busy(&metadata, &record)).await;
    assert_eq!(outcome.expect("the call does not wait on"), Inserted::Done);
    proxy.set(AtCommit::Forward);
    assert_eq!(get(&direct, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(proxy.cuts(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_commit_that_waits_at_the_server_is_unknown_until_its_end() {
    let (direct, schema) = fresh();
    let slow = SlowCommits::of(&schema).await;
    let proxy = Proxy::before(&schema).await;
    let options = soon_at_a_loss(proxy.options.clone());
    let metadata = PostgresMetadata::open(&options).await.unwrap();

    proxy.set(AtCommit::CutAtOnce);
    let record = ready("acme");
    let error = metadata.insert_files(insert([record.clone()])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{}", error.chain());
    let blob = [record.blob.key.blob_id()];
    assert_eq!(direct.live_local_keys(&blob).await.unwrap(), [], "not yet");
    assert!(poll_immediate(metadata.outcomes_known()).await.is_none());

    proxy.set(AtCommit::Forward);
    slow.go_on().await;
    metadata.outcomes_known().await.unwrap();
    let live = direct.live_local_keys(&blob).await.unwrap();
    assert_eq!(live, std::slice::from_ref(&record.blob.key));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_closed_engine_knows_no_outcomes() {
    let (_direct, schema) = fresh();
    let slow = SlowCommits::of(&schema).await;
    let proxy = Proxy::before(&schema).await;
    let options = soon_at_a_loss(proxy.options.clone());
    let metadata = PostgresMetadata::open(&options).await.unwrap();
    proxy.set(AtCommit::CutAtOnce);
    let error = metadata.insert_files(insert([ready("acme")])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{}", error.chain());

    let (known, ()) = tokio::join!(metadata.outcomes_known(), metadata.close());
    assert_eq!(known.unwrap_err().kind(), ErrorKind::Unusable);
    slow.go_on().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_start_waits_for_the_writes_of_an_earlier_process() {
    let (before, schema) = fresh();
    let slow = SlowCommits::of(&schema).await;
    let before = Arc::new(before);
    let (inserting, record) = (Arc::clone(&before), ready("acme"));
    let inserted = record.clone();
    let call = tokio::spawn(async move { inserting.insert_files(insert([inserted])).await });
    let session = slow.session().await;

    let next = schema.open();
    let error = next.await_writers_for("next", Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    let message = error.to_string();
    assert!(message.contains("pg_terminate_backend"), "{message}");
    assert!(message.ends_with(&format!(": {session}")), "{message}");

    slow.go_on().await;
    next.await_writers("next").await.unwrap();
    assert_eq!(get(&next, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(call.await.unwrap().unwrap(), Inserted::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_long_statement_of_a_process_that_is_gone_keeps_no_start_waiting() {
    let (before, schema) = fresh();
    let pool = crate::metadata::postgres::session::pool::pool(&schema.options()).unwrap();
    let (dying, watcher) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let writers = Lock::Writers.number(before.store_id());
    let begin =
        format!("BEGIN; SELECT pg_advisory_xact_lock({writers}); SET LOCAL statement_timeout TO 0");
    dying.batch_execute(&begin).await.unwrap();

    let name = schema.name();
    let statement = format!("SELECT pg_sleep(3600), '{name}'");
    let mut long = Box::pin(dying.batch_execute(&statement));
    let query = "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = $1";
    while watcher.query_opt(query, &[&statement]).await.unwrap().is_none() {
        assert!(poll_immediate(&mut long).await.is_none());
    }
    drop(long);
    drop(deadpool_postgres::Object::take(dying));

    schema.open().await_writers("next").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn commits_that_wait_at_the_server_leave_connections_to_reads() {
    let (direct, schema) = fresh();
    let slow = SlowCommits::of(&schema).await;
    // Commits that get no answer are given up on after all that the test does beside them.
    let statement_timeout = Duration::from_secs(8);
    let options = PostgresOptions { statement_timeout, ..hasty(schema.options()) };
    let metadata = Arc::new(while_busy(async || PostgresMetadata::open(&options).await).await);
    let records: Vec<_> = (0..20).map(|number| ready(&format!("org{number}"))).collect();
    let (waiting, refused) = records.split_at(COMMITS);
    let calls: Vec<_> =
        waiting.iter().map(|record| commit_until_unknown(&metadata, record)).collect();
    slow.waiting(COMMITS).await;

    let mut reads = 0;
    while !calls.iter().all(JoinHandle::is_finished) {
        // On a machine that does much else, a read may be late.
        if let Ok(found) = metadata.file(records[0].file_id, &Scope::All).await {
            assert_eq!(found, None, "not committed yet");
            reads += usize::from(!calls.iter().any(JoinHandle::is_finished));
        }
    }
    assert!(reads > 0, "an eighth of the connections is left to reads");
    for call in calls {
        call.await.unwrap();
    }
    let refusals = refused.iter().map(|record| metadata.insert_files(insert([record.clone()])));
    for refusal in join_all(refusals).await {
        let kind = refusal.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::Busy, "the turns of unknown writes are taken");
    }

    slow.go_on().await;
    metadata.outcomes_known().await.unwrap();
    for record in waiting {
        assert_eq!(get(&direct, record.file_id).await.as_deref(), Some(record));
    }
    for record in refused {
        assert_eq!(get(&direct, record.file_id).await, None);
        assert_eq!(put_while_busy(&metadata, record).await, Inserted::Done);
    }
}

/// The commits that an engine of eight connections has at once.
const COMMITS: usize = 7;

/// Inserts a file whose commit waits at the server, until its outcome is unknown.
fn commit_until_unknown(metadata: &Arc<PostgresMetadata>, record: &FileRecord) -> JoinHandle<()> {
    let (metadata, record) = (Arc::clone(metadata), record.clone());
    tokio::spawn(async move {
        loop {
            let error = metadata.insert_files(insert([record.clone()])).await.unwrap_err();
            if error.kind() == ErrorKind::OutcomeUnknown {
                return;
            }
            assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_cancelled_read_keeps_nobody_waiting_behind_it() {
    let (metadata, schema) = fresh();
    let record = put(&metadata, ready("acme")).await;
    let (statement_timeout, lock_timeout) = (Duration::from_hours(1), Duration::from_hours(1));
    let few = PostgresOptions { connections: 2, ..hasty(schema.options()) };
    let options = PostgresOptions { statement_timeout, lock_timeout, ..few };
    let small = PostgresMetadata::open(&options).await.unwrap();
    let pool = crate::metadata::postgres::session::pool::pool(&schema.options()).unwrap();
    let other = pool.get().await.unwrap();
    other.batch_execute("BEGIN; LOCK TABLE files IN ACCESS EXCLUSIVE MODE").await.unwrap();

    let read = || small.file(record.file_id, &Scope::All);
    let both = async { tokio::join!(read(), read()) };
    let given_up = tokio::time::timeout(Duration::from_millis(500), both).await;
    assert!(given_up.is_err());
    let ping = async { while small.ping().await.is_err() {} };
    let ping = tokio::time::timeout(HANG, ping).await;
    ping.expect("not behind the statements that wait for a lock");
    other.batch_execute("ROLLBACK").await.unwrap();
    let found = while_busy(async || read().await).await;
    assert_eq!(found.as_deref(), Some(&record));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_full_disk_of_the_server_has_a_code_of_its_own() {
    let (metadata, schema) = fresh();
    let record = put(&metadata, ready("acme")).await;
    schema.run(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON files EXECUTE FUNCTION full_disk()",
    );

    let removal = change(&record, deleted(&record, at(1)));
    for error in [
        metadata.insert_files(insert([ready("acme")])).await.unwrap_err(),
        metadata.update_file(removal).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::DatabaseFull, "{}", error.chain());
        assert_eq!(error.details().retry_after_secs, Some(10));
    }
    assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_that_turns_its_user_away_makes_calls_busy() {
    let schema = Schema::new();
    let (user, name) = (format!("user_{}", schema.name()), schema.name());
    let administer = |statements: String| Schema::run_as_super(&statements);
    administer(format!(
        "CREATE ROLE {user} LOGIN PASSWORD 'word'; GRANT CREATE ON DATABASE filestore TO {user}"
    ));
    let mut options = schema.options();
    options.server.user(&user).password("word");
    let metadata = PostgresMetadata::open(&options).await.unwrap();

    for refusal in ["CONNECTION LIMIT 0", "NOLOGIN", "LOGIN PASSWORD 'another'"] {
        administer(format!(
            "ALTER ROLE {user} {refusal};
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'"
        ));
        let error = metadata.insert_files(insert([ready("acme")])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{refusal}: {}", error.chain());
        assert!(error.chain().contains(&user), "{}", error.chain());
        assert!(!error.to_string().contains(&user), "{error}");
        administer(format!("ALTER ROLE {user} LOGIN PASSWORD 'word' CONNECTION LIMIT -1"));
        put(&metadata, ready("acme")).await;
    }
    metadata.close().await;
    administer(format!("DROP SCHEMA {name} CASCADE; DROP OWNED BY {user}; DROP ROLE {user}"));
}
