//! Embeds the store in an application: no server, no HTTP, just the library.
//!
//! `cargo run --example embed`

use filestore_core::{FileStore, NewUpload, Scope, Workers};
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;

    // Opening locks the directory, and completes or discards the writes that a crash cut short.
    let store = FileStore::open(dir.path()).await?;
    // The workers purge deleted and expired files. Without them, run a purge when it suits you.
    let workers = Workers::start(&store);

    // Any `AsyncRead` can be uploaded. When `upload` returns, bytes and record survive a power cut.
    // The first name is that of the organization, the second that of a part of its application.
    let new = NewUpload::new("42".parse()?, "documents".parse()?).with_name("Grüße.txt").temp();
    let record = store.upload(new, &b"hello from the library"[..]).await?;
    println!("stored {} as {}", record.original_name, record.file_id);
    println!(
        "  {} bytes of {}, sha256 {}",
        record.blob.size_bytes, record.mime_type, record.blob.sha256
    );

    // A TEMP file expires after a day, unless a change makes it stay.
    let changed = store.make_ready(record.file_id, &Scope::All).await?;
    println!("is {} now", changed.record.state.status());

    // A `Scope` limits a call to organizations: each sees its own files, and no trace of any other.
    let own = Scope::Organizations(vec!["42".parse()?]);
    let foreign = Scope::Organizations(vec!["43".parse()?]);
    println!("its owner reads {:?}", store.read(record.file_id, &own).await?);
    println!("everybody else: {}", store.read(record.file_id, &foreign).await.unwrap_err());

    // A deleted file is hidden at once; its bytes are removed in the background.
    store.delete(record.file_id, &own).await?;
    println!("after the delete: {}", store.read(record.file_id, &own).await.unwrap_err());

    workers.stop(Duration::from_secs(30)).await;
    store.close().await;
    Ok(())
}
