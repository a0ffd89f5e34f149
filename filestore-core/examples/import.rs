//! Imports a directory tree, and continues where an earlier run stopped.
//!
//! `cargo run -p filestore-core --example import [DIRECTORY]`
//!
//! The path of each file is in its custom metadata. A file whose path is in the store is skipped, so you can stop the
//! program at any time and start it again.

use std::path::{Path, PathBuf};

use filestore_core::{FileStore, ListFilter, ListRequest, NewUpload, Scope};
use tokio::fs::File;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let root = std::env::args_os().nth(1).map_or(examples, PathBuf::from);
    // Yours: `FileStore::open`, so that the next run finds the files.
    let store = FileStore::temporary().await?;

    // The first run ends after two files, as if it had been killed. The second run does the rest.
    let paths = files_below(&root)?;
    let first = import(&store, &root, &paths[..paths.len().min(2)]).await?;
    let second = import(&store, &root, &paths).await?;
    println!("the first run stored {first} files, the second {second} of {}", paths.len());
    assert_eq!(first + second, paths.len());
    Ok(())
}

/// Stores the files that are not there yet. Returns their number.
async fn import(store: &FileStore, root: &Path, paths: &[PathBuf]) -> Result<usize> {
    let mut stored = 0;
    for path in paths {
        let relative = path.strip_prefix(root)?.to_string_lossy();
        if is_there(store, &relative).await? {
            continue;
        }

        let metadata = serde_json::json!({ "path": relative }).to_string();
        let new = NewUpload::new("42".parse()?, "import".parse()?)
            .with_name(path.file_name().unwrap_or_default().to_string_lossy())
            .with_metadata(metadata.parse()?);
        let record = store.upload(new, File::open(path).await?).await?;
        println!("{relative} is {}", record.file_id);
        stored += 1;
    }
    Ok(stored)
}

async fn is_there(store: &FileStore, relative: &str) -> Result<bool> {
    let filter = ListFilter::new().sub_system("import".parse()?).metadata("path", relative);
    let page = store.scoped(&Scope::All).list(&ListRequest::new(filter).limit(1)).await?;
    Ok(!page.items.is_empty())
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
