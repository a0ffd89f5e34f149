//! What holds at every provider, tried with `memory` and `fs`; and configurations that are refused.

#[cfg(feature = "s3")]
mod redirects;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::*;
use crate::domain::config::StoreConfig;
use crate::domain::error::ErrorKind;
use crate::domain::file::path::BlobKey;
use crate::domain::id::BlobId;
use crate::domain::time::clock::Timestamp;
use crate::storage::contract::{
    a_source_that_breaks_leaves_nothing, bytes_that_are_not_what_was_said_leave_nothing, content,
    fresh_key, get, info, keeps_the_contract, put, source,
};
use crate::storage::{
    BlobStore, DataDir, LocalOptions, LocalStore, PresignMethod, PresignRequest, Priority,
    ProviderRegistry,
};

fn memory() -> ProviderConfig {
    ProviderConfig::new("mem".parse().unwrap(), "memory")
}

fn on_disk(directory: &std::path::Path) -> ProviderConfig {
    ProviderConfig::new("disk".parse().unwrap(), "fs")
        .with_option("root", directory.to_str().unwrap())
}

fn open(config: ProviderConfig) -> Cloud {
    let code = config.code.clone();
    ProviderRegistry::open(&[config]).unwrap().cloud(&code).unwrap().clone()
}

fn refusal(config: ProviderConfig) -> String {
    let error = ProviderRegistry::open(&[config]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unusable);
    assert_eq!(format!("{error:?}"), format!("Unusable: {error}"), "nothing is in the sources");
    error.to_string()
}

fn files_below(directory: &std::path::Path) -> usize {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()).fold(0, |count, entry| {
        count + if entry.file_type().unwrap().is_dir() { files_below(&entry.path()) } else { 1 }
    })
}

async fn keeps_what_it_promises(cloud: &Cloud) {
    let key = fresh_key();
    for length in [0, 1, 256 << 10, (5 << 20) + 1, 11 << 20] {
        let (key, bytes) = (fresh_key(), content(length));
        put(cloud, &key, &bytes).await.unwrap();
        let size = length as u64;
        assert!(get(cloud, &key, size, 0..size).await.unwrap().unwrap() == bytes, "{length} bytes");
        for range in [0..0, 0..1, 1..2, 262_143..262_145, 5_242_000..5_243_000, size..size] {
            if range.end <= size {
                let slice =
                    usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
                assert!(
                    get(cloud, &key, size, range.clone()).await.unwrap().unwrap() == bytes[slice],
                    "{range:?}"
                );
            }
        }
        assert!(get(cloud, &key, size, 0..size + 1).await.is_err());
        assert!(
            get(cloud, &key, size + 1, 0..size + 1).await.is_err(),
            "{length}: shorter than recorded"
        );
        for _ in 0..2 {
            cloud.remove(vec![key.clone()]).await.pop().unwrap().unwrap();
            assert_eq!(get(cloud, &key, size, 0..size).await.unwrap(), None);
        }
    }

    put(cloud, &key, b"first").await.unwrap();
    let error = put(cloud, &key, b"other").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
    assert_eq!(
        get(cloud, &key, 5, 0..5).await.unwrap().unwrap(),
        b"first",
        "a key is written once"
    );
    put(cloud, &key, b"first").await.expect("a put whose reply got lost is repeated");
}

#[tokio::test]
async fn memory_keeps_what_it_promises() {
    let cloud = open(memory());
    keeps_the_contract(&cloud, ErrorKind::ProviderUnavailable).await;
    keeps_what_it_promises(&cloud).await;
}

#[tokio::test]
async fn fs_keeps_what_it_promises() {
    let directory = tempfile::tempdir().unwrap();
    let cloud = open(on_disk(directory.path()));
    keeps_what_it_promises(&cloud).await;
    assert_eq!(files_below(directory.path()), 1, "nothing is left half written");
}

