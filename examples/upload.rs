//! Uploads a file to a server with the typed client, and downloads it again.
//!
//! `cargo run --example upload`

use filestore_client::{Client, ErrorKind, Upload};
use filestore_server::{Config, Server};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let photo = dir.path().join("photo.txt");
    std::fs::write(&photo, "imagine a photograph\n".repeat(1000))?;

    // A server in this process, on any free port. Yours runs elsewhere: leave this part out.
    let config = Config::new("127.0.0.1:0".parse()?, dir.path().join("data"));
    let server = Server::start(config).await?;

    let client = Client::builder(server.url())?.build()?;

    // The client streams the file, and repeats the upload if the connection breaks. An idempotency key
    // goes along, so that a repeated upload is not stored twice.
    let gallery = client.organization("42")?.sub_system("gallery")?;
    let upload =
        Upload::from_path(&photo)?.original_name("Zoë on the beach.txt").on_progress(|progress| {
            eprintln!("  sent {} of {:?} bytes", progress.done_bytes, progress.total_bytes);
        });
    let record = gallery.upload(upload).await?;
    println!(
        "{} is {} ({} bytes, {})",
        record.original_name, record.file_id, record.file_size, record.sync_status
    );

    // A download resumes where a broken connection left it, and the file appears only once its SHA-256
    // has been checked.
    let copy = dir.path().join("copy.txt");
    let done = client.download(&record.file_id).to_path(&copy).await?;
    assert_eq!(std::fs::read(&copy)?, std::fs::read(&photo)?);
    println!("downloaded {} bytes, sha256 {}", done.len_bytes, done.sha256);

    // A range downloads a part of the file.
    let head = client.download(&record.file_id).range(..7).bytes().await?;
    println!("it begins with {:?}", String::from_utf8_lossy(&head));

    // An error has a kind to branch on, and one line for people.
    client.delete(&record.file_id).await?;
    let error = client.download(&record.file_id).bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    println!("after the delete: {error}");

    // A deletion can be undone until its purge is due: for a day, unless the server says otherwise.
    let deleted = client.info(&record.file_id).await?;
    println!("the purge is due at {}", deleted.value.purge_due_at.as_deref().unwrap_or("no time"));
    let restored = client.restore(&record.file_id).await?;
    println!("restored: {}", restored.file_id());

    server.stop().await;
    Ok(())
}
