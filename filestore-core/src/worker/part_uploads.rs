//! Uploads in parts that a killed process left at a provider, whose parts nobody sees and somebody pays for.
//!
//! An upload is taken for left if it was begun a day ago and no write that is noted, and whose note is
//! renewed while it is under way, has its name. The provider's marker says that no other store writes there.

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
    /// Aborts what is left of uploads at a provider; returns how many. Ends early once `stop` returns true.
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
        let (mut after, mut aborted) = (None, 0);
        loop {
            let LeftUploads { uploads, next } = self.left_uploads(&cloud, after).await?;
            for upload in uploads {
                // Where the clock has leapt, no age says anything.
                if stop() || !self.may_remove() {
                    return Ok(aborted);
                }

                let name = upload.name.clone();
                cloud.abort_upload(upload).await?;
                tracing::info!(provider = %holder, name, "aborted an upload that nobody finished");
                aborted += 1;
            }

            if next.is_none() {
                return Ok(aborted);
            }
            after = next;
        }
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