#[tokio::test]
async fn fs_keeps_the_contract_of_every_store() {
    let directory = tempfile::tempdir().unwrap();
    keeps_the_contract(&open(on_disk(directory.path())), ErrorKind::ProviderUnavailable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_removals_at_once_neither_fails() {
    let directory = tempfile::tempdir().unwrap();
    let cloud = open(on_disk(directory.path()));
    for _ in 0..200 {
        let key = fresh_key();
        put(&cloud, &key, b"bytes").await.unwrap();
        let remove = || {
            let (cloud, key) = (cloud.clone(), key.clone());
            tokio::spawn(async move { cloud.remove(vec![key]).await.pop().unwrap() })
        };
        for removal in [remove(), remove(), remove()] {
            removal.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_put_whose_source_lies_or_breaks_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();

    for cloud in [open(memory()), open(on_disk(directory.path()))] {
        bytes_that_are_not_what_was_said_leave_nothing(&cloud).await;
        a_source_that_breaks_leaves_nothing(&cloud).await;
    }

    assert_eq!(files_below(directory.path()), 0);
}

#[tokio::test]
async fn all_puts_together_hold_no_more_than_the_budget() {
    let cloud = open(memory());
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let bytes = content(12 << 20);

    let puts = (0..6).map(|_| {
        let (begun, counted, ended) =
            (Arc::clone(&running), Arc::clone(&running), Arc::clone(&running));
        let most = Arc::clone(&most);
        let begun = stream::once(async move {
            begun.fetch_add(1, Ordering::SeqCst);
            Ok(Bytes::new())
        });
        let counted = source(&bytes).inspect(move |_| {
            most.fetch_max(counted.load(Ordering::SeqCst), Ordering::SeqCst);
        });
        let ended = stream::once(async move {
            ended.fetch_sub(1, Ordering::SeqCst);
            Ok(Bytes::new())
        });
        let source = begun.chain(counted).chain(ended).boxed();
        let (cloud, info) = (&cloud, info(&bytes));
        async move { cloud.put(&fresh_key(), &info, source, Priority::Request).await.unwrap() }
    });
    futures_util::future::join_all(puts).await;

    assert!(most.load(Ordering::SeqCst) <= line::memory::PUT_MEMORY_BYTES / (12 << 20));
}

/// A provider in memory of whose turns there are only a few, given up soon.
fn narrow(concurrency: usize) -> Cloud {
    let timeout = Duration::from_millis(200);
    open(ProviderConfig { timeout, concurrency, ..memory() })
}

fn key_of(organization: &str) -> BlobKey {
    let day = Timestamp::from_millis(1_795_248_930_123);
    let sub_system = "gallery".parse().unwrap();
    BlobKey::new(&organization.parse().unwrap(), &sub_system, day, BlobId::generate(day))
}

async fn begun(cloud: &Cloud, key: &BlobKey, size: usize) -> Result<crate::storage::ByteStream> {
    let all = 0..size as u64;
    Ok(cloud.read(key, size as u64, all.clone()).await?.unwrap().into_stream(all))
}

#[tokio::test(start_paused = true)]
async fn readers_keep_no_put_waiting_and_no_organization_has_all_turns() {
    let cloud = narrow(4);
    let bytes = content(1 << 20);
    let (one, other) = (key_of("1"), key_of("2"));
    put(&cloud, &one, &bytes).await.unwrap();
    put(&cloud, &other, &bytes).await.unwrap();

    let _held = begun(&cloud, &one, bytes.len()).await.unwrap();
    let more = begun(&cloud, &one, bytes.len()).await.err().unwrap();
    assert_eq!(more.kind(), ErrorKind::Busy, "its share is taken");
    let read = get(&cloud, &other, 1 << 20, 0..1 << 20).await.unwrap().unwrap();
    assert!(read == bytes, "nobody else notices");

    let mut readers = vec![];
    for organization in ["3", "4", "5"] {
        let key = key_of(organization);
        put(&cloud, &key, &bytes).await.unwrap();
        readers.push(begun(&cloud, &key, bytes.len()).await.unwrap());
    }
    let full = begun(&cloud, &other, bytes.len()).await.err().unwrap();
    assert_eq!(full.kind(), ErrorKind::Busy, "all turns are taken");
    put(&cloud, &key_of("6"), &bytes).await.expect("is stored and read back all the same");
    let copied = cloud.read_to_copy(&one, 1 << 20).await;
    assert!(copied.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_too_slow_is_cut_and_its_turn_is_free() {
    let cloud = narrow(1);
    let (key, bytes) = (key_of("1"), content(1 << 20));
    put(&cloud, &key, &bytes).await.unwrap();

    let mut slow = begun(&cloud, &key, bytes.len()).await.unwrap();
    slow.next().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;

    let read = get(&cloud, &key, 1 << 20, 0..1 << 20).await.unwrap().unwrap();
    assert!(read == bytes, "another reader has the turn");
    let rest: Vec<_> = slow.collect().await;
    assert_eq!(rest.last().unwrap().as_ref().unwrap_err().kind(), ErrorKind::Busy);
    assert!(rest.len() < 4, "cut, not ended");
}

#[tokio::test]
async fn a_source_that_yields_nothing_keeps_no_memory_from_others() {
    let cloud = open(memory());
    let bytes = content(12 << 20);
    let silent = || {
        let (cloud, info) = (cloud.clone(), info(&bytes));
        async move {
            let never = stream::pending().boxed();
            cloud.put(&fresh_key(), &info, never, Priority::Request).await
        }
    };

    let silent: Vec<_> = (0..20).map(|_| tokio::spawn(silent())).collect();
    tokio::task::yield_now().await;
    put(&cloud, &fresh_key(), &bytes).await.unwrap();
    assert!(silent.iter().all(|put| !put.is_finished()));
    silent.iter().for_each(tokio::task::JoinHandle::abort);
}

/// What the blocking pool of a runtime serves is LOCAL and the database. Two threads stand for the
/// 512 that a server has.
#[test]
fn an_fs_provider_that_hangs_takes_threads_of_its_own() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let home = tempfile::tempdir().unwrap();
    let directory = tempfile::tempdir().unwrap();

    runtime.block_on(async {
        let options = LocalOptions::from(&StoreConfig::default());
        let local = LocalStore::open(&DataDir::open(home.path()).unwrap(), options).unwrap();
        let io_timeout = Duration::from_secs(1);
        let cloud = open(ProviderConfig { io_timeout, ..on_disk(directory.path()) });

        // Opening a pipe that nobody writes to hangs as a file of a dead NFS server does.
        let pipe = fresh_key();
        let at = directory.path().join(pipe.as_str());
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&at).status().unwrap().success());

        let hanging = (0..20).map(|_| get(&cloud, &pipe, 10, 0..10));
        let outcomes = futures_util::future::join_all(hanging).await;
        for outcome in outcomes {
            let kind = outcome.unwrap_err().kind();
            assert!(matches!(kind, ErrorKind::ProviderUnavailable | ErrorKind::Busy), "{kind:?}");
        }

        for _ in 0..20 {
            let (key, bytes) = (fresh_key(), content(100_000));
            put(&local, &key, &bytes).await.unwrap();
            let read = get(&local, &key, 100_000, 0..100_000).await.unwrap().unwrap();
            assert!(read == bytes);
        }

        // Lets the threads go.
        std::fs::OpenOptions::new().read(true).write(true).open(&at).unwrap();
    });
}

#[tokio::test]
async fn a_provider_without_presign_has_its_bytes_streamed() {
    let cloud = open(memory());
    let request = PresignRequest {
        method: PresignMethod::Get,
        expires_in: Duration::from_mins(5),
        content_type: "text/plain",
        disposition: None,
    };
    assert_eq!(cloud.presign(&fresh_key(), &request).await.unwrap(), None);
    assert!(!cloud.capabilities().presigns);
}

#[test]
fn what_is_wrong_with_a_configuration_is_said_in_one_line() {
    let s3 = || {
        ProviderConfig::new("eu".parse().unwrap(), "s3")
            .with_option("bucket", "files")
            .with_option("region", "garage")
    };
    let cases = [
        (
            ProviderConfig::new("eu".parse().unwrap(), "ftp"),
            // Those that this build leaves out come last.
            vec!["provider eu", "s3, ", "azblob", "gcs", "fs, memory", "ftp"],
        ),
        (ProviderConfig::new("eu".parse().unwrap(), "fs"), vec!["provider eu", "root is missing"]),
        (
            memory().with_option("rooot", "x"),
            vec!["provider mem", "unknown option rooot: did you mean root?"],
        ),
        (s3().with_option("bukcet", "x"), vec!["unknown option bukcet: did you mean bucket?"]),
        (memory().with_option("colour", "x"), vec!["option colour, expected one of", "root"]),
        (s3().with_option("bucket", ""), vec!["provider eu", "bucket is missing"]),
        (
            s3().with_option("access_key_id", "x"),
            vec!["provider eu", "secret_access_key is missing"],
        ),
        (
            s3().with_option("disable_config_load", "hush"),
            vec!["provider eu", "disable_config_load must be true or false"],
        ),
        (
            s3().with_option("checksum_algorithm", "hush"),
            vec!["provider eu", "crc32c, md5 or none"],
        ),
        (
            s3().with_option("endpoint", "http://user:hush@localhost"),
            vec!["provider eu", "endpoint must be"],
        ),
        #[cfg(feature = "azblob")]
        (
            ProviderConfig::new("az".parse().unwrap(), "azblob")
                .with_option("container", "files")
                .with_option("endpoint", "https://a.blob.core.windows.net")
                .with_option("account_key", "hush!"),
            vec!["provider az", "account_key"],
        ),
        (ProviderConfig { concurrency: 0, ..memory() }, vec!["provider mem", "concurrency"]),
        (ProviderConfig::new(ProviderCode::local(), "memory"), vec!["provider LOCAL", "built-in"]),
    ];

    for (config, parts) in cases {
        let line = refusal(config);
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?} in {line}");
        assert!(!line.contains("hush") && !line.contains('\n'), "{line}");
    }

    let error = ProviderRegistry::open(&[memory(), memory()]).unwrap_err();
    assert!(error.to_string().contains("provider mem: the code is given to two providers"));
}

#[test]
fn one_that_is_not_configured_is_unavailable_and_named() {
    let error = ProviderRegistry::local_only().cloud(&"gone".parse().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
    assert!(error.to_string().contains("gone"));
}
