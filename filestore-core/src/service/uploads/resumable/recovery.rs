//! The resumable uploads of an earlier process: which staged files stay, and which uploads go on.

use std::collections::HashSet;

use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::resumable::UploadStage;
use crate::domain::id::BlobId;
use crate::metadata::UploadRow;
use crate::service::FileStore;
use crate::service::uploads::quota::QuotaReservation;
use crate::storage::StagedPoint;

/// Rows read at once.
const PAGE: usize = 200;

/// Brings the uploads of this server's disk back, and returns the staged files that belong to them. The rows are
/// read before recovery unlinks the first file. The caller serves nobody yet.
pub(in crate::service) async fn recover(store: &FileStore) -> Result<HashSet<BlobId>> {
    let inner = store.inner();
    let server = inner.metadata.server_name();
    let (mut kept, mut after) = (HashSet::new(), None);
    loop {
        let rows = inner.metadata.live_uploads(&server, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = Some(last.upload_id);
        for row in &rows {
            kept.insert(row.blob_id);
            match go_on(store, row).await {
                // A later request tries again. What is stored can be read meanwhile.
                Err(error) if error.is_lack_of_room() => {}
                outcome => outcome?,
            }
        }
    }
    if !kept.is_empty() {
        tracing::info!(uploads = kept.len(), "resumable uploads go on");
    }
    Ok(kept)
}

async fn go_on(store: &FileStore, row: &UploadRow) -> Result<()> {
    let inner = store.inner();
    let there = inner.stores.local().staged_bytes(row.blob_id).await?.unwrap_or(0);
    // Otherwise the next request reads the bytes from the parts.
    let is_lost = there < row.offset && !store.resumable().is_covered(row).await?;
    if is_lost {
        let missing = row.offset - there;
        tracing::error!(upload_id = %row.upload_id, missing, "an upload lost bytes that it had");
        let message = "bytes of the upload are missing on the disk";
        let error = Error::new(ErrorKind::RecordDamaged, message);
        return store.resumable().fail(row, &error).await;
    }
    if row.stage == UploadStage::Completing {
        store.resumable().reopen(row).await?;
    }
    if there >= row.offset {
        // Another server may be about to take it: the next request here raises the epoch.
        let earlier = UploadRow { epoch: 0, ..row.clone() };
        let point = StagedPoint::of(row.offset, &row.digest, &row.head);
        store.resumable().note_copy(&earlier, point);
    }
    let bytes = row.length.unwrap_or(row.offset);
    let reservation = QuotaReservation::hold(store, &row.organization, bytes);
    inner.uploads.resumable.hold(row.upload_id, reservation);
    Ok(())
}
