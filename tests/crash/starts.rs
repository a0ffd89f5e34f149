//! The time that a start takes: of a store that a crash left with staged files, and of a healthy one.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use filestore_core::internals::domain::report::erasure::Era;
use filestore_core::internals::metadata::sqlite::SqliteMetadata;
use filestore_core::internals::metadata::{BindingSeen, Files as _, InsertFiles, Upkeep as _};
use filestore_core::{
    BlobId, BlobKey, Clock, Durability, FileId, FileRecord, FileStore, NewUpload, Result,
};

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Records in the store
    #[arg(long, default_value_t = 100_000)]
    files: usize,

    /// Files that a crash left in staging, half of them with a record
    #[arg(long, default_value_t = 1_000)]
    staged: usize,
}

/// The longest time of a recovery (P10).
const RECOVERY: Duration = Duration::from_secs(5);

/// Records inserted in one transaction.
const PAGE: usize = 1_000;

/// Fills a store, opens it twice, and prints how long that took.
pub(crate) async fn run(options: Options) -> ExitCode {
    let home = tempfile::tempdir().expect("a temporary directory");
    fill(home.path(), &options).await.expect("the store can be filled");

    let recovery = time_a_start(home.path()).await;
    let start = time_a_start(home.path()).await;
    println!("{:>10}  records", options.files);
    println!("{:>10}  staged files", options.staged);
    println!("{:>10}  ms to recover and start", recovery.as_millis());
    println!("{:>10}  ms to start", start.as_millis());

    let left = fs::read_dir(home.path().join("staging")).expect("a directory").count();
    assert_eq!(left, 0, "left in staging");
    assert!(recovery < RECOVERY, "a recovery took {recovery:?}");
    ExitCode::SUCCESS
}

async fn time_a_start(home: &Path) -> Duration {
    let began = Instant::now();
    let store = FileStore::open(home).await.expect("the store opens");
    let took = began.elapsed();
    store.close().await;
    took
}

async fn fill(home: &Path, options: &Options) -> Result<()> {
    let store = FileStore::open(home).await?;
    let new = NewUpload::new("acme".parse()?, "starts".parse()?);
    let model = store.upload(new, &b"x"[..]).await?;
    store.close().await;
    drop(store);

    let metadata = SqliteMetadata::open(&home.join("metadata.sqlite3"), Durability::Process, None)?;
    let mut left = options.staged / 2;
    for first in (0..options.files).step_by(PAGE) {
        let count = PAGE.min(options.files - first);
        let records: Vec<_> = (0..count).map(|_| like(&model)).collect();
        for record in records.iter().take(left) {
            stage(home, record.blob.key.blob_id());
        }
        left = left.saturating_sub(count);
        let insert = InsertFiles {
            records,
            binding: BindingSeen { organization: None, active: None },
            quota_bytes: None,
            quota_files: None,
            idempotency: None,
            permit: None,
            upload: None,
            era: Era::default(),
        };
        metadata.insert_files(insert).await?;
    }

    for _ in 0..options.staged / 2 {
        stage(home, BlobId::generate(Clock::system().now()));
    }
    metadata.close().await;
    Ok(())
}

/// Makes a record of a file of its own.
fn like(model: &FileRecord) -> FileRecord {
    let now = Clock::system().now();
    let mut record = model.clone();
    let (organization, sub_system) = (&model.organization_id, &model.sub_system);
    record.file_id = FileId::generate(now);
    record.blob.key = BlobKey::new(organization, sub_system, now, BlobId::generate(now));
    record
}

fn stage(home: &Path, id: BlobId) {
    fs::write(home.join("staging").join(id.to_string()), b"x").expect("a file can be written");
}
