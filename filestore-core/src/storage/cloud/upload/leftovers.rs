//! Leftovers of killed writes at an `fs` provider: files in its staging directory without a write intent.

use std::path::Path;

use crate::domain::id::BlobId;
use crate::domain::time::clock::Timestamp;
use crate::storage::cloud::opening::options::FS_STAGING;
use crate::storage::cloud::{Cloud, Scheme};
use crate::tasks;

/// The length of a blob's id, with which the name of a staged file begins.
const ID_CHARS: usize = 26;

impl Cloud {
    /// Removes unfinished staged files of earlier processes in the background. Call it only after the
    /// provider is known to belong to the store, because another store's process might write there.
    pub(in crate::storage::cloud) fn sweep_staging(&self) {
        let (Scheme::Fs, Some(root)) = (self.inner.scheme, &self.inner.directory) else { return };
        let (cloud, staging) = (self.clone(), root.join(FS_STAGING));

        tasks::spawn(async move {
            let Some(threads) = &cloud.inner.threads else { return };
            let before = cloud.inner.opened_at;
            let swept = threads
                .run(async move { sweep(&staging, before) }, crate::storage::cloud::SWEEP_TIME)
                .await;
            match swept
                .map_err(|error| error.to_string())
                .map(|swept| swept.map_err(|e| e.to_string()))
            {
                Ok(Ok(0)) => {}
                Ok(Ok(count)) => {
                    tracing::info!(provider = %cloud.code(), count, "removed the leftovers of interrupted writes");
                }
                Ok(Err(error)) | Err(error) => {
                    tracing::warn!(provider = %cloud.code(), error, "the leftovers of interrupted writes remain until the next start");
                }
            }
        });
    }
}

/// Removes the files of blobs that are older than `before`. Returns their number.
fn sweep(staging: &Path, before: Timestamp) -> std::io::Result<usize> {
    let entries = match std::fs::read_dir(staging) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };

    let mut count = 0;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.get(..ID_CHARS)?.parse::<BlobId>().ok());
        if id.is_some_and(|id| id.made_at() < before) {
            std::fs::remove_file(entry.path())?;
            count += 1;
        }
    }
    Ok(count)
}
