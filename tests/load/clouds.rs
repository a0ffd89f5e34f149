//! Syncs and migrations to the Garage cluster of `tests/services/run`.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use filestore_core::admin::{MigrateOptions, NoProgress};
use filestore_core::bindings::NewBinding;
use filestore_core::uploads::UploadClaims;
use filestore_core::{FileStore, NewUpload, ProviderCode, StoreConfig};
use filestore_workspace::{Call, Remote, TestServer, sha256_hex};

use super::server::{Outcome, noise, work_dir};

const FILES: u64 = 2000;
const SIZE: usize = 64 << 10;
const ROUNDS: usize = 5;
const AT_ONCE: usize = 16;

fn variable(name: &str) -> Outcome<String> {
    let name = format!("FILESTORE_TEST_GARAGE_{name}");
    std::env::var(&name)
        .map_err(|_| format!("{name} is not set: run this by tests/services/run").into())
}

fn garage() -> Outcome<Remote> {
    Ok(Remote::s3(
        &variable("ENDPOINT")?,
        &variable("REGION")?,
        &variable("BUCKET")?,
        &variable("KEY_ID")?,
        &variable("SECRET")?,
    ))
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

fn config(remote: &Remote) -> StoreConfig {
    let mut config = StoreConfig::default();
    config.providers = vec![remote.config.clone()];
    config.sync.concurrency = AT_ONCE;
    config
}

async fn bind(store: &FileStore, organization: i64, provider: &ProviderCode) -> Outcome {
    let binding = NewBinding::new(organization.try_into()?, "load", provider.clone()).with_sync();
    store.bindings().create(binding).await?;
    Ok(())
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (block, chunk) in (0..).zip(bytes.chunks_mut(SIZE)) {
        noise(seed << 20 | block, chunk);
    }
    bytes
}

/// 2,000 files of 64 KiB: a sync run against `rclone copy` with as many transfers, in turns.
pub(crate) fn sync() -> Outcome {
    runtime()?.block_on(async {
        let remote = garage()?;
        let dir = work_dir()?;
        let store =
            FileStore::builder(dir.path().join("data")).config(config(&remote)).open().await?;
        let files = dir.path().join("files");
        std::fs::create_dir(&files)?;
        for number in 0..FILES {
            std::fs::write(files.join(number.to_string()), bytes(number, SIZE))?;
        }
        let mut ratios = Vec::new();
        for round in 0..=ROUNDS {
            let theirs = rclone(&files, round)?;
            let ours =
                sync_once(&store, remote.config.code.clone(), i64::try_from(round)? + 1).await?;
            if round == 0 {
                continue; // warm-up
            }
            println!(
                "rclone {theirs:>6.0} files/s   sync {ours:>6.0} files/s   ratio {:.2}",
                ours / theirs
            );
            ratios.push(ours / theirs);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "median ratio {:.2} (at least 0.8 is what we are after)",
            ratios[ratios.len() / 2]
        );
        store.close().await;
        Ok(())
    })
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand files")]
fn per_second(began: Instant) -> f64 {
    FILES as f64 / began.elapsed().as_secs_f64()
}

fn rclone(files: &Path, round: usize) -> Outcome<f64> {
    let to = format!("garage1:{}/rclone-{}-{round}", variable("BUCKET")?, std::process::id());
    let transfers = AT_ONCE.to_string();
    let began = Instant::now();
    let status = Command::new("rclone")
        .args(["copy", "--transfers", &transfers, "--checkers", &transfers])
        .arg(files)
        .arg(&to)
        .status()?;
    let rate = per_second(began);
    if status.success() { Ok(rate) } else { Err("rclone failed".into()) }
}

async fn sync_once(store: &FileStore, provider: ProviderCode, organization: i64) -> Outcome<f64> {
    upload(store, organization, FILES, SIZE).await?;
    store.admin().sync(Arc::new(NoProgress)).await?;
    bind(store, organization, &provider).await?;
    let began = Instant::now();
    let queued = store.admin().sync_enqueue(organization.try_into()?).await?;
    let report = store.admin().sync(Arc::new(NoProgress)).await?;

    let rate = per_second(began);
    if (queued, report.synced, report.failures.len()) == (FILES, FILES, 0) {
        return Ok(rate);
    }

    Err(format!("queued {queued}, synced {}, failed {}", report.synced, report.failures.len())
        .into())
}

async fn upload(store: &FileStore, organization: i64, files: u64, size: usize) -> Outcome {
    let mut uploads = tokio::task::JoinSet::new();
    for number in 0..files {
        if uploads.len() >= 32 {
            uploads.join_next().await.expect("one is under way")??;
        }
        let store = store.clone();
        uploads.spawn(async move {
            let new = NewUpload::new(organization.to_string().parse()?, "load".parse()?);
            store.upload(new, &*bytes(number, size)).await
        });
    }

    while let Some(uploaded) = uploads.join_next().await {
        uploaded??;
    }
    Ok(())
}

/// Growth of the peak resident memory while the same files, and then files of 2 GiB, are synced.
pub(crate) fn memory() -> Outcome {
    runtime()?.block_on(async {
        let remote = garage()?;
        let dir = work_dir()?;
        let mut config = config(&remote);
        config.limits.max_file_size = 4 << 30;
        let store = FileStore::builder(dir.path().join("data")).config(config).open().await?;
        let code = remote.config.code.clone();
        sync_once(&store, code.clone(), 1).await?;
        println!(
            "{FILES} files of 64 KiB: {}",
            grown(async { sync_once(&store, code.clone(), 2).await }).await?
        );

        let large = 2_u64 << 30;
        for number in 0..2 {
            let mut session = store.uploads().begin(UploadClaims::new("3".parse()?)).await?;
            for block in 0..large / SIZE as u64 {
                let mut chunk = vec![0; SIZE];
                noise(number << 40 | block, &mut chunk);
                session.write(chunk.into()).await?;
            }
            session.commit(NewUpload::new("3".parse()?, "load".parse()?)).await?;
        }
        bind(&store, 3, &code).await?;
        store.admin().sync_enqueue(3.try_into()?).await?;
        let run = async {
            let report = store.admin().sync(Arc::new(NoProgress)).await?;
            if report.synced == 2 { Ok(0.0) } else { Err(format!("{report:?}").into()) }
        };
        println!("2 files of 2 GiB: {}", grown(run).await?);
        store.close().await;
        Ok(())
    })
}

async fn grown(work: impl Future<Output = Outcome<f64>>) -> Outcome<String> {
    // Linux: the peak begins anew from what is resident now.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = resident("VmRSS:")?;
    work.await?;
    let peak = resident("VmHWM:")?;
    Ok(format!("grew {} MiB (at most 64 is what we are after)", peak.saturating_sub(before) >> 10))
}

fn resident(name: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let field = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim_end_matches("kB").trim().parse().ok());
    field.ok_or_else(|| format!("no {name} in /proc/self/status").into())
}

/// 10,000 files move to Garage, back, and out again under readers and replaces over HTTP.
pub(crate) fn migrate() -> Outcome {
    const FILES: u64 = 10_000;
    const BUSY: usize = 50;

    runtime()?.block_on(async {
        let remote = garage()?;
        let provider = remote.config.clone();
        let server = TestServer::start_with(|config| {
            config.check_providers = false;
            config.store.providers = vec![provider];
            config.store.sync.concurrency = AT_ONCE;
            config.store.blob_grace = std::time::Duration::from_mins(1);
        })
        .await;
        upload(server.store(), 7, FILES, 4096).await?;
        let ids = server.listed_of("7").await;
        let (load, over) = (Load::default(), AtomicBool::new(false));
        let (stable, busy) = ids.split_at(ids.len() - BUSY);
        let readers =
            futures_util::future::join_all((0..6).map(|_| load.read(&server, stable, &over)));
        let writers = futures_util::future::join_all(
            busy.chunks(BUSY / 2).map(|busy| load.replace(&server, busy, &over)),
        );
        let mover = async {
            let outcome = move_about(&server, &remote).await;
            over.store(true, Ordering::SeqCst);
            outcome
        };
        let (_, _, moved) = tokio::join!(readers, writers, mover);
        moved?;
        let verified = server
            .store()
            .admin()
            .migrate_verify(7.try_into()?, &remote.config.code, Arc::new(NoProgress))
            .await?;
        let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        println!(
            "{} reads ({} by redirect), {} replaces; failed reads {}, wrong bytes {}, damaged {}",
            count(&load.reads),
            count(&load.redirects),
            count(&load.replaces),
            count(&load.failed),
            count(&load.wrong),
            verified.failures.len(),
        );
        println!("orphans after the sweep: {}", orphans(&server, &remote).await?);
        server.stop().await;
        Ok(())
    })
}

async fn move_about(server: &TestServer, remote: &Remote) -> Outcome {
    for code in [remote.code(), "LOCAL", remote.code()] {
        server.bind(7, code, true).await;
        let began = Instant::now();
        let options = MigrateOptions::default();
        let report = server
            .store()
            .admin()
            .migrate(7.try_into()?, &code.parse()?, options, &|| false, Arc::new(NoProgress))
            .await?;
        let took = began.elapsed().as_secs();
        println!(
            "to {code}: {} files moved in {took} s, {} left, {} failed",
            report.moved_files,
            report.left_files,
            report.failures.len()
        );
    }
    Ok(())
}

#[derive(Default)]
struct Load {
    reads: AtomicU64,
    redirects: AtomicU64,
    replaces: AtomicU64,
    failed: AtomicU64,
    wrong: AtomicU64,
}

impl Load {
    /// Reads files that nobody replaces, whose bytes hash to what their record says.
    async fn read(&self, server: &TestServer, ids: &[String], over: &AtomicBool) {
        let client = filestore_workspace::http_client().build().expect("a client");
        while !over.load(Ordering::SeqCst) {
            let id = &ids[fastrand::usize(..ids.len())];
            let record = server.record(id).await;
            let reply = client.get(server.url(&format!("/api/v1/files/{id}"))).send().await;
            self.reads.fetch_add(1, Ordering::SeqCst);
            let bytes = match reply {
                Ok(reply) if reply.status() == 200 => {
                    if reply.url().as_str() != server.url(&format!("/api/v1/files/{id}")) {
                        self.redirects.fetch_add(1, Ordering::SeqCst);
                    }
                    reply.bytes().await
                }
                Ok(reply) => {
                    eprintln!("{}", reply.status());
                    self.failed.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                Err(error) => Err(error),
            };
            match bytes {
                Ok(bytes) if sha256_hex(&bytes) == record.sha256 => {}
                Ok(_) => drop(self.wrong.fetch_add(1, Ordering::SeqCst)),
                Err(error) => {
                    eprintln!("{error}");
                    self.failed.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    }

    /// Replaces files that nobody else does, and reads each back.
    async fn replace(&self, server: &TestServer, ids: &[String], over: &AtomicBool) {
        while !over.load(Ordering::SeqCst) {
            let id = &ids[fastrand::usize(..ids.len())];
            let bytes = bytes(fastrand::u64(..1 << 40), 3000);
            let replaced = server.change(id).file(&bytes).send().await;
            self.replaces.fetch_add(1, Ordering::SeqCst);
            let found = server.content(id).send().await;
            let found = match found.header("location") {
                Some(url) => Call::bare(reqwest::Method::GET, url).send().await,
                None => found,
            };
            if replaced.status != 200 || found.status != 200 {
                eprintln!("replace {}, read {}", replaced.status, found.status);
                self.failed.fetch_add(1, Ordering::SeqCst);
            } else if found.body != bytes {
                self.wrong.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// Objects that no record refers to, once everything waiting has been removed.
async fn orphans(server: &TestServer, remote: &Remote) -> Outcome<usize> {
    let grace = Instant::now() + std::time::Duration::from_secs(62);
    server.store().admin().sync(Arc::new(NoProgress)).await?;
    tokio::time::sleep_until(grace.into()).await;
    while server.store().admin().purge(&NoProgress).await?.blobs_removed > 0 {}

    let mut known = Vec::new();
    for id in server.listed_of("7").await {
        let record = server.record(&id).await;
        if record.storage_provider == remote.code() {
            known.push(record.file_path);
        }
    }

    known.sort();
    let objects = remote.objects().await;

    let missing = known.iter().filter(|key| objects.binary_search(key).is_err()).count();
    if missing > 0 {
        return Err(format!("{missing} objects are missing").into());
    }

    Ok(objects.len() - known.len())
}
