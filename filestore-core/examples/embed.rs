//! Embeds the store in an application: no server, no HTTP, just the library.
//!
//! `cargo run -p filestore-core --example embed`

use filestore_core::{FileStore, ListRequest, NewUpload, Scope, Workers};
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

    // A scope names the organizations whose files a call finds. Other files look like unknown ones.
    let own = Scope::Organizations(vec!["42".parse()?]);
    let files = store.scoped(&own);

    // A TEMP file expires after a day, unless a change makes it stay.
    let changed = files.make_ready(record.file_id).await?;
    println!("is {} now", changed.record.state.status());

    let foreign = Scope::Organizations(vec!["43".parse()?]);
    println!("its owner reads {:?}", files.read(record.file_id).await?);
    println!("everybody else: {}", store.scoped(&foreign).read(record.file_id).await.unwrap_err());

    // Your own jobs name all organizations: `Scope::All`.
    let page = store.scoped(&Scope::All).list(&ListRequest::default()).await?;
    println!("the store has {} file", page.items.len());

    // A deleted file is hidden at once, and can be restored for a day. Then the workers remove its bytes.
    files.delete(record.file_id).await?;
    println!("after the delete: {}", files.read(record.file_id).await.unwrap_err());
    files.restore(record.file_id).await?;
    println!("after the restore: {:?}", files.read(record.file_id).await?);

    workers.stop(Duration::from_secs(30)).await;
    store.close().await;
    Ok(())
}
