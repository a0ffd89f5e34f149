//! Makes names durable for OpenDAL's `fs` service, which flushes files but not their directories.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::domain::error::{Error, Result};
use crate::storage::cloud::line::threads::Threads;

/// Makes the names from `root` to `path` durable.
pub(in crate::storage::cloud) async fn flush(
    threads: &Threads,
    root: &Path,
    path: &str,
) -> Result<()> {
    const FLUSHING: &str = "flushing a provider's directories";

    let (root, path) = (root.to_owned(), root.join(path));
    // The threads are the provider's own: a call that blocks is what they are for.
    let flushed = threads.run(async move { flush_between(&root, &path) }, Duration::ZERO).await;
    flushed
        .map_err(|error| Error::internal(FLUSHING, error))?
        .map_err(|error| Error::io(FLUSHING, error))
}

/// Syncs the directories from the file's directory up to `root`. Skips directories that no longer exist.
fn flush_between(root: &Path, path: &Path) -> io::Result<()> {
    for directory in path.ancestors().skip(1).take_while(|directory| directory.starts_with(root)) {
        match File::open(directory) {
            Ok(directory) => directory.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
