//! Destinations of snapshots.
//!
//! The store recognizes a destination by its marker after the first use. If a destination's disk is not
//! mounted and the directory is empty, or if a provider is another bucket, no snapshots go there. The id
//! distinguishes destinations in the same place.

use std::sync::Arc;

use super::Backups;
use crate::FileStore;
use crate::domain::config::BackupPlace;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::event::{EventDetails, EventKind};
use crate::domain::report::backup::BackupReport;
use crate::storage::backup::{BackupBucket, BackupDirectory, Destination, Known, blocking};

/// Opens a destination. See [`Admin::backups`](crate::worker::Admin::backups).
pub(in crate::worker) async fn open(store: &FileStore, name: &str) -> Result<Backups> {
    let place = place(store, name)?;
    let stood = store.inner().destinations.stood_at(&place).await?;
    let known = if stood.is_empty() { Known::Unused } else { Known::Used };
    let destination = open_place(store, place, known).await?;
    if known == Known::Unused {
        note(store, &*destination).await?;
    }
    Ok(Backups { destination, store: Some(store.id()) })
}

async fn open_place(
    store: &FileStore,
    place: BackupPlace,
    known: Known,
) -> Result<Arc<dyn Destination>> {
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
            let providers = store.providers();
            let cloud = providers.cloud(&code)?;
            let bucket = match known {
                Known::Used => BackupBucket::reopen(cloud).await?,
                Known::Unused => BackupBucket::prepare(cloud, store.inner().now()).await?,
            };
            Ok(Arc::new(bucket))
        }
    }
}

impl Backups {
    /// Notes the end of a run in the log of events, and the time of a complete snapshot without a fault. A failure is a
    /// warning: the snapshot is there.
    pub(in crate::worker) async fn note_end(
        &self,
        store: &FileStore,
        outcome: &Result<BackupReport>,
    ) {
        if outcome.as_ref().is_err_and(|error| never_began(error.kind())) {
            return;
        }
        let place = self.destination.place();
        let good = outcome.as_ref().ok().filter(|report| report.is_good());
        let destinations = &store.config().backup_destinations;
        let known = destinations.iter().find(|known| known.place == place);
        let details = EventDetails {
            // An event contains no path of this machine.
            reason: known.map(|known| known.name.clone()),
            ok: Some(good.is_some()),
            ..EventDetails::default()
        };
        store.inner().note_event(EventKind::BackupEnded, None, details).await;

        let Some(report) = good else { return };
        let at = report.snapshot.created_at;
        if let Err(error) = store.inner().destinations.note_backup(&place, at).await {
            tracing::warn!(error = %error.chain(), "the time of a snapshot was not noted for the metrics");
        }
    }
}

/// Tests whether another run was in the way.
fn never_began(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Busy | ErrorKind::Locked)
}

/// Finds a destination of the configuration; see
/// [`Admin::backup_place`](crate::worker::Admin::backup_place).
pub(in crate::worker) fn place(store: &FileStore, name: &str) -> Result<BackupPlace> {
    let config = store.config();
    let destinations = &config.backup_destinations;
    let known = destinations.iter().find(|known| known.name == name);
    known.map(|known| known.place.clone()).ok_or_else(|| {
        let missing = Error::not_found("backup destination").with_field("destination");
        missing.with_allowed(destinations.iter().map(|known| known.name.as_str()))
    })
}

/// Records a place as a destination by its id. Creates an id if there is none.
pub(super) async fn note(store: &FileStore, destination: &dyn Destination) -> Result<()> {
    let id = destination.identify(store.inner().now()).await?;
    store.inner().destinations.note(&destination.place(), id).await
}
