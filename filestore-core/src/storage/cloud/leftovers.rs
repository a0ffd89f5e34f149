//! What a killed write leaves at an `fs` provider: files in its staging directory that no note
//! names.

use std::path::Path;

use super::open::FS_STAGING;
use super::{Cloud, Scheme};
use crate::domain::clock::Timestamp;
use crate::domain::id::BlobId;
use crate::tasks;

/// Length of a blob's id, which the name of a staged file begins with.
const ID_CHARS: usize = 26;

impl Cloud {
    /// Removes what earlier processes staged and did not finish, in the background. Called once the
    /// provider is known to be the store's own, as another store's process may be writing there.
    pub(super) fn sweep_staging(&self) {
        let (Scheme::Fs, Some(root)) = (self.inner.scheme, &self.inner.directory) else { return };
        let (cloud, staging) = (self.clone(), root.join(FS_STAGING));

        tasks::spawn(async move {
            let Some(threads) = &cloud.inner.threads else { return };
            let before = cloud.inner.opened_at;
            let swept =
                threads.run(async move { sweep(&staging, before) }, super::SWEEP_TIME).await;
            match swept
                .map_err(|error| error.to_string())
                .map(|swept| swept.map_err(|e| e.to_string()))
            {
                Ok(Ok(0)) => {}
                Ok(Ok(count)) => {
                    tracing::info!(provider = %cloud.code(), count, "removed what broken writes left");
                }
                Ok(Err(error)) | Err(error) => {
                    tracing::warn!(provider = %cloud.code(), error, "what broken writes left stays until the next start");
                }
            }
        });
    }
}

/// Removes the files of blobs from before `before`; returns how many.
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
