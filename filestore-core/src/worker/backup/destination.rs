//! Destinations of the configuration.
//!
//! A destination that was used once is known again by its marker, also when the disk that belongs there is
//! not mounted and the directory beneath is empty: snapshots do not go to the disk beneath.

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

        let (metadata, setting) = (&self.inner().metadata, marked(&known.path));
        if metadata.settings().await?.contains_key(&setting) {
            return Backups::reopen(&known.path).await;
        }
        let backups = Backups::prepare(&known.path).await?;
        metadata.put_settings([(setting, "1".to_owned())].into()).await?;
        Ok(backups)
    }
}
