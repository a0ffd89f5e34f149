//! Multipart uploads that a killed process left at a provider. The parts of such uploads are invisible but
//! cost money.
//!
//! An upload counts as abandoned if it is at least a day old and has no write intent. Copies renew their
//! write intents. A write that a client waits for ends before its write intent is a day old. The provider's
//! marker guarantees that no other store writes there.

use std::time::Duration;

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::file::path::BlobKey;
use crate::domain::provider::ProviderCode;
use crate::metadata::Referrer;
use crate::storage::{Cloud, UnfinishedUpload, UploadsPlace};

/// The age at which an upload without a write intent counts as abandoned.
const LEFT_AFTER: Duration = Duration::from_hours(24);

/// Abandoned uploads.
pub(in crate::worker) struct LeftUploads {
    pub(in crate::worker) uploads: Vec<UnfinishedUpload>,
    /// Position of the next page. `None` at the end.
    pub(in crate::worker) next: Option<UploadsPlace>,
}

/// Aborts abandoned uploads at a provider. Returns their number. A failure does not stop the others, and the
/// first failure is returned at the end. Ends early once `stop` returns true.
pub(in crate::worker) async fn abort(
    store: &FileStore,
    holder: &ProviderCode,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<u64> {
    let cloud = store.inner().stores.providers().cloud(holder)?.clone();
    if !cloud.was_used().await? {
        return Ok(0);
    }

    cloud.check_marker().await?;
    let (mut after, mut aborted, mut outcome) = (None, 0, Ok(()));
    while !stop() {
        let LeftUploads { uploads, next } = list(store, &cloud, after).await?;
        for upload in uploads {
            // Where the clock has leapt, no age says anything.
            if stop() || !store.inner().background.may_remove() {
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

/// Lists the next abandoned uploads.
pub(in crate::worker) async fn list(
    store: &FileStore,
    cloud: &Cloud,
    after: Option<UploadsPlace>,
) -> Result<LeftUploads> {
    let page = cloud.unfinished_uploads(after).await?;
    let before = store.inner().now().minus(LEFT_AFTER);
    let (keys, old): (Vec<_>, Vec<_>) = page
        .uploads
        .into_iter()
        .filter(|upload| upload.begun_at < before)
        .filter_map(|upload| Some((upload.name.parse::<BlobKey>().ok()?, upload)))
        .unzip();

    let referrers = store.inner().metadata.inspection().referrers(cloud.code(), &keys).await?;
    let left = old.into_iter().zip(referrers);
    let uploads = left
        .filter(|(_, referrer)| !matches!(referrer, Referrer::Note))
        .map(|(upload, _)| upload)
        .collect();
    Ok(LeftUploads { uploads, next: page.next })
}
