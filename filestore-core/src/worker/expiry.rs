//! Expiry: TEMP files whose time is over are marked for the purge.

use crate::FileStore;
use crate::domain::error::Result;

/// Files marked in one transaction: few, so that uploads do not wait long behind it.
const PAGE: usize = 200;

impl FileStore {
    /// Marks every TEMP file whose time is over, until `stop` returns true; returns how many. Marks none
    /// while the clock is not trusted.
    pub(super) async fn expire_temp(&self, stop: &(dyn Fn() -> bool + Sync)) -> Result<u64> {
        let mut expired = 0;
        while !stop() && self.may_remove() {
            let some = self.inner().metadata.expire_temp(self.inner().now(), PAGE).await?;
            expired += some;
            if some == 0 {
                break;
            }
            self.inner().purge_wanted.notify();
        }
        Ok(expired)
    }
}
