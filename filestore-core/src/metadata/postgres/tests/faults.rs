//! Lost connections, timeouts, and answers that never come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::domain::error::ErrorKind;
use crate::domain::scope::Scope;
use crate::metadata::contract::{at, change, deleted, get, insert, put, ready};
use crate::metadata::{Inserted, Inspection, Metadata};

/// The treatment of a COMMIT by a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum AtCommit {
    Forward = 0,
    /// Cuts the connection instead of forwarding it.
    CutBefore = 1,
    /// Forwards it, and cuts the connection before its answer.
    CutAfter = 2,
    /// Lets nobody through at all.
    Refuse = 3,
}

/// A proxy before the server, which cuts connections.
struct Proxy {
    options: PostgresOptions,
    mode: Arc<AtomicU8>,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    async fn before(schema: &Schema) -> Self {
        let options = schema.options();
        let (host, port) = ("127.0.0.1", options.server.get_ports()[0]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let (mode, cuts) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicUsize::new(0)));

        let (modes, counted) = (Arc::clone(&mode), Arc::clone(&cuts));
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                if modes.load(Ordering::Acquire) == AtCommit::Refuse as u8 {
                    continue;
                }
                let server = TcpStream::connect((host, port)).await.unwrap();
                tokio::spawn(relay(client, server, Arc::clone(&modes), Arc::clone(&counted)));
            }
        });

        let address = std::env::var(ADDRESS).unwrap();
        let address = address.replace(&format!(":{port}/"), &format!(":{own_port}/"));
        let through = PostgresOptions::new(&address).unwrap();
        let options = PostgresOptions { server: through.server, ..options };
        Self { options, mode, cuts }
    }

    fn set(&self, mode: AtCommit) {
        self.mode.store(mode as u8, Ordering::Release);
    }
}

/// Relays both ways until the mode says to cut.
async fn relay(
    client: TcpStream,
    server: TcpStream,
    mode: Arc<AtomicU8>,
    cuts: Arc<AtomicUsize>,
) -> Option<()> {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let (mut sent, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            length = from_client.read(&mut sent) => {
                let bytes = &sent[..length.ok().filter(|length| *length > 0)?];
                let is_commit = bytes.windows(7).any(|part| part == b"COMMIT\0");
                let mode = mode.load(Ordering::Acquire);
                if is_commit && mode == AtCommit::CutBefore as u8 {
                    cuts.fetch_add(1, Ordering::AcqRel);
                    return None;
                }
                to_server.write_all(bytes).await.ok()?;
                if is_commit && mode == AtCommit::CutAfter as u8 {
                    cuts.fetch_add(1, Ordering::AcqRel);
                    // Its answer: so it was done.
                    from_server.readable().await.ok()?;
                    return None;
                }
                if mode == AtCommit::Refuse as u8 {
                    return None;
                }
            }
            length = from_server.read(&mut answered) => {
                let bytes = &answered[..length.ok().filter(|length| *length > 0)?];
                to_client.write_all(bytes).await.ok()?;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_counts_once() {
    let (direct, schema) = fresh();
    let proxy = Proxy::before(&schema).await;
    let metadata = PostgresMetadata::open(&proxy.options).await.unwrap();

    proxy.set(AtCommit::CutAfter);
    let record = ready("acme");
    let outcome = metadata.insert_files(insert([record.clone()])).await.unwrap();
    assert_eq!(outcome, Inserted::Done, "a second run would fail: the id is taken");
    assert_eq!(proxy.cuts.load(Ordering::Acquire), 1, "the commit was not run again");
    proxy.set(AtCommit::Forward);

    assert_eq!(get(&direct, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(get(&metadata, record.file_id).await.as_deref(), Some(&record));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrived_is_run_again() {
    let (direct, schema) = fresh();
    let proxy = Proxy::before(&schema).await;
    let metadata = Arc::new(PostgresMetadata::open(&proxy.options).await.unwrap());

    proxy.set(AtCommit::CutBefore);
    let record = ready("acme");
    let (inserting, inserted) = (Arc::clone(&metadata), record.clone());
    let call = tokio::spawn(async move { inserting.insert_files(insert([inserted])).await });
    while proxy.cuts.load(Ordering::Acquire) == 0 {
        tokio::task::yield_now().await;
    }
    proxy.set(AtCommit::Forward);

    assert_eq!(call.await.unwrap().unwrap(), Inserted::Done);
    assert_eq!(get(&direct, record.file_id).await.as_deref(), Some(&record));
    assert_eq!(direct.usage(&record.organization_id).await.unwrap().total().files, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
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

/// Stops, kills or starts the server of the tests.
async fn service(command: &str) {
    let service = std::env::var("FILESTORE_TEST_POSTGRES_SERVICE").unwrap();
    let mut run = std::process::Command::new(service);
    run.arg(command);
    let status = crate::tasks::blocking(move || run.status()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
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
        service(how).await;
        service("start").await;
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
    assert_eq!(metadata.drifted_totals(Some("acme")).await.unwrap(), []);
    assert!(schema.name().starts_with("test"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_not_given_makes_a_call_busy() {
    let schema = Schema::new();
    let mut options = schema.options();
    options.lock_timeout = Duration::from_millis(50);
    let metadata = PostgresMetadata::open(&options).await.unwrap();
    let record = put(&metadata, ready("acme")).await;

    let pool = super::super::pool::pool(&options).unwrap();
    let other = pool.get().await.unwrap();
    other.batch_execute("BEGIN; SELECT 1 FROM files FOR UPDATE").await.unwrap();
    let removal = change(&record, deleted(&record, at(1)));
    let error = metadata.update_file(removal.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());

    other.batch_execute("ROLLBACK").await.unwrap();
    metadata.update_file(removal).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
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
