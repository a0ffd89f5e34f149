//! The cost of a durable upload of 64 KiB, against the same system calls made by hand.
//!
//! `raw` does what a careful program does per file: write, fsync, rename, fsync of the directory,
//! on threads of its own. `store` stages and publishes, which promises the same. Both run on the
//! file system of the build directory, or of `FILESTORE_BENCH_DIR`, in one process, with the same
//! number of callers. A disk that others use at the same time makes single figures worthless:
//! compare several runs.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;
use std::thread;

use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use filestore_core::internals::domain::config::Durability;
use filestore_core::internals::domain::file::path::BlobKey;
use filestore_core::internals::domain::id::BlobId;
use filestore_core::internals::domain::time::clock::Timestamp;
use filestore_core::internals::storage::{DataDir, LocalOptions, LocalStore};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const CALLERS: [usize; 2] = [1, 32];
const FILES_PER_CALLER: usize = 8;
const SIZE: usize = 64 * 1024;

static CONTENT: LazyLock<Bytes> = LazyLock::new(|| (0..=250u8).cycle().take(SIZE).collect());

fn main() {
    divan::main();
}

fn home() -> TempDir {
    let chosen = std::env::var_os("FILESTORE_BENCH_DIR");
    tempfile::tempdir_in(chosen.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into())).unwrap()
}

fn fresh_key() -> BlobKey {
    let now = Timestamp::now();
    BlobKey::new(&"42".parse().unwrap(), &"bench".parse().unwrap(), now, BlobId::generate(now))
}

#[divan::bench(args = CALLERS, sample_count = 40, sample_size = 1)]
fn raw(bencher: Bencher, callers: usize) {
    let home = home();
    for part in ["staging", "blobs"] {
        fs::create_dir(home.path().join(part)).unwrap();
    }

    bencher.counter(ItemsCount::new(callers * FILES_PER_CALLER)).bench_local(|| {
        thread::scope(|scope| {
            for _ in 0..callers {
                scope.spawn(|| (0..FILES_PER_CALLER).for_each(|_| write_by_hand(home.path())));
            }
        });
    });
}

fn write_by_hand(home: &Path) {
    let name = BlobId::generate(Timestamp::now()).to_string();
    let (staged, blobs) = (home.join("staging").join(&name), home.join("blobs"));

    let mut file = File::options().write(true).create_new(true).open(&staged).unwrap();
    file.write_all(&CONTENT).unwrap();
    file.sync_all().unwrap();

    fs::rename(staged, blobs.join(name)).unwrap();
    File::open(blobs).unwrap().sync_all().unwrap();
}

#[divan::bench(args = CALLERS, sample_count = 40, sample_size = 1)]
fn store(bencher: Bencher, callers: usize) {
    let (home, runtime) = (home(), Runtime::new().unwrap());
    let options = LocalOptions {
        durability: Durability::Full,
        reserve_bytes: 8 << 20,
        concurrent_uploads: 1024,
        memory_bytes: 0,
        open_files: 0,
    };
    let store = LocalStore::open(&DataDir::open(home.path()).unwrap(), options).unwrap();

    bencher.counter(ItemsCount::new(callers * FILES_PER_CALLER)).bench_local(|| {
        let uploads: Vec<_> =
            (0..callers).map(|_| runtime.spawn(upload_some(store.clone()))).collect();
        for upload in uploads {
            runtime.block_on(upload).unwrap();
        }
    });
}

async fn upload_some(store: LocalStore) {
    for _ in 0..FILES_PER_CALLER {
        let key = fresh_key();
        let mut writer = store.stage(key.blob_id(), SIZE as u64).await.unwrap();
        writer.write(CONTENT.clone()).await.unwrap();
        writer.finish().await.unwrap().keep();
        store.publish(&key).await.unwrap();
    }
}
