//! Destinations of snapshots.
//!
//! A destination that was used once is known again by its marker, also when the disk that belongs there is
//! not mounted and the directory beneath is empty: snapshots do not go to the disk beneath. Its id tells it
//! from other disks that are mounted at the same path.

use std::path::PathBuf;

use super::{Backups, blocking};
use crate::FileStore;
use crate::domain::error::{Error, Result};
use crate::storage::backup::BackupDirectory;

impl FileStore {
    /// Opens a destination; see [`Admin::backups`](crate::worker::Admin::backups).
    pub(in crate::worker) async fn destination(&self, name: &str) -> Result<Backups> {
        let path = self.destination_path(name)?;
        if !self.stood_at(&path).await?.is_empty() {
            return Backups::reopen(&path).await;
        }
        let backups = Backups::prepare(&path).await?;
        self.note_destination(&backups.directory).await?;
        Ok(backups)
    }

    /// Finds a destination of the configuration; see [`Admin::backup_path`](crate::worker::Admin::backup_path).
    pub(in crate::worker) fn destination_path(&self, name: &str) -> Result<PathBuf> {
        let config = self.config();
        let destinations = &config.backup_destinations;
        let known = destinations.iter().find(|known| known.name == name);
        known.map(|known| known.path.clone()).ok_or_else(|| {
            let missing = Error::not_found("backup destination").with_field("destination");
            missing.with_allowed(destinations.iter().map(|known| known.name.as_str()))
        })
    }

    /// Notes a directory as one that snapshots go to, by its id, which it gets now if it has none.
    pub(super) async fn note_destination(&self, directory: &BackupDirectory) -> Result<()> {
        let (identified, now) = (directory.clone(), self.inner().now());
        let id = blocking("opening snapshots", move || identified.identify(now)).await?;
        self.note_destination_at(directory.path(), id).await
    }
}
