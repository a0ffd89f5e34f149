//! Durable names for OpenDAL's `fs` service, which flushes files but not the directories that name
//! them.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::domain::error::{Error, Result};
use crate::tasks;

/// Makes the names on the way from `root` to `path` durable; does nothing without a root.
pub(super) async fn flush(root: Option<&Path>, path: &str) -> Result<()> {
    const FLUSHING: &str = "flushing a provider's directories";

    let Some(root) = root else { return Ok(()) };
    let (root, path) = (root.to_owned(), root.join(path));

    let flushed = tasks::blocking(move || flush_between(&root, &path)).await;
    flushed
        .map_err(|lost| Error::internal(FLUSHING, lost))?
        .map_err(|error| Error::io(FLUSHING, error))
}

/// Syncs the directories from the file's own up to `root`, skipping those that are gone: they have
/// no names to keep.
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
