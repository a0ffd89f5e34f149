//! Uploads in parts that a killed process left at a provider, whose parts nobody sees and somebody pays for.
//!
//! An upload is taken for left if it was begun a day ago and no noted write has its name. Copies renew their
//! notes, and a write that a client waits for ends before its note is a day old. The provider's marker says that
//! no other store writes there.

use std::time::Duration;

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::metadata::Referrer;
use crate::storage::{Cloud, UnfinishedUpload, UploadsPlace};

/// Age from which nobody works on an upload without a note.
const LEFT_AFTER: Duration = Duration::from_hours(24);

/// Uploads that nobody works on any more.
pub(super) struct LeftUploads {
    pub(super) uploads: Vec<UnfinishedUpload>,
    /// The place to go on after; `None` at the end.
    pub(super) next: Option<UploadsPlace>,
}

impl FileStore {
    /// Aborts what is left of uploads at a provider; returns how many. One that fails keeps no other from it:
    /// the first failure is returned at the end. Ends early once `stop` returns true.
    pub(super) async fn abort_left_uploads(
        &self,
        holder: &ProviderCode,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64> {
        let cloud = self.inner().stores.providers().cloud(holder)?.clone();
        if !cloud.was_used().await? {
            return Ok(0);
        }

        cloud.check_marker().await?;
        let (mut after, mut aborted, mut outcome) = (None, 0, Ok(()));
        while !stop() {
            let LeftUploads { uploads, next } = self.left_uploads(&cloud, after).await?;
            for upload in uploads {
                // Where the clock has leapt, no age says anything.
                if stop() || !self.may_remove() {
                    return outcome.map(|()| aborted);
                }

                let name = upload.name.clone();
                match cloud.abort_upload(upload).await {
                    Ok(()) => {
                        tracing::info!(provider = %holder, name, "aborted an upload that nobody finished");
                        aborted += 1;
                    }
                    Err(error) => outcome = outcome.and(Err(error)),
                }
            }

            if next.is_none() {
                break;
            }
            after = next;
        }
        outcome.map(|()| aborted)
    }

    /// Lists the next uploads that nobody works on any more.
    pub(super) async fn left_uploads(
        &self,
        cloud: &Cloud,
        after: Option<UploadsPlace>,
    ) -> Result<LeftUploads> {
        let page = cloud.unfinished_uploads(after).await?;
        let before = self.inner().now().minus(LEFT_AFTER);
        let (keys, old): (Vec<_>, Vec<_>) = page
            .uploads
            .into_iter()
            .filter(|upload| upload.begun_at < before)
            .filter_map(|upload| Some((upload.name.parse::<BlobKey>().ok()?, upload)))
            .unzip();

        let referrers = self.inner().metadata.referrers(cloud.code(), &keys).await?;
        let left = old.into_iter().zip(referrers);
        let uploads = left
            .filter(|(_, referrer)| !matches!(referrer, Referrer::Note))
            .map(|(upload, _)| upload)
            .collect();
        Ok(LeftUploads { uploads, next: page.next })
    }
}
