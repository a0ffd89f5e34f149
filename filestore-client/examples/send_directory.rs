//! Sends a directory to a server, and continues where an earlier run stopped.
//!
//! `FILESTORE_URL=http://127.0.0.1:8080 cargo run -p filestore-client --example send_directory [DIRECTORY]`
//!
//! Each file has an idempotency key: its path. If a run repeats an upload within a day, the server answers with the
//! stored record and keeps no second file. A large file continues at the last byte that the server has.

use std::path::{Path, PathBuf};

use filestore_client::{Client, Upload};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let root = std::env::args_os().nth(1).map_or(examples, PathBuf::from);
    // The address is in FILESTORE_URL, and the key of a server with keys in FILESTORE_KEY.
    let place = Client::from_env()?.organization("42")?.sub_system("import")?;

    let (mut stored, mut known) = (0, 0);
    for path in files_below(&root)? {
        let relative = path.strip_prefix(&root)?.to_string_lossy();
        let upload = Upload::from_path(&path)?
            .idempotency_key(format!("import:{relative}"))
            .metadata([("path", &*relative)])
            .on_progress(|progress| {
                eprint!("\r{} of {:?} bytes", progress.done_bytes, progress.total_bytes);
            });
        let reply = place.upload_reply(upload).await?;
        let count = if reply.is_replayed() { &mut known } else { &mut stored };
        *count += 1;
        eprintln!("\r{relative} is {}", reply.value.file_id);
    }
    println!("stored {stored} files, {known} were there");
    Ok(())
}

/// Lists the files of a directory and of the directories in it, in order.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files_below(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}
