//! Expiry: marks expired TEMP files for the purge.

use crate::FileStore;
use crate::domain::error::Result;
use crate::domain::id::OrganizationId;

/// The number of files marked in one transaction. The number is small, so that uploads do not wait long.
const PAGE: usize = 200;

/// Marks every expired TEMP file, of one organization or of all, until `stop` returns true. Returns their
/// number. Marks no files while the clock is not trusted.
pub(in crate::worker) async fn mark_expired(
    store: &FileStore,
    organization: Option<&OrganizationId>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<u64> {
    let mut expired = 0;
    while !stop() && store.inner().background.may_remove() {
        let now = store.inner().now();
        let some = store.inner().metadata.expire_temp(organization, now, PAGE).await?;
        expired += some;
        if some == 0 {
            break;
        }
        store.inner().background.purge_wanted.notify();
    }
    Ok(expired)
}
