//! Destinations of snapshots.
//!
//! A destination that was used once is known again by its marker, also when the disk that belongs there is
//! not mounted and the directory beneath is empty: snapshots do not go to the disk beneath.

use std::path::Path;

use super::Backups;
use crate::FileStore;
use crate::domain::error::{Error, Result};
use crate::service::marked;

impl FileStore {
    /// Opens a destination; see [`Admin::backups`](crate::worker::Admin::backups).
    pub(in crate::worker) async fn destination(&self, name: &str) -> Result<Backups> {
        let config = self.config();
        let destinations = &config.backup_destinations;
        let Some(known) = destinations.iter().find(|known| known.name == name) else {
            let missing = Error::not_found("backup destination").with_field("destination");
            return Err(missing.with_allowed(destinations.iter().map(|known| known.name.as_str())));
        };

        if self.has_noted(&known.path).await? {
            return Backups::reopen(&known.path).await;
        }
        let backups = Backups::prepare(&known.path).await?;
        self.note_destination(&known.path).await?;
        Ok(backups)
    }

    /// Notes a directory as one that snapshots go to, so that it is known again, and receipts look there,
    /// whether or not the configuration names it.
    pub(super) async fn note_destination(&self, path: &Path) -> Result<()> {
        if self.has_noted(path).await? {
            return Ok(());
        }
        let noted = [(marked(path), "1".to_owned())].into();
        self.inner().metadata.put_settings(noted).await
    }

    async fn has_noted(&self, path: &Path) -> Result<bool> {
        Ok(self.inner().metadata.settings().await?.contains_key(&marked(path)))
    }
}
