//! Sets damaged blobs aside, and replaces many fsyncs by one flush.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::BlobId;
use crate::storage::local::{LocalStore, Shared};

const SETTING_ASIDE: &str = "setting a blob aside";

impl LocalStore {
    /// Removes both names of a blob, so that it is not served. The bytes of the blob stay durably in
    /// `damaged/` under its id. For a blob without bytes, an empty file stays there.
    pub(crate) async fn set_aside(&self, key: &BlobKey) -> Result<()> {
        let key = key.clone();
        self.on_pool(SETTING_ASIDE, move |shared| {
            shared.set_aside(&key).map_err(|error| Error::io(SETTING_ASIDE, error))
        })
        .await
    }

    /// Lists the blobs in `damaged/`, including those of earlier openings.
    pub(crate) async fn set_aside_before(&self) -> Result<Vec<BlobId>> {
        self.on_pool(SETTING_ASIDE, |shared| match fs::read_dir(shared.dir.damaged()) {
            Ok(entries) => Ok(entries
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Error::io(SETTING_ASIDE, error)),
        })
        .await
    }

    /// Makes all writes to the store so far durable.
    pub(crate) async fn flush_all(&self) -> Result<()> {
        const FLUSHING: &str = "flushing the file system";

        self.on_pool(FLUSHING, |shared| {
            shared.flush_all().map_err(|error| Error::io(FLUSHING, error))
        })
        .await
    }
}

impl Shared {
    fn set_aside(&self, key: &BlobKey) -> io::Result<()> {
        let damaged = self.dir.damaged();
        match DirBuilder::new().mode(0o700).create(&damaged) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => File::open(self.dir.path())?.sync_all()?,
        }

        let id = key.blob_id().to_string();
        let aside = damaged.join(&id);
        let names = [self.dir.blobs().join(key.as_str()), self.dir.staging().join(&id)];
        let mut is_there = false;
        for name in names {
            match fs::rename(name, &aside) {
                Ok(()) => is_there = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if !is_there {
            File::options().append(true).create(true).mode(0o600).open(&aside)?;
        }
        File::open(damaged)?.sync_all()
    }

    #[cfg(target_os = "linux")]
    fn flush_all(&self) -> io::Result<()> {
        #[cfg(feature = "sabotage")]
        for part in [self.dir.staging(), self.dir.blobs()] {
            // A simulated disk sees the fsyncs of files alone.
            sync_below(&part)?;
        }
        rustix::fs::syncfs(&self.blobs).map_err(io::Error::from)
    }

    #[cfg(not(target_os = "linux"))]
    fn flush_all(&self) -> io::Result<()> {
        sync_below(&self.dir.staging())?;
        sync_below(&self.dir.blobs())
    }
}

/// Syncs every file and directory below `directory`.
#[cfg(any(feature = "sabotage", not(target_os = "linux")))]
fn sync_below(directory: &std::path::Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let synced = if entry.file_type()?.is_dir() {
            sync_below(&entry.path())
        } else {
            File::open(entry.path()).and_then(|file| file.sync_all())
        };
        match synced {
            // It was renamed or removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome?,
        }
    }
    File::open(directory)?.sync_all()
}
