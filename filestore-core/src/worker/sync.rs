//! Sync: files that wait for their organization's provider.
//!
//! Every provider is LOCAL for now, so what waits has nowhere to go and settles as NONE. A file whose
//! organization is bound to a CLOUD provider stays PENDING for the copy.

use super::progress::Progress;
use crate::FileStore;
use crate::api::{SyncReport, SyncStatusReport};
use crate::domain::error::Result;
use crate::domain::status::SyncStatus;

/// Files settled in one transaction: small, so that uploads do not wait long behind it.
const PAGE: usize = 500;

impl FileStore {
    /// Settles every waiting file that has nowhere to go. Progress counts files.
    pub async fn sync_run(&self, progress: &dyn Progress) -> Result<SyncReport> {
        self.sync_until(&|| false, progress).await
    }

    /// [`sync_run`](Self::sync_run) that ends early, between two transactions, once `stop` says so.
    pub(super) async fn sync_until(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        progress: &dyn Progress,
    ) -> Result<SyncReport> {
        let metadata = &self.inner().metadata;
        progress.start(Some(metadata.sync_counts().await?[SyncStatus::Pending as usize]));
        let cloud = self.providers().cloud_codes();
        let mut report = SyncReport::default();
        while !stop() {
            let settled = metadata.settle_sync(&cloud, PAGE).await?.len();
            if settled == 0 {
                break;
            }
            report.settled += settled as u64;
            progress.advance(settled as u64);
        }
        Ok(report)
    }

    /// How many files are in which sync status, deleted ones left out.
    pub async fn sync_status(&self) -> Result<SyncStatusReport> {
        let [none, pending, syncing, synced, failed] = self.inner().metadata.sync_counts().await?;
        Ok(SyncStatusReport { none, pending, syncing, synced, failed })
    }
}
