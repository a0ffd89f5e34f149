//! Destinations of snapshots.
//!
//! A destination that was used once is known again by its marker, also when the disk that belongs there is
//! not mounted and the directory beneath is empty, or when a provider is another bucket: snapshots do not go
//! there. Its id tells it from others in the same place.

use std::sync::Arc;

use super::Backups;
use crate::FileStore;
use crate::domain::config::BackupPlace;
use crate::domain::error::{Error, Result};
use crate::storage::backup::{BackupBucket, BackupDirectory, Destination, Known, blocking};

impl FileStore {
    /// Opens a destination; see [`Admin::backups`](crate::worker::Admin::backups).
    pub(in crate::worker) async fn destination(&self, name: &str) -> Result<Backups> {
        let place = self.destination_place(name)?;
        let stood = self.stood_at(&place).await?;
        let known = if stood.is_empty() { Known::Unused } else { Known::Used };
        let destination = self.open_place(place, known).await?;
        if known == Known::Unused {
            self.note_destination(&*destination).await?;
        }
        Ok(Backups { destination, store: Some(self.id()) })
    }

    async fn open_place(&self, place: BackupPlace, known: Known) -> Result<Arc<dyn Destination>> {
        match place {
            BackupPlace::Directory(path) => {
                let open = match known {
                    Known::Used => BackupDirectory::reopen,
                    Known::Unused => BackupDirectory::prepare,
                };
                let directory = blocking("opening snapshots", move || open(&path)).await?;
                Ok(Arc::new(directory))
            }
            BackupPlace::Provider(code) => {
                let providers = self.providers();
                let cloud = providers.cloud(&code)?;
                let bucket = match known {
                    Known::Used => BackupBucket::reopen(cloud).await?,
                    Known::Unused => BackupBucket::prepare(cloud, self.inner().now()).await?,
                };
                Ok(Arc::new(bucket))
            }
        }
    }

    /// Finds a destination of the configuration; see
    /// [`Admin::backup_place`](crate::worker::Admin::backup_place).
    pub(in crate::worker) fn destination_place(&self, name: &str) -> Result<BackupPlace> {
        let config = self.config();
        let destinations = &config.backup_destinations;
        let known = destinations.iter().find(|known| known.name == name);
        known.map(|known| known.place.clone()).ok_or_else(|| {
            let missing = Error::not_found("backup destination").with_field("destination");
            missing.with_allowed(destinations.iter().map(|known| known.name.as_str()))
        })
    }

    /// Notes a place as one that snapshots go to, by its id, which it gets now if it has none.
    pub(super) async fn note_destination(&self, destination: &dyn Destination) -> Result<()> {
        let id = destination.identify(self.inner().now()).await?;
        self.note_destination_at(&destination.place(), id).await
    }
}
